#include "dtype/dtype.h"

#include <math.h>
#include <string.h>

#include "support/numbers.h"
#include "support/suite.h"

static void nothing(void) {}

static float decode_one(uint32_t id, size_t col, size_t cols, const void *codes, const void *scales) {
    const perigee_matrix w = prg_matrix_make(id, 1, cols, codes, scales);
    float value;
    prg_dtype_get(id)->decode(&w, 0, col, 1, &value);
    return value;
}

START_TEST(bf16_rounds_to_even) {
    ck_assert_uint_eq(prg_f32_to_bf16(1.0f), 0x3f80);
    ck_assert_uint_eq(prg_f32_to_bf16(1.00390625f), 0x3f80); /* half-way to an odd one */
    ck_assert_uint_eq(prg_f32_to_bf16(1.01171875f), 0x3f82); /* half-way from an odd one */
    ck_assert_uint_eq(prg_f32_to_bf16(3.4e38f), 0x7f80);     /* beyond the largest */
    ck_assert_uint_eq(prg_f32_to_bf16(-0.0f), 0x8000);
    ck_assert(isnan(prg_bf16_to_f32(prg_f32_to_bf16(nanf("")))));
    for (uint32_t half = 0; half < 0x7f80; half++) {
        ck_assert_uint_eq(prg_f32_to_bf16(prg_bf16_to_f32((uint16_t)half)), half);
    }
}
END_TEST

START_TEST(f16_goes_there_and_back) {
    for (uint32_t half = 0; half <= 0x7c00; half++) {
        ck_assert_uint_eq(prg_f32_to_f16(prg_f16_to_f32((uint16_t)half)), half);
        ck_assert_uint_eq(prg_f32_to_f16(prg_f16_to_f32((uint16_t)(half | 0x8000))), half | 0x8000);
    }
    ck_assert(prg_f16_to_f32(0x0001) == 0x1p-24f && prg_f16_to_f32(0x03ff) == 1023 * 0x1p-24f);
    ck_assert(prg_f16_to_f32(0x7bff) == 65504 && prg_f16_to_f32(0x3c01) == 1 + 0x1p-10f);
    ck_assert_uint_eq(prg_f32_to_f16(65519), 0x7bff);
    ck_assert_uint_eq(prg_f32_to_f16(65520), 0x7c00);
    ck_assert_uint_eq(prg_f32_to_f16(0x1.8p-24f), 2); /* half-way between 1 and 2 steps */
    ck_assert_uint_eq(prg_f32_to_f16(0x1p-25f), 0);
    ck_assert_uint_eq(prg_f32_to_f16(1 + 0x1p-11f), 0x3c00);
    ck_assert_uint_eq(prg_f32_to_f16(1 + 0x3p-11f), 0x3c02);
    ck_assert(isnan(prg_f16_to_f32(0x7e01)) && isnan(prg_f16_to_f32(prg_f32_to_f16(nanf("")))));
}
END_TEST

START_TEST(e4m3_is_the_published_one) {
    ck_assert(prg_e4m3_to_f32(0x01) == 0x1p-9f && prg_e4m3_to_f32(0x07) == 7 * 0x1p-9f);
    ck_assert(prg_e4m3_to_f32(0x08) == 0x1p-6f && prg_e4m3_to_f32(0x7e) == 448 && prg_e4m3_to_f32(0xfe) == -448);
    ck_assert(prg_e4m3_to_f32(0x38) == 1 && prg_e4m3_to_f32(0x3c) == 1.5f && prg_e4m3_to_f32(0x78) == 256);
    ck_assert(isnan(prg_e4m3_to_f32(0x7f)) && isnan(prg_e4m3_to_f32(0xff)));
    ck_assert(signbit(prg_e4m3_to_f32(0x80)));
}
END_TEST

