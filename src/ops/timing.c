#include "ops/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "ops/product.h"
#include "os/machine.h"
#include "os/os.h"

enum {
    ROWS = 512, /* of weights */
    COLS = 2048,
    WIDTH = 7168, /* of a row of an elementwise op */
    CHANNELS = 4096,
    TAPS = 4,
    HEAD = 128, /* of delta attention */
    RANK = 512,
    ROPE = 64,
    SOURCES = 8,
    TRANSPOSED_ROWS = 128,
    RING_BYTES = 192 << 20, /* weights that are gone through in turn, so that they come from memory */
    CALLS_LEAST = 3,
    CALLS_MOST = 1024
};

#define SECONDS_MOST 0.1 /* of calls, unless the least number of them takes longer */

/* Everything that a call is given: one block of pages. */
typedef struct bench {
    const perigee_kernel_row *row;
    size_t tokens;
    float *x, *y, *more; /* inputs, outputs, and what else an op takes */
    perigee_matrix w;
    size_t matrices, code_bytes, scale_bytes;
    void *packed, *scratch;
    prg_form form;
    size_t next; /* matrix of the ring */
    uint32_t *visible;
    const float *sources[SOURCES];
} bench;

static bool is_product(const perigee_kernel_row *row) {
    return row->op == PERIGEE_OP_MATMUL || row->op == PERIGEE_OP_MATMUL_TRANSPOSED;
}

static size_t rows_of(const perigee_kernel_row *row) {
    return row->op == PERIGEE_OP_MATMUL ? ROWS : is_product(row) ? TRANSPOSED_ROWS : 0;
}

static size_t cols_of(const perigee_kernel_row *row) {
    switch ((perigee_op)row->op) {
    case PERIGEE_OP_MATMUL:
        return COLS;
    case PERIGEE_OP_MATMUL_TRANSPOSED:
        return RANK;
    case PERIGEE_OP_SHORT_CONV:
        return CHANNELS;
    case PERIGEE_OP_KDA:
        return HEAD;
    case PERIGEE_OP_ATTENTION:
        return RANK + ROPE;
    default:
        return WIDTH;
    }
}

static void call_product(bench *b) {
    const perigee_matmul_functions *f = &b->row->run.matmul;
    perigee_matrix w = b->w;
    w.codes = (const char *)w.codes + b->next * b->code_bytes;
    w.scales = w.scales ? (const char *)w.scales + b->next * b->scale_bytes : NULL;
    b->next = (b->next + 1) % b->matrices;
    if (b->row->op == PERIGEE_OP_MATMUL_TRANSPOSED) {
        b->row->run.transposed.multiply(&w, 0, w.rows, b->x, w.rows, b->tokens, b->y, w.cols);
        return;
    }
    f->pack(b->x, w.cols, b->tokens, w.cols, b->packed);
    prg_form_run(b->form, &w, 0, w.rows, b->packed, NULL, b->tokens, b->y, w.rows, b->scratch);
}

static void call_rows(bench *b) {
    const perigee_kernel_row *row = b->row;
    for (size_t t = 0; t < b->tokens; t++) {
        const float *x = b->x + t * WIDTH;
        float *y = b->y + t * WIDTH;
        if (row->op == PERIGEE_OP_GATED_ACTIVATION) {
            row->run.gated.gated(x, b->more, WIDTH, 0, 1, 0, y);
        } else if (row->op == PERIGEE_OP_RMS_NORM) {
            row->run.norm.rms_norm(x, b->more, NULL, WIDTH, 1e-6f, y);
        } else if (row->op == PERIGEE_OP_SOFTMAX) {
            row->run.softmax.softmax(x, WIDTH, y);
        } else {
            row->run.mix.mix(b->sources, SOURCES, t * WIDTH, b->more, WIDTH, 1e-6f, b->scratch, y);
        }
    }
}

static void call_conv(bench *b) {
    float *next = (float *)b->scratch;
    const perigee_conv_job job = {.taps = b->more,
                                  .n_taps = TAPS,
                                  .channels = CHANNELS,
                                  .history = b->more + TAPS * CHANNELS,
                                  .next = next,
                                  .u = b->x,
                                  .ldu = CHANNELS,
                                  .m = b->tokens,
                                  .y = b->y,
                                  .ldy = CHANNELS,
                                  .count = CHANNELS};
    b->row->run.conv.conv(&job);
}

static void call_kda(bench *b) {
    float *state = b->scratch, *pending = state + HEAD * HEAD;
    const perigee_kda_job job = {.dim = HEAD,
                                 .m = b->tokens,
                                 .state = state,
                                 .next = state,
                                 .pending = pending,
                                 .next_pending = pending,
                                 .q = b->x,
                                 .k = b->x + HEAD,
                                 .v = b->x + 2 * HEAD,
                                 .f = b->x + 3 * HEAD,
                                 .ld = WIDTH,
                                 .dt_bias = b->more,
                                 .rate = 1,
                                 .beta = b->more,
                                 .out = b->y,
                                 .ldo = HEAD,
                                 .scratch = pending + 3 * HEAD};
    b->row->run.kda.run(&job);
}

