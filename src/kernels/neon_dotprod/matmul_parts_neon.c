/* Block formats by activations in int8 parts. A row of weights is unpacked once, a lane being a group; then each row of
 * activations goes over it. Dot products take signed bytes, so codes come without their offset and sums start at 0:
 * the whole numbers are the same. */
#include <arm_neon.h>

#include "kernels/int8_parts.h"
#include "kernels/parts_rows.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum form { FORM_MXFP4, FORM_INT4, FORM_Q8_0 } form;

enum { VECTORS = 4 /* of 4 groups */ };

typedef struct row_block {
    int8_t q[PRG_SUPER];
    float scale[PRG_GROUPS];
} row_block;

static size_t scratch_bytes(size_t m, size_t k) {
    (void)m;
    return prg_super_count(k) * sizeof(row_block);
}

INLINE size_t code_bytes(form f, size_t cols) {
    return f == FORM_Q8_0 ? cols : (cols + 1) / 2;
}

INLINE uint32x4x4_t load_words(const uint8_t *p) {
    return vld4q_u32((const uint32_t *)(const void *)p);
}

/* 2 E2M1, or the code less 8 */
INLINE int8x16_t from_nibbles(form f, uint8x16_t nibbles) {
    static const int8_t twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    if (f == FORM_MXFP4) {
        return vqtbl1q_s8(vld1q_s8(twice_e2m1), nibbles);
    }
    return vsubq_s8(vreinterpretq_s8_u8(nibbles), vdupq_n_s8(8));
}

/* Codes of 512 columns in the order of prg_part_block: word j of each group side by side. */
INLINE void unpack_codes(form f, const uint8_t *codes, int8_t *out) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++, out += 16) {
        if (f == FORM_Q8_0) { /* groups of 8 words */
            const uint32x4x4_t a = load_words(codes + v * 128), b = load_words(codes + v * 128 + 64);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                vst1q_s8(out + j * 64, vreinterpretq_s8_u32(vuzp1q_u32(a.val[j], b.val[j])));
                vst1q_s8(out + (j + 4) * 64, vreinterpretq_s8_u32(vuzp2q_u32(a.val[j], b.val[j])));
            }
            continue;
        }
        const uint32x4x4_t words = load_words(codes + v * 64);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const uint8x16_t bytes = vreinterpretq_u8_u32(words.val[j]);
            vst1q_s8(out + 2 * j * 64, from_nibbles(f, vandq_u8(bytes, vdupq_n_u8(15))));
            vst1q_s8(out + (2 * j + 1) * 64, from_nibbles(f, vshrq_n_u8(bytes, 4)));
        }
    }
}

/* `n` scales; the rest are zero. Byte 0 of E8M0 is a subnormal, 255 is NaN. */
INLINE void unpack_scales(form f, int wide, const uint8_t *scales, size_t n, float *out) {
    for (size_t g = 0; g < PRG_GROUPS; g++) {
        uint16_t half = 0;
        uint32_t bits = 0;
        if (g >= n) {
            out[g] = 0;
        } else if (f == FORM_MXFP4) {
            bits = scales[g] == 255 ? 0x7fc00000u : scales[g] == 0 ? 0x00400000u : (uint32_t)scales[g] << 23;
            memcpy(&out[g], &bits, 4);
        } else if (wide) {
            memcpy(&out[g], scales + g * 4, 4);
        } else if (f == FORM_Q8_0) {
            __fp16 value;
            memcpy(&value, scales + g * 2, 2);
            out[g] = (float)value;
        } else {
            memcpy(&half, scales + g * 2, 2);
            bits = (uint32_t)half << 16;
            memcpy(&out[g], &bits, 4);
        }
    }
}

INLINE void unpack_row(form f, int wide, const perigee_matrix *w, size_t row, row_block *out) {
    const uint8_t *codes = (const uint8_t *)w->codes + row * w->row_bytes;
    const uint8_t *scales = (const uint8_t *)w->scales + row * w->scale_row_bytes;
    const size_t scale_bytes = f == FORM_MXFP4 ? 1 : wide ? 4 : 2;
    for (size_t b = 0; b < prg_super_count(w->cols); b++, out++) {
        const size_t left = w->cols - b * PRG_SUPER;
        const uint8_t *from = codes + b * code_bytes(f, PRG_SUPER);
        uint8_t copy[PRG_SUPER];
        for (size_t i = 0; i < code_bytes(f, PRG_SUPER); i += 64) {
            __builtin_prefetch(from + 4096 + i);
        }
        if (left < PRG_SUPER) {
            memset(copy, 0, sizeof copy);
            memcpy(copy, from, code_bytes(f, left));
            from = copy;
        }
        unpack_codes(f, from, out->q);
        const size_t groups = left < PRG_SUPER ? (left + PRG_GROUP - 1) / PRG_GROUP : PRG_GROUPS;
        unpack_scales(f, wide, scales + b * PRG_GROUPS * scale_bytes, groups, out->scale);
    }
}

INLINE float output(const row_block *w, const prg_part_block *x, size_t supers, int parts) {
    float32x4_t sum[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) {
        sum[v] = vdupq_n_f32(0);
    }
    for (size_t b = 0; b < supers; b++, w++) {
        for (int p = 0; p < parts; p++, x++) {
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
                int32x4_t dot = vdupq_n_s32(0);
#pragma GCC unroll 8
                for (int j = 0; j < 8; j++) {
                    dot = vdotq_s32(dot, vld1q_s8(w->q + j * 64 + v * 16), vld1q_s8(x->q + j * 64 + v * 16));
                }
                const float32x4_t scale = vmulq_f32(vld1q_f32(w->scale + v * 4), vld1q_f32(x->scale + v * 4));
                sum[v] = vfmaq_f32(sum[v], vcvtq_f32_s32(dot), scale);
            }
        }
    }
    const float32x4_t four = vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

INLINE void multiply(form f, int parts, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    const size_t supers = prg_super_count(w->cols);
    const int wide = f == FORM_Q8_0 && w->scale_dtype == PERIGEE_DTYPE_F32;
    row_block *row = scratch;
    for (size_t r = 0; r < count; r++) {
        unpack_row(f, wide, w, first + r, row);
        for (size_t t = 0; t < m; t++) {
            const prg_part_block *x = (const prg_part_block *)packed + (rows ? rows[t] : t) * supers * (size_t)parts;
            y[t * ldy + r] = output(row, x, supers, parts);
        }
    }
}

#define PRG_PARTS_FORMAT(type, TYPE, order, offset, factor, precision, PRECISION, parts, bound)                        \
    static size_t packed_bytes_##type##_##precision(size_t k) {                                                        \
        return prg_parts_packed_bytes(k, parts);                                                                       \
    }                                                                                                                  \
    static void pack_##type##_##precision(const float *x, size_t ldx, size_t m, size_t k, void *packed) {              \
        prg_parts_pack(x, ldx, m, k, order, offset, factor, parts, packed);                                            \
    }                                                                                                                  \
    static void multiply_##type##_##precision(const perigee_matrix *w, size_t first, size_t count, const void *packed, \
                                              const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {   \
        multiply(FORM_##TYPE, parts, w, first, count, packed, rows, m, y, ldy, scratch);                               \
    }                                                                                                                  \
    PRG_PARTS_ROW(type, TYPE, precision, PRECISION, parts, bound, neon_dotprod,                                        \
                  PERIGEE_CPU_NEON | PERIGEE_CPU_DOTPROD, 200, 1, 1)
#include "kernels/parts_formats.def"
#undef PRG_PARTS_FORMAT
