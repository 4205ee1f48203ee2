/* Resident weights: one region of huge pages, groups one after another, the parts of a group side by side. It is filled
 * by the calling thread and helpers, block by block in the order of the files. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "dtype/dtype.h"
#include "os/os.h"
#include "store/backend.h"
#include "store/convert.h"

enum { ALIGNMENT = 64, BLOCK = 4 << 20, MOST_HELPERS = 16 };

typedef struct region {
    void *start;
    size_t size;
} region;

/* One read, of bytes to where they stay or of rows to convert. */
typedef struct block {
    uint64_t offset;
    uint32_t file;
    uint32_t size;
    unsigned char *to; /* NULL: to convert */
    uint32_t conversion, rows;
    uint64_t first;
} block;

typedef struct loading {
    const prg_store_plan *plan;
    const prg_store *store;
    prg_file *files;
    block *blocks;
    size_t count;
    unsigned char *buffers; /* of each thread, for what is converted */
    size_t buffer_bytes;
    atomic_size_t next;
    atomic_size_t workers; /* threads that have begun */
    _Atomic int64_t done;
    atomic_bool stop;
    pthread_mutex_t lock; /* of the two below */
    perigee_status status;
    perigee_error *error;
} loading;

static void close_region(prg_store *store) {
    region *r = store->own;
    prg_os_pages_free(r->start, r->size);
    prg_free(store->allocator, r);
}

static const prg_store_ops resident_ops = {close_region, NULL, NULL, NULL};

int64_t prg_store_resident_bytes(const prg_part *parts, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += prg_round_up((size_t)parts[i].size, ALIGNMENT);
    }
    return (int64_t)total;
}

/* Where each part begins, ordered by group: a counting sort. */
static perigee_status lay_out(prg_store *s, const prg_store_plan *plan, size_t *total, perigee_error **err) {
    size_t *at = prg_calloc(s->allocator, plan->group_count + 1, sizeof *at);
    if (!at) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < plan->part_count; i++) {
        at[plan->parts[i].group + 1] += prg_round_up((size_t)plan->parts[i].size, ALIGNMENT);
    }
    for (size_t g = 0; g < plan->group_count; g++) {
        at[g + 1] += at[g];
    }
    *total = at[plan->group_count];
    region *r = s->own;
    int error = prg_os_pages_new(prg_max(*total, 1), &r->start);
    if (error) {
        prg_free(s->allocator, at);
        return prg_fail(err, PERIGEE_E_MEMORY, "no memory for %zu bytes of resident weights: %s", *total,
                        prg_os_error_text(error));
    }
    r->size = prg_max(*total, 1);
    for (size_t i = 0; i < plan->part_count; i++) {
        size_t *cursor = &at[plan->parts[i].group];
        s->address[i] = (unsigned char *)r->start + *cursor;
        *cursor += prg_round_up((size_t)plan->parts[i].size, ALIGNMENT);
    }
    prg_free(s->allocator, at);
    return PERIGEE_OK;
}

static int by_place(const void *a, const void *b) {
    const block *x = a, *y = b;
    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void add_part_blocks(loading *l, size_t part) {
    const prg_part *p = &l->plan->parts[part];
    for (uint64_t begin = 0; begin < p->size && p->file != PRG_PART_MADE; begin += BLOCK) {
        uint64_t size = p->size - begin < BLOCK ? p->size - begin : BLOCK;
        unsigned char *to = (unsigned char *)(uintptr_t)l->store->address[part] + begin;
        l->blocks[l->count++] = (block){p->offset + begin, p->file, (uint32_t)size, to, 0, 0, 0};
    }
}

static void add_conversion_blocks(loading *l, size_t conversion) {
    const prg_conversion *c = &l->plan->conversions[conversion];
    const uint64_t row = prg_dtype_row_bytes(c->dtype, (size_t)c->cols), step = prg_convert_rows_of(c);
    for (uint64_t first = 0; first < c->rows; first += step) {
        uint64_t rows = c->rows - first < step ? c->rows - first : step;
        l->blocks[l->count++] =
            (block){c->offset + first * row, c->file, (uint32_t)(rows * row), NULL, (uint32_t)conversion,
                    (uint32_t)rows,          first};
    }
}

static perigee_status make_blocks(loading *l, prg_store *s, perigee_error **err) {
    size_t count = 0;
    for (size_t i = 0; i < l->plan->part_count; i++) {
        count += ((size_t)l->plan->parts[i].size + BLOCK - 1) / BLOCK;
    }
    for (size_t i = 0; i < l->plan->conversion_count; i++) {
        const prg_conversion *c = &l->plan->conversions[i];
        count += (size_t)c->rows / prg_convert_rows_of(c) + 1;
    }
    l->blocks = prg_calloc(s->allocator, count, sizeof *l->blocks);
    if (!l->blocks) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < l->plan->part_count; i++) {
        add_part_blocks(l, i);
    }
    for (size_t i = 0; i < l->plan->conversion_count; i++) {
        add_conversion_blocks(l, i);
    }
    qsort(l->blocks, l->count, sizeof *l->blocks, by_place);
    return PERIGEE_OK;
}

static perigee_status open_files(loading *l, prg_store *s, perigee_error **err) {
    l->files = prg_calloc(s->allocator, l->plan->file_count, sizeof *l->files);
    if (!l->files) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < l->plan->file_count; i++) {
        l->files[i].fd = -1;
    }
    for (size_t i = 0; i < l->plan->file_count; i++) {
        perigee_status st = prg_file_open(l->plan->files[i], l->plan->io, &l->files[i], err);
        if (st != PERIGEE_OK) {
            return st;
        }
    }
    return PERIGEE_OK;
}

