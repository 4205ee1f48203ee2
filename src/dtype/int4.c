/* INT4 as compressed-tensors packs it: value + 8 in 4 bits, eight in a little-endian word, and one BF16 scale for 32
 * columns. The product is not rounded to BF16, as the reference decompressor does. */
#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "dtype/dtype.h"

static float scale_at(const uint8_t *scales, size_t index) {
    uint16_t half;
    memcpy(&half, scales + index * 2, 2);
    return prg_bf16_to_f32(half);
}

static void decode(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const uint8_t *codes = (const uint8_t *)matrix->codes + row * matrix->row_bytes;
    const uint8_t *scales = (const uint8_t *)matrix->scales + row * matrix->scale_row_bytes;
    float scale = 0;
    for (size_t i = 0; i < count; i++) {
        size_t col = first + i;
        if (i == 0 || col % 32 == 0) {
            scale = scale_at(scales, col / 32);
        }
        out[i] = (float)((codes[col / 2] >> (col % 2 * 4) & 15) - 8) * scale;
    }
}

static void encode_block(const float *values, size_t count, uint8_t *codes, uint8_t *scales) {
    float top = 1e-8f;
    for (size_t i = 0; i < count; i++) {
        top = fmaxf(top, fabsf(values[i]));
    }
    uint16_t half = prg_f32_to_bf16(top / 7);
    memcpy(scales, &half, 2);
    float scale = prg_bf16_to_f32(half); /* what the decoder will multiply by */
    for (size_t i = 0; i < count; i++) {
        long code = lrintf(values[i] / scale);
        code = (code < -8 ? -8 : code > 7 ? 7 : code) + 8;
        codes[i / 2] = (uint8_t)(i % 2 ? codes[i / 2] | code << 4 : code);
    }
}

static void encode(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    size_t row_bytes = (cols + 7) / 8 * 4, scale_row_bytes = (cols + 31) / 32 * 2;
    for (size_t row = 0; row < rows; row++) {
        uint8_t *row_codes = (uint8_t *)codes + row * row_bytes;
        memset(row_codes, 0, row_bytes);
        for (size_t col = 0; col < cols; col += 32) {
            encode_block(values + row * cols + col, prg_min(32, cols - col), row_codes + col / 2,
                         (uint8_t *)scales + row * scale_row_bytes + col / 32 * 2);
        }
    }
}

const prg_dtype prg_dtype_int4 = {
    .id = PERIGEE_DTYPE_INT4,
    .name = "int4",
    .block_cols = 8,
    .block_bytes = 4,
    .scale_rows = 1,
    .scale_cols = 32,
    .scale_bytes = 2,
    .decode = decode,
    .encode = encode,
};
