/* y[t, c] = sum over r of x[t, r] w[r, c]. Few rows of activations: eight rows of weights at a time from front to back,
 * so that they come from memory as one stream, sums in y. More: strips of 24 columns by 128 rows as float32 that stay
 * in the first level of cache, four rows of activations in registers. */
#include "kernels/avx2/float_tile_avx2.h"

enum { VECTORS = 3, STRIP = 8 * VECTORS, STRIP_ROWS = 128, TOKENS = 4, SIDE = 8, AHEAD = 2, WIDTH = 512, FEW = 12 };

/* Eight columns in their own order. */
INLINE __m256 load_columns(weight_kind kind, const char *p) {
    if (kind == KIND_F32) {
        return _mm256_loadu_ps((const float *)(const void *)p);
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}

/* The same of n <= 8 columns; nothing is read behind them. */
INLINE __m256 load_some(weight_kind kind, const char *p, size_t n) {
    char copy[32] = {0};
    if (n == 8) {
        return load_columns(kind, p);
    }
    memcpy(copy, p, n * kind_bytes(kind));
    return load_columns(kind, copy);
}

/* Eight columns of R rows, added to what y holds. */
INLINE __m256 chain(weight_kind kind, const char *w, size_t row_bytes, size_t n, const __m256 *q, __m256 sum, int R) {
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        sum = _mm256_fmadd_ps(q[r], load_some(kind, w + (size_t)r * row_bytes, n), sum);
    }
    return sum;
}

/* Add R rows from w on to one row of y; from memory, what comes later is fetched early. */
INLINE void stream(weight_kind kind, const char *w, size_t row_bytes, size_t cols, const float *x, float *y, int first,
                   int memory, int R) {
    __m256 q[SIDE];
    size_t c = 0;
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        q[r] = _mm256_set1_ps(x[r]);
    }
    for (; c + 8 <= cols; c += 8) {
        const char *p = w + c * kind_bytes(kind);
        if (memory && c * kind_bytes(kind) % 64 == 0) {
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                _mm_prefetch(p + ((size_t)r + AHEAD * SIDE) * row_bytes, _MM_HINT_T1);
            }
        }
        const __m256 sum = first ? _mm256_setzero_ps() : _mm256_loadu_ps(y + c);
        _mm256_storeu_ps(y + c, chain(kind, p, row_bytes, 8, q, sum, R));
    }
    if (c < cols) {
        float some[8] = {0};
        memcpy(some, y + c, first ? 0 : (cols - c) * sizeof *y);
        const __m256 sum = _mm256_loadu_ps(some);
        _mm256_storeu_ps(some, chain(kind, w + c * kind_bytes(kind), row_bytes, cols - c, q, sum, R));
        memcpy(y + c, some, (cols - c) * sizeof *y);
    }
}

/* `count` <= SIDE rows of n columns as float32. */
INLINE void widen_rows(weight_kind kind, const char *w, size_t row_bytes, size_t count, size_t n, float *out) {
    for (size_t r = 0; r < count; r++, w += row_bytes, out += WIDTH) {
        for (size_t c = 0; c < n; c += 8) {
            if (c * kind_bytes(kind) % 64 == 0) {
                _mm_prefetch(w + AHEAD * SIDE * row_bytes + c * kind_bytes(kind), _MM_HINT_T1);
            }
            _mm256_store_ps(out + c, load_some(kind, w + c * kind_bytes(kind), n - c < 8 ? n - c : 8));
        }
    }
}

INLINE void one(weight_kind kind, const perigee_matrix *w, const char *rows, size_t count, const float *x, float *y) {
    size_t r = 0;
    for (; r + SIDE <= count; r += SIDE) {
        stream(kind, rows + r * w->row_bytes, w->row_bytes, w->cols, x + r, y, r == 0, 1, SIDE);
    }
    for (; r < count; r++) {
        stream(kind, rows + r * w->row_bytes, w->row_bytes, w->cols, x + r, y, r == 0, 0, 1);
    }
}

INLINE void few(weight_kind kind, const perigee_matrix *w, const char *rows, size_t count, const float *x, size_t ldx,
                size_t m, float *y, size_t ldy) {
    _Alignas(64) float wide[SIDE * WIDTH];
    for (size_t r = 0; r < count; r += SIDE) {
        const size_t side = count - r < SIDE ? count - r : SIDE;
        for (size_t c = 0; c < w->cols; c += WIDTH) {
            const size_t n = w->cols - c < WIDTH ? w->cols - c : WIDTH;
            widen_rows(kind, rows + r * w->row_bytes + c * kind_bytes(kind), w->row_bytes, side, n, wide);
            for (size_t t = 0; t < m; t++) {
                const float *q = x + t * ldx + r;
                float *to = y + t * ldy + c;
                if (side == SIDE) {
                    stream(KIND_F32, (const char *)wide, WIDTH * sizeof *wide, n, q, to, r == 0, 0, SIDE);
                    continue;
                }
                for (size_t i = 0; i < side; i++) {
                    stream(KIND_F32, (const char *)(wide + i * WIDTH), 0, n, q + i, to, r + i == 0, 0, 1);
                }
            }
        }
    }
}

