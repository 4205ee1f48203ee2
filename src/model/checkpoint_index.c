/* model.safetensors.index.json, read as a stream: that of the largest model has 60 MB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "model/checkpoint.h"

enum { PIECE = 256 * 1024, DEPTH = 16 };

typedef struct index_reader {
    prg_checkpoint *checkpoint;
    const char *path;
    bool *seen; /* [file_count] */
    size_t depth;
    bool in_map, had_map;
    char name[PRG_TENSOR_NAME];
    size_t name_length;
    uint32_t last;
} index_reader;

#define FAIL(r, err, status, ...) prg_fail_at(err, status, (prg_where){(r)->name, (r)->path, -1, -1}, __VA_ARGS__)

/* The shard of this name. Neighbours in the index are in one shard as a rule. */
static bool find_shard(index_reader *r, const char *name, size_t length, uint32_t *out) {
    const prg_checkpoint *c = r->checkpoint;
    const char *last = c->names[r->last];
    if (strlen(last) == length && memcmp(last, name, length) == 0) {
        *out = r->last;
        return true;
    }
    for (size_t low = 0, high = c->file_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(c->names[middle], name, length);
        if (order == 0 && strlen(c->names[middle]) == length) {
            *out = r->last = (uint32_t)middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static perigee_status take_place(index_reader *r, const char *file, size_t length, perigee_error **err) {
    uint32_t shard;
    if (!find_shard(r, file, length, &shard)) {
        return FAIL(r, err, PERIGEE_E_NOT_FOUND, "shard %.*s, which holds %s by the index, is not in the folder",
                    (int)(length < 256 ? length : 256), file, r->name);
    }
    r->seen[shard] = true;
    prg_tensor *t = prg_tensors_find(&r->checkpoint->tensors, prg_tensor_hash(r->name, r->name_length));
    if (!t) {
        if (!prg_tensor_is_text(r->name, r->name_length)) {
            return PERIGEE_OK;
        }
        return FAIL(r, err, PERIGEE_E_TENSOR, "tensor %s is not in %s, where the index has it", r->name,
                    r->checkpoint->names[shard]);
    }
    if (t->file != shard && t->text) {
        return FAIL(r, err, PERIGEE_E_TENSOR, "tensor %s lies in %s, the index has it in %s", r->name,
                    r->checkpoint->names[t->file], r->checkpoint->names[shard]);
    }
    t->indexed = true;
    return PERIGEE_OK;
}

static perigee_status on_event(void *user, prg_json_event event, const char *text, size_t length, perigee_error **err) {
    index_reader *r = user;
    switch (event) {
    case PRG_JSON_EV_KEY:
        if (r->depth == 1) {
            r->in_map = length == 10 && memcmp(text, "weight_map", 10) == 0;
        } else if (r->depth == 2 && r->in_map) {
            if (length >= PRG_TENSOR_NAME || memchr(text, 0, length)) {
                return FAIL(r, err, PERIGEE_E_FORMAT, "a tensor's name in the index is too long or holds a NUL byte");
            }
            memcpy(r->name, text, length);
            r->name[length] = 0;
            r->name_length = length;
        }
        return PERIGEE_OK;
    case PRG_JSON_EV_OBJECT:
    case PRG_JSON_EV_ARRAY:
        r->had_map |= r->depth == 1 && r->in_map && event == PRG_JSON_EV_OBJECT;
        r->depth++;
        break;
    case PRG_JSON_EV_OBJECT_END:
    case PRG_JSON_EV_ARRAY_END:
        r->depth--;
        r->in_map &= r->depth > 1;
        return PERIGEE_OK;
    case PRG_JSON_EV_STRING:
        if (r->depth == 2 && r->in_map) {
            return take_place(r, text, length, err);
        }
        break;
    default:
        break;
    }
    if (r->in_map && !(r->depth == 2 && event == PRG_JSON_EV_OBJECT)) {
        return FAIL(r, err, PERIGEE_E_FORMAT, "weight_map is not an object of file names");
    }
    return PERIGEE_OK;
}

static perigee_status stream_index(index_reader *r, const prg_file *file, perigee_error **err) {
    prg_allocator *allocator = r->checkpoint->allocator;
    prg_json_stream *stream = NULL;
    char *piece = prg_alloc(allocator, PIECE);
    if (!piece) {
        return prg_fail_memory(err);
    }
    perigee_status st = prg_json_stream_new(allocator, DEPTH, r->path, on_event, r, &stream, err);
    for (uint64_t done = 0; st == PERIGEE_OK && done < file->size;) {
        size_t take = file->size - done < PIECE ? (size_t)(file->size - done) : PIECE;
        st = prg_file_read(file, done, piece, take, err);
        if (st == PERIGEE_OK) {
            st = prg_json_stream_feed(stream, piece, take, err);
        }
        done += take;
    }
    if (st == PERIGEE_OK) {
        st = prg_json_stream_end(stream, err);
    }
    if (st == PERIGEE_OK && !r->had_map) {
        st = prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, r->path, -1, -1}, "%s has no weight_map", r->path);
    }
    prg_json_stream_free(stream);
    prg_free(allocator, piece);
    return st;
}

typedef struct place_search {
    const prg_tensor *wanted;
    char name[PRG_TENSOR_NAME];
} place_search;

static perigee_status match_place(void *user, const prg_tensor_entry *entry, perigee_error **err) {
    place_search *search = user;
    (void)err;
    if (prg_tensor_hash(entry->name, entry->name_length) == search->wanted->name) {
        memcpy(search->name, entry->name, entry->name_length + 1);
    }
    return PERIGEE_OK;
}

void prg_checkpoint_name_of(const prg_checkpoint *checkpoint, const prg_tensor *tensor, char *name) {
    place_search search = {tensor, "?"};
    prg_file file;
    if (prg_file_open(checkpoint->paths[tensor->file], checkpoint->io, &file, NULL) == PERIGEE_OK) {
        prg_safetensors_read(checkpoint->allocator, &file, match_place, &search, NULL);
        prg_file_close(&file);
    }
    memcpy(name, search.name, strlen(search.name) + 1);
}

static perigee_status check_all_named(const index_reader *r, perigee_error **err) {
    const prg_checkpoint *c = r->checkpoint;
    for (size_t i = 0; i < c->file_count; i++) {
        if (!r->seen[i]) {
            return prg_fail_at(err, PERIGEE_E_MISMATCH, (prg_where){NULL, c->paths[i], -1, -1},
                               "shard %s is in the folder but not in the index", c->names[i]);
        }
    }
    for (size_t i = 0; i < c->tensors.count; i++) {
        const prg_tensor *t = &c->tensors.items[i];
        if (t->text && !t->indexed) {
            char name[PRG_TENSOR_NAME];
            prg_checkpoint_name_of(c, t, name);
            return prg_fail_at(err, PERIGEE_E_TENSOR, (prg_where){name, c->paths[t->file], (int64_t)t->offset, -1},
                               "tensor %s of %s is not in the index", name, c->names[t->file]);
        }
    }
    return PERIGEE_OK;
}

perigee_status prg_checkpoint_check_index(prg_checkpoint *checkpoint, perigee_error **err) {
    index_reader r = {.checkpoint = checkpoint};
    size_t room = strlen(checkpoint->folder) + sizeof "/model.safetensors.index.json";
    char *path = prg_arena_alloc(&checkpoint->arena, room, 1);
    r.seen = prg_arena_alloc(&checkpoint->arena, checkpoint->file_count, sizeof *r.seen);
    if (!path || !r.seen) {
        return prg_fail_memory(err);
    }
    snprintf(path, room, "%s/model.safetensors.index.json", checkpoint->folder);
    r.path = path;
    prg_file file;
    perigee_error *error = NULL;
    perigee_status st = prg_file_open(path, checkpoint->io, &file, &error);
    if (st != PERIGEE_OK) {
        bool absent = st == PERIGEE_E_NOT_FOUND;
        st = absent ? PERIGEE_OK : prg_fail(err, st, "%s", perigee_error_message(error));
        perigee_error_free(error);
        return st;
    }
    st = stream_index(&r, &file, err);
    prg_file_close(&file);
    return st == PERIGEE_OK ? check_all_named(&r, err) : st;
}
