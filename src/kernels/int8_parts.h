/* Products of block formats with activations in int8 parts.
 *
 * Columns come in superblocks of 512: 16 groups of 32 columns with a scale of weights each. Activations of a group are
 * s (q0 + q1 / 254 + q2 / 254^2) with |q| <= 127: one part is fast, two are balanced, three as exact as float32.
 * Weights are scale times a small integer; codes are taken with an offset that makes them unsigned, and a dot product
 * starts at minus the offset times the sum of the group's q. For each superblock and part, in this order, lane g of an
 * output's 16 running sums takes the integer dot of group g, converted to float32, by one fused multiply-add with the
 * product of both scales; then the tree of lanes16.h. Groups behind the last column are zero. */
#ifndef PRG_KERNELS_INT8_PARTS_H
#define PRG_KERNELS_INT8_PARTS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "perigee/sys/kernel.h"

enum { PRG_SUPER = 512, PRG_GROUP = 32, PRG_GROUPS = 16 };

/* One part of the activations of a superblock. Vector j of q has 4 columns of each group, group g in bytes 4g ... 4g
 * + 3. Which 4 depends on how the format's codes lie: neighbouring nibbles take columns 8i + 0, 2, 4, 6 (vector 2i) and
 * 8i + 1, 3, 5, 7 (vector 2i + 1); bytes take columns 4j ... 4j + 3. */
typedef struct prg_part_block {
    int8_t q[PRG_SUPER];
    float scale[PRG_GROUPS];
    int32_t start[PRG_GROUPS]; /* minus the offset times the sum of q */
} prg_part_block;

typedef enum prg_part_order { PRG_ORDER_NIBBLES, PRG_ORDER_BYTES } prg_part_order;

static inline size_t prg_super_count(size_t k) {
    return (k + PRG_SUPER - 1) / PRG_SUPER;
}

static inline size_t prg_parts_packed_bytes(size_t k, int parts) {
    return prg_super_count(k) * (size_t)parts * sizeof(prg_part_block);
}

static inline size_t prg_part_place(prg_part_order order, size_t group, size_t i) {
    return order == PRG_ORDER_BYTES ? i / 4 * 64 + group * 4 + i % 4 : (i / 8 * 2 + i % 2) * 64 + group * 4 + i % 8 / 2;
}

/* Parts of one group, `unit` being the first scale; the rest of each part goes to the next. */
static inline void prg_part_group(float *rest, float unit, size_t group, prg_part_order order, int offset, float factor,
                                  int parts, prg_part_block *out) {
    for (int p = 0; p < parts; p++, unit /= 254) {
        int32_t sum = 0;
        /* too small to divide by, or no number: the part is zero and leaves the rest */
        const float inverse = unit > 0x1p-120f ? 1 / unit : 0, step = inverse > 0 ? unit : 0;
        for (size_t i = 0; i < PRG_GROUP; i++) {
            float q = rintf(rest[i] * inverse);
            q = q < -127 ? -127 : q > 127 ? 127 : q;
            rest[i] = fmaf(-q, step, rest[i]);
            sum += (int32_t)q;
            out[p].q[prg_part_place(order, group, i)] = (int8_t)q;
        }
        out[p].scale[group] = unit * factor;
        out[p].start[group] = -offset * sum;
    }
}

/* `factor` goes into the scales: what one unit of the integer codes is worth. */
static inline void prg_parts_pack(const float *x, size_t ldx, size_t m, size_t k, prg_part_order order, int offset,
                                  float factor, int parts, void *packed) {
    const size_t supers = prg_super_count(k);
    for (size_t t = 0; t < m; t++) {
        for (size_t g = 0; g < supers * PRG_GROUPS; g++) {
            float rest[PRG_GROUP] = {0}, top = 0, wrong = 0;
            const size_t first = g * PRG_GROUP, left = first < k ? k - first : 0;
            const size_t n = left < PRG_GROUP ? left : PRG_GROUP;
            for (size_t i = 0; i < n; i++) {
                rest[i] = x[t * ldx + first + i];
                top = fmaxf(top, fabsf(rest[i]));
                wrong += rest[i] * 0; /* NaN if the value is not finite */
            }
            if (wrong != 0) { /* so that the outputs are not finite either */
                memset(rest, 0, sizeof rest);
                top = wrong;
            }
            prg_part_block *out = (prg_part_block *)packed + (t * supers + g / PRG_GROUPS) * (size_t)parts;
            prg_part_group(rest, top / 127, g % PRG_GROUPS, order, offset, factor, parts, out);
        }
    }
}

#endif
