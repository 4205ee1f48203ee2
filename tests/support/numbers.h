/* Reproducible numbers for tests. */
#ifndef PRG_TESTS_NUMBERS_H
#define PRG_TESTS_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t test_random(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Uniform in [-1, 1). */
static inline float test_uniform(uint64_t *state) {
    return (float)((double)(test_random(state) >> 11) * 0x1p-52 - 1);
}

static inline void test_fill(uint64_t *state, float scale, float *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = scale * test_uniform(state);
    }
}

#endif
