/* Superblocks of block formats and of activations in int8 parts, for vectors of AVX2.
 *
 * Half a superblock, 8 groups of 32 columns, is 8 vectors, whose lanes are the groups 0, 2, 4, 6, 1, 3, 5, 7, as
 * transposing dwords within halves of vectors leaves those of nibbles. Of bytes vectors 0 ... 3 have the groups 0, 2,
 * 4, 6 alone, first halves of the groups in the lower lanes, second ones in the upper, and vectors 4 ... 7 the groups
 * 1, 3, 5, 7; sums of both are put together to the same order. */
#ifndef PRG_KERNELS_AVX2_PARTS_AVX2_H
#define PRG_KERNELS_AVX2_PARTS_AVX2_H

#include <immintrin.h>
#include <stdbool.h>

#include "kernels/int8_parts.h"

#define INLINE static inline __attribute__((always_inline))

enum { HALF = PRG_SUPER / 2, HALF_GROUPS = PRG_GROUPS / 2 };

typedef enum form { FORM_MXFP4, FORM_INT4, FORM_Q8_0 } form;

INLINE size_t code_bytes(form f, size_t cols) {
    return f == FORM_Q8_0 ? cols : (cols + 1) / 2;
}

INLINE size_t scale_bytes(form f, int wide) {
    return f == FORM_MXFP4 ? 1 : wide ? 4 : 2;
}

/* 4 x 4 dwords in each half of the vectors. */
INLINE void transpose_4x4(__m256i v[4]) {
    const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c);
    v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d);
    v[3] = _mm256_unpackhi_epi64(b, d);
}

/* Codes of half a superblock; those of nibbles unsigned. */
INLINE void load_codes(form f, const uint8_t *w, __m256i out[8]) {
    const int loads = f == FORM_Q8_0 ? 8 : 4;
    __m256i v[8];
#pragma GCC unroll 8
    for (int i = 0; i < loads; i++) { /* of bytes groups 0, 2, 4, 6, then 1, 3, 5, 7 */
        v[i] = _mm256_loadu_si256((const void *)(w + (f == FORM_Q8_0 ? i % 4 * 2 + i / 4 : i) * 32));
    }
    transpose_4x4(v);
    if (f == FORM_Q8_0) {
        transpose_4x4(v + 4);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            out[i] = v[i];
        }
        return;
    }
    const __m256i nibble = _mm256_set1_epi8(15);
    /* 2 E2M1 + 12 */
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i low = _mm256_and_si256(v[i], nibble);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v[i], 4), nibble);
        out[2 * i] = f == FORM_MXFP4 ? _mm256_shuffle_epi8(table, low) : low;
        out[2 * i + 1] = f == FORM_MXFP4 ? _mm256_shuffle_epi8(table, high) : high;
    }
}

/* 8 scales in the order of lanes; `wide`: of float32. Byte 0 of E8M0 is a subnormal, 255 is NaN. */
INLINE __m256 load_scales(form f, int wide, const uint8_t *scales) {
    if (f == FORM_MXFP4) {
        const __m128i even_first = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
        const __m256i bytes = _mm256_cvtepu8_epi32(_mm_shuffle_epi8(_mm_loadl_epi64((const void *)scales), even_first));
        const __m256i subnormal = _mm256_set1_epi32(0x00400000);
        const __m256i none = _mm256_cmpeq_epi32(bytes, _mm256_set1_epi32(255));
        const __m256i bits = _mm256_max_epu32(_mm256_slli_epi32(bytes, 23), subnormal);
        return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_and_si256(none, subnormal)));
    }
    if (wide) {
        return _mm256_permutevar8x32_ps(_mm256_loadu_ps((const void *)scales),
                                        _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    }
    const __m128i even_first = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m128i halves = _mm_shuffle_epi8(_mm_loadu_si128((const void *)scales), even_first);
    return f == FORM_Q8_0 ? _mm256_cvtph_ps(halves)
                          : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* A superblock of a row: where it lies, or copies that are padded with zeros. */
typedef struct superblock {
    const uint8_t *codes, *scales;
    _Alignas(32) uint8_t code_copy[PRG_SUPER], scale_copy[PRG_GROUPS * 4];
} superblock;

/* The last superblock of k columns. By whole vectors, so that loads that follow find them in one store. */
INLINE void copy_padded(const uint8_t *from, size_t n, uint8_t *to, size_t room) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        _mm256_store_si256((void *)(to + i), _mm256_loadu_si256((const void *)(from + i)));
    }
    if (i < n) {
        const __m256i there =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n - i) / 4), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        _mm256_store_si256((void *)(to + i), _mm256_maskload_epi32((const void *)(from + i), there));
        for (size_t j = n - n % 4; j < n; j++) {
            to[j] = from[j];
        }
        i += 32;
    }
    for (; i < room; i += 32) {
        _mm256_store_si256((void *)(to + i), _mm256_setzero_si256());
    }
}

INLINE void find_superblock(form f, int wide, const uint8_t *codes, const uint8_t *scales, size_t k, size_t b,
                            superblock *out) {
    const size_t left = k - b * PRG_SUPER;
    out->codes = codes + b * code_bytes(f, PRG_SUPER);
    out->scales = scales + b * PRG_GROUPS * scale_bytes(f, wide);
    if (left < PRG_SUPER) {
        copy_padded(out->codes, code_bytes(f, left), out->code_copy, code_bytes(f, PRG_SUPER));
        copy_padded(out->scales, (left + PRG_GROUP - 1) / PRG_GROUP * scale_bytes(f, wide), out->scale_copy,
                    PRG_GROUPS * scale_bytes(f, wide));
        out->codes = out->code_copy;
        out->scales = out->scale_copy;
    }
}

