/* FP8 E4M3 ("fn": no infinities, 0x7F and 0xFF are NaN, top 448) in blocks of 128 x 128 with a float32 scale each.
 * Edges count as whole blocks. */
#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "dtype/dtype.h"

enum { BLOCK = 128 };

float prg_e4m3_to_f32(uint8_t code) {
    const uint32_t magnitude = code & 127, sign = (uint32_t)(code & 128) << 24;
    float value = (float)magnitude * 0x1p-9f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (magnitude >= 8) {
        bits = (magnitude << 20) + (120u << 23);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return magnitude == 127 ? (float)NAN : value;
}

static void decode(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const uint8_t *codes = (const uint8_t *)matrix->codes + row * matrix->row_bytes;
    const uint8_t *scales = (const uint8_t *)matrix->scales + row / BLOCK * matrix->scale_row_bytes;
    float scale = 0;
    for (size_t i = 0; i < count; i++) {
        size_t col = first + i;
        if (i == 0 || col % BLOCK == 0) {
            memcpy(&scale, scales + col / BLOCK * 4, 4);
        }
        out[i] = prg_e4m3_to_f32(codes[col]) * scale;
    }
}

/* Nearest code, a tie to the even one; beyond 448: 448. */
static uint8_t nearest(float value) {
    uint8_t sign = signbit(value) ? 128 : 0;
    float magnitude = fabsf(value);
    if (isnan(value)) {
        return sign | 127;
    }
    if (magnitude >= 448) {
        return sign | 126;
    }
    if (magnitude == 0) {
        return sign;
    }
    int exponent;
    (void)frexpf(magnitude, &exponent);
    exponent = exponent - 1 < -6 ? -6 : exponent - 1;
    long steps = lrintf(ldexpf(magnitude, 3 - exponent)); /* eighths; 16 carries into the exponent by itself */
    return (uint8_t)(sign | (((exponent + 7) << 3) + (int)steps - 8));
}

static void encode_block(const float *values, size_t rows, size_t cols, size_t ld, uint8_t *codes, uint8_t *scale) {
    float top = 0;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            top = fmaxf(top, fabsf(values[i * ld + j]));
        }
    }
    float unit = fmaxf(top / 448, 1e-12f);
    memcpy(scale, &unit, 4);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            codes[i * ld + j] = nearest(values[i * ld + j] / unit);
        }
    }
}

static void encode(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    size_t blocks = (cols + BLOCK - 1) / BLOCK;
    for (size_t row = 0; row < rows; row += BLOCK) {
        for (size_t col = 0; col < cols; col += BLOCK) {
            encode_block(values + row * cols + col, prg_min(BLOCK, rows - row), prg_min(BLOCK, cols - col), cols,
                         (uint8_t *)codes + row * cols + col,
                         (uint8_t *)scales + (row / BLOCK * blocks + col / BLOCK) * 4);
        }
    }
}

const prg_dtype prg_dtype_fp8 = {
    .id = PERIGEE_DTYPE_FP8,
    .name = "fp8",
    .block_cols = 1,
    .block_bytes = 1,
    .scale_rows = BLOCK,
    .scale_cols = BLOCK,
    .scale_bytes = 4,
    .decode = decode,
    .encode = encode,
};
