/* y[t, c] = sum over r of x[t, r] w[r, c]: 16 columns by up to four rows of activations in registers. */
#include "kernels/avx2/float_tile_avx2.h"

enum { COLUMNS = 16, TOKENS = 4 };

/* Eight columns in their own order. */
INLINE __m256 load_columns(weight_kind kind, const char *p) {
    if (kind == KIND_F32) {
        return _mm256_loadu_ps((const float *)(const void *)p);
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}

INLINE void columns(weight_kind kind, const char *w, size_t row_bytes, size_t count, const float *x, size_t ldx,
                    float *y, size_t ldy, size_t n, int T) {
    __m256 sum[TOKENS][2];
    char copy[COLUMNS * 4] = {0};
    float out[COLUMNS];
#pragma GCC unroll 4
    for (int t = 0; t < T; t++) {
        sum[t][0] = sum[t][1] = _mm256_setzero_ps();
    }
    for (size_t r = 0; r < count; r++, w += row_bytes) {
        const char *p = w;
        if (n < COLUMNS) {
            memcpy(copy, w, n * kind_bytes(kind));
            p = copy;
        }
        const __m256 low = load_columns(kind, p), high = load_columns(kind, p + 8 * kind_bytes(kind));
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            const __m256 q = _mm256_set1_ps(x[(size_t)t * ldx + r]);
            sum[t][0] = _mm256_fmadd_ps(q, low, sum[t][0]);
            sum[t][1] = _mm256_fmadd_ps(q, high, sum[t][1]);
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; t++) {
        _mm256_storeu_ps(out, sum[t][0]);
        _mm256_storeu_ps(out + 8, sum[t][1]);
        memcpy(y + (size_t)t * ldy, out, n * sizeof *y);
    }
}

INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                     size_t m, float *y, size_t ldy) {
    const char *rows = (const char *)w->codes + first * w->row_bytes;
    for (size_t c = 0; c < w->cols; c += COLUMNS) {
        const size_t n = w->cols - c < COLUMNS ? w->cols - c : COLUMNS;
        const char *p = rows + c * kind_bytes(kind);
        size_t t = 0;
        for (; t + TOKENS <= m; t += TOKENS) {
            columns(kind, p, w->row_bytes, count, x + t * ldx, ldx, y + t * ldy + c, ldy, n, TOKENS);
        }
        for (; t < m; t++) {
            columns(kind, p, w->row_bytes, count, x + t * ldx, ldx, y + t * ldy + c, ldy, n, 1);
        }
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
