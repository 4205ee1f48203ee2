/* Each call through a scalar row too: outputs of the scalar row go to memory of their own, before the row itself runs,
 * so that inputs which are overwritten are read in time. */
#include "kernels/reference.h"

#include <math.h>
#include <string.h>

#include "dtype/dtype.h"
#include "kernels/rows.h"

/* Where a row states no bound of its own. */
#define BOUND_UNSTATED 1e-4

static const perigee_kernel_row *const built_in[] = {
#define PRG_KERNEL(name) &prg_##name,
#include "kernels/kernel.def"
#undef PRG_KERNEL
};

/* Of the scalar rows for this form the one of the same sums; else the most exact one. */
const perigee_kernel_row *prg_reference_of(const perigee_kernel_row *row) {
    const perigee_kernel_row *best = NULL, *decoded = NULL;
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        const perigee_kernel_row *candidate = built_in[i];
        if (candidate->op != row->op || strcmp(candidate->isa, "scalar") != 0) {
            continue;
        }
        if (candidate->dtype == PERIGEE_DTYPE_F32) {
            decoded = candidate;
        }
        if (candidate->dtype == row->dtype) {
            if (strcmp(candidate->numerics, row->numerics) == 0) {
                return candidate;
            }
            best = !best || candidate->precision < best->precision ? candidate : best;
        }
    }
    return best ? best : decoded;
}

bool prg_same_bits(const prg_watched *f) {
    return strcmp(f->row->numerics, f->reference->numerics) == 0 && !(f->row->flags & PERIGEE_KERNEL_NONDETERMINISTIC);
}

/* Of the same bits, which covers infinities; any NaN is as good as another. */
static bool is_same(float value, float expected) {
    return memcmp(&value, &expected, sizeof value) == 0 || (value != value && expected != expected);
}

void prg_compare_value(prg_comparison *c, float value, float expected, double allowed, const char *output, size_t index,
                       size_t width) {
    if (is_same(value, expected)) {
        return;
    }
    const double difference = fabs((double)value - (double)expected);
    if (allowed > 0 && difference / allowed > c->largest) {
        c->largest = difference / allowed;
    }
    if (difference <= allowed && allowed > 0) {
        return;
    }
    if (!c->different) {
        c->different = true;
        c->output = output;
        c->index = index;
        c->width = width;
        c->value = value;
        c->expected = expected;
        c->allowed = allowed;
    }
}

/* Outputs of one call: as computed, and by the scalar row. */
typedef struct output {
    const char *name;
    const float *value, *expected;
    size_t height, width, ld, expected_ld;
} output;

static double bound_of(const prg_watched *f, const output *o) {
    double largest = 0;
    if (prg_same_bits(f)) {
        return 0;
    }
    for (size_t t = 0; t < o->height; t++) {
        for (size_t i = 0; i < o->width; i++) {
            const double size = fabs((double)o->expected[t * o->expected_ld + i]);
            largest = size > largest && size < INFINITY ? size : largest;
        }
    }
    return largest * (f->row->error_bound > 0 ? f->row->error_bound : BOUND_UNSTATED);
}

static void compare(const prg_watched *f, prg_comparison *c, output o) {
    const double allowed = bound_of(f, &o);
    for (size_t t = 0; t < o.height; t++) {
        for (size_t i = 0; i < o.width; i++) {
            prg_compare_value(c, o.value[t * o.ld + i], o.expected[t * o.expected_ld + i], allowed, o.name,
                              t * o.width + i, o.width);
        }
    }
}

#define ARGUMENT(type, index) (*(type *)arguments[index])

static void check_elementwise(prg_watched *f, void **arguments, float *expected, prg_comparison *c) {
    const perigee_softmax_functions *r = &f->reference->run.softmax;
    float *y = NULL;
    size_t n = 0;
    if (f->row->op == PERIGEE_OP_GATED_ACTIVATION) {
        n = ARGUMENT(size_t, 2);
        y = ARGUMENT(float *, 6);
        f->reference->run.gated.gated(ARGUMENT(const float *, 0), ARGUMENT(const float *, 1), n, ARGUMENT(int32_t, 3),
                                      ARGUMENT(float, 4), ARGUMENT(float, 5), expected);
    } else if (f->row->op == PERIGEE_OP_RMS_NORM) {
        n = ARGUMENT(size_t, 3);
        y = ARGUMENT(float *, 5);
        f->reference->run.norm.rms_norm(ARGUMENT(const float *, 0), ARGUMENT(const float *, 1),
                                        ARGUMENT(const float *, 2), n, ARGUMENT(float, 4), expected);
    } else {
        const float *x = ARGUMENT(const float *, 0);
        n = ARGUMENT(size_t, 1);
        y = ARGUMENT(float *, 2);
        if (f->slot == 2) { /* sigmoid_gate goes on from y */
            memcpy(expected, y, n * sizeof *y);
            r->sigmoid_gate(x, n, expected);
        } else {
            (f->slot == 0 ? r->softmax : r->sigmoid)(x, n, expected);
        }
    }
    prg_watched_forward(f, NULL, arguments);
    compare(f, c, (output){"y", y, expected, 1, n, n, n});
}

static void check_conv(prg_watched *f, void **arguments, float *memory, prg_comparison *c) {
    const perigee_conv_job *job = ARGUMENT(const perigee_conv_job *, 0);
    perigee_conv_job scalar = *job;
    float *next = memory, *y = memory + (job->n_taps - 1) * job->channels;
    scalar.next = next;
    /* only the columns of this job are there */
    scalar.y = (float *)((uintptr_t)y - job->first * sizeof *y);
    scalar.ldy = job->count;
    f->reference->run.conv.conv(&scalar);
    prg_watched_forward(f, NULL, arguments);
    compare(f, c, (output){"y", job->y + job->first, y, job->m, job->count, job->ldy, job->count});
    compare(f, c,
            (output){"next", job->next + job->first, next + job->first, job->n_taps - 1, job->count, job->channels,
                     job->channels});
}