/* Encoding what was decoded gives the code again: a matrix of one scale that is exactly 1. */
START_TEST(fp8_codes_go_there_and_back) {
    float values[256];
    uint8_t codes[256];
    float scales[2];
    for (int code = 0; code < 256; code++) {
        const int used = (code & 127) == 127 ? 126 : code;
        values[code] = prg_e4m3_to_f32((uint8_t)used);
    }
    prg_dtype_get(PERIGEE_DTYPE_FP8)->encode(values, 1, 256, codes, scales);
    ck_assert(scales[0] == 1 && scales[1] == 1);
    for (int code = 0; code < 256; code++) {
        ck_assert_msg((code & 127) == 127 || codes[code] == code, "%d became %d", code, codes[code]);
    }
    float ties[128] = {448, 17, 19, 0x1p-10f, 0x3p-10f};
    prg_dtype_get(PERIGEE_DTYPE_FP8)->encode(ties, 1, 128, codes, scales);
    ck_assert(prg_e4m3_to_f32(codes[1]) == 16 && prg_e4m3_to_f32(codes[2]) == 20);
    ck_assert(codes[3] == 0 && codes[4] == 2);
}
END_TEST

/* Blocks at the edges count as whole ones: 130 x 129 has 2 x 2 scales. */
START_TEST(fp8_edges_have_scales_of_their_own) {
    enum { ROWS = 130, COLS = 129 };
    static uint8_t codes[ROWS * COLS];
    const float scales[4] = {1, 2, 4, 8};
    memset(codes, 0x38, sizeof codes);
    ck_assert_uint_eq(prg_dtype_matrix_bytes(PERIGEE_DTYPE_FP8, ROWS, COLS), ROWS * COLS + 16);
    const perigee_matrix w = prg_matrix_make(PERIGEE_DTYPE_FP8, ROWS, COLS, codes, scales);
    float row[COLS];
    prg_dtype_get(PERIGEE_DTYPE_FP8)->decode(&w, 127, 0, COLS, row);
    ck_assert(row[127] == 1 && row[128] == 2);
    prg_dtype_get(PERIGEE_DTYPE_FP8)->decode(&w, 129, 127, 2, row);
    ck_assert(row[0] == 4 && row[1] == 8);
}
END_TEST

START_TEST(mxfp4_is_the_published_one) {
    static const float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    uint8_t codes[16] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
    uint8_t scale = 127;
    for (size_t c = 0; c < 16; c++) {
        const float value = decode_one(PERIGEE_DTYPE_MXFP4, c, 32, codes, &scale);
        ck_assert(fabsf(value) == magnitudes[c % 8] && (signbit(value) != 0) == (c >= 8));
    }
    codes[0] = 0x22;
    scale = 0;
    ck_assert(decode_one(PERIGEE_DTYPE_MXFP4, 0, 32, codes, &scale) == 0x1p-127f);
    scale = 1;
    ck_assert(decode_one(PERIGEE_DTYPE_MXFP4, 1, 32, codes, &scale) == 0x1p-126f);
    scale = 254;
    ck_assert(decode_one(PERIGEE_DTYPE_MXFP4, 1, 32, codes, &scale) == 0x1p127f);
    scale = 255;
    ck_assert(isnan(decode_one(PERIGEE_DTYPE_MXFP4, 1, 32, codes, &scale)));
}
END_TEST

START_TEST(mxfp4_takes_the_exponent_of_the_largest) {
    float values[64] = {6, 5, 2.5f, 1.25f, -0.25f, 0.75f, -3.5f};
    values[32] = 8.1f; /* 2^3: unit 2 */
    uint8_t codes[32], scales[2];
    prg_dtype_get(PERIGEE_DTYPE_MXFP4)->encode(values, 1, 64, codes, scales);
    ck_assert(scales[0] == 127 && scales[1] == 128);
    static const float want[7] = {6, 4, 2, 1, -0.0f, 1, -4}; /* ties to even codes */
    for (size_t c = 0; c < 7; c++) {
        const float value = decode_one(PERIGEE_DTYPE_MXFP4, c, 64, codes, scales);
        ck_assert_msg(value == want[c], "%zu: %g", c, (double)value);
    }
    ck_assert(decode_one(PERIGEE_DTYPE_MXFP4, 32, 64, codes, scales) == 8);
}
END_TEST

