/* Block formats by activations in int8 parts, in plain C: the meaning of those rows. */
#include "dtype/dtype.h"
#include "kernels/int8_parts.h"
#include "kernels/parts_rows.h"

typedef struct format {
    uint32_t dtype;
    prg_part_order order;
    int offset;
    float factor;
    int parts;
} format;

/* 2 E2M1 + 12 */
static const uint8_t twice_e2m1[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

static int code_at(const format *f, const perigee_matrix *w, size_t row, size_t c) {
    const uint8_t *codes = (const uint8_t *)w->codes + row * w->row_bytes;
    if (f->dtype == PERIGEE_DTYPE_Q8_0) {
        return codes[c] ^ 128;
    }
    const int nibble = codes[c / 2] >> (c % 2 * 4) & 15;
    return f->dtype == PERIGEE_DTYPE_MXFP4 ? twice_e2m1[nibble] : nibble;
}

static float scale_at(const format *f, const perigee_matrix *w, size_t row, size_t group) {
    const uint8_t *scales = (const uint8_t *)w->scales + row * w->scale_row_bytes;
    uint16_t half;
    if (f->dtype == PERIGEE_DTYPE_MXFP4) {
        return scales[group] == 255 ? (float)NAN : ldexpf(1, scales[group] - 127);
    }
    if (f->dtype == PERIGEE_DTYPE_Q8_0 && w->scale_dtype == PERIGEE_DTYPE_F32) {
        float value;
        memcpy(&value, scales + group * 4, 4);
        return value;
    }
    memcpy(&half, scales + group * 2, 2);
    return f->dtype == PERIGEE_DTYPE_INT4 ? prg_bf16_to_f32(half) : prg_f16_to_f32(half);
}

static float output(const format *f, const perigee_matrix *w, size_t row, const prg_part_block *x) {
    float lanes[PRG_GROUPS] = {0};
    for (size_t b = 0; b < prg_super_count(w->cols); b++) {
        for (int p = 0; p < f->parts; p++, x++) {
            for (size_t g = 0; g < PRG_GROUPS; g++) {
                const size_t first = b * PRG_SUPER + g * PRG_GROUP;
                int32_t dot = x->start[g];
                for (size_t i = 0; i < PRG_GROUP && first + i < w->cols; i++) {
                    dot += code_at(f, w, row, first + i) * x->q[prg_part_place(f->order, g, i)];
                }
                const float scale = first < w->cols ? scale_at(f, w, row, first / PRG_GROUP) : 0;
                lanes[g] = fmaf((float)dot, scale * x->scale[g], lanes[g]);
            }
        }
    }
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}

static void multiply(format f, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy) {
    const size_t blocks = prg_super_count(w->cols) * (size_t)f.parts;
    for (size_t t = 0; t < m; t++) {
        const prg_part_block *x = (const prg_part_block *)packed + (rows ? rows[t] : t) * blocks;
        for (size_t r = 0; r < count; r++) {
            y[t * ldy + r] = output(&f, w, first + r, x);
        }
    }
}

static size_t scratch_bytes(size_t m, size_t k) {
    (void)m;
    (void)k;
    return 0;
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
        (void)scratch;                                                                                                 \
        multiply((format){PERIGEE_DTYPE_##TYPE, order, offset, factor, parts}, w, first, count, packed, rows, m, y,    \
                 ldy);                                                                                                 \
    }                                                                                                                  \
    PRG_PARTS_ROW(type, TYPE, precision, PRECISION, parts, bound, scalar, 0, 0, 1, 1)
#include "kernels/parts_formats.def"
#undef PRG_PARTS_FORMAT
