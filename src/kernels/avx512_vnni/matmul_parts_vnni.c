/* Block formats by activations in int8 parts, with the int8 dot product.
 *
 * A superblock of 512 codes is transposed in registers so that a lane is a group; eight dot products then leave the
 * whole integer sum of each group in its lane. One row of activations reads codes as one linear stream. For more, four
 * rows of weights are unpacked once into a panel, and tiles of 4 x 5 outputs run over it in the same order. The dot
 * product is assembly: gcc 12 turns its intrinsic in tiles into copies of the sums. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/int8_parts.h"
#include "kernels/parts_rows.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 4, TOKENS = 5, FAR = 16384, FAR_SCALES = 512 };

typedef enum form { FORM_MXFP4, FORM_INT4, FORM_Q8_0 } form;

typedef struct panel_block {
    uint8_t q[PRG_SUPER];
    float scale[PRG_GROUPS];
} panel_block;

static size_t scratch_bytes(size_t m, size_t k) {
    return m <= 1 ? 0 : prg_super_count(k) * ROWS * sizeof(panel_block);
}

INLINE void dot_product(__m512i *sum, __m512i codes, __m512i q) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(codes), "v"(q));
}

/* Dwords j of 16 groups of 4, the groups lying one after the other, to vector j. */
INLINE void transpose_16x4(const uint8_t *w, __m512i out[4]) {
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    const __m512i a = _mm512_loadu_si512(w), b = _mm512_loadu_si512(w + 64);
    const __m512i c = _mm512_loadu_si512(w + 128), d = _mm512_loadu_si512(w + 192);
    const __m512i p = _mm512_permutex2var_epi32(a, first, b), q = _mm512_permutex2var_epi32(c, first, d);
    const __m512i r = _mm512_permutex2var_epi32(a, second, b), s = _mm512_permutex2var_epi32(c, second, d);
    out[0] = _mm512_shuffle_i64x2(p, q, 0x44);
    out[1] = _mm512_shuffle_i64x2(p, q, 0xee);
    out[2] = _mm512_shuffle_i64x2(r, s, 0x44);
    out[3] = _mm512_shuffle_i64x2(r, s, 0xee);
}

/* The same of 16 groups of 8. */
INLINE void transpose_16x8(const uint8_t *w, __m512i out[8]) {
    const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m512i z[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            z[i] = _mm512_permutex2var_epi32(_mm512_loadu_si512(w + i * 128), h ? high : low,
                                             _mm512_loadu_si512(w + i * 128 + 64));
        }
        const __m512i u0 = _mm512_shuffle_i64x2(z[0], z[1], 0x44), u1 = _mm512_shuffle_i64x2(z[0], z[1], 0xee);
        const __m512i u2 = _mm512_shuffle_i64x2(z[2], z[3], 0x44), u3 = _mm512_shuffle_i64x2(z[2], z[3], 0xee);
        out[4 * h] = _mm512_shuffle_i64x2(u0, u2, 0x88);
        out[4 * h + 1] = _mm512_shuffle_i64x2(u0, u2, 0xdd);
        out[4 * h + 2] = _mm512_shuffle_i64x2(u1, u3, 0x88);
        out[4 * h + 3] = _mm512_shuffle_i64x2(u1, u3, 0xdd);
    }
}

/* Unsigned codes of a superblock, lane g being group g. */
INLINE void load_codes(form f, const uint8_t *w, __m512i out[8]) {
    if (f == FORM_Q8_0) {
        transpose_16x8(w, out);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            out[j] = _mm512_xor_si512(out[j], _mm512_set1_epi8(-128));
        }
        return;
    }
    const __m512i nibble = _mm512_set1_epi8(15);
    /* 2 E2M1 + 12 */
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    __m512i words[4];
    transpose_16x4(w, words);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m512i codes = _mm512_and_si512(j & 1 ? _mm512_srli_epi16(words[j / 2], 4) : words[j / 2], nibble);
        out[j] = f == FORM_MXFP4 ? _mm512_shuffle_epi8(table, codes) : codes;
    }
}

INLINE size_t code_bytes(form f, size_t cols) {
    return f == FORM_Q8_0 ? cols : (cols + 1) / 2;
}

INLINE size_t scale_bytes(form f, int wide) {
    return f == FORM_MXFP4 ? 1 : wide ? 4 : 2;
}

