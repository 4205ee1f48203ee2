#include "model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/os.h"

enum { MOST_FILES = 65536 };

typedef struct name_list {
    prg_arena *arena;
    const char **names;
    size_t count, capacity;
    prg_allocator *allocator;
    bool failed, too_many;
} name_list;

static bool take_shard(void *user, const char *name) {
    static const char ending[] = ".safetensors";
    name_list *list = user;
    size_t length = strlen(name);
    if (length < sizeof ending || strcmp(name + length - (sizeof ending - 1), ending) != 0) {
        return true;
    }
    if (list->count == MOST_FILES) {
        list->too_many = true;
        return false;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 128;
        const char **grown = prg_realloc(list->allocator, list->names, capacity * sizeof *grown);
        if (!grown) {
            list->failed = true;
            return false;
        }
        list->names = grown;
        list->capacity = capacity;
    }
    char *copy = prg_arena_strndup(list->arena, name, length);
    list->failed = !copy;
    list->names[list->count] = copy;
    list->count += copy != NULL;
    return copy != NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *join(prg_arena *arena, const char *folder, const char *name) {
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = prg_arena_alloc(arena, room, 1);
    if (path) {
        snprintf(path, room, "%s/%s", folder, name);
    }
    return path;
}

static perigee_status list_shards(prg_checkpoint *c, perigee_error **err) {
    name_list list = {.arena = &c->arena, .allocator = c->allocator};
    int error = prg_os_list(c->folder, take_shard, &list);
    perigee_status st = PERIGEE_OK;
    if (error) {
        st = prg_fail_at(err, PERIGEE_E_IO, (prg_where){NULL, c->folder, -1, -1}, "%s: %s", c->folder,
                         prg_os_error_text(error));
    } else if (list.failed) {
        st = prg_fail_memory(err);
    } else if (list.too_many) {
        st = prg_fail_at(err, PERIGEE_E_UNSUPPORTED, (prg_where){NULL, c->folder, -1, -1},
                         "%s has more than %d *.safetensors files", c->folder, MOST_FILES);
    }
    if (st == PERIGEE_OK && list.count) {
        qsort(list.names, list.count, sizeof *list.names, by_name);
        c->names = prg_arena_alloc(&c->arena, list.count, sizeof *c->names);
        c->paths = prg_arena_alloc(&c->arena, list.count, sizeof *c->paths);
        st = c->names && c->paths ? PERIGEE_OK : prg_fail_memory(err);
    }
    for (size_t i = 0; st == PERIGEE_OK && i < list.count; i++) {
        c->names[i] = list.names[i];
        c->paths[i] = join(&c->arena, c->folder, list.names[i]);
        st = c->paths[i] ? PERIGEE_OK : prg_fail_memory(err);
        c->file_count = i + 1;
    }
    prg_free(c->allocator, list.names);
    return st;
}

typedef struct shard {
    prg_checkpoint *checkpoint;
    uint32_t file;
} shard;

static perigee_status take_tensor(void *user, const prg_tensor_entry *entry, perigee_error **err) {
    shard *s = user;
    prg_checkpoint *c = s->checkpoint;
    const prg_tensor *same = prg_tensors_find(&c->tensors, prg_tensor_hash(entry->name, entry->name_length));
    if (same) {
        return prg_fail_at(
            err, PERIGEE_E_FORMAT, (prg_where){entry->name, c->paths[s->file], (int64_t)entry->offset, -1},
            "tensor %s comes twice: in %s and in %s", entry->name, c->names[same->file], c->names[s->file]);
    }
    return prg_tensors_add(&c->tensors, entry, s->file, err);
}

static perigee_status read_headers(prg_checkpoint *c, perigee_error **err) {
    perigee_status st = PERIGEE_OK;
    for (size_t i = 0; st == PERIGEE_OK && i < c->file_count; i++) {
        prg_file file;
        shard s = {c, (uint32_t)i};
        st = prg_file_open(c->paths[i], c->io, &file, err);
        if (st == PERIGEE_OK) {
            st = prg_safetensors_read(c->allocator, &file, take_tensor, &s, err);
            prg_file_close(&file);
        }
    }
    return st;
}

perigee_status prg_checkpoint_open(prg_allocator *allocator, const prg_log *log, const prg_io *io, const char *path,
                                   bool config_alone, prg_checkpoint *out, perigee_error **err) {
    *out = (prg_checkpoint){.allocator = allocator, .log = log, .io = io};
    prg_arena_init(&out->arena, allocator);
    prg_tensors_init(&out->tensors, allocator);
    bool folder = prg_os_is_folder(path);
    if (!folder && !config_alone) {
        return prg_fail_at(err, PERIGEE_E_NOT_FOUND, (prg_where){NULL, path, -1, -1}, "%s is not a folder", path);
    }
    out->folder = prg_arena_strndup(&out->arena, path, strlen(path));
    if (!out->folder) {
        return prg_fail_memory(err);
    }
    perigee_status st = prg_config_read(&out->arena, path, &out->config, err);
    if (st == PERIGEE_OK && folder) {
        st = list_shards(out, err);
    }
    if (st == PERIGEE_OK && out->file_count == 0 && !config_alone) {
        st = prg_fail_at(err, PERIGEE_E_NOT_FOUND, (prg_where){NULL, path, -1, -1}, "%s has no *.safetensors file",
                         path);
    }
    if (st == PERIGEE_OK && out->file_count) {
        st = read_headers(out, err);
        if (st == PERIGEE_OK) {
            st = prg_checkpoint_check_index(out, err);
        }
    }
    return st;
}

void prg_checkpoint_close(prg_checkpoint *checkpoint) {
    prg_tensors_free(&checkpoint->tensors);
    prg_arena_free(&checkpoint->arena);
}
