/* Products with many rows of activations: weights as float32 in a panel that stays in cache.
 *
 * A tile is three rows of weights by four of activations, eight of the sixteen lanes at a time: 12 sums, three weights
 * and one activation fill the registers, and 7 loads serve 12 multiply-adds. Blocks of K save and restore the running
 * sums, which changes no bit. A panel may be larger than the first level of cache, as it is read from front to back;
 * long blocks of K matter more, because to save sums takes 25 cycles a tile. */
#ifndef PRG_KERNELS_PANEL_AVX2_H
#define PRG_KERNELS_PANEL_AVX2_H

#include "kernels/avx2/float_tile_avx2.h"

enum {
    PANEL_TILE = 3,   /* rows of weights of a tile */
    PANEL_TOKENS = 4, /* rows of activations of a tile */
    PANEL_ROWS = 24,  /* rows of weights of a panel, a multiple of PANEL_TILE, */
    PANEL_FEW = 12,   /* the same for up to PANEL_SOME rows of activations, */
    PANEL_SOME = 16,
    PANEL_STEPS = 24, /* and steps of K */
    PANEL_CHUNK = 48, /* rows of activations that go over a panel, a multiple of PANEL_TOKENS */
    PANEL_LANES = 8
};

/* Floats of the weights and of the sums of a tile. */
enum { PANEL_BLOCK = PANEL_TILE * PANEL_STEPS * PRG_STEP, PANEL_SUMS = PANEL_TILE * PANEL_TOKENS * 16 };

static inline size_t panel_scratch_bytes(void) {
    return ((size_t)PANEL_ROWS / PANEL_TILE * PANEL_BLOCK + (size_t)PANEL_ROWS * PANEL_CHUNK * 16) * sizeof(float);
}

