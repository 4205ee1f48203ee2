#include "kernels/watched.h"

#include <string.h>

#include "base/error.h"
#include "kernels/kernel_set.h"
#include "os/machine.h"
#include "os/os.h"

typedef struct watched_row {
    perigee_kernel_row row; /* with closures */
    prg_watched functions[PRG_FUNCTIONS];
    size_t count;
} watched_row;

struct prg_watch {
    prg_allocator *allocator;
    unsigned what;
    watched_row **rows;
    size_t count, capacity;
    pthread_mutex_t lock; /* of what follows, and of all shapes */
    perigee_kernel_check check;
    prg_watch_buffer *buffers;
};

perigee_status prg_watch_new(prg_allocator *allocator, unsigned what, size_t rows, prg_watch **out,
                             perigee_error **err) {
    prg_watch *watch = prg_calloc(allocator, 1, sizeof *watch);
    if (watch) {
        watch->rows = prg_calloc(allocator, rows, sizeof *watch->rows);
    }
    if (!watch || !watch->rows) {
        prg_free(allocator, watch);
        return prg_fail_memory(err);
    }
    watch->allocator = allocator;
    watch->what = what;
    watch->capacity = rows;
    (void)pthread_mutex_init(&watch->lock, NULL);
    *out = watch;
    return PERIGEE_OK;
}

void prg_watch_free(prg_watch *watch) {
    if (!watch) {
        return;
    }
    for (size_t i = 0; i < watch->count; i++) {
        for (size_t j = 0; j < watch->rows[i]->count; j++) {
            if (watch->rows[i]->functions[j].closure) { /* libffi's takes no NULL */
                ffi_closure_free(watch->rows[i]->functions[j].closure);
            }
        }
        prg_free(watch->allocator, watch->rows[i]);
    }
    for (prg_watch_buffer *b = watch->buffers, *next; b; b = next) {
        next = b->next;
        prg_os_pages_free(b, b->size);
    }
    (void)pthread_mutex_destroy(&watch->lock);
    prg_free(watch->allocator, watch->rows);
    prg_free(watch->allocator, watch);
}

static void closure_called(ffi_cif *type, void *result, void **arguments, void *user) {
    prg_watched *f = user;
    (void)type;
    if (f->watch->what & PRG_WATCH_CHECK) {
        prg_reference_call(f, result, arguments);
    } else {
        prg_watched_forward(f, result, arguments);
    }
}

static perigee_status make_closure(prg_watched *f, const char *signature, perigee_kernel_fn *out, perigee_error **err) {
    prg_signature parsed;
    char reason[PRG_REASON_SIZE];
    void *code = NULL;
    if (!prg_signature_parse(signature, &parsed, reason) || !prg_call_type_init(&f->type, &parsed)) {
        return prg_fail(err, PERIGEE_E_INTERNAL, "kernel %s: %s can't be called", f->row->name, f->name);
    }
    f->closure = ffi_closure_alloc(sizeof *f->closure, &code);
    if (!f->closure || ffi_prep_closure_loc(f->closure, &f->type.cif, closure_called, f, code) != FFI_OK) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED,
                        "kernels can't be traced or checked: the system gives no memory for code made at run time");
    }
    memcpy(out, &code, sizeof *out); /* ISO C has no cast from an object pointer */
    return PERIGEE_OK;
}

static perigee_status watch_function(prg_watch *watch, watched_row *to, const perigee_kernel_row *row, size_t slot,
                                     bool bare, perigee_error **err) {
    prg_watched *f = &to->functions[to->count++];
    perigee_kernel_fn *place = bare ? &to->row.function : &to->row.run.functions[slot];
    *f = (prg_watched){.watch = watch,
                       .row = row,
                       .name = bare ? "function" : prg_slot_of(row->op, slot)->name,
                       .bare = bare,
                       .slot = slot,
                       .function = *place,
                       .reference = prg_reference_of(row)};
    return make_closure(f, bare ? prg_bare_signature(row->op) : prg_slot_of(row->op, slot)->signature, place, err);
}

/* Sizes are asked for while a step is planned: they are no work. The comparison makes packed rows and the work of a
 * walk longer, though. */
static bool is_watched(const prg_watch *watch, const perigee_kernel_row *row, const prg_slot *slot) {
    if (strcmp(slot->name, "packed_bytes") == 0 || strcmp(slot->name, "work_bytes") == 0) {
        return watch->what & PRG_WATCH_CHECK && !(row->flags & PERIGEE_KERNEL_HOST);
    }
    return strcmp(slot->name, "scratch_bytes") != 0;
}

