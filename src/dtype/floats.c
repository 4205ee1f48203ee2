/* F32, F16 and BF16, little-endian, at any alignment. */
#include <string.h>

#include "dtype/dtype.h"

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float prg_bf16_to_f32(uint16_t half) {
    return from_bits((uint32_t)half << 16);
}

uint16_t prg_f32_to_bf16(float value) {
    uint32_t bits = to_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40); /* a payload in the low half only must not become infinity */
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float prg_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    if (exponent == 31) {
        return from_bits(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000u : 0));
    }
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t prg_f32_to_f16(float value) {
    uint32_t bits = to_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (bits >> 13 & 0x3ff));
    }
    if (bits >= 0x477ff000) { /* 65520, half-way to 2^16, rounds to infinity */
        return (uint16_t)(sign | 0x7c00);
    }
    if (bits < 0x38800000) { /* below 2^-14: adding 0.5 leaves multiples of 2^-24 in the mantissa, rounded to even */
        return (uint16_t)(sign | (to_bits(from_bits(bits) + 0.5f) - 0x3f000000));
    }
    return (uint16_t)(sign | ((bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13));
}

static void decode_f32(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    memcpy(out, (const char *)matrix->codes + row * matrix->row_bytes + first * 4, count * 4);
}

static void encode_f32(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    (void)scales;
    memcpy(codes, values, rows * cols * 4);
}

static void decode_f16(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const char *from = (const char *)matrix->codes + row * matrix->row_bytes + first * 2;
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + i * 2, 2);
        out[i] = prg_f16_to_f32(half);
    }
}

static void encode_f16(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    (void)scales;
    for (size_t i = 0; i < rows * cols; i++) {
        uint16_t half = prg_f32_to_f16(values[i]);
        memcpy((char *)codes + i * 2, &half, 2);
    }
}

static void decode_bf16(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out) {
    const char *from = (const char *)matrix->codes + row * matrix->row_bytes + first * 2;
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + i * 2, 2);
        out[i] = prg_bf16_to_f32(half);
    }
}

static void encode_bf16(const float *values, size_t rows, size_t cols, void *codes, void *scales) {
    (void)scales;
    for (size_t i = 0; i < rows * cols; i++) {
        uint16_t half = prg_f32_to_bf16(values[i]);
        memcpy((char *)codes + i * 2, &half, 2);
    }
}

const prg_dtype prg_dtype_f32 = {
    .id = PERIGEE_DTYPE_F32,
    .name = "f32",
    .block_cols = 1,
    .block_bytes = 4,
    .decode = decode_f32,
    .encode = encode_f32,
};

const prg_dtype prg_dtype_f16 = {
    .id = PERIGEE_DTYPE_F16,
    .name = "f16",
    .block_cols = 1,
    .block_bytes = 2,
    .decode = decode_f16,
    .encode = encode_f16,
};

const prg_dtype prg_dtype_bf16 = {
    .id = PERIGEE_DTYPE_BF16,
    .name = "bf16",
    .block_cols = 1,
    .block_bytes = 2,
    .decode = decode_bf16,
    .encode = encode_bf16,
};
