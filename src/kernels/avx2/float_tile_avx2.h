/* Loads of 2 x 8 weights and the final tree of the exact products; the order is that of lanes16.h. */
#ifndef PRG_KERNELS_FLOAT_TILE_AVX2_H
#define PRG_KERNELS_FLOAT_TILE_AVX2_H

#include <immintrin.h>

#include "kernels/lanes16.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum weight_kind { KIND_F32, KIND_F16, KIND_BF16 } weight_kind;

INLINE size_t kind_bytes(weight_kind kind) {
    return kind == KIND_F32 ? 4 : 2;
}

/* Lanes 8 * part ... 8 * part + 7 of one half of the step at p. */
INLINE __m256 load_part(weight_kind kind, const char *p, int half, int part) {
    if (kind == KIND_F32) {
        return _mm256_loadu_ps((const float *)(const void *)(p + half * 64 + part * 32));
    }
    if (kind == KIND_F16) {
        return _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + half * 32 + part * 16)));
    }
    const __m256i pairs = _mm256_loadu_si256((const void *)(p + part * 32));
    return _mm256_castsi256_ps(half ? _mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000))
                                    : _mm256_slli_epi32(pairs, 16));
}

/* Four trees of eight lanes each, in lanes 0, 1, 2, 3 of the result: lane l takes in lane l + 4, l + 2, l + 1. */
INLINE __m128 tree_4(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    const __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee)); /* ac, bd */
    const __m256 one = _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xdd));
    return _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
}

/* Lane l takes in lane l + 8, l + 4, l + 2, l + 1. */
INLINE float tree_1(__m256 low, __m256 high) {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#endif
