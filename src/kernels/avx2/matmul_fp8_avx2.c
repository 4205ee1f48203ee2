/* Products with weights of FP8. Codes become float32 times their block's scale, rounded once, as the codec does it: for
 * few rows of activations in registers, else in a panel. So the bits are those of decoded weights.
 *
 * A code moved into the upper bits of a half float is its value times 2^-8, subnormal or not, and the processor widens
 * that exactly; 2^8 goes with the scale, which is exact where that stays finite. A code that is no number is looked for
 * on the side. */
#include "kernels/avx2/panel_avx2.h"

enum { ROWS = 2, TOKENS = 3, BLOCK = 128, NEAR = 1024, LONG_ROW = 8192, MANY = 8, NEXT = 16 };

static size_t scratch_bytes(size_t m, size_t k) {
    (void)k;
    return m < MANY ? 0 : panel_scratch_bytes();
}

INLINE const uint8_t *codes_of(const perigee_matrix *w, size_t row) {
    return (const uint8_t *)w->codes + row * w->row_bytes;
}

INLINE float scale_of(const perigee_matrix *w, size_t row, size_t c) {
    float scale;
    memcpy(&scale, (const uint8_t *)w->scales + row / BLOCK * w->scale_row_bytes + c / BLOCK * sizeof scale,
           sizeof scale);
    return scale;
}

/* 32 codes times 2^-8, eight columns a vector. */
INLINE void widen(__m256i codes, __m256 v[4]) {
    const __m256i mask = _mm256_set1_epi16((short)0xbf80);
    const __m256i low = _mm256_and_si256(_mm256_srai_epi16(_mm256_unpacklo_epi8(codes, codes), 1), mask);
    const __m256i high = _mm256_and_si256(_mm256_srai_epi16(_mm256_unpackhi_epi8(codes, codes), 1), mask);
    v[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(low));
    v[1] = _mm256_cvtph_ps(_mm256_castsi256_si128(high));
    v[2] = _mm256_cvtph_ps(_mm256_extracti128_si256(low, 1));
    v[3] = _mm256_cvtph_ps(_mm256_extracti128_si256(high, 1));
}

/* Add 32 columns of a row to its sums [token][part]. */
INLINE void step(__m256i codes, __m256 scale, const float *const *x, size_t c, __m256 sum[TOKENS][2], int T) {
    __m256 v[4];
    widen(codes, v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_mul_ps(v[i], scale);
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            sum[t][i % 2] = _mm256_fmadd_ps(v[i], _mm256_load_ps(x[t] + c + i * 8), sum[t][i % 2]);
        }
    }
}

/* Steps of a row as float32, as the codec has them, zeros behind the last column. */
INLINE void decode_step(const perigee_matrix *w, size_t row, size_t c, __m256 v[4]) {
    const size_t n = w->cols - c;
    const __m256 scale = _mm256_set1_ps(scale_of(w, row, c)), none = _mm256_set1_ps(__builtin_nanf(""));
    const __m256i column = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint8_t copy[PRG_STEP] = {0};
    const uint8_t *codes = codes_of(w, row) + c;
    if (n < PRG_STEP) {
        memcpy(copy, codes, n);
        codes = copy;
    }
    widen(_mm256_loadu_si256((const void *)codes), v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256 value = _mm256_mul_ps(v[i], _mm256_set1_ps(0x1p8f));
        const __m256 above =
            _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), value), _mm256_set1_ps(448), _CMP_GT_OQ);
        v[i] = _mm256_mul_ps(_mm256_blendv_ps(value, none, above), scale);
        if (n < PRG_STEP) {
            const __m256i left = _mm256_set1_epi32((int)n - i * 8);
            v[i] = _mm256_and_ps(v[i], _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, column)));
        }
    }
}

static void fill(const perigee_matrix *w, size_t row, size_t from, size_t to, float *panel) {
    float *high = panel + (to - from) * 2 * PANEL_TILE * PANEL_LANES;
    for (size_t s = from; s < to; s++, panel += 2 * PANEL_TILE * PANEL_LANES, high += 2 * PANEL_TILE * PANEL_LANES) {
        __m256 v[4];
        decode_step(w, row, s * PRG_STEP, v);
        _mm256_store_ps(panel, v[0]);
        _mm256_store_ps(high, v[1]);
        _mm256_store_ps(panel + PANEL_TILE * PANEL_LANES, v[2]);
        _mm256_store_ps(high + PANEL_TILE * PANEL_LANES, v[3]);
    }
}

/* Columns [c, end) of a row, whatever their scales, and all steps that they are part of. */
static __attribute__((noinline)) void any_steps(const perigee_matrix *w, size_t row, size_t c, size_t end,
                                                const float *const *x, __m256 *sum, int T) {
    for (; c < end; c += PRG_STEP) {
        __m256 v[4];
        decode_step(w, row, c, v);
        for (int i = 0; i < 4; i++) {
            for (int t = 0; t < T; t++) {
                sum[2 * t + i % 2] = _mm256_fmadd_ps(v[i], _mm256_load_ps(x[t] + c + i * 8), sum[2 * t + i % 2]);
            }
        }
    }
}

static int has_none(const perigee_matrix *w, size_t row) {
    const uint8_t *codes = codes_of(w, row);
    int none = 0;
    for (size_t c = 0; c < w->cols; c++) {
        none |= (codes[c] & 127) == 127;
    }
    return none;
}

