#include "base/error.h"
#include "os/os.h"
#include "store/backend.h"

typedef struct file_map {
    const void *start;
    size_t size;
} file_map;

typedef struct maps {
    size_t count;
    file_map files[];
} maps;

static void close_maps(prg_store *store) {
    maps *m = store->own;
    for (size_t i = 0; i < m->count; i++) {
        prg_os_unmap(m->files[i].start, m->files[i].size);
    }
    prg_free(store->allocator, m);
}

static perigee_status map_file(const char *path, file_map *out, perigee_error **err) {
    prg_file file;
    perigee_status st = prg_file_open(path, NULL, &file, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    int error = prg_os_map(file.fd, (size_t)file.size, &out->start);
    out->size = (size_t)file.size;
    if (error) {
        out->start = NULL;
        st = prg_fail_at(err, PERIGEE_E_SYSTEM, (prg_where){NULL, path, -1, -1}, "%s: mapping failed: %s", path,
                         prg_os_error_text(error));
    }
    prg_file_close(&file);
    return st;
}

static const prg_store_ops mapped_ops = {close_maps, NULL, NULL, NULL};

perigee_status prg_store_open_mapped(prg_allocator *allocator, const prg_store_plan *plan, prg_store **out,
                                     perigee_error **err) {
    maps *m = prg_calloc(allocator, 1, sizeof *m + plan->file_count * sizeof *m->files);
    if (!m) {
        return prg_fail_memory(err);
    }
    prg_store *s = NULL;
    perigee_status st = prg_store_new(allocator, plan, &mapped_ops, m, &s, err);
    if (st != PERIGEE_OK) {
        prg_free(allocator, m);
        return st;
    }
    m->count = plan->file_count;
    for (size_t i = 0; st == PERIGEE_OK && i < plan->part_count; i++) {
        const prg_part *p = &plan->parts[i];
        file_map *file = &m->files[p->file];
        st = file->start ? PERIGEE_OK : map_file(plan->files[p->file], file, err);
        if (st == PERIGEE_OK && (p->offset > file->size || p->size > file->size - p->offset)) {
            st = prg_fail_at(err, PERIGEE_E_TRUNCATED, (prg_where){NULL, plan->files[p->file], (int64_t)p->offset, -1},
                             "%s became shorter", plan->files[p->file]);
        }
        if (st == PERIGEE_OK) {
            s->address[i] = (const unsigned char *)file->start + p->offset;
        }
    }
    if (st != PERIGEE_OK) {
        prg_store_free(s);
        return st;
    }
    *out = s;
    return PERIGEE_OK;
}
