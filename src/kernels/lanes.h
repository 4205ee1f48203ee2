/* Sixteen float32 lanes. A kernel that is written over them gives the same bits for every instruction set: each
 * operation here is one rounding of IEEE arithmetic, and sums over lanes are taken as one tree. The including file's
 * compiler flags choose what a lane is made of. */
#ifndef PRG_KERNELS_LANES_H
#define PRG_KERNELS_LANES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define INLINE static inline __attribute__((always_inline))

/* Before a loop whose arrays of lanes are to stay in registers; plain lanes have none, and grow when they are unrolled.
 */
#define LANES_PRAGMA(text) _Pragma(#text)
#define UNROLLED(n) LANES_PRAGMA(GCC unroll n)

#if defined(__AVX512F__)
#include "kernels/lanes_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/lanes_avx2.h"
#elif defined(__ARM_NEON) && defined(__aarch64__) && defined(PRG_NEON)
#include "kernels/lanes_neon.h"
#else
#include "kernels/lanes_scalar.h"
#undef UNROLLED
#define UNROLLED(n)
#endif

INLINE lanes lanes_zero(void) {
    return lanes_set(0);
}

/* Lane l takes in lane l + 8, then l + 4, l + 2, l + 1. */
INLINE float lanes_sum(lanes a) {
#if defined(LANES_X86)
    __m256 half = _mm256_add_ps(lanes_low(a), lanes_high(a));
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
#else
    float v[LANES];
    lanes_store(v, a);
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            v[i] += v[i + half];
        }
    }
    return v[0];
#endif
}

INLINE float lanes_largest(lanes a) {
#if defined(LANES_X86)
    __m256 half = _mm256_max_ps(lanes_low(a), lanes_high(a));
    __m128 v = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)));
#else
    float v[LANES];
    lanes_store(v, a);
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            v[i] = v[i] > v[i + half] ? v[i] : v[i + half];
        }
    }
    return v[0];
#endif
}

/* Number j of each of 16 groups of four numbers to out[j]. */
#if defined(LANES_X86)
INLINE void lanes_load_fours(const float *p, lanes out[4]) {
    __m256 half[2][4];
    UNROLLED(2)
    for (size_t i = 0; i < 2; i++, p += 32) {
        __m256 r0 = _mm256_loadu_ps(p), r1 = _mm256_loadu_ps(p + 8), r2 = _mm256_loadu_ps(p + 16),
               r3 = _mm256_loadu_ps(p + 24);
        __m256 a = _mm256_permute2f128_ps(r0, r2, 0x20), b = _mm256_permute2f128_ps(r0, r2, 0x31);
        __m256 c = _mm256_permute2f128_ps(r1, r3, 0x20), d = _mm256_permute2f128_ps(r1, r3, 0x31);
        r0 = _mm256_unpacklo_ps(a, b);
        r1 = _mm256_unpacklo_ps(c, d);
        r2 = _mm256_unpackhi_ps(a, b);
        r3 = _mm256_unpackhi_ps(c, d);
        half[i][0] = _mm256_shuffle_ps(r0, r1, 0x44);
        half[i][1] = _mm256_shuffle_ps(r0, r1, 0xee);
        half[i][2] = _mm256_shuffle_ps(r2, r3, 0x44);
        half[i][3] = _mm256_shuffle_ps(r2, r3, 0xee);
    }
    UNROLLED(4)
    for (size_t j = 0; j < 4; j++) {
        out[j] = lanes_of_halves(half[0][j], half[1][j]);
    }
}
#else
INLINE void lanes_load_fours(const float *p, lanes out[4]) {
    float turned[4 * LANES];
    for (size_t i = 0; i < LANES; i++) {
        for (size_t j = 0; j < 4; j++) {
            turned[j * LANES + i] = p[i * 4 + j];
        }
    }
    for (size_t j = 0; j < 4; j++) {
        out[j] = lanes_load(turned + j * LANES);
    }
}
#endif

/* Towards the second cache; costs nothing where there is no such instruction. */
INLINE void lanes_prefetch(const void *p) {
    __builtin_prefetch(p, 0, 2);
}

#endif