static void check_kda(prg_watched *f, void **arguments, float *memory, prg_comparison *c) {
    const perigee_kda_job *job = ARGUMENT(const perigee_kda_job *, 0);
    const size_t n = job->dim;
    perigee_kda_job scalar = *job;
    scalar.next = memory;
    scalar.next_pending = scalar.next + n * n;
    scalar.out = scalar.next_pending + 3 * n;
    scalar.ldo = n;
    scalar.scratch = scalar.out + job->m * n;
    f->reference->run.kda.run(&scalar);
    prg_watched_forward(f, NULL, arguments);
    compare(f, c, (output){"out", job->out, scalar.out, job->m, n, job->ldo, n});
    compare(f, c, (output){"next", job->next, scalar.next, n, n, n, n});
    compare(f, c, (output){"next_pending", job->next_pending, scalar.next_pending, 3, n, n, n});
}

static size_t z_width(const perigee_attention_tile *tile) {
    return (tile->rank + 15) / 16 * 16;
}

static void check_attention(prg_watched *f, void **arguments, float *memory, prg_comparison *c) {
    const perigee_attention_tile *tile = ARGUMENT(const perigee_attention_tile *, 0);
    const size_t rows = tile->rows, ldz = z_width(tile);
    perigee_attention_tile scalar = *tile;
    scalar.z = memory;
    scalar.max = scalar.z + rows * ldz;
    scalar.sum = scalar.max + rows;
    scalar.scratch = memory + (rows * (ldz + 2) + 15) / 16 * 16;
    memcpy(scalar.z, tile->z, rows * ldz * sizeof *tile->z);
    memcpy(scalar.max, tile->max, rows * sizeof *tile->max);
    memcpy(scalar.sum, tile->sum, rows * sizeof *tile->sum);
    f->reference->run.attention.tile(&scalar);
    prg_watched_forward(f, NULL, arguments);
    compare(f, c, (output){"max", tile->max, scalar.max, 1, rows, rows, rows});
    compare(f, c, (output){"sum", tile->sum, scalar.sum, 1, rows, rows, rows});
    compare(f, c, (output){"z", tile->z, scalar.z, rows, tile->rank, ldz, ldz});
}

static void check_mix(prg_watched *f, void **arguments, float *memory, prg_comparison *c) {
    const size_t n = ARGUMENT(size_t, 1), width = ARGUMENT(size_t, 4);
    float *y = memory, *score = memory + (width + 15) / 16 * 16;
    f->reference->run.mix.mix(ARGUMENT(const float *const *, 0), n, ARGUMENT(size_t, 2), ARGUMENT(const float *, 3),
                              width, ARGUMENT(float, 5), score, y);
    prg_watched_forward(f, NULL, arguments);
    compare(f, c, (output){"y", ARGUMENT(const float *, 7), y, 1, width, width, width});
}

/* Floats of memory that a comparison of one call takes. */
static size_t floats_for(const prg_watched *f, void **arguments) {
    const prg_shape shape = prg_watched_shape(f, arguments);
    switch ((perigee_op)f->row->op) {
    case PERIGEE_OP_SHORT_CONV: {
        const perigee_conv_job *job = ARGUMENT(const perigee_conv_job *, 0);
        return (job->n_taps - 1) * job->channels + job->m * job->count;
    }
    case PERIGEE_OP_KDA: {
        const size_t n = shape.cols;
        return n * n + 3 * n + shape.tokens * n + 7 * n + 4096;
    }
    case PERIGEE_OP_ATTENTION:
        return shape.tokens * (z_width(ARGUMENT(const perigee_attention_tile *, 0)) + 2) + 16 + 128 * shape.cols +
               64 * (shape.tokens + 6);
    default:
        return shape.cols + shape.rows + 16;
    }
}

static void check_plain(prg_watched *f, void **arguments, float *memory, prg_comparison *c) {
    switch ((perigee_op)f->row->op) {
    case PERIGEE_OP_SHORT_CONV:
        check_conv(f, arguments, memory, c);
        break;
    case PERIGEE_OP_KDA:
        check_kda(f, arguments, memory, c);
        break;
    case PERIGEE_OP_ATTENTION:
        check_attention(f, arguments, memory, c);
        break;
    case PERIGEE_OP_RESIDUAL_MIX:
        check_mix(f, arguments, memory, c);
        break;
    default:
        check_elementwise(f, arguments, memory, c);
        break;
    }
}

void prg_reference_call(prg_watched *f, void *result, void **arguments) {
    if (f->row->op == PERIGEE_OP_MATMUL || f->row->op == PERIGEE_OP_MATMUL_TRANSPOSED) {
        prg_reference_product(f, result, arguments);
        return;
    }
    if (f->row->op == PERIGEE_OP_ATTENTION && strcmp(f->name, "tile") != 0 && !f->bare) {
        prg_reference_walk(f, result, arguments);
        return;
    }
    prg_comparison c = {0};
    const prg_shape shape = prg_watched_shape(f, arguments);
    float *memory = prg_watch_take(f->watch, floats_for(f, arguments) * sizeof *memory);
    if (memory) {
        check_plain(f, arguments, memory, &c);
        prg_watch_give(f->watch, memory);
    } else {
        c.skipped = true;
        prg_watched_forward(f, result, arguments);
    }
    prg_watch_report(f, shape, &c);
}
