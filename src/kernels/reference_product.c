/* Products against a scalar row, one row of weights at a time. */
#include <math.h>
#include <string.h>

#include "dtype/dtype.h"
#include "kernels/reference.h"

#define ARGUMENT(type, index) (*(type *)arguments[index])

/* A product as every function of the kind has it; activations by row, since they may lie between packed ones. */
typedef struct product {
    const perigee_matrix *w;
    size_t first, count, m;
    const char *x;
    size_t x_bytes; /* from row to row */
    const uint32_t *rows;
    float *y;
    size_t ldy;
} product;

static const float *activations(const product *p, size_t t) {
    return (const float *)(const void *)(p->x + (p->rows ? p->rows[t] : t) * p->x_bytes);
}

/* sqrt(sum (w x)^2) of an output, from decoded weights. */
static double magnitude(const float *weights, const float *x, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double term = (double)weights[i] * (double)x[i];
        squares += term * term;
    }
    return sqrt(squares);
}

static double stated(const prg_watched *f) {
    return f->row->error_bound + f->reference->error_bound;
}

typedef struct side {
    void *packed, *scratch;
    float *decoded, *y;
} side;

static size_t round_up(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static size_t side_bytes(const perigee_kernel_row *reference, const product *p) {
    const perigee_matmul_functions *r = &reference->run.matmul;
    return p->m * r->packed_bytes(p->w->cols) + round_up(r->scratch_bytes(p->m, p->w->cols)) +
           round_up(p->w->cols * sizeof(float)) + round_up(p->m * sizeof(float));
}

static side side_at(const perigee_kernel_row *reference, const product *p, char *memory) {
    const perigee_matmul_functions *r = &reference->run.matmul;
    side s;
    s.packed = memory;
    s.scratch = memory + p->m * r->packed_bytes(p->w->cols);
    s.decoded = (float *)(void *)((char *)s.scratch + round_up(r->scratch_bytes(p->m, p->w->cols)));
    s.y = s.decoded + round_up(p->w->cols * sizeof(float)) / sizeof(float);
    return s;
}

/* What was computed is in p->y. */
static void compare_product(prg_watched *f, const product *p, char *memory, prg_comparison *c) {
    const perigee_kernel_row *reference = f->reference;
    const perigee_matmul_functions *r = &reference->run.matmul;
    const prg_dtype *dtype = prg_dtype_get(p->w->dtype);
    const side s = side_at(reference, p, memory);
    const size_t k = p->w->cols;
    const bool same = prg_same_bits(f);
    for (size_t t = 0; t < p->m; t++) {
        r->pack(activations(p, t), k, 1, k, (char *)s.packed + t * r->packed_bytes(k));
    }
    for (size_t i = 0; i < p->count; i++) {
        dtype->decode(p->w, p->first + i, 0, k, s.decoded);
        if (reference->dtype == p->w->dtype) {
            r->multiply(p->w, p->first + i, 1, s.packed, NULL, p->m, s.y, 1, s.scratch);
        } else {
            const perigee_matrix one = prg_matrix_make(PERIGEE_DTYPE_F32, 1, k, s.decoded, NULL);
            r->multiply(&one, 0, 1, s.packed, NULL, p->m, s.y, 1, s.scratch);
        }
        for (size_t t = 0; t < p->m; t++) {
            const float value = p->y[t * p->ldy + i];
            if (memcmp(&value, &s.y[t], sizeof value) != 0) {
                const double allowed = same ? 0 : stated(f) * magnitude(s.decoded, activations(p, t), k);
                prg_compare_value(c, value, s.y[t], allowed, "y", t * p->count + i, p->count);
            }
        }
    }
}

static void check_product(prg_watched *f, const product *p, prg_shape shape) {
    prg_comparison c = {0};
    char *memory = prg_watch_take(f->watch, side_bytes(f->reference, p));
    if (memory) {
        compare_product(f, p, memory, &c);
        prg_watch_give(f->watch, memory);
    }
    c.skipped = !memory;
    prg_watch_report(f, shape, &c);
}

/* Packing */

/* A packed row and the row as it was, in packed rows. */
static size_t stride(const perigee_kernel_row *row, size_t k) {
    const size_t own = row->run.matmul.packed_bytes(k);
    return own == 0 ? 1 : 1 + (k * sizeof(float) + own - 1) / own;
}

/* The row as it was lies behind the packed one; a row that packs to nothing can't be told apart, and no kernel does. */
static char *kept_row(const perigee_kernel_row *row, const void *packed, size_t k, size_t t) {
    const size_t own = row->run.matmul.packed_bytes(k);
    return (char *)(uintptr_t)packed + (t * stride(row, k) + 1) * own;
}

static void pack(prg_watched *f, void **arguments) {
    const float *x = ARGUMENT(const float *, 0);
    const size_t ldx = ARGUMENT(size_t, 1), m = ARGUMENT(size_t, 2), k = ARGUMENT(size_t, 3);
    char *const packed = ARGUMENT(char *, 4);
    const size_t own = f->row->run.matmul.packed_bytes(k), step = stride(f->row, k) * own;
    for (size_t t = 0; t < m; t++) {
        const float *row = x + t * ldx;
        size_t one = 1;
        void *to = packed + t * step;
        void *own_arguments[] = {&row, arguments[1], &one, arguments[3], &to};
        prg_watched_forward(f, NULL, own_arguments);
        memcpy((char *)to + own, row, k * sizeof *row);
    }
}

/* The function itself finds its packed rows by number. */
static void multiply(prg_watched *f, void **arguments) {
    const perigee_matrix *w = ARGUMENT(const perigee_matrix *, 0);
    const char *packed = ARGUMENT(const char *, 3);
    const uint32_t *rows = ARGUMENT(const uint32_t *, 4);
    const size_t m = ARGUMENT(size_t, 5), apart = stride(f->row, w->cols);
    uint32_t *numbers = prg_watch_take(f->watch, (m + 1) * sizeof *numbers);
    if (numbers) {
        for (size_t t = 0; t < m; t++) {
            numbers[t] = (uint32_t)((rows ? rows[t] : t) * apart);
        }
        void *own[] = {arguments[0], arguments[1], arguments[2], arguments[3], &numbers,
                       arguments[5], arguments[6], arguments[7], arguments[8]};
        prg_watched_forward(f, NULL, own);
        prg_watch_give(f->watch, numbers);
    } else {
        for (size_t t = 0; t < m; t++) { /* one at a time, without memory */
            const uint32_t number = (uint32_t)((rows ? rows[t] : t) * apart), *one = &number;
            size_t single = 1;
            float *y = ARGUMENT(float *, 6) + t * ARGUMENT(size_t, 7);
            void *own[] = {arguments[0], arguments[1], arguments[2], arguments[3], &one,
                           &single,      &y,           arguments[7], arguments[8]};
            prg_watched_forward(f, NULL, own);
        }
    }
    const product p = {.w = w,
                       .first = ARGUMENT(size_t, 1),
                       .count = ARGUMENT(size_t, 2),
                       .m = m,
                       .x = kept_row(f->row, packed, w->cols, 0),
                       .x_bytes = apart * f->row->run.matmul.packed_bytes(w->cols),
                       .rows = rows,
                       .y = ARGUMENT(float *, 6),
                       .ldy = ARGUMENT(size_t, 7)};
    check_product(f, &p, prg_watched_shape(f, arguments));
}

/* w, first, count, x, ldx, m, y, ldy from argument `at` on. */
static product plain_product(void **arguments, size_t at) {
    return (product){.w = ARGUMENT(const perigee_matrix *, at),
                     .first = ARGUMENT(size_t, at + 1),
                     .count = ARGUMENT(size_t, at + 2),
                     .x = ARGUMENT(const char *, at + 3),
                     .x_bytes = ARGUMENT(size_t, at + 4) * sizeof(float),
                     .m = ARGUMENT(size_t, at + 5),
                     .y = ARGUMENT(float *, at + 6),
                     .ldy = ARGUMENT(size_t, at + 7)};
}

/* Transposed products */

static double magnitude_of_column(const product *p, size_t t, size_t column) {
    const prg_dtype *dtype = prg_dtype_get(p->w->dtype);
    double squares = 0;
    for (size_t i = 0; i < p->count; i++) {
        float weight = 0;
        dtype->decode(p->w, p->first + i, column, 1, &weight);
        const double term = (double)weight * (double)activations(p, t)[i];
        squares += term * term;
    }
    return sqrt(squares);
}

static void transposed(prg_watched *f, void **arguments) {
    const product p = plain_product(arguments, 0);
    const perigee_transposed_functions *r = &f->reference->run.transposed;
    const size_t k = p.w->cols, ldx = p.x_bytes / sizeof(float);
    const bool decode = f->reference->dtype != p.w->dtype;
    prg_comparison c = {0};
    prg_watched_forward(f, NULL, arguments);
    float *memory = prg_watch_take(f->watch, (p.m + (decode ? p.count : 0)) * k * sizeof *memory);
    c.skipped = !memory;
    if (memory && decode) {
        float *weights = memory + p.m * k;
        for (size_t i = 0; i < p.count; i++) {
            prg_dtype_get(p.w->dtype)->decode(p.w, p.first + i, 0, k, weights + i * k);
        }
        const perigee_matrix decoded = prg_matrix_make(PERIGEE_DTYPE_F32, p.count, k, weights, NULL);
        r->multiply(&decoded, 0, p.count, activations(&p, 0), ldx, p.m, memory, k);
    } else if (memory) {
        r->multiply(p.w, p.first, p.count, activations(&p, 0), ldx, p.m, memory, k);
    }
    for (size_t i = 0; memory && i < p.m * k; i++) {
        const float value = p.y[i / k * p.ldy + i % k];
        if (memcmp(&value, &memory[i], sizeof value) != 0) {
            const double allowed = prg_same_bits(f) ? 0 : stated(f) * magnitude_of_column(&p, i / k, i % k);
            prg_compare_value(&c, value, memory[i], allowed, "y", i, k);
        }
    }
    if (memory) {
        prg_watch_give(f->watch, memory);
    }
    prg_watch_report(f, prg_watched_shape(f, arguments), &c);
}

void prg_reference_product(prg_watched *f, void *result, void **arguments) {
    if (f->row->op == PERIGEE_OP_MATMUL_TRANSPOSED) {
        transposed(f, arguments);
    } else if (f->bare || f->slot == prg_slot_main(PERIGEE_OP_MATMUL, PERIGEE_KERNEL_HOST)) {
        prg_watched_forward(f, result, arguments);
        if (!f->bare && (int32_t) * (const ffi_arg *)result != 0) {
            return; /* it failed and wrote nothing to compare */
        }
        const product p = plain_product(arguments, f->bare ? 0 : 1);
        check_product(f, &p, prg_watched_shape(f, arguments));
    } else if (f->slot == prg_slot_main(PERIGEE_OP_MATMUL, 0)) {
        multiply(f, arguments);
    } else if (strcmp(f->name, "pack") == 0) {
        pack(f, arguments);
    } else { /* packed_bytes, once for the packed row and the row itself */
        const size_t k = ARGUMENT(size_t, 0);
        *(ffi_arg *)result = (ffi_arg)(f->row->run.matmul.packed_bytes(k) * stride(f->row, k));
    }
}
