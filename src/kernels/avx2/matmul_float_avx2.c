/* Products with weights of F32, F16 and BF16: two rows of weights by up to three of activations in registers, panels
 * for many rows of activations. */
#include "kernels/avx2/panel_avx2.h"

enum { ROWS = 2, TOKENS = 3, NEAR = 1024, LONG_ROW = 8192, MANY = 12 };

static size_t scratch_bytes(size_t m, size_t k) {
    (void)k;
    return m < MANY ? 0 : panel_scratch_bytes();
}

/* Add one step to the sums [row][token][part]. */
INLINE void step(weight_kind kind, const char *w, size_t row_bytes, const float *const *x, size_t column,
                 __m256 sum[ROWS][TOKENS][2], int R, int T) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
#pragma GCC unroll 2
        for (int part = 0; part < 2; part++) {
            __m256 v[ROWS];
#pragma GCC unroll 2
            for (int r = 0; r < R; r++) {
                v[r] = load_part(kind, w + (size_t)r * row_bytes, half, part);
            }
#pragma GCC unroll 3
            for (int t = 0; t < T; t++) {
                const __m256 q = _mm256_load_ps(x[t] + column + half * 16 + part * 8);
#pragma GCC unroll 2
                for (int r = 0; r < R; r++) {
                    sum[r][t][part] = _mm256_fmadd_ps(v[r], q, sum[r][t][part]);
                }
            }
        }
    }
}

INLINE void tile(weight_kind kind, const char *w, size_t row_bytes, size_t k, const float *const *x, float *y,
                 size_t ldy, int R, int T) {
    __m256 sum[ROWS][TOKENS][2];
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            sum[r][t][0] = sum[r][t][1] = _mm256_setzero_ps();
        }
    }
    const size_t step_bytes = PRG_STEP * kind_bytes(kind), whole = k / PRG_STEP, tail = k % PRG_STEP;
    const size_t ahead = row_bytes > LONG_ROW ? NEAR : (size_t)R * row_bytes;
    for (size_t s = 0; s < whole; s++) {
#pragma GCC unroll 2
        for (int r = 0; r < R; r++) {
            for (size_t line = 0; line < step_bytes; line += 64) {
                _mm_prefetch(w + (size_t)r * row_bytes + s * step_bytes + ahead + line, _MM_HINT_T1);
            }
        }
        step(kind, w + s * step_bytes, row_bytes, x, s * PRG_STEP, sum, R, T);
    }
    if (tail) { /* a copy, so that nothing behind the row is read */
        char copy[ROWS][PRG_STEP * 4] = {{0}};
        for (int r = 0; r < R; r++) {
            memcpy(copy[r], w + (size_t)r * row_bytes + whole * step_bytes, tail * kind_bytes(kind));
        }
        step(kind, copy[0], sizeof copy[0], x, whole * PRG_STEP, sum, R, T);
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            y[(size_t)t * ldy + (size_t)r] = tree_1(sum[r][t][0], sum[r][t][1]);
        }
    }
}

INLINE void tile_rows(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *const *x,
                      float *y, size_t ldy, int T) {
    const char *p = (const char *)w->codes + first * w->row_bytes;
    size_t r = 0;
    for (; r + ROWS <= count; r += ROWS) {
        tile(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, ROWS, T);
    }
    for (; r < count; r++) {
        tile(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, 1, T);
    }
}

/* Rows in blocks that stay in cache while all activations go over them. */
INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy) {
    const size_t block = m <= TOKENS ? count : 16;
    for (size_t r = 0; r < count; r += block) {
        const size_t n = count - r < block ? count - r : block;
        for (size_t t = 0; t < m; t += TOKENS) {
            const float *x[TOKENS];
            const size_t tokens = m - t < TOKENS ? m - t : TOKENS;
            for (size_t i = 0; i < tokens; i++) {
                x[i] = (const float *)(const void *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, t + i);
            }
            float *out = y + t * ldy + r;
            if (tokens == 1) {
                tile_rows(kind, w, first + r, n, x, out, ldy, 1);
            } else if (tokens == 2) {
                tile_rows(kind, w, first + r, n, x, out, ldy, 2);
            } else {
                tile_rows(kind, w, first + r, n, x, out, ldy, 3);
            }
        }
    }
}

INLINE void fill_row(weight_kind kind, const perigee_matrix *w, size_t row, size_t from, size_t to, float *panel) {
    const size_t step_bytes = PRG_STEP * kind_bytes(kind), whole = w->cols / PRG_STEP, tail = w->cols % PRG_STEP;
    const char *p = (const char *)w->codes + row * w->row_bytes;
    float *high = panel + (to - from) * 2 * PANEL_TILE * PANEL_LANES;
    char copy[PRG_STEP * 4] = {0};
    for (size_t s = from; s < to; s++, panel += 2 * PANEL_TILE * PANEL_LANES, high += 2 * PANEL_TILE * PANEL_LANES) {
        const char *q = p + s * step_bytes;
        if (s == whole) {
            memcpy(copy, q, tail * kind_bytes(kind));
            q = copy;
        }
        _mm256_store_ps(panel, load_part(kind, q, 0, 0));
        _mm256_store_ps(high, load_part(kind, q, 0, 1));
        _mm256_store_ps(panel + PANEL_TILE * PANEL_LANES, load_part(kind, q, 1, 0));
        _mm256_store_ps(high + PANEL_TILE * PANEL_LANES, load_part(kind, q, 1, 1));
    }
}

#define ROW(type, TYPE, order, ORDER)                                                                                  \
    static void fill_##type(const perigee_matrix *w, size_t row, size_t from, size_t to, float *panel) {               \
        fill_row(KIND_##TYPE, w, row, from, to, panel);                                                                \
    }                                                                                                                  \
    static void multiply_##type(const perigee_matrix *w, size_t first, size_t count, const void *packed,               \
                                const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {                 \
        if (m >= MANY && w->cols > 0) {                                                                                \
            panel_multiply(fill_##type, w, first, count, packed, rows, m, y, ldy, scratch);                            \
            return;                                                                                                    \
        }                                                                                                              \
        multiply(KIND_##TYPE, w, first, count, packed, rows, m, y, ldy);                                               \
    }                                                                                                                  \
    const perigee_kernel_row prg_matmul_##type##_avx2 = {                                                              \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .features = PERIGEE_CPU_AVX2,                                                                                  \
        .priority = 100,                                                                                               \
        .error_bound = 1e-6,                                                                                           \
        .name = "matmul_" #type "_avx2",                                                                               \
        .isa = "avx2",                                                                                                 \
        .numerics = PRG_NUMERICS_##ORDER,                                                                              \
        .signature = PRG_MATMUL_SIGNATURE,                                                                             \
        .row_tile = ROWS,                                                                                              \
        .token_tile = TOKENS,                                                                                          \
        .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_##order, scratch_bytes, multiply_##type, NULL},          \
    };

ROW(f32, F32, natural, NATURAL)
ROW(f16, F16, natural, NATURAL)
ROW(bf16, BF16, pairs, PAIRS)
