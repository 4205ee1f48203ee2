/* Loads of 16 weights, tiles and the final tree of the exact products; the order is that of lanes16.h. */
#ifndef PRG_KERNELS_FLOAT_TILE_AVX512_H
#define PRG_KERNELS_FLOAT_TILE_AVX512_H

#include <immintrin.h>

#include "kernels/lanes16.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum weight_kind { KIND_F32, KIND_F16, KIND_BF16 } weight_kind;

INLINE size_t kind_bytes(weight_kind kind) {
    return kind == KIND_F32 ? 4 : 2;
}

/* One half of the step at p. */
INLINE __m512 load_half(weight_kind kind, const char *p, int half) {
    if (kind == KIND_F32) {
        return _mm512_loadu_ps(p + half * 64);
    }
    if (kind == KIND_F16) {
        return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p + half * 32)));
    }
    const __m512i pairs = _mm512_loadu_si512(p);
    return _mm512_castsi512_ps(half ? _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000))
                                    : _mm512_slli_epi32(pairs, 16));
}

/* The same of a step of `count` < 32 columns; nothing is read behind them. */
INLINE __m512 load_half_tail(weight_kind kind, const char *p, int half, size_t count) {
    const uint32_t all = (1u << count) - 1;
    if (kind == KIND_F32) {
        return _mm512_maskz_loadu_ps((__mmask16)(all >> half * 16), p + half * 64);
    }
    if (kind == KIND_F16) {
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(all >> half * 16), p + half * 32));
    }
    const __m512i pairs = _mm512_maskz_loadu_epi16(all, p);
    return _mm512_castsi512_ps(half ? _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000))
                                    : _mm512_slli_epi32(pairs, 16));
}

/* One level of the tree for two vectors: lanes of a come to lie below those of b. */
INLINE __m512 halve_8(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

INLINE __m512 halve_4(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

INLINE __m512 halve_2(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

INLINE __m512 halve_1(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/* Four sums, in lanes 0, 1, 2, 3 of the result. */
INLINE __m128 tree_4(__m512 a, __m512 b, __m512 c, __m512 d) {
    const __m512 four = halve_4(halve_8(a, b), halve_8(c, d)); /* 4 lanes of a, b, c, d */
    const __m512 two = halve_2(four, four);                    /* in each quarter: 2 lanes of one, twice */
    const __m512 one = halve_1(two, two);                      /* the sum, four times */
    const __m512i pick = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(pick, one));
}

INLINE float tree_1(__m512 a) {
    return _mm_cvtss_f32(tree_4(a, a, a, a));
}

#endif