static void fail_load(loading *l, perigee_status status, perigee_error *error) {
    pthread_mutex_lock(&l->lock);
    if (l->status == PERIGEE_OK) {
        l->status = status;
        l->error = error;
        error = NULL;
    }
    pthread_mutex_unlock(&l->lock);
    perigee_error_free(error);
    atomic_store(&l->stop, true);
}

static perigee_status read_block(loading *l, const block *b, unsigned char *buffer, perigee_error **err) {
    const prg_file *file = &l->files[b->file];
    if (b->to) {
        return prg_file_read(file, b->offset, b->to, b->size, err);
    }
    const prg_conversion *c = &l->plan->conversions[b->conversion];
    return prg_convert_rows(c, file, (size_t)b->first, b->rows, buffer,
                            (int8_t *)(uintptr_t)l->store->address[c->codes],
                            (unsigned char *)(uintptr_t)l->store->address[c->scales], err);
}

static unsigned char *own_buffer(loading *l) {
    size_t worker = atomic_fetch_add(&l->workers, 1);
    return l->buffers ? l->buffers + worker * l->buffer_bytes : NULL;
}

/* Read the next block; false if there is none or the load has failed. */
static bool read_one(loading *l, unsigned char *buffer) {
    if (atomic_load(&l->stop)) {
        return false;
    }
    size_t i = atomic_fetch_add(&l->next, 1);
    if (i >= l->count) {
        return false;
    }
    perigee_error *error = NULL;
    const block *b = &l->blocks[i];
    perigee_status st = read_block(l, b, buffer, &error);
    if (st != PERIGEE_OK) {
        fail_load(l, st, error);
        return false;
    }
    atomic_fetch_add(&l->done, b->size);
    return true;
}

static void *help(void *argument) {
    unsigned char *buffer = own_buffer(argument);
    while (read_one(argument, buffer)) {
    }
    return NULL;
}

static void report(loading *l, int64_t total, const prg_load_control *control) {
    perigee_error *error = NULL;
    if (!control || atomic_load(&l->stop)) {
        return;
    }
    if (control->progress && control->progress(atomic_load(&l->done), total, control->user) != 0) {
        prg_fail(&error, PERIGEE_E_CALLBACK, "the load was stopped by the progress callback");
        fail_load(l, PERIGEE_E_CALLBACK, error);
    } else if (perigee_cancel_triggered(control->cancel)) {
        prg_fail(&error, PERIGEE_E_CANCELLED, "the load was cancelled");
        fail_load(l, PERIGEE_E_CANCELLED, error);
    }
}

/* Helpers take no signals of the host. With fewer than asked for, or none, the calling thread does the work. */
static size_t start_helpers(loading *l, pthread_t *helpers, size_t wanted) {
    sigset_t all, before;
    size_t started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted && pthread_create(&helpers[started], NULL, help, l) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static perigee_status make_buffers(loading *l, size_t threads, perigee_error **err) {
    size_t bytes = prg_convert_buffer_bytes(l->plan->conversions, l->plan->conversion_count);
    if (bytes > 0) {
        l->buffer_bytes = prg_round_up(bytes, ALIGNMENT);
        l->buffers = prg_calloc(l->store->allocator, threads, l->buffer_bytes);
    }
    return bytes == 0 || l->buffers ? PERIGEE_OK : prg_fail_memory(err);
}

static perigee_status read_all(loading *l, size_t threads, const prg_load_control *control, perigee_error **err) {
    int64_t total = 0;
    for (size_t i = 0; i < l->count; i++) {
        total += l->blocks[i].size;
    }
    total = total > 0 ? total : 1;
    pthread_t helpers[MOST_HELPERS];
    size_t wanted = prg_min(prg_min(prg_max(threads, 1) - 1, MOST_HELPERS), l->count);
    perigee_status st = make_buffers(l, wanted + 1, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    report(l, total, control);
    size_t started = start_helpers(l, helpers, wanted);
    unsigned char *buffer = own_buffer(l);
    while (read_one(l, buffer)) {
        report(l, total, control);
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(helpers[i], NULL);
    }
    report(l, total, control);
    if (l->status != PERIGEE_OK && err) {
        *err = l->error;
        l->error = NULL;
    }
    return l->status;
}

perigee_status prg_store_open_resident(prg_allocator *allocator, const prg_store_plan *plan, size_t threads,
                                       const prg_load_control *control, prg_store **out, perigee_error **err) {
    region *r = prg_calloc(allocator, 1, sizeof *r);
    if (!r) {
        return prg_fail_memory(err);
    }
    prg_store *s = NULL;
    perigee_status st = prg_store_new(allocator, plan, &resident_ops, r, &s, err);
    if (st != PERIGEE_OK) {
        prg_free(allocator, r);
        return st;
    }
    loading l = {.plan = plan, .store = s, .lock = PTHREAD_MUTEX_INITIALIZER};
    size_t total = 0;
    st = lay_out(s, plan, &total, err);
    if (st == PERIGEE_OK) {
        st = open_files(&l, s, err);
    }
    if (st == PERIGEE_OK) {
        st = make_blocks(&l, s, err);
    }
    if (st == PERIGEE_OK) {
        st = read_all(&l, threads, control, err);
    }
    for (size_t i = 0; l.files && i < plan->file_count; i++) {
        prg_file_close(&l.files[i]);
    }
    prg_free(allocator, l.files);
    prg_free(allocator, l.blocks);
    prg_free(allocator, l.buffers);
    perigee_error_free(l.error);
    pthread_mutex_destroy(&l.lock);
    s->bytes = (int64_t)total;
    if (st != PERIGEE_OK) {
        prg_store_free(s);
        return st;
    }
    *out = s;
    return PERIGEE_OK;
}
