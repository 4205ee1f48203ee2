/* Q8_0: int8 codes and one scale for 32 columns, codes and scales apart; scales F16 (what encode writes) or F32. */
#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "dtype/dtype.h"

static float scale_at(const perigee_matrix *matrix, size_t row, size_t index) {
    const uint8_t *scales = (const uint8_t *)matrix->scales + row * matrix->scale_row_bytes;
    if (matrix->scale_dtype == PERIGEE_DTYPE_F32) {
        float scale;
        memcpy(&scale, scales + index * 4, 4);
        return scale;
    }
    uint16_t half;
    memcpy(&half, scales + index * 2, 2);
    return prg_f16_to_f32(half);
}

static void decode(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const int8_t *codes = (const int8_t *)matrix->codes + row * matrix->row_bytes;
    float scale = 0;
    for (size_t i = 0; i < count; i++) {
        size_t col = first + i;
        if (i == 0 || col % 32 == 0) {
            scale = scale_at(matrix, row, col / 32);
        }
        out[i] = (float)codes[col] * scale;
    }
}

static void encode_block(const float *values, size_t count, int8_t *codes, uint8_t *scales) {
    float top = 0;
    for (size_t i = 0; i < count; i++) {
        top = fmaxf(top, fabsf(values[i]));
    }
    uint16_t half = prg_f32_to_f16(fminf(top / 127, 65504));
    memcpy(scales, &half, 2);
    float scale = prg_f16_to_f32(half); /* what the decoder will multiply by; 0 where all are tiny */
    for (size_t i = 0; i < count; i++) {
        float code = scale > 0 ? values[i] / scale : 0;
        code = code < -127 ? -127 : code > 127 ? 127 : code;
        /* to the nearest whole number, ties to even: adding leaves no room for a fraction */
        codes[i] = (int8_t)((code + 0x1.8p23F) - 0x1.8p23F);
    }
}

static void encode(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    size_t blocks = (cols + 31) / 32;
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col += 32) {
            encode_block(values + row * cols + col, prg_min(32, cols - col), (int8_t *)codes + row * cols + col,
                         (uint8_t *)scales + (row * blocks + col / 32) * 2);
        }
    }
}

const prg_dtype prg_dtype_q8_0 = {
    .id = PERIGEE_DTYPE_Q8_0,
    .name = "q8_0",
    .block_cols = 1,
    .block_bytes = 1,
    .scale_rows = 1,
    .scale_cols = 32,
    .scale_bytes = 2,
    .decode = decode,
    .encode = encode,
};
