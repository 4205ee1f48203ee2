/* MXFP4 as compressed-tensors packs it: E2M1 codes, neighbours in one byte, and one power of two for 32 columns. */
#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "dtype/dtype.h"

static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

/* 2^(byte - 127). Byte 0 is a subnormal float32, which no shift of the exponent gives; 255 is NaN. */
static float e8m0(uint8_t byte) {
    return byte == 255 ? (float)NAN : ldexpf(1, byte - 127);
}

static void decode(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const uint8_t *codes = (const uint8_t *)matrix->codes + row * matrix->row_bytes;
    const uint8_t *scales = (const uint8_t *)matrix->scales + row * matrix->scale_row_bytes;
    float scale = 0;
    for (size_t i = 0; i < count; i++) {
        size_t col = first + i;
        if (i == 0 || col % 32 == 0) {
            scale = e8m0(scales[col / 32]);
        }
        out[i] = e2m1[codes[col / 2] >> (col % 2 * 4) & 15] * scale;
    }
}

/* Nearest code; a tie goes to the even one. */
static uint8_t nearest(float value) {
    float magnitude = fabsf(value);
    uint8_t code = 0;
    while (code < 7) {
        float middle = (e2m1[code] + e2m1[code + 1]) / 2;
        if (magnitude < middle || (magnitude == middle && code % 2 == 0)) {
            break;
        }
        code++;
    }
    return signbit(value) ? code | 8 : code;
}

static void encode_block(const float *values, size_t count, uint8_t *codes, uint8_t *scale) {
    float top = 0;
    for (size_t i = 0; i < count; i++) {
        top = fmaxf(top, fabsf(values[i]));
    }
    int exponent = 0;
    if (top > 0) {
        (void)frexpf(top, &exponent); /* top in [2^(exponent - 1), 2^exponent) */
        exponent = exponent - 1 - 2;
    }
    exponent = exponent < -127 ? -127 : exponent;
    *scale = (uint8_t)(exponent + 127);
    for (size_t i = 0; i < count; i++) {
        uint8_t code = nearest(ldexpf(values[i], -exponent));
        codes[i / 2] = (uint8_t)(i % 2 ? codes[i / 2] | code << 4 : code);
    }
}

static void encode(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    size_t row_bytes = (cols + 1) / 2, scale_row_bytes = (cols + 31) / 32;
    for (size_t row = 0; row < rows; row++) {
        for (size_t col = 0; col < cols; col += 32) {
            encode_block(values + row * cols + col, prg_min(32, cols - col),
                         (uint8_t *)codes + row * row_bytes + col / 2,
                         (uint8_t *)scales + row * scale_row_bytes + col / 32);
        }
    }
}

const prg_dtype prg_dtype_mxfp4 = {
    .id = PERIGEE_DTYPE_MXFP4,
    .name = "mxfp4",
    .block_cols = 2,
    .block_bytes = 1,
    .scale_rows = 1,
    .scale_cols = 32,
    .scale_bytes = 1,
    .decode = decode,
    .encode = encode,
};