/* The tree of lanes16.h: groups 8 apart, then 4, 2 and 1, which are 2 and 1 lanes apart and the halves of a vector. */
INLINE float tree(__m256 low, __m256 high) {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m256 four = _mm256_add_ps(eight, _mm256_permute_ps(eight, 0x4e));
    const __m256 two = _mm256_add_ps(four, _mm256_permute_ps(four, 0xb1));
    return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}

/* The same of 8 outputs. */
INLINE __m256 trees(const float sums[8][PRG_GROUPS]) {
    __m256 four[4], two[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256 a = _mm256_add_ps(_mm256_load_ps(sums[2 * i]), _mm256_load_ps(sums[2 * i] + 8));
        const __m256 b = _mm256_add_ps(_mm256_load_ps(sums[2 * i + 1]), _mm256_load_ps(sums[2 * i + 1] + 8));
        four[i] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
    }
    for (int i = 0; i < 2; i++) {
        const __m256 a = four[2 * i], b = four[2 * i + 1];
        two[i] = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    }
    return _mm256_add_ps(_mm256_permute2f128_ps(two[0], two[1], 0x20), _mm256_permute2f128_ps(two[0], two[1], 0x31));
}

/* Activations: prg_part_block with the vectors of a half one behind the other, and with groups as they are in lanes. */

/* Dwords of four columns to their places; of bytes by columns, of nibbles even columns of eight, then odd ones. */
INLINE void spread_group(form f, size_t group, const int32_t *words, int8_t *q) {
    const size_t g = group % HALF_GROUPS;
    int8_t *half = q + group / HALF_GROUPS * HALF;
    for (size_t i = 0; i < 8; i++) {
        const size_t at =
            f == FORM_Q8_0 ? (g % 2 * 4 + i % 4) * 32 + i / 4 * 16 + g / 2 * 4 : i * 32 + g % 2 * 16 + g / 2 * 4;
        memcpy(half + at, &words[i], sizeof *words);
    }
}

INLINE float largest(const __m256i x[4]) {
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    __m256i top = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) { /* integers are in the order of what is not negative */
        top = _mm256_max_epu32(top, _mm256_andnot_si256(sign, x[i]));
    }
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
    four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

INLINE int32_t sum_of(const __m256i v) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/* One group as prg_parts_pack() does it: the same operations, so the same bits. */
INLINE void pack_group(form f, const float *x, size_t group, int offset, float factor, int parts, prg_part_block *out) {
    const size_t lane = group / 8 * 8 + group % 2 * 4 + group % 8 / 2;
    const __m256 top = _mm256_set1_ps(127), bottom = _mm256_set1_ps(-127);
    const __m256i even_first =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    __m256i bits[4];
    __m256 rest[4];
    for (int i = 0; i < 4; i++) {
        bits[i] = _mm256_loadu_si256((const void *)(x + i * 8));
        rest[i] = _mm256_castsi256_ps(bits[i]);
    }
    float unit = largest(bits) / 127;
    if (!(unit <= 0x1p127f)) { /* so that the outputs are not finite either */
        rest[0] = rest[1] = rest[2] = rest[3] = _mm256_setzero_ps();
        unit = NAN;
    }
    for (int p = 0; p < parts; p++, unit /= 254) {
        const bool usable = unit > 0x1p-120f;
        const __m256 inverse = _mm256_set1_ps(usable ? 1 / unit : 0), step = _mm256_set1_ps(usable ? unit : 0);
        __m256i q[4];
        for (int i = 0; i < 4; i++) {
            const __m256 whole = _mm256_round_ps(_mm256_mul_ps(rest[i], inverse), 8);
            const __m256 held = _mm256_max_ps(bottom, _mm256_min_ps(top, whole));
            rest[i] = _mm256_fnmadd_ps(held, step, rest[i]);
            q[i] = _mm256_cvtps_epi32(held);
        }
        const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
        __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        int32_t words[8];
        if (f != FORM_Q8_0) {
            bytes = _mm256_shuffle_epi8(bytes, even_first);
        }
        _mm256_storeu_si256((void *)words, bytes);
        spread_group(f, group, words, out[p].q);
        out[p].scale[lane] = unit * factor;
        out[p].start[lane] = -offset * sum_of(sum);
    }
}

INLINE void pack_rows(form f, const float *x, size_t ldx, size_t m, size_t k, int offset, float factor, int parts,
                      void *packed) {
    const size_t supers = prg_super_count(k);
    for (size_t t = 0; t < m; t++) {
        prg_part_block *out = (prg_part_block *)packed + t * supers * (size_t)parts;
        for (size_t g = 0; g < supers * PRG_GROUPS; g++) {
            float copy[PRG_GROUP] = {0};
            const float *from = x + t * ldx + g * PRG_GROUP;
            if ((g + 1) * PRG_GROUP > k) {
                if (g * PRG_GROUP < k) {
                    memcpy(copy, from, (k - g * PRG_GROUP) * sizeof *copy);
                }
                from = copy;
            }
            pack_group(f, from, g % PRG_GROUPS, offset, factor, parts, out + g / PRG_GROUPS * (size_t)parts);
        }
    }
}

#endif
