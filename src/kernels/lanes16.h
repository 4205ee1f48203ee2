/* The order in which exact products are summed, the same on every machine.
 *
 * Columns come in steps of 32, the last one padded with zeros. A step has two halves of 16 lanes; an output has 16
 * running sums, and each half adds to them by one fused multiply-add a lane, from 0, first half first. In natural order
 * lane l of a half takes its column l; in order of pairs the first half takes the even columns of the step and the
 * second the odd ones (which is how BF16 lies in 32-bit words). At the end lane l takes in lane l + 8, then l + 4,
 * l + 2, l + 1. */
#ifndef PRG_KERNELS_LANES16_H
#define PRG_KERNELS_LANES16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "perigee/sys/kernel.h"

enum { PRG_STEP = 32 };

#define PRG_NUMERICS_NATURAL "float32, 16 lanes"
#define PRG_NUMERICS_PAIRS "float32, 16 lanes of pairs"
#define PRG_MATMUL_SIGNATURE "void(const ptr,size,size,const ptr,const ptr,size,ptr,size,ptr)"

/* Floats of a packed row: whole steps, and a line more, so that rows don't fall on the same sets of a cache. */
static inline size_t prg_lanes_packed_floats(size_t k) {
    return (k + PRG_STEP - 1) / PRG_STEP * PRG_STEP + 16;
}

static inline size_t prg_lanes_packed_bytes(size_t k) {
    return prg_lanes_packed_floats(k) * sizeof(float);
}

static inline const char *prg_lanes_row(const void *packed, size_t bytes, const uint32_t *rows, size_t t) {
    return (const char *)packed + (rows ? rows[t] : t) * bytes;
}

static inline void prg_lanes_pack_natural(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    const size_t floats = prg_lanes_packed_floats(k);
    for (size_t t = 0; t < m; t++) {
        float *to = (float *)packed + t * floats;
        memcpy(to, x + t * ldx, k * sizeof *to);
        memset(to + k, 0, (floats - k) * sizeof *to);
    }
}

static inline void prg_lanes_pack_pairs(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    const size_t floats = prg_lanes_packed_floats(k);
    for (size_t t = 0; t < m; t++) {
        float *to = (float *)packed + t * floats;
        memset(to + k / PRG_STEP * PRG_STEP, 0, (floats - k / PRG_STEP * PRG_STEP) * sizeof *to);
        for (size_t c = 0; c < k; c++) {
            to[c / PRG_STEP * PRG_STEP + c % 2 * 16 + c % PRG_STEP / 2] = x[t * ldx + c];
        }
    }
}

#endif