static void call_attention(bench *b) {
    const size_t rows = b->tokens;
    float *max = b->more;
    const perigee_attention_tile tile = {.rank = RANK,
                                         .rope = ROPE,
                                         .rows = rows,
                                         .q = b->x,
                                         .scale = 0.1f,
                                         .latent = b->x,
                                         .keys = PERIGEE_ATTENTION_KEYS,
                                         .visible = b->visible,
                                         .max = max,
                                         .sum = max + rows,
                                         .z = b->y,
                                         .scratch = b->scratch};
    for (size_t i = 0; i < rows; i++) {
        tile.max[i] = -INFINITY;
        tile.sum[i] = 0;
        b->visible[i] = PERIGEE_ATTENTION_KEYS;
    }
    memset(tile.z, 0, rows * RANK * sizeof *tile.z);
    b->row->run.attention.tile(&tile);
}

static void call_walk(bench *b) {
    const perigee_attention_functions *f = &b->row->run.attention;
    const void *latents[1] = {b->x};
    const perigee_attention_walk walk = {.rank = RANK,
                                         .rope = ROPE,
                                         .rows = b->tokens,
                                         .scale = 0.1f,
                                         .work = b->scratch,
                                         .q = b->x,
                                         .ldq = RANK + ROPE,
                                         .latents = latents,
                                         .keys = PERIGEE_ATTENTION_KEYS,
                                         .visible = b->visible,
                                         .z = b->y,
                                         .ldz = RANK};
    for (size_t i = 0; i < b->tokens; i++) {
        b->visible[i] = PERIGEE_ATTENTION_KEYS;
    }
    f->begin(&walk);
    f->step(&walk);
    f->end(&walk);
}

static void call(bench *b) {
    switch ((perigee_op)b->row->op) {
    case PERIGEE_OP_MATMUL:
    case PERIGEE_OP_MATMUL_TRANSPOSED:
        call_product(b);
        break;
    case PERIGEE_OP_SHORT_CONV:
        call_conv(b);
        break;
    case PERIGEE_OP_KDA:
        call_kda(b);
        break;
    case PERIGEE_OP_ATTENTION:
        if (b->row->run.attention.work_bytes) {
            call_walk(b);
        } else {
            call_attention(b);
        }
        break;
    default:
        call_rows(b);
        break;
    }
}

/* Numbers between -0.5 and 0.5 without a pattern. */
static void fill(float *to, size_t count) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        to[i] = (float)(state >> 40) / (float)(1 << 24) - 0.5f;
    }
}

static void fill_ring(bench *b, unsigned char *codes, unsigned char *scales, float *values) {
    fill(values, b->w.rows * b->w.cols);
    prg_dtype_get(b->row->dtype)->encode(values, b->w.rows, b->w.cols, codes, scales);
    for (size_t i = 1; i < b->matrices; i++) {
        memcpy(codes + i * b->code_bytes, codes, b->code_bytes);
        memcpy(scales + i * b->scale_bytes, scales, b->scale_bytes);
    }
}

/* What a call reads and writes at least once. */
static int64_t traffic(const bench *b) {
    const size_t m = b->tokens, w = WIDTH * sizeof(float);
    switch ((perigee_op)b->row->op) {
    case PERIGEE_OP_MATMUL:
    case PERIGEE_OP_MATMUL_TRANSPOSED:
        return (int64_t)(b->code_bytes + b->scale_bytes);
    case PERIGEE_OP_GATED_ACTIVATION:
        return (int64_t)((2 * m + 1) * w);
    case PERIGEE_OP_RMS_NORM:
        return (int64_t)((2 * m + 1) * w);
    case PERIGEE_OP_SOFTMAX:
        return (int64_t)(2 * m * w);
    case PERIGEE_OP_SHORT_CONV:
        return (int64_t)((2 * m + TAPS + 2 * (TAPS - 1)) * CHANNELS * sizeof(float));
    case PERIGEE_OP_KDA:
        return (int64_t)((2 * HEAD * HEAD + (5 * m + 6) * HEAD) * sizeof(float));
    case PERIGEE_OP_ATTENTION:
        return (int64_t)((PERIGEE_ATTENTION_KEYS * (RANK + ROPE) + m * (3 * RANK + ROPE)) * sizeof(float));
    case PERIGEE_OP_RESIDUAL_MIX:
        return (int64_t)(((SOURCES + 1) * m + 1) * w);
    }
    return 0;
}

