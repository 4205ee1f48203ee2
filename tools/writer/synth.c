#include "synth.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "synth_tensors.h"

typedef struct job {
    const synth_request *request;
    synth_report *report;
    synth_family family;
    synth_source *source;
    writer_file *file;
    FILE *index;
    char file_name[64];
    bool made;      /* the folder is this call's */
    size_t started; /* files of tensors, the unfinished one included */
} job;

static bool fail(job *j, const char *what, const char *about) {
    if (!j->report->error[0]) {
        snprintf(j->report->error, sizeof j->report->error, "%s%s%s", about, *about ? ": " : "", what);
    }
    return false;
}

/* First pass over a file: the header and the index. */
static bool name_tensor(void *user, const synth_tensor *tensor) {
    job *j = user;
    if (!writer_add(j->file, tensor->name, tensor->dtype, tensor->shape, tensor->rank)) {
        return false;
    }
    j->report->tensors++;
    return fprintf(j->index, "%s\n    \"%s\": \"%s\"", j->report->tensors > 1 ? "," : "", tensor->name, j->file_name) >
           0;
}

static uint64_t key_of(const char *name) {
    uint64_t key = 0xCBF29CE484222325U;
    for (; *name; name++) {
        key = (key ^ (unsigned char)*name) * 0x100000001B3U;
    }
    return key;
}

/* Second pass: the data. */
static bool fill_tensor(void *user, const synth_tensor *tensor) {
    job *j = user;
    synth_kind kind = tensor->values.kind;
    bool packed = kind == SYNTH_CODES_MXFP4 || kind == SYNTH_CODES_INT4;
    uint64_t count = packed ? writer_dtype_bytes(tensor->dtype) : 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        count *= tensor->shape[i];
    }
    return synth_source_write(j->source, j->file, &tensor->values, count, key_of(tensor->name));
}

/* The formats are the family's own, not a caller's. */
static void name_file(job *j, size_t index, size_t count) {
    snprintf(j->file_name, sizeof j->file_name, j->family.file_format, (int)index + 1, (int)count);
}

static bool write_file(job *j, size_t index, size_t count) {
    name_file(j, index, count);
    j->started = index + 1;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", j->request->folder, j->file_name);
    j->file = writer_open(path);
    if (!j->file) {
        return fail(j, "out of memory", path);
    }
    writer_heed(j->file, j->request->stop);
    bool good = synth_walk_file(&j->family, index, name_tensor, j) && writer_begin(j->file);
    if (good) {
        j->report->data_bytes += writer_data_bytes(j->file);
        j->report->files++;
        good = j->request->sparse ? writer_hole(j->file, writer_data_bytes(j->file))
                                  : synth_walk_file(&j->family, index, fill_tensor, j);
    }
    if (!good) {
        const char *said = writer_error(j->file);
        fail(j, *said ? said : "out of memory or disk", *said ? "" : path);
    }
    return writer_close(j->file, good) || fail(j, "could not be written", path);
}

static bool write_files(job *j) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/model.safetensors.index.json", j->request->folder);
    if (length < 0 || (size_t)length >= sizeof path - 64) {
        return fail(j, "path too long", j->request->folder);
    }
    j->index = fopen(path, "w");
    if (!j->index) {
        return fail(j, strerror(errno), path);
    }
    bool good = fputs("{\n  \"weight_map\": {", j->index) >= 0;
    size_t count = synth_file_count(&j->family);
    for (size_t i = 0; good && i < count; i++) {
        good = write_file(j, i, count);
        if (good && j->request->progress && !j->request->progress(i + 1, count, j->request->user)) {
            good = fail(j, "stopped", "");
        }
    }
    good = good &&
           fprintf(j->index, "\n  },\n  \"metadata\": {\"total_size\": %" PRIu64 "}\n}\n", j->report->data_bytes) > 0;
    return fclose(j->index) == 0 && good ? true : fail(j, "could not be written", path);
}

/* The folder is there and empty: files of another checkpoint would be taken for shards of this one. */
static bool make_folder(job *j) {
    const char *folder = j->request->folder;
    j->made = mkdir(folder, 0777) == 0;
    if (!j->made && errno != EEXIST) {
        return fail(j, strerror(errno), folder);
    }
    DIR *listing = opendir(folder);
    if (!listing) {
        return fail(j, strerror(errno), folder);
    }
    bool empty = true;
    for (const struct dirent *entry = readdir(listing); entry; entry = readdir(listing)) {
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    }
    closedir(listing);
    return empty || fail(j, "folder is not empty", folder);
}

/* Half a checkpoint would be taken for a damaged one: what this call wrote goes. The folder was empty. */
static void remove_files(job *j) {
    static const char *const names[] = {"config.json", "generation_config.json", "model.safetensors.index.json"};
    char path[4096 + 64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", j->request->folder, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < j->started; i++) {
        name_file(j, i, synth_file_count(&j->family));
        snprintf(path, sizeof path, "%s/%s", j->request->folder, j->file_name);
        unlink(path);
    }
    if (j->made) {
        rmdir(j->request->folder);
    }
}

bool synth_write(const synth_request *request, synth_report *report) {
    *report = (synth_report){0};
    job j = {.request = request, .report = report};
    const synth_family *family = synth_family_find(request->family);
    if (!family) {
        return fail(&j, "unknown family", request->family);
    }
    j.family = synth_family_resize(family, request);
    if (!make_folder(&j)) {
        return false;
    }
    bool good = true;
    if (!request->sparse) {
        j.source = synth_source_new(request->seed);
        good = j.source || fail(&j, "out of memory", "");
    }
    good = good && (synth_write_configs(&j.family, request->folder) || fail(&j, "no config written", request->folder));
    good = good && write_files(&j);
    synth_source_free(j.source);
    if (!good) {
        remove_files(&j);
    }
    return good;
}