/* Scales of R rows times 2^8; 0 if one is too large for that. */
INLINE int block_scales(const perigee_matrix *w, size_t row, size_t c, __m256 *scale, int R) {
    int fit = 1;
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
        const float one = scale_of(w, row + (size_t)r, c);
        fit = fit && one < 0x1p119f && one > -0x1p119f;
        scale[r] = _mm256_set1_ps(one * 0x1p8f);
    }
    return fit;
}

/* R rows of weights by T rows of activations. */
INLINE void few(const perigee_matrix *w, size_t row, const float *const *x, float *y, size_t ldy, int R, int T) {
    const size_t k = w->cols, ahead = w->row_bytes > LONG_ROW ? NEAR : 4 * w->row_bytes;
    const uint8_t *codes = codes_of(w, row);
    __m256 sum[ROWS][TOKENS][2], scale[ROWS];
    __m256i greatest = _mm256_setzero_si256(); /* code with its sign set: 255 if one was no number */
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            sum[r][t][0] = sum[r][t][1] = _mm256_setzero_ps();
        }
    }
    for (size_t begin = 0; begin < k; begin += BLOCK) {
        const size_t end = k - begin < BLOCK ? k : begin + BLOCK;
        const size_t whole = block_scales(w, row, begin, scale, R) ? end / PRG_STEP * PRG_STEP : begin;
        for (size_t c = begin; c < whole; c += PRG_STEP) {
#pragma GCC unroll 2
            for (int r = 0; r < R; r++) {
                const uint8_t *p = codes + (size_t)r * w->row_bytes + c;
                const __m256i v = _mm256_loadu_si256((const void *)p);
                if (c % 64 == 0) {
                    _mm_prefetch((const char *)p + ahead, _MM_HINT_T1);
                }
                greatest = _mm256_max_epu8(greatest, _mm256_or_si256(v, _mm256_set1_epi8((char)0x80)));
                step(v, scale[r], x, c, sum[r], T);
            }
        }
        if (whole < end) {
#pragma GCC unroll 2
            for (int r = 0; r < R; r++) {
                __m256 some[2 * TOKENS];
#pragma GCC unroll 3
                for (int t = 0; t < T; t++) {
                    some[2 * t] = sum[r][t][0];
                    some[2 * t + 1] = sum[r][t][1];
                }
                any_steps(w, row + (size_t)r, whole, end, x, some, T);
#pragma GCC unroll 3
                for (int t = 0; t < T; t++) {
                    sum[r][t][0] = some[2 * t];
                    sum[r][t][1] = some[2 * t + 1];
                }
            }
        }
    }
    const int none = _mm256_movemask_epi8(_mm256_cmpeq_epi8(greatest, _mm256_set1_epi8((char)0xff)));
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            y[(size_t)t * ldy + (size_t)r] = tree_1(sum[r][t][0], sum[r][t][1]);
        }
        if (none && has_none(w, row + (size_t)r)) {
            for (int t = 0; t < T; t++) {
                y[(size_t)t * ldy + (size_t)r] = __builtin_nanf("");
            }
        }
    }
}

INLINE void few_rows(const perigee_matrix *w, size_t first, size_t count, const float *const *x, float *y, size_t ldy,
                     int R, int T) {
    size_t r = 0;
    for (; r + (size_t)R <= count; r += (size_t)R) {
        few(w, first + r, x, y + r, ldy, R, T);
    }
    for (; r < count; r++) {
        few(w, first + r, x, y + r, ldy, 1, T);
    }
}

/* Up to TOKENS of the `left` rows of activations from row t on. */
INLINE void few_tokens(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                       size_t t, size_t left, float *y, size_t ldy) {
    const float *x[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) { /* the last one in place of those that are not there */
        const size_t there = t + (i < left ? i : left - 1);
        x[i] = (const float *)(const void *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, there);
    }
    if (left == 1) {
        few_rows(w, first, count, x, y, ldy, ROWS, 1);
    } else if (left == 2) {
        few_rows(w, first, count, x, y, ldy, ROWS, 2);
    } else {
        few_rows(w, first, count, x, y, ldy, ROWS, 3);
    }
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *scratch) {
    if (m >= MANY && w->cols > 0) {
        panel_multiply(fill, w, first, count, packed, rows, m, y, ldy, scratch);
        return;
    }
    const size_t block = m <= TOKENS ? count : NEXT; /* rows that are in cache when they are decoded again */
    for (size_t r = 0; r < count; r += block) {
        const size_t n = count - r < block ? count - r : block;
        for (size_t t = 0; t < m; t += TOKENS) {
            few_tokens(w, first + r, n, packed, rows, t, m - t, y + t * ldy + r, ldy);
        }
    }
}

const perigee_kernel_row prg_matmul_fp8_avx2 = {
    .struct_size = sizeof(perigee_kernel_row),
    .op = PERIGEE_OP_MATMUL,
    .dtype = PERIGEE_DTYPE_FP8,
    .precision = PERIGEE_PRECISION_EXACT,
    .features = PERIGEE_CPU_AVX2,
    .priority = 100,
    .error_bound = 1e-6,
    .name = "matmul_fp8_avx2",
    .isa = "avx2",
    .numerics = PRG_NUMERICS_NATURAL,
    .signature = PRG_MATMUL_SIGNATURE,
    .row_tile = ROWS,
    .token_tile = PANEL_TOKENS,
    .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_natural, scratch_bytes, multiply, NULL},
};