/* Add `count` rows of a strip to T rows of n columns of y. */
INLINE void tile(const float *strip, size_t count, const float *x, size_t ldx, float *y, size_t ldy, size_t n,
                 int first, int T) {
    __m256 sum[TOKENS][VECTORS];
#pragma GCC unroll 4
    for (int t = 0; t < T; t++) {
        float some[STRIP] = {0};
        const float *from =
            n < STRIP && !first ? memcpy(some, y + (size_t)t * ldy, n * sizeof *y) : y + (size_t)t * ldy;
#pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++) {
            sum[t][v] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(from + v * 8);
        }
    }
    for (size_t r = 0; r < count; r++, strip += STRIP) {
        __m256 w[VECTORS];
#pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++) {
            w[v] = _mm256_load_ps(strip + v * 8);
        }
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            const __m256 q = _mm256_set1_ps(x[(size_t)t * ldx + r]);
#pragma GCC unroll 3
            for (int v = 0; v < VECTORS; v++) {
                sum[t][v] = _mm256_fmadd_ps(q, w[v], sum[t][v]);
            }
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; t++) {
        float some[STRIP], *to = n < STRIP ? some : y + (size_t)t * ldy;
#pragma GCC unroll 3
        for (int v = 0; v < VECTORS; v++) {
            _mm256_storeu_ps(to + v * 8, sum[t][v]);
        }
        if (n < STRIP) {
            memcpy(y + (size_t)t * ldy, some, n * sizeof *y);
        }
    }
}

INLINE void strips(weight_kind kind, const perigee_matrix *w, const char *rows, size_t count, const float *x,
                   size_t ldx, size_t m, float *y, size_t ldy) {
    _Alignas(64) float strip[STRIP_ROWS * STRIP];
    for (size_t c = 0; c < w->cols; c += STRIP) {
        const size_t n = w->cols - c < STRIP ? w->cols - c : STRIP;
        for (size_t r = 0; r < count; r += STRIP_ROWS) {
            const size_t here = count - r < STRIP_ROWS ? count - r : STRIP_ROWS;
            for (size_t i = 0; i < here; i++) {
                const char *p = rows + (r + i) * w->row_bytes + c * kind_bytes(kind);
                for (size_t v = 0; v < STRIP; v += 8) {
                    const size_t there = n > v ? (n - v < 8 ? n - v : 8) : 0;
                    _mm256_store_ps(strip + i * STRIP + v, load_some(kind, p + v * kind_bytes(kind), there));
                }
            }
            size_t t = 0;
            for (; t + TOKENS <= m; t += TOKENS) {
                tile(strip, here, x + t * ldx + r, ldx, y + t * ldy + c, ldy, n, r == 0, TOKENS);
            }
            for (; t < m; t++) {
                tile(strip, here, x + t * ldx + r, ldx, y + t * ldy + c, ldy, n, r == 0, 1);
            }
        }
    }
}

INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                     size_t m, float *y, size_t ldy) {
    const char *rows = (const char *)w->codes + first * w->row_bytes;
    for (size_t t = 0; t < m && count == 0; t++) {
        memset(y + t * ldy, 0, w->cols * sizeof *y);
    }
    if (m == 1) {
        one(kind, w, rows, count, x, y);
    } else if (m < FEW) {
        few(kind, w, rows, count, x, ldx, m, y, ldy);
    } else {
        strips(kind, w, rows, count, x, ldx, m, y, ldy);
    }
}

#define ROW(type, TYPE)                                                                                                \
    static void multiply_##type(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,       \
                                size_t m, float *y, size_t ldy) {                                                      \
        multiply(KIND_##TYPE, w, first, count, x, ldx, m, y, ldy);                                                     \
    }                                                                                                                  \
    const perigee_kernel_row prg_transposed_##type##_avx2 = {                                                          \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL_TRANSPOSED,                                                                            \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .features = PERIGEE_CPU_AVX2,                                                                                  \
        .priority = 100,                                                                                               \
        .error_bound = 2e-6,                                                                                           \
        .name = "transposed_" #type "_avx2",                                                                           \
        .isa = "avx2",                                                                                                 \
        .numerics = "float32, one chain",                                                                              \
        .signature = "void(const ptr,size,size,const ptr,size,size,ptr,size)",                                         \
        .row_tile = 1,                                                                                                 \
        .token_tile = TOKENS,                                                                                          \
        .run.transposed = {multiply_##type},                                                                           \
    };

ROW(f32, F32)
ROW(bf16, BF16)