perigee_status prg_watch_row(prg_watch *watch, const perigee_kernel_row *row, const perigee_kernel_row **out,
                             perigee_error **err) {
    watched_row *to = watch->count < watch->capacity ? prg_calloc(watch->allocator, 1, sizeof *to) : NULL;
    if (!to) {
        return prg_fail_memory(err);
    }
    watch->rows[watch->count++] = to;
    to->row = *row;
    perigee_status status = PERIGEE_OK;
    const prg_slot *slot;
    if (row->function && row->op == PERIGEE_OP_MATMUL) {
        status = watch_function(watch, to, row, 0, true, err);
    } else {
        for (size_t i = 0; status == PERIGEE_OK && (slot = prg_slot_of(row->op, i)) != NULL; i++) {
            if (row->run.functions[i] && is_watched(watch, row, slot)) {
                status = watch_function(watch, to, row, i, false, err);
            }
        }
    }
    *out = &to->row;
    return status;
}

/* Records */

static prg_shape *find_shape(prg_watched *f, prg_shape shape) {
    for (size_t i = 0; i < f->shape_count; i++) {
        const prg_shape *s = &f->shapes[i];
        if (s->rows == shape.rows && s->cols == shape.cols && s->tokens == shape.tokens) {
            return &f->shapes[i];
        }
    }
    if (f->shape_count == PRG_SHAPES) {
        return &f->shapes[PRG_SHAPES - 1];
    }
    if (f->shape_count == PRG_SHAPES - 1) {
        shape = (prg_shape){0}; /* of all that are still to come */
    }
    f->shapes[f->shape_count] = shape;
    return &f->shapes[f->shape_count++];
}

void prg_watched_forward(prg_watched *f, void *result, void **arguments) {
    const double begun = prg_os_clock();
    ffi_call(&f->type.cif, f->function, result, arguments);
    const double seconds = prg_os_clock() - begun;
    if (f->watch->what & PRG_WATCH_TRACE) {
        (void)pthread_mutex_lock(&f->watch->lock);
        prg_shape *shape = find_shape(f, prg_watched_shape(f, arguments));
        shape->calls++;
        shape->seconds += seconds;
        (void)pthread_mutex_unlock(&f->watch->lock);
    }
}

#define ARGUMENT(type, index) (*(type *)arguments[index])

static prg_shape product_shape(const perigee_matrix *w, size_t count, size_t m) {
    return (prg_shape){.rows = count, .cols = w->cols, .tokens = m};
}

prg_shape prg_watched_shape(const prg_watched *f, void *const *arguments) {
    const perigee_matrix *w = NULL;
    switch ((perigee_op)f->row->op) {
    case PERIGEE_OP_MATMUL:
        if (f->bare) {
            return product_shape(ARGUMENT(perigee_matrix *, 0), ARGUMENT(size_t, 2), ARGUMENT(size_t, 5));
        }
        if (f->slot == prg_slot_main(PERIGEE_OP_MATMUL, 0)) {
            return product_shape(ARGUMENT(perigee_matrix *, 0), ARGUMENT(size_t, 2), ARGUMENT(size_t, 5));
        }
        if (f->slot == prg_slot_main(PERIGEE_OP_MATMUL, PERIGEE_KERNEL_HOST)) {
            return product_shape(ARGUMENT(perigee_matrix *, 1), ARGUMENT(size_t, 3), ARGUMENT(size_t, 6));
        }
        return (prg_shape){.cols = ARGUMENT(size_t, 3), .tokens = ARGUMENT(size_t, 2)}; /* pack */
    case PERIGEE_OP_MATMUL_TRANSPOSED:
        w = ARGUMENT(perigee_matrix *, 0);
        return product_shape(w, ARGUMENT(size_t, 2), ARGUMENT(size_t, 5));
    case PERIGEE_OP_GATED_ACTIVATION:
        return (prg_shape){.cols = ARGUMENT(size_t, 2), .tokens = 1};
    case PERIGEE_OP_RMS_NORM:
        return (prg_shape){.cols = ARGUMENT(size_t, 3), .tokens = 1};
    case PERIGEE_OP_SOFTMAX:
        return (prg_shape){.cols = ARGUMENT(size_t, 1), .tokens = 1};
    case PERIGEE_OP_SHORT_CONV: {
        const perigee_conv_job *job = ARGUMENT(perigee_conv_job *, 0);
        return (prg_shape){.cols = job->count, .tokens = job->m};
    }
    case PERIGEE_OP_KDA: {
        const perigee_kda_job *job = ARGUMENT(perigee_kda_job *, 0);
        return (prg_shape){.cols = job->dim, .tokens = job->m};
    }
    case PERIGEE_OP_ATTENTION: {
        if (!f->bare && strcmp(f->name, "tile") != 0) {
            const perigee_attention_walk *walk = ARGUMENT(perigee_attention_walk *, 0);
            return (prg_shape){.rows = strcmp(f->name, "step") == 0 ? walk->keys : 0,
                               .cols = walk->rank + walk->rope,
                               .tokens = walk->rows};
        }
        const perigee_attention_tile *tile = ARGUMENT(perigee_attention_tile *, 0);
        return (prg_shape){.rows = tile->keys, .cols = tile->rank + tile->rope, .tokens = tile->rows};
    }
    case PERIGEE_OP_RESIDUAL_MIX:
        return (prg_shape){.rows = ARGUMENT(size_t, 1), .cols = ARGUMENT(size_t, 4), .tokens = 1};
    }
    return (prg_shape){0};
}