START_TEST(int4_divides_by_the_stored_scale) {
    float values[40] = {0.7f, -0.7f, 0.35f, -0.8f};
    values[39] = 3;
    uint8_t codes[20], scales[4];
    ck_assert_uint_eq(prg_dtype_row_bytes(PERIGEE_DTYPE_INT4, 36), 20);
    prg_dtype_get(PERIGEE_DTYPE_INT4)->encode(values, 1, 40, codes, scales);
    uint16_t half;
    memcpy(&half, scales, 2);
    ck_assert_uint_eq(half, prg_f32_to_bf16(0.8f / 7));
    ck_assert_int_eq(codes[0] & 15, 8 + 6);
    ck_assert_int_eq(codes[1] >> 4, 8 - 7);
    ck_assert_int_eq(codes[2] & 15, 8); /* a zero */
    ck_assert(fabsf(decode_one(PERIGEE_DTYPE_INT4, 39, 40, codes, scales) - 3) < 0.01f);
    codes[0] = 0xf0;
    half = 0x4000;
    memcpy(scales, &half, 2);
    ck_assert(decode_one(PERIGEE_DTYPE_INT4, 0, 40, codes, scales) == -16);
    ck_assert(decode_one(PERIGEE_DTYPE_INT4, 1, 40, codes, scales) == 14);
}
END_TEST

START_TEST(q8_takes_both_kinds_of_scales) {
    int8_t codes[32] = {-128, 127};
    const uint16_t half = prg_f32_to_f16(0.5f);
    const float scale = 0.1f;
    perigee_matrix w = prg_matrix_make(PERIGEE_DTYPE_Q8_0, 1, 32, codes, &half);
    float out[2];
    prg_dtype_get(PERIGEE_DTYPE_Q8_0)->decode(&w, 0, 0, 2, out);
    ck_assert(out[0] == -64 && out[1] == 63.5f);
    w.scales = &scale;
    w.scale_dtype = PERIGEE_DTYPE_F32;
    prg_dtype_get(PERIGEE_DTYPE_Q8_0)->decode(&w, 0, 0, 2, out);
    ck_assert(out[0] == -128 * 0.1f && out[1] == 127 * 0.1f);
}
END_TEST

/* Any part of a row decodes as it does in the whole; each form within half a step of its block. */
START_TEST(parts_of_rows_decode_alike) {
    static const struct {
        uint32_t id;
        double step; /* of the largest of its block */
    } forms[] = {{PERIGEE_DTYPE_F32, 0},         {PERIGEE_DTYPE_F16, 1e-3},      {PERIGEE_DTYPE_BF16, 4e-3},
                 {PERIGEE_DTYPE_MXFP4, 0.26},    {PERIGEE_DTYPE_INT4, 1 / 13.8}, {PERIGEE_DTYPE_FP8, 1 / 27.9},
                 {PERIGEE_DTYPE_Q8_0, 1 / 253.0}};
    enum { ROWS = 3, COLS = 200 };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        float values[ROWS * COLS], whole[COLS], part[COLS];
        uint8_t codes[ROWS * COLS * 4], scales[ROWS * COLS];
        uint64_t seed = f;
        test_fill(&seed, 1, values, ROWS * COLS);
        const prg_dtype *dtype = prg_dtype_get(forms[f].id);
        ck_assert_ptr_eq(prg_dtype_find(dtype->name), dtype);
        dtype->encode(values, ROWS, COLS, codes, scales);
        const perigee_matrix w = prg_matrix_make(dtype->id, ROWS, COLS, codes, scales);
        for (size_t r = 0; r < ROWS; r++) {
            dtype->decode(&w, r, 0, COLS, whole);
            for (size_t c = 0; c < COLS; c++) {
                ck_assert_msg(fabs((double)whole[c] - values[r * COLS + c]) <= forms[f].step, "%s %g %g", dtype->name,
                              (double)whole[c], (double)values[r * COLS + c]);
            }
            for (size_t first = 0; first < COLS; first += 37) {
                const size_t count = first + 70 < COLS ? 70 : COLS - first;
                dtype->decode(&w, r, first, count, part);
                ck_assert(memcmp(part, whole + first, count * sizeof *part) == 0);
            }
        }
    }
    ck_assert_ptr_null(prg_dtype_get(0));
    ck_assert_ptr_null(prg_dtype_find("q3"));
}
END_TEST

PRG_SUITE("dtype", nothing, nothing, bf16_rounds_to_even, f16_goes_there_and_back, e4m3_is_the_published_one,
          fp8_codes_go_there_and_back, fp8_edges_have_scales_of_their_own, mxfp4_is_the_published_one,
          mxfp4_takes_the_exponent_of_the_largest, int4_divides_by_the_stored_scale, q8_takes_both_kinds_of_scales,
          parts_of_rows_decode_alike)
