/* Products with weights of F32, F16 and BF16 in plain C: the meaning of the exact rows. */
#include <math.h>

#include "dtype/dtype.h"
#include "kernels/lanes16.h"

/* 32 columns of a row from column c on, zeros behind the last. */
static void step_weights(const prg_dtype *dtype, const perigee_matrix *w, size_t row, size_t c, int pairs,
                         float out[PRG_STEP]) {
    float natural[PRG_STEP] = {0};
    const size_t count = w->cols - c < PRG_STEP ? w->cols - c : PRG_STEP;
    dtype->decode(w, row, c, count, pairs ? natural : out);
    if (!pairs) {
        memset(out + count, 0, (PRG_STEP - count) * sizeof *out);
        return;
    }
    for (size_t i = 0; i < PRG_STEP; i++) {
        out[i % 2 * 16 + i / 2] = natural[i];
    }
}

static float tree(float lanes[16]) {
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}

static size_t scratch_bytes(size_t m, size_t k) {
    (void)m;
    return prg_lanes_packed_bytes(k);
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, float *row_weights, int pairs) {
    const prg_dtype *dtype = prg_dtype_get(w->dtype);
    const size_t padded = (w->cols + PRG_STEP - 1) / PRG_STEP * PRG_STEP;
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < w->cols; c += PRG_STEP) {
            step_weights(dtype, w, first + r, c, pairs, row_weights + c);
        }
        for (size_t t = 0; t < m; t++) {
            const float *x = (const float *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, t);
            float lanes[16] = {0};
            for (size_t c = 0; c < padded; c += 16) {
                for (size_t l = 0; l < 16; l++) {
                    lanes[l] = fmaf(row_weights[c + l], x[c + l], lanes[l]);
                }
            }
            y[t * ldy + r] = tree(lanes);
        }
    }
}

static void multiply_natural(const perigee_matrix *w, size_t first, size_t count, const void *packed,
                             const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    multiply(w, first, count, packed, rows, m, y, ldy, scratch, 0);
}

static void multiply_pairs(const perigee_matrix *w, size_t first, size_t count, const void *packed,
                           const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    multiply(w, first, count, packed, rows, m, y, ldy, scratch, 1);
}

#define ROW(type, TYPE, order, ORDER)                                                                                  \
    const perigee_kernel_row prg_matmul_##type##_scalar = {                                                            \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .error_bound = 1e-6,                                                                                           \
        .name = "matmul_" #type "_scalar",                                                                             \
        .isa = "scalar",                                                                                               \
        .numerics = PRG_NUMERICS_##ORDER,                                                                              \
        .signature = PRG_MATMUL_SIGNATURE,                                                                             \
        .row_tile = 1,                                                                                                 \
        .token_tile = 1,                                                                                               \
        .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_##order, scratch_bytes, multiply_##order, NULL},         \
    };

ROW(f32, F32, natural, NATURAL)
ROW(f16, F16, natural, NATURAL)
ROW(bf16, BF16, pairs, PAIRS)
