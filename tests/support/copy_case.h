/* A writable copy of a golden checkpoint, to be damaged. */
#ifndef PRG_TESTS_COPY_CASE_H
#define PRG_TESTS_COPY_CASE_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/golden.h"

static inline char *read_whole(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    ck_assert_uint_eq(fread(data, 1, *size, f), *size);
    data[*size] = 0;
    fclose(f);
    return data;
}

static inline void write_whole(const char *path, const char *data, size_t size) {
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

/* `folder` receives the path of a new folder that holds the checkpoint. */
static inline void copy_case(const char *name, char *folder, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, size, "%s/perigee-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char from[512];
    golden_path(name, from, sizeof from);
    DIR *d = opendir(from);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        char source[1024], target[1024];
        struct stat about;
        snprintf(source, sizeof source, "%s/%s", from, e->d_name);
        snprintf(target, sizeof target, "%s/%s", folder, e->d_name);
        if (stat(source, &about) == 0 && S_ISREG(about.st_mode)) {
            size_t bytes;
            char *data = read_whole(source, &bytes);
            write_whole(target, data, bytes);
            free(data);
        }
    }
    closedir(d);
}

static inline void remove_case(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d) {
        closedir(d);
    }
    rmdir(folder);
}

/* Overwrite bytes of a tensor, `skip` bytes from its beginning, in whichever shard holds it. */
static inline void damage(const char *folder, const char *tensor, size_t skip, const void *bytes, size_t count) {
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    int found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".safetensors") != 0) {
            continue;
        }
        char path[1024], key[256];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(key, sizeof key, "\"%s\"", tensor);
        size_t size, shape[3];
        char *data = read_whole(path, &size);
        if (strstr(data + 8, key)) {
            size_t at = (size_t)((const char *)golden_tensor(data, tensor, shape) - data);
            ck_assert_uint_le(at + skip + count, size);
            memcpy(data + at + skip, bytes, count);
            write_whole(path, data, size);
            found++;
        }
        free(data);
    }
    closedir(d);
    ck_assert_msg(found == 1, "%s: in %d shards", tensor, found);
}

static inline perigee_model *load_folder(perigee_context *context, const char *folder) {
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_model_load(context, folder, SIZE_MAX, NULL, NULL, NULL, NULL, &model, &err), err);
    return model;
}

#endif
