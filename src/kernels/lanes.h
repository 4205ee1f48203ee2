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

#if defined(__AVX512F__)
#include "kernels/lanes_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "kernels/lanes_avx2.h"
#elif defined(__ARM_NEON) && defined(__aarch64__) && defined(PRG_NEON)
#include "kernels/lanes_neon.h"
#else
#include "kernels/lanes_scalar.h"
#endif

INLINE lanes lanes_zero(void) {
    return lanes_set(0);
}

INLINE float lanes_sum(lanes a) {
    float v[LANES];
    lanes_store(v, a);
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            v[i] += v[i + half];
        }
    }
    return v[0];
}

INLINE float lanes_largest(lanes a) {
    float v[LANES];
    lanes_store(v, a);
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            v[i] = v[i] > v[i + half] ? v[i] : v[i + half];
        }
    }
    return v[0];
}

#endif