/* 16 scales; `wide`: of float32. Byte 0 of E8M0 is a subnormal, 255 is NaN. */
INLINE __m512 load_scales(form f, const uint8_t *scales, int wide) {
    if (f == FORM_MXFP4) {
        const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)scales));
        const __m512i bits = _mm512_max_epu32(_mm512_slli_epi32(bytes, 23), _mm512_set1_epi32(0x00400000));
        const __mmask16 none = _mm512_cmpeq_epi32_mask(bytes, _mm512_set1_epi32(255));
        return _mm512_castsi512_ps(_mm512_mask_set1_epi32(bits, none, 0x7fc00000));
    }
    if (wide) {
        return _mm512_loadu_ps(scales);
    }
    const __m256i halves = _mm256_loadu_si256((const void *)scales);
    return f == FORM_INT4 ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))
                          : _mm512_cvtph_ps(halves);
}

/* Codes and scales of superblock b of a row: where they lie, or copies that are padded with zeros. */
typedef struct superblock {
    const uint8_t *codes, *scales;
    uint8_t code_copy[PRG_SUPER], scale_copy[PRG_GROUPS * 4];
} superblock;

INLINE void find_superblock(form f, int wide, const uint8_t *codes, const uint8_t *scales, size_t k, size_t b,
                            superblock *out) {
    const size_t left = k - b * PRG_SUPER;
    out->codes = codes + b * code_bytes(f, PRG_SUPER);
    out->scales = scales + b * PRG_GROUPS * scale_bytes(f, wide);
    if (left >= PRG_SUPER) {
        return;
    }
    memset(out->code_copy, 0, sizeof out->code_copy);
    memset(out->scale_copy, 0, sizeof out->scale_copy);
    memcpy(out->code_copy, out->codes, code_bytes(f, left));
    memcpy(out->scale_copy, out->scales, (left + PRG_GROUP - 1) / PRG_GROUP * scale_bytes(f, wide));
    out->codes = out->code_copy;
    out->scales = out->scale_copy;
}

/* Lanes behind the last group: bits that stand for no scale, times a sum that is zero. */
INLINE __m512 scales_of(form f, int wide, const superblock *s, size_t k, size_t b) {
    const __m512 scales = load_scales(f, s->scales, wide);
    const size_t left = k - b * PRG_SUPER;
    if (left >= PRG_SUPER) {
        return scales;
    }
    return _mm512_maskz_mov_ps((__mmask16)((1u << (left + PRG_GROUP - 1) / PRG_GROUP) - 1), scales);
}

INLINE float tree(__m512 v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

INLINE float one_row(form f, int wide, const uint8_t *codes, const uint8_t *scales, size_t k, const prg_part_block *x,
                     int parts) {
    __m512 sum = _mm512_setzero_ps();
    for (size_t b = 0; b < prg_super_count(k); b++, x += parts) {
        superblock s;
        __m512i v[8], dot[3];
        find_superblock(f, wide, codes, scales, k, b, &s);
        if (f != FORM_Q8_0) {
            const uint8_t *ahead = codes + b * code_bytes(f, PRG_SUPER) + FAR;
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                _mm_prefetch((const char *)ahead + i * 64, _MM_HINT_T1);
            }
        }
        _mm_prefetch((const char *)scales + b * PRG_GROUPS * scale_bytes(f, wide) + FAR_SCALES, _MM_HINT_T0);
        load_codes(f, s.codes, v);
#pragma GCC unroll 3
        for (int p = 0; p < parts; p++) {
            dot[p] = _mm512_load_si512(x[p].start);
        }
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
#pragma GCC unroll 3
            for (int p = 0; p < parts; p++) {
                dot_product(&dot[p], v[j], _mm512_load_si512(x[p].q + j * 64));
            }
        }
        const __m512 scale = scales_of(f, wide, &s, k, b);
#pragma GCC unroll 3
        for (int p = 0; p < parts; p++) {
            sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[p]), _mm512_mul_ps(scale, _mm512_load_ps(x[p].scale)), sum);
        }
    }
    return tree(sum);
}

/* Superblocks of n <= ROWS rows: [superblock][ROWS]. */
INLINE void fill_panel(form f, int wide, const perigee_matrix *w, size_t first, size_t n, panel_block *panel) {
    for (size_t b = 0; b < prg_super_count(w->cols); b++) {
        for (size_t r = 0; r < n; r++) {
            const uint8_t *codes = (const uint8_t *)w->codes + (first + r) * w->row_bytes;
            superblock s;
            __m512i v[8];
            find_superblock(f, wide, codes, (const uint8_t *)w->scales + (first + r) * w->scale_row_bytes, w->cols, b,
                            &s);
            for (size_t i = 0; i < code_bytes(f, PRG_SUPER); i += 64) {
                _mm_prefetch((const char *)codes + ROWS * w->row_bytes + b * code_bytes(f, PRG_SUPER) + i, _MM_HINT_T1);
            }
            load_codes(f, s.codes, v);
            panel_block *out = panel + b * ROWS + r;
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) {
                _mm512_store_si512(out->q + j * 64, v[j]);
            }
            _mm512_store_ps(out->scale, scales_of(f, wide, &s, w->cols, b));
        }
    }
}

