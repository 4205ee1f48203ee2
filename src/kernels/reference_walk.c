/* Attention whose rows walk over keys, beside the tiles of the scalar row. What that row holds lies behind the walk's
 * work, which is asked for larger than it is; results are compared at the end. */
#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "kernels/reference.h"

enum { GROUP = PERIGEE_ATTENTION_GROUP, KEYS = PERIGEE_ATTENTION_KEYS };

/* Errors of scores move the mean of latents by more than the bound, which is that of each score: so much more. */
#define BOUND_OF_MEAN 32

#define ARGUMENT(type, index) (*(type *)arguments[index])

/* In bytes from the start of the work. */
typedef struct layout {
    size_t tile, z, q, max, sum, visible, scratch, bytes;
} layout;

static size_t take(size_t *at, size_t bytes) {
    const size_t place = *at;
    *at += prg_round_up(bytes, 64);
    return place;
}

static layout layout_of(const prg_watched *f, size_t rank, size_t rope, size_t rows) {
    const size_t width = rank + rope, ldz = prg_round_up(rank, 16);
    layout l;
    size_t at = prg_round_up(f->row->run.attention.work_bytes(rank, rope, rows), 64);
    l.tile = take(&at, sizeof(perigee_attention_tile));
    l.z = take(&at, rows * ldz * sizeof(float));
    l.q = take(&at, (rows + GROUP - 1) / GROUP * GROUP * width * sizeof(float));
    l.max = take(&at, rows * sizeof(float));
    l.sum = take(&at, rows * sizeof(float));
    l.visible = take(&at, rows * sizeof(uint32_t));
    l.scratch = take(&at, (2 * KEYS * width + KEYS * (rows + GROUP)) * sizeof(float));
    l.bytes = at;
    return l;
}

static void begin(const prg_watched *f, const perigee_attention_walk *w) {
    const layout l = layout_of(f, w->rank, w->rope, w->rows);
    const size_t width = w->rank + w->rope;
    unsigned char *work = w->work;
    float *q = (float *)(void *)(work + l.q), *max = (float *)(void *)(work + l.max);
    memset(work + l.tile, 0, l.scratch - l.tile);
    for (size_t i = 0; i < w->rows; i++) {
        float *to = q + i / GROUP * GROUP * width + i % GROUP;
        max[i] = -INFINITY;
        for (size_t c = 0; c < width; c++) {
            to[c * GROUP] = w->q[i * w->ldq + c];
        }
    }
}

static void step(const prg_watched *f, const perigee_attention_walk *w) {
    const layout l = layout_of(f, w->rank, w->rope, w->rows);
    unsigned char *work = w->work;
    uint32_t *visible = (uint32_t *)(void *)(work + l.visible);
    perigee_attention_tile tile = {.rank = w->rank,
                                   .rope = w->rope,
                                   .rows = w->rows,
                                   .q = (const float *)(void *)(work + l.q),
                                   .scale = w->scale,
                                   .bf16 = w->bf16,
                                   .visible = visible,
                                   .max = (float *)(void *)(work + l.max),
                                   .sum = (float *)(void *)(work + l.sum),
                                   .z = (float *)(void *)(work + l.z),
                                   .scratch = (float *)(void *)(work + l.scratch)};
    for (size_t key = 0; key < w->keys; key += KEYS) {
        tile.keys = prg_min(w->keys - key, KEYS);
        tile.latent = w->latents[key / KEYS];
        for (size_t i = 0; i < w->rows; i++) {
            visible[i] = w->visible[i] < key ? 0 : (uint32_t)prg_min(w->visible[i] - key, tile.keys);
        }
        f->reference->run.attention.tile(&tile);
    }
}

static void end(const prg_watched *f, const perigee_attention_walk *w, prg_comparison *c) {
    const layout l = layout_of(f, w->rank, w->rope, w->rows);
    const size_t ldz = prg_round_up(w->rank, 16);
    float *z = (float *)(void *)((unsigned char *)w->work + l.z);
    const float *sum = (const float *)(const void *)((const unsigned char *)w->work + l.sum);
    double largest = 0;
    for (size_t row = 0; row < w->rows; row++) {
        for (size_t i = 0; i < w->rank; i++) {
            float *at = z + row * ldz + i;
            *at /= sum[row];
            largest = fabs((double)*at) > largest ? fabs((double)*at) : largest;
        }
    }
    const double allowed = BOUND_OF_MEAN * f->row->error_bound * largest;
    for (size_t row = 0; row < w->rows; row++) {
        for (size_t i = 0; i < w->rank; i++) {
            prg_compare_value(c, w->z[row * w->ldz + i], z[row * ldz + i], allowed, "z", row * w->rank + i, w->rank);
        }
    }
}

void prg_reference_walk(prg_watched *f, void *result, void **arguments) {
    if (strcmp(f->name, "work_bytes") == 0) {
        *(ffi_arg *)result = (ffi_arg)layout_of(f, ARGUMENT(size_t, 0), ARGUMENT(size_t, 1), ARGUMENT(size_t, 2)).bytes;
        return;
    }
    const perigee_attention_walk *w = ARGUMENT(const perigee_attention_walk *, 0);
    prg_watched_forward(f, result, arguments);
    if (strcmp(f->name, "begin") == 0) {
        begin(f, w);
    } else if (strcmp(f->name, "step") == 0) {
        step(f, w);
    } else {
        prg_comparison c = {0};
        end(f, w, &c);
        prg_watch_report(f, prg_watched_shape(f, arguments), &c);
    }
}
