/* Products with many rows of activations: weights as float32 in a panel that stays in the nearest cache.
 *
 * A tile is three rows of weights by four of activations, eight of the sixteen lanes at a time: 12 sums, three weights
 * and one activation fill the registers, and 7 loads serve 12 multiply-adds. Blocks of K save and restore the running
 * sums, which changes no bit. */
#ifndef PRG_KERNELS_PANEL_AVX2_H
#define PRG_KERNELS_PANEL_AVX2_H

#include "kernels/avx2/float_tile_avx2.h"

enum {
    PANEL_TILE = 3,   /* rows of weights of a tile */
    PANEL_TOKENS = 4, /* rows of activations of a tile */
    PANEL_NEAR = 12,  /* rows of weights that stay in the first level, a multiple of PANEL_TILE, */
    PANEL_ROWS = 48,  /* and in the second, a multiple of that */
    PANEL_STEPS = 12, /* steps of a block of K */
    PANEL_CHUNK = 48, /* rows of activations that go over a panel, a multiple of PANEL_TOKENS */
    PANEL_LANES = 8
};

/* Floats of the weights and of the sums of a tile. */
enum { PANEL_BLOCK = PANEL_TILE * PANEL_STEPS * PRG_STEP, PANEL_SUMS = PANEL_TILE * PANEL_TOKENS * 16 };

static inline size_t panel_scratch_bytes(void) {
    return ((size_t)PANEL_ROWS / PANEL_TILE * PANEL_BLOCK + (size_t)PANEL_ROWS * PANEL_CHUNK * 16) * sizeof(float);
}

/* Add `halves` half steps to P parts of the sums of a tile of T rows of activations. */
INLINE void panel_tile(const float *panel, size_t halves, const float *const *x, float *sums, const char *ahead,
                       int first, int T, int P) {
    __m256 sum[2][PANEL_TOKENS][PANEL_TILE];
#pragma GCC unroll 2
    for (int p = 0; p < P; p++) {
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
#pragma GCC unroll 3
            for (int r = 0; r < PANEL_TILE; r++) {
                sum[p][t][r] = first ? _mm256_setzero_ps()
                                     : _mm256_load_ps(sums + ((p * PANEL_TOKENS + t) * PANEL_TILE + r) * PANEL_LANES);
            }
        }
    }
    const float *x0 = x[0], *x1 = x[T > 1 ? 1 : 0], *x2 = x[T > 2 ? 2 : 0], *x3 = x[T > 3 ? 3 : 0];
    const float *end = panel + halves * PANEL_TILE * PANEL_LANES;
    const size_t other = halves * PANEL_TILE * PANEL_LANES;
#pragma GCC unroll 2
    for (; panel < end; panel += PANEL_TILE * PANEL_LANES, x0 += 16, x1 += 16, x2 += 16, x3 += 16, ahead += 64) {
        _mm_prefetch(ahead, _MM_HINT_T0);
#pragma GCC unroll 2
        for (int p = 0; p < P; p++) {
            __m256 v[PANEL_TILE];
#pragma GCC unroll 3
            for (int r = 0; r < PANEL_TILE; r++) {
                v[r] = _mm256_load_ps(panel + (size_t)p * other + r * PANEL_LANES);
            }
#pragma GCC unroll 4
            for (int t = 0; t < T; t++) {
                const __m256 q = _mm256_load_ps((t == 0 ? x0 : t == 1 ? x1 : t == 2 ? x2 : x3) + p * PANEL_LANES);
#pragma GCC unroll 3
                for (int r = 0; r < PANEL_TILE; r++) {
                    sum[p][t][r] = _mm256_fmadd_ps(v[r], q, sum[p][t][r]);
                }
            }
        }
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; p++) {
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
#pragma GCC unroll 3
            for (int r = 0; r < PANEL_TILE; r++) {
                _mm256_store_ps(sums + ((p * PANEL_TOKENS + t) * PANEL_TILE + r) * PANEL_LANES, sum[p][t][r]);
            }
        }
    }
}

static __attribute__((noinline)) void panel_tile_any(const float *panel, size_t halves, const float *const *x,
                                                     float *sums, const float *next_x, const float *next_sums,
                                                     int first, size_t tokens) {
    const char *a = (const char *)next_x, *b = (const char *)next_sums;
    switch (tokens) {
    case 1:
        panel_tile(panel, halves, x, sums, b, first, 1, 2);
        return;
    case 2:
        panel_tile(panel, halves, x, sums, b, first, 2, 2);
        return;
    default:
        break;
    }
    const float *high[PANEL_TOKENS] = {x[0] + PANEL_LANES, x[1] + PANEL_LANES, x[2] + PANEL_LANES,
                                       x[tokens - 1] + PANEL_LANES};
    const float *panel_high = panel + halves * PANEL_TILE * PANEL_LANES;
    if (tokens == 3) {
        panel_tile(panel, halves, x, sums, b, first, 3, 1);
        panel_tile(panel_high, halves, high, sums + PANEL_SUMS / 2, a, first, 3, 1);
    } else {
        panel_tile(panel, halves, x, sums, b, first, 4, 1);
        panel_tile(panel_high, halves, high, sums + PANEL_SUMS / 2, a, first, 4, 1);
    }
}