/* Add `halves` half steps to P parts of the sums of a tile of T rows of activations. */
INLINE void panel_tile(const float *panel, size_t halves, const float *const *x, float *sums, int first, int T, int P) {
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
    const size_t other = halves * PANEL_TILE * PANEL_LANES;
    for (size_t i = 0; i < halves * 16; i += 2 * 16, panel += 2 * PANEL_TILE * PANEL_LANES) {
#pragma GCC unroll 4
        for (int j = 0; j < 2 * P; j++) {
            const int half = j / P, p = j % P;
            __m256 v[PANEL_TILE];
#pragma GCC unroll 3
            for (int r = 0; r < PANEL_TILE; r++) {
                v[r] = _mm256_load_ps(panel + (size_t)p * other + (half * PANEL_TILE + r) * PANEL_LANES);
            }
#pragma GCC unroll 4
            for (int t = 0; t < T; t++) {
                const float *q = (t == 0 ? x0 : t == 1 ? x1 : t == 2 ? x2 : x3) + i + half * 16 + p * PANEL_LANES;
                const __m256 value = _mm256_load_ps(q);
#pragma GCC unroll 3
                for (int r = 0; r < PANEL_TILE; r++) {
                    sum[p][t][r] = _mm256_fmadd_ps(v[r], value, sum[p][t][r]);
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
                                                     float *sums, int first, size_t tokens) {
    switch (tokens) {
    case 1:
        panel_tile(panel, halves, x, sums, first, 1, 2);
        return;
    case 2:
        panel_tile(panel, halves, x, sums, first, 2, 2);
        return;
    default:
        break;
    }
    const float *high[PANEL_TOKENS] = {x[0] + PANEL_LANES, x[1] + PANEL_LANES, x[2] + PANEL_LANES,
                                       x[tokens - 1] + PANEL_LANES};
    const float *panel_high = panel + halves * PANEL_TILE * PANEL_LANES;
    if (tokens == 3) {
        panel_tile(panel, halves, x, sums, first, 3, 1);
        panel_tile(panel_high, halves, high, sums + PANEL_SUMS / 2, first, 3, 1);
    } else {
        panel_tile(panel, halves, x, sums, first, 4, 1);
        panel_tile(panel_high, halves, high, sums + PANEL_SUMS / 2, first, 4, 1);
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

/* Share `part` of `parts` of the lines that the panel after this one will be made of: PANEL_STEPS of PANEL_ROWS rows
 * from p on. */
INLINE void panel_fetch(const char *p, size_t row_bytes, size_t n, size_t lines, size_t part, size_t parts) {
    const size_t all = n * lines, end = all * (part + 1) / parts;
    size_t i = all * part / parts;
    for (size_t r = i / lines, line = i % lines; i < end; r++, line = 0) {
        for (; line < lines && i < end; line++, i++) {
            _mm_prefetch(p + r * row_bytes + line * 64, _MM_HINT_T1);
        }
    }
}

/* A whole group of n <= PANEL_ROWS rows; where the last tile has fewer, the last row again. */
INLINE void panel_make(panel_fill fill, const perigee_matrix *w, size_t first, size_t n, size_t from, size_t to,
                       float *panel) {
    for (size_t r = 0; r < (n + PANEL_TILE - 1) / PANEL_TILE * PANEL_TILE; r++) {
        fill(w, first + (r < n ? r : n - 1), from, to,
             panel + r / PANEL_TILE * PANEL_BLOCK + r % PANEL_TILE * PANEL_LANES);
    }
}

/* n <= PANEL_ROWS rows by rows [begin, end) of the activations. */
INLINE void panel_rows(panel_fill fill, const perigee_matrix *w, size_t first, size_t n, const void *packed,
                       const uint32_t *rows, size_t begin, size_t end, float *y, size_t ldy, float *scratch) {
    const size_t steps = (w->cols + PRG_STEP - 1) / PRG_STEP, bytes = prg_lanes_packed_bytes(w->cols);
    const size_t step_bytes = w->row_bytes * PRG_STEP / w->cols, lines = (PANEL_STEPS * step_bytes + 63) / 64;
    const size_t parts = (n + PANEL_TILE - 1) / PANEL_TILE * ((end - begin + PANEL_TOKENS - 1) / PANEL_TOKENS);
    float *panel = scratch, *sums = scratch + PANEL_ROWS / PANEL_TILE * PANEL_BLOCK;
    for (size_t s = 0; s < steps; s += PANEL_STEPS) {
        const size_t last = s + PANEL_STEPS < steps ? s + PANEL_STEPS : steps, halves = 2 * (last - s);
        const char *next = (const char *)w->codes + (last < steps ? first : first + n) * w->row_bytes +
                           (last < steps ? last * step_bytes : 0);
        float *sum = sums;
        size_t part = 0;
        panel_make(fill, w, first, n, s, last, panel);
        for (size_t t = begin; t < end; t += PANEL_TOKENS) {
            const size_t tokens = end - t < PANEL_TOKENS ? end - t : PANEL_TOKENS;
            const float *x[PANEL_TOKENS] = {0};
            for (size_t i = 0; i < tokens; i++) {
                x[i] = (const float *)(const void *)prg_lanes_row(packed, bytes, rows, t + i) + s * PRG_STEP;
            }
            for (size_t r = 0; r < n; r += PANEL_TILE, sum += PANEL_SUMS) {
                panel_fetch(next, w->row_bytes, n, lines, part++, parts);
                panel_tile_any(panel + r / PANEL_TILE * PANEL_BLOCK, halves, x, sum, s == 0, tokens);
                if (last == steps) {
                    panel_finish(sum, tokens, n - r < PANEL_TILE ? n - r : PANEL_TILE, y + t * ldy + r, ldy);
                }
            }
        }
    }
}

INLINE void panel_multiply(panel_fill fill, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                           const uint32_t *rows, size_t m, float *y, size_t ldy, float *scratch) {
    const size_t height = m <= PANEL_SOME ? PANEL_FEW : PANEL_ROWS;
    for (size_t t = 0; t < m; t += PANEL_CHUNK) {
        for (size_t r = 0; r < count; r += height) {
            panel_rows(fill, w, first + r, count - r < height ? count - r : height, packed, rows, t,
                       m - t < PANEL_CHUNK ? m : t + PANEL_CHUNK, y + r, ldy, scratch);
        }
    }
}

#endif