void prg_watch_report(prg_watched *f, prg_shape shape, const prg_comparison *c) {
    (void)pthread_mutex_lock(&f->watch->lock);
    perigee_kernel_check *check = &f->watch->check;
    check->skipped += c->skipped;
    check->calls += !c->skipped;
    check->different += c->different;
    check->largest = c->largest > check->largest ? c->largest : check->largest;
    if (c->different && !check->kernel) {
        check->kernel = f->row->name;
        check->reference = f->reference->name;
        check->op = prg_kernel_op_name(f->row->op);
        check->function = f->name;
        check->output = c->output;
        check->rows = shape.rows;
        check->cols = shape.cols;
        check->tokens = shape.tokens;
        check->index = c->index;
        check->width = c->width;
        check->value = c->value;
        check->expected = c->expected;
        check->allowed = c->allowed;
    }
    (void)pthread_mutex_unlock(&f->watch->lock);
}

/* The host's allocator is for threads that called in; these are pages of the system. */
void *prg_watch_take(prg_watch *watch, size_t bytes) {
    const size_t head = 64;
    (void)pthread_mutex_lock(&watch->lock);
    prg_watch_buffer *buffer = watch->buffers;
    if (buffer) {
        watch->buffers = buffer->next;
    }
    (void)pthread_mutex_unlock(&watch->lock);
    if (buffer && buffer->size < bytes + head) {
        prg_os_pages_free(buffer, buffer->size);
        buffer = NULL;
    }
    if (!buffer) {
        void *pages = NULL;
        const size_t size = (bytes + head + bytes / 4 + 0xfff) & ~(size_t)0xfff;
        if (bytes > SIZE_MAX / 2 || prg_os_pages_new(size, &pages) != 0) {
            return NULL;
        }
        buffer = pages;
        buffer->size = size;
    }
    return (char *)buffer + head;
}

void prg_watch_give(prg_watch *watch, void *memory) {
    prg_watch_buffer *buffer = (prg_watch_buffer *)(void *)((char *)memory - 64);
    (void)pthread_mutex_lock(&watch->lock);
    buffer->next = watch->buffers;
    watch->buffers = buffer;
    (void)pthread_mutex_unlock(&watch->lock);
}

/* Reports */

size_t prg_watch_trace_count(prg_watch *watch) {
    size_t count = 0;
    (void)pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->count; i++) {
        for (size_t j = 0; j < watch->rows[i]->count; j++) {
            count += watch->rows[i]->functions[j].shape_count;
        }
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return count;
}

static void fill_trace(const prg_watched *f, const prg_shape *shape, perigee_kernel_trace *out) {
    out->kernel = f->row->name;
    out->function = f->name;
    out->op = prg_kernel_op_name(f->row->op);
    out->rows = shape->rows;
    out->cols = shape->cols;
    out->tokens = shape->tokens;
    out->calls = shape->calls;
    out->seconds = shape->seconds;
}

bool prg_watch_trace_at(prg_watch *watch, size_t index, perigee_kernel_trace *out) {
    bool found = false;
    (void)pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->count && !found; i++) {
        for (size_t j = 0; j < watch->rows[i]->count && !found; j++) {
            const prg_watched *f = &watch->rows[i]->functions[j];
            found = index < f->shape_count;
            if (found) {
                fill_trace(f, &f->shapes[index], out);
            } else {
                index -= f->shape_count;
            }
        }
    }
    (void)pthread_mutex_unlock(&watch->lock);
    return found;
}

bool prg_watch_result(prg_watch *watch, perigee_kernel_check *out) {
    if (!(watch->what & PRG_WATCH_CHECK)) {
        return false;
    }
    const size_t struct_size = out->struct_size;
    (void)pthread_mutex_lock(&watch->lock);
    *out = watch->check;
    (void)pthread_mutex_unlock(&watch->lock);
    out->struct_size = struct_size;
    return true;
}