/* The trees of a tile; n of its rows are there. */
INLINE void panel_finish(const float *sums, size_t tokens, size_t n, float *y, size_t ldy) {
    for (size_t t = 0; t < tokens; t++, sums += PANEL_TILE * PANEL_LANES, y += ldy) {
        __m256 eight[PANEL_TILE];
#pragma GCC unroll 3
        for (int r = 0; r < PANEL_TILE; r++) {
            eight[r] = _mm256_add_ps(_mm256_load_ps(sums + r * PANEL_LANES),
                                     _mm256_load_ps(sums + PANEL_SUMS / 2 + r * PANEL_LANES));
        }
        float out[4];
        _mm_storeu_ps(out, tree_4(eight[0], eight[1], eight[2], eight[2]));
        memcpy(y, out, n * sizeof *y);
    }
}

/* Put steps [from, to) of up to PANEL_TILE rows into a panel: [part][half step][row][8], by `fill` row for row. */
typedef void (*panel_fill)(const perigee_matrix *w, size_t row, size_t from, size_t to, float *panel);

/* n <= PANEL_ROWS rows by rows [begin, end) of the activations. */
INLINE void panel_rows(panel_fill fill, const perigee_matrix *w, size_t first, size_t n, const void *packed,
                       const uint32_t *rows, size_t begin, size_t end, float *y, size_t ldy, float *scratch) {
    const size_t steps = (w->cols + PRG_STEP - 1) / PRG_STEP, bytes = prg_lanes_packed_bytes(w->cols);
    float *panel = scratch, *sums = scratch + PANEL_ROWS / PANEL_TILE * PANEL_BLOCK;
    for (size_t s = 0; s < steps; s += PANEL_STEPS) {
        const size_t last = s + PANEL_STEPS < steps ? s + PANEL_STEPS : steps, halves = 2 * (last - s);
        for (size_t near = 0; near < n; near += PANEL_NEAR) {
            const size_t far = n - near < PANEL_NEAR ? n : near + PANEL_NEAR;
            for (size_t r = near; r < far; r++) {
                fill(w, first + r, s, last, panel + r / PANEL_TILE * PANEL_BLOCK + r % PANEL_TILE * PANEL_LANES);
            }
            for (size_t r = far; r % PANEL_TILE; r++) { /* in place of rows that are not there, the last one again */
                fill(w, first + far - 1, s, last, panel + r / PANEL_TILE * PANEL_BLOCK + r % PANEL_TILE * PANEL_LANES);
            }
            for (size_t t = begin; t < end; t += PANEL_TOKENS) {
                const size_t tokens = end - t < PANEL_TOKENS ? end - t : PANEL_TOKENS;
                const float *x[PANEL_TOKENS] = {0};
                for (size_t i = 0; i < tokens; i++) {
                    x[i] = (const float *)(const void *)prg_lanes_row(packed, bytes, rows, t + i) + s * PRG_STEP;
                }
                for (size_t r = near; r < far; r += PANEL_TILE) {
                    const size_t next = t + PANEL_TOKENS + (r - near) / PANEL_TILE, there = next < end ? next : end - 1;
                    const float *next_x =
                        (const float *)(const void *)prg_lanes_row(packed, bytes, rows, there) + s * PRG_STEP;
                    float *sum =
                        sums + (r / PANEL_TILE + (t - begin) / PANEL_TOKENS * (PANEL_ROWS / PANEL_TILE)) * PANEL_SUMS;
                    panel_tile_any(panel + r / PANEL_TILE * PANEL_BLOCK, halves, x, sum, next_x, sum + PANEL_SUMS,
                                   s == 0, tokens);
                    if (last == steps) {
                        panel_finish(sum, tokens, n - r < PANEL_TILE ? n - r : PANEL_TILE, y + t * ldy + r, ldy);
                    }
                }
            }
        }
    }
}

INLINE void panel_multiply(panel_fill fill, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                           const uint32_t *rows, size_t m, float *y, size_t ldy, float *scratch) {
    for (size_t t = 0; t < m; t += PANEL_CHUNK) {
        for (size_t r = 0; r < count; r += PANEL_ROWS) {
            panel_rows(fill, w, first + r, count - r < PANEL_ROWS ? count - r : PANEL_ROWS, packed, rows, t,
                       m - t < PANEL_CHUNK ? m : t + PANEL_CHUNK, y + r, ldy, scratch);
        }
    }
}

#endif
