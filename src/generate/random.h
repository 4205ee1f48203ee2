/* Random numbers by position: a draw depends on seed and counter alone, so a sampler is saved as two integers. */
#ifndef PRG_GENERATE_RANDOM_H
#define PRG_GENERATE_RANDOM_H

#include <stdint.h>

/* Draw `counter` (from 0) of the splitmix64 stream that starts at `seed`. */
static inline uint64_t prg_random_bits(uint64_t seed, uint64_t counter) {
    uint64_t z = seed + (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* In [0, 1), a multiple of 2^-53. */
static inline double prg_random_unit(uint64_t seed, uint64_t counter) {
    return (double)(prg_random_bits(seed, counter) >> 11) * 0x1p-53;
}

#endif
