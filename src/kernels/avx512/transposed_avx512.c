/* y[t, c] = sum over r of x[t, r] w[r, c]: 64 columns by up to four rows of activations in registers. */
#include "kernels/avx512/float_tile_avx512.h"

enum { VECTORS = 4, TOKENS = 4, WIDE = 16 };

/* Up to 16 columns in their own order. */
INLINE __m512 load_columns(weight_kind kind, const char *p, __mmask16 mask) {
    if (kind == KIND_F32) {
        return _mm512_maskz_loadu_ps(mask, p);
    }
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
}

INLINE void columns(weight_kind kind, const char *w, size_t row_bytes, size_t count, const float *x, size_t ldx,
                    float *y, size_t ldy, size_t n, int T) {
    __m512 sum[TOKENS][VECTORS];
    __mmask16 mask[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
        const size_t before = (size_t)v * 16;
        mask[v] = (__mmask16)(n >= before + 16 ? 0xffffu : n > before ? (1u << (n - before)) - 1 : 0u);
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            sum[t][v] = _mm512_setzero_ps();
        }
    }
    for (size_t r = 0; r < count; r++, w += row_bytes) {
        __m512 weights[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            weights[v] = load_columns(kind, w + (size_t)v * 16 * kind_bytes(kind), mask[v]);
        }
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            const __m512 q = _mm512_set1_ps(x[(size_t)t * ldx + r]);
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                sum[t][v] = _mm512_fmadd_ps(q, weights[v], sum[t][v]);
            }
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; t++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            _mm512_mask_storeu_ps(y + (size_t)t * ldy + v * 16, mask[v], sum[t][v]);
        }
    }
}

/* One row of activations by 256 columns: 512 bytes or more of each row at a time, as narrower reads of rows that come
 * from memory wait for it. */
INLINE void wide_columns(weight_kind kind, const char *w, size_t row_bytes, size_t count, const float *x, float *y) {
    __m512 sum[WIDE];
#pragma GCC unroll 16
    for (int v = 0; v < WIDE; v++) {
        sum[v] = _mm512_setzero_ps();
    }
    for (size_t r = 0; r < count; r++, w += row_bytes) {
        const __m512 q = _mm512_set1_ps(x[r]);
#pragma GCC unroll 16
        for (int v = 0; v < WIDE; v++) {
            sum[v] = _mm512_fmadd_ps(q, load_columns(kind, w + (size_t)v * 16 * kind_bytes(kind), 0xffff), sum[v]);
        }
    }
#pragma GCC unroll 16
    for (int v = 0; v < WIDE; v++) {
        _mm512_storeu_ps(y + v * 16, sum[v]);
    }
}

INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                     size_t m, float *y, size_t ldy) {
    const char *rows = (const char *)w->codes + first * w->row_bytes;
    size_t c = 0;
    for (; m == 1 && c + WIDE * 16 <= w->cols; c += WIDE * 16) {
        wide_columns(kind, rows + c * kind_bytes(kind), w->row_bytes, count, x, y + c);
    }
    for (; c < w->cols; c += VECTORS * 16) {
        const size_t n = w->cols - c < VECTORS * 16 ? w->cols - c : VECTORS * 16;
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
    const perigee_kernel_row prg_transposed_##type##_avx512 = {                                                        \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL_TRANSPOSED,                                                                            \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .features = PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512,                                                             \
        .priority = 200,                                                                                               \
        .error_bound = 2e-6,                                                                                           \
        .name = "transposed_" #type "_avx512",                                                                         \
        .isa = "avx512",                                                                                               \
        .numerics = "float32, one chain",                                                                              \
        .signature = "void(const ptr,size,size,const ptr,size,size,ptr,size)",                                         \
        .row_tile = 1,                                                                                                 \
        .token_tile = TOKENS,                                                                                          \
        .run.transposed = {multiply_##type},                                                                           \
    };

ROW(f32, F32)
ROW(bf16, BF16)