INLINE void tile(const panel_block *w, const prg_part_block *const *x, size_t supers, int parts, float *y, size_t ldy,
                 int T) {
    __m512 sums[ROWS * TOKENS];
    for (int i = 0; i < ROWS * T; i++) {
        sums[i] = _mm512_setzero_ps();
    }
    for (size_t b = 0; b < supers; b++, w += ROWS) {
        for (int p = 0; p < parts; p++) {
            const size_t at = b * (size_t)parts + (size_t)p;
            __m512i dot[ROWS * TOKENS];
#pragma GCC unroll 5
            for (int t = 0; t < T; t++) {
                const __m512i start = _mm512_load_si512(x[t][at].start);
#pragma GCC unroll 4
                for (int r = 0; r < ROWS; r++) {
                    dot[r * T + t] = start;
                }
            }
#pragma GCC unroll 1
            for (int j = 0; j < 8; j++) {
                __m512i v[ROWS];
#pragma GCC unroll 4
                for (int r = 0; r < ROWS; r++) {
                    v[r] = _mm512_load_si512(w[r].q + j * 64);
                }
#pragma GCC unroll 5
                for (int t = 0; t < T; t++) {
                    const __m512i q = _mm512_load_si512(x[t][at].q + j * 64);
#pragma GCC unroll 4
                    for (int r = 0; r < ROWS; r++) {
                        dot_product(&dot[r * T + t], v[r], q);
                    }
                }
                __asm__ volatile(""); /* keeps the loop from being unrolled into spills */
            }
#pragma GCC unroll 5
            for (int t = 0; t < T; t++) {
                const __m512 scale = _mm512_load_ps(x[t][at].scale);
#pragma GCC unroll 4
                for (int r = 0; r < ROWS; r++) {
                    sums[r * T + t] =
                        _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r * T + t]),
                                        _mm512_mul_ps(_mm512_load_ps(w[r].scale), scale), sums[r * T + t]);
                }
            }
        }
    }
    for (int t = 0; t < T; t++) {
        for (int r = 0; r < ROWS; r++) {
            y[(size_t)t * ldy + (size_t)r] = tree(sums[r * T + t]);
        }
    }
}

static __attribute__((noinline)) void tile_any(const panel_block *w, const prg_part_block *const *x, size_t supers,
                                               int parts, float *y, size_t ldy, size_t tokens) {
    switch (tokens) {
    case 1:
        tile(w, x, supers, parts, y, ldy, 1);
        break;
    case 2:
        tile(w, x, supers, parts, y, ldy, 2);
        break;
    case 3:
        tile(w, x, supers, parts, y, ldy, 3);
        break;
    case 4:
        tile(w, x, supers, parts, y, ldy, 4);
        break;
    default:
        tile(w, x, supers, parts, y, ldy, 5);
        break;
    }
}

INLINE const prg_part_block *x_row(const void *packed, size_t blocks, const uint32_t *rows, size_t t) {
    return (const prg_part_block *)packed + (rows ? rows[t] : t) * blocks;
}

INLINE void multiply(form f, int parts, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    const size_t supers = prg_super_count(w->cols), blocks = supers * (size_t)parts;
    const int wide = f == FORM_Q8_0 && w->scale_dtype == PERIGEE_DTYPE_F32;
    if (m == 1) {
        const prg_part_block *x = x_row(packed, blocks, rows, 0);
        for (size_t r = 0; r < count; r++) {
            y[r] = one_row(f, wide, (const uint8_t *)w->codes + (first + r) * w->row_bytes,
                           (const uint8_t *)w->scales + (first + r) * w->scale_row_bytes, w->cols, x, parts);
        }
        return;
    }
    panel_block *panel = scratch;
    for (size_t r = 0; r < count; r += ROWS) {
        const size_t n = count - r < ROWS ? count - r : ROWS;
        if (n < ROWS) { /* rows that are not there must not hold what is no number */
            memset(panel, 0, supers * ROWS * sizeof *panel);
        }
        fill_panel(f, wide, w, first + r, n, panel);
        for (size_t t = 0; t < m; t += TOKENS) {
            const prg_part_block *x[TOKENS];
            float out[TOKENS * ROWS];
            const size_t tokens = m - t < TOKENS ? m - t : TOKENS;
            for (size_t i = 0; i < tokens; i++) {
                x[i] = x_row(packed, blocks, rows, t + i);
            }
            tile_any(panel, x, supers, parts, out, ROWS, tokens);
            for (size_t i = 0; i < tokens; i++) {
                memcpy(y + (t + i) * ldy + r, out + i * ROWS, n * sizeof *y);
            }
        }
    }
}