static int compare_seconds(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a call: the median, which a few interrupted calls don't move. */
static double measure(bench *b) {
    double seconds[CALLS_MOST];
    size_t calls = 0;
    call(b);
    const double begun = prg_os_clock();
    while (calls < CALLS_MOST && (calls < CALLS_LEAST || prg_os_clock() - begun < SECONDS_MOST)) {
        const double from = prg_os_clock();
        call(b);
        seconds[calls++] = prg_os_clock() - from;
    }
    qsort(seconds, calls, sizeof *seconds, compare_seconds);
    return seconds[calls / 2];
}

/* Where everything lies in one block of pages. */
typedef struct layout {
    size_t x, y, more, visible, sources, packed, scratch, values, codes, scales, total;
} layout;

static size_t take(layout *l, size_t bytes) {
    const size_t at = l->total;
    l->total += prg_scratch_bytes(bytes, 1);
    return at;
}

static layout plan(const bench *b) {
    const perigee_kernel_row *row = b->row;
    const size_t tokens = b->tokens, wide = tokens * WIDTH * sizeof(float), latent = (RANK + ROPE) * sizeof(float);
    const size_t weights = rows_of(row) * cols_of(row);
    size_t scratch = (size_t)8 * HEAD * HEAD * sizeof(float) + 128 * latent + (64 * (tokens + 6) + 3 * CHANNELS) * 4;
    size_t packed = 0;
    layout l = {0};
    if (row->op == PERIGEE_OP_MATMUL) {
        packed = tokens * row->run.matmul.packed_bytes(COLS);
        scratch = prg_max(scratch, prg_form_scratch(b->form, tokens, COLS));
    }
    if (row->op == PERIGEE_OP_ATTENTION && row->run.attention.work_bytes) {
        scratch = prg_max(scratch, row->run.attention.work_bytes(RANK, ROPE, tokens));
    }
    l.x = take(&l, prg_max(wide, PERIGEE_ATTENTION_KEYS * latent) + PERIGEE_ATTENTION_GROUP * latent);
    l.y = take(&l, wide);
    l.more = take(&l, prg_max(2 * TAPS * CHANNELS, prg_max(WIDTH, 2 * tokens)) * sizeof(float));
    l.visible = take(&l, tokens * sizeof(uint32_t));
    l.sources = take(&l, row->op == PERIGEE_OP_RESIDUAL_MIX ? SOURCES * wide : 0);
    l.packed = take(&l, packed);
    l.scratch = take(&l, scratch);
    l.values = take(&l, weights * sizeof(float));
    l.codes = take(&l, b->matrices * b->code_bytes);
    l.scales = take(&l, b->matrices * b->scale_bytes);
    return l;
}

static void set_up(bench *b, const layout *l, unsigned char *base) {
    b->x = (float *)(void *)(base + l->x);
    b->y = (float *)(void *)(base + l->y);
    b->more = (float *)(void *)(base + l->more);
    b->visible = (uint32_t *)(void *)(base + l->visible);
    b->packed = base + l->packed;
    b->scratch = base + l->scratch;
    fill(b->x, (l->y - l->x) / sizeof(float));
    fill(b->more, (l->visible - l->more) / sizeof(float));
    for (size_t i = 0; i < SOURCES; i++) {
        b->sources[i] = (const float *)(const void *)(base + l->sources) + i * b->tokens * WIDTH;
    }
    fill((float *)(void *)(base + l->sources), (l->packed - l->sources) / sizeof(float));
    if (is_product(b->row)) {
        b->w = prg_matrix_make(b->row->dtype, rows_of(b->row), cols_of(b->row), base + l->codes,
                               b->scale_bytes ? base + l->scales : NULL);
        fill_ring(b, base + l->codes, base + l->scales, (float *)(void *)(base + l->values));
    }
}

perigee_status prg_time_kernel(const perigee_kernel_row *row, size_t tokens, perigee_kernel_timing *out,
                               perigee_error **err) {
    if (row->flags & PERIGEE_KERNEL_HOST) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "kernel %s is the host's: only a step calls it", row->name);
    }
    bench b = {.row = row, .tokens = tokens, .matrices = 1, .form = {row, false}};
    const size_t rows = rows_of(row), cols = cols_of(row);
    if (is_product(row)) {
        b.code_bytes = rows * prg_dtype_row_bytes(row->dtype, cols);
        b.scale_bytes = prg_dtype_matrix_bytes(row->dtype, rows, cols) - b.code_bytes;
        b.matrices = RING_BYTES / b.code_bytes;
    }
    const layout l = plan(&b);
    void *pages = NULL;
    if (prg_os_pages_new(l.total, &pages) != 0) {
        return prg_fail_memory(err);
    }
    set_up(&b, &l, pages);
    out->seconds = measure(&b);
    out->rows = rows;
    out->cols = cols;
    out->tokens = tokens;
    out->bytes = traffic(&b);
    out->multiply_adds = (int64_t)(rows * cols * tokens);
    prg_os_pages_free(pages, l.total);
    return PERIGEE_OK;
}