/* prg_parts_pack() of whole groups with vectors: the same operations, so the same bits. */
INLINE void pack_group(const float *x, size_t group, prg_part_order order, int offset, float factor, int parts,
                       prg_part_block *out) {
    __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    const __m512 wrong =
        _mm512_mul_ps(_mm512_add_ps(_mm512_mul_ps(low, _mm512_setzero_ps()), _mm512_mul_ps(high, _mm512_setzero_ps())),
                      _mm512_setzero_ps());
    float unit = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high))) / 127;
    if (_mm512_cmp_ps_mask(wrong, wrong, _CMP_UNORD_Q)) { /* so that the outputs are not finite either */
        low = high = _mm512_setzero_ps();
        unit = NAN;
    }
    const __m512 top = _mm512_set1_ps(127), bottom = _mm512_set1_ps(-127);
    const __m256i spread = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)); /* even columns of eight, then odd */
    for (int p = 0; p < parts; p++, unit /= 254) {
        const bool usable = unit > 0x1p-120f;
        const __m512 inverse = _mm512_set1_ps(usable ? 1 / unit : 0), each = _mm512_set1_ps(usable ? unit : 0);
        const __m512 a =
            _mm512_max_ps(bottom, _mm512_min_ps(top, _mm512_roundscale_ps(_mm512_mul_ps(low, inverse), 8)));
        const __m512 b =
            _mm512_max_ps(bottom, _mm512_min_ps(top, _mm512_roundscale_ps(_mm512_mul_ps(high, inverse), 8)));
        low = _mm512_fnmadd_ps(a, each, low);
        high = _mm512_fnmadd_ps(b, each, high);
        const __m512i qa = _mm512_cvtps_epi32(a), qb = _mm512_cvtps_epi32(b);
        __m256i q = _mm256_set_m128i(_mm512_cvtepi32_epi8(qb), _mm512_cvtepi32_epi8(qa));
        if (order == PRG_ORDER_NIBBLES) {
            q = _mm256_shuffle_epi8(q, spread);
        }
        _mm256_i32scatter_epi32(out[p].q + group * 4, _mm256_setr_epi32(0, 64, 128, 192, 256, 320, 384, 448), q, 1);
        out[p].scale[group] = unit * factor;
        out[p].start[group] = -offset * _mm512_reduce_add_epi32(_mm512_add_epi32(qa, qb));
    }
}

INLINE void pack(const float *x, size_t ldx, size_t m, size_t k, prg_part_order order, int offset, float factor,
                 int parts, void *packed) {
    const size_t supers = prg_super_count(k);
    for (size_t t = 0; t < m; t++) {
        prg_part_block *out = (prg_part_block *)packed + t * supers * (size_t)parts;
        for (size_t g = 0; g < supers * PRG_GROUPS; g++) {
            float copy[PRG_GROUP] = {0};
            const float *from = x + t * ldx + g * PRG_GROUP;
            if ((g + 1) * PRG_GROUP > k) {
                memcpy(copy, from, g * PRG_GROUP < k ? (k - g * PRG_GROUP) * sizeof *copy : 0);
                from = copy;
            }
            pack_group(from, g % PRG_GROUPS, order, offset, factor, parts, out + g / PRG_GROUPS * (size_t)parts);
        }
    }
}

#define PRG_PARTS_FORMAT(type, TYPE, order, offset, factor, precision, PRECISION, parts, bound)                        \
    static size_t packed_bytes_##type##_##precision(size_t k) {                                                        \
        return prg_parts_packed_bytes(k, parts);                                                                       \
    }                                                                                                                  \
    static void pack_##type##_##precision(const float *x, size_t ldx, size_t m, size_t k, void *packed) {              \
        pack(x, ldx, m, k, order, offset, factor, parts, packed);                                                      \
    }                                                                                                                  \
    static void multiply_##type##_##precision(const perigee_matrix *w, size_t first, size_t count, const void *packed, \
                                              const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {   \
        multiply(FORM_##TYPE, parts, w, first, count, packed, rows, m, y, ldy, scratch);                               \
    }                                                                                                                  \
    PRG_PARTS_ROW(type, TYPE, precision, PRECISION, parts, bound, avx512_vnni,                                         \
                  PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512 | PERIGEE_CPU_AVX512_VNNI, 300, ROWS, TOKENS)
#include "kernels/parts_formats.def"
#undef PRG_PARTS_FORMAT
