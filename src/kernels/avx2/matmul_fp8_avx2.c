/* Products with weights of FP8. Codes become float32 times their block's scale, rounded once, as the codec does it: for
 * few rows of activations in registers, else in a panel. So the bits are those of decoded weights.
 *
 * A code moved into the upper bits of a float32 is its value times 2^-120, subnormal or not; the scale times 2^120,
 * which is exact below 2^8, makes up for that in the one multiplication that there must be. A code that is no number is
 * looked for on the side. */
#include "kernels/avx2/panel_avx2.h"

enum { PAIRS = 2, TOKENS = 3, BLOCK = 128, NEAR = 1024, LONG_ROW = 8192 };

static size_t scratch_bytes(size_t m, size_t k) {
    (void)k;
    return m <= TOKENS ? 0 : panel_scratch_bytes();
}

typedef struct fp8_row {
    const uint8_t *codes, *scales;
} fp8_row;

INLINE fp8_row find_row(const perigee_matrix *w, size_t row) {
    return (fp8_row){(const uint8_t *)w->codes + row * w->row_bytes,
                     (const uint8_t *)w->scales + row / BLOCK * w->scale_row_bytes};
}

INLINE float scale_at(const fp8_row *row, size_t c) {
    float scale;
    memcpy(&scale, row->scales + c / BLOCK * sizeof scale, sizeof scale);
    return scale;
}

/* Two rows side by side, one in each half of a vector. */
typedef struct pair {
    fp8_row row[2];
    __m256 scale;     /* of the block, times 2^120 */
    __m256i greatest; /* code with its sign set: 255 if one was no number */
} pair;

/* 16 codes of both rows as float32 times 2^-120, four columns a vector. */
INLINE void widen(__m256i codes, __m256 out[4]) {
    const __m256i mask = _mm256_set1_epi16((short)0x87f0), zero = _mm256_setzero_si256();
    const __m256i low = _mm256_and_si256(_mm256_srai_epi16(_mm256_unpacklo_epi8(codes, codes), 4), mask);
    const __m256i high = _mm256_and_si256(_mm256_srai_epi16(_mm256_unpackhi_epi8(codes, codes), 4), mask);
    out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, low));
    out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, low));
    out[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, high));
    out[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, high));
}

INLINE __m256i load_pair(const pair *p, size_t c) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(p->row[0].codes + c))),
                                   _mm_loadu_si128((const void *)(p->row[1].codes + c)), 1);
}

INLINE __m256 twice(const float *x) {
    return _mm256_broadcast_ps((const __m128 *)(const void *)x);
}

/* Add columns [c, c + 16) of P pairs to their sums [pair][token][four columns]. */
INLINE void half(pair *pairs, size_t c, const float *const *x, __m256 sum[PAIRS][TOKENS][4], int P, int T) {
#pragma GCC unroll 2
    for (int p = 0; p < P; p++) {
        const __m256i codes = load_pair(&pairs[p], c);
        __m256 v[4];
        widen(codes, v);
        pairs[p].greatest = _mm256_max_epu8(pairs[p].greatest, _mm256_or_si256(codes, _mm256_set1_epi8((char)0x80)));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            v[i] = _mm256_mul_ps(v[i], pairs[p].scale);
#pragma GCC unroll 3
            for (int t = 0; t < T; t++) {
                sum[p][t][i] = _mm256_fmadd_ps(v[i], twice(x[t] + c + (size_t)i * 4), sum[p][t][i]);
            }
        }
    }
}

/* Columns [from, to) of one block by their float32 values, zeros behind `to`: for scales that are too large for the
 * rule above, and for a last step that is not whole. */
INLINE void plain_steps(pair *pairs, size_t from, size_t to, const float *const *x, __m256 sum[PAIRS][TOKENS][4], int P,
                        int T) {
    for (size_t c = from; c < to; c += 16) {
#pragma GCC unroll 2
        for (int p = 0; p < P; p++) {
            _Alignas(32) uint8_t codes[32] = {0};
            __m256 v[4];
            const size_t n = to - c < 16 ? to - c : 16;
            memcpy(codes, pairs[p].row[0].codes + c, n);
            memcpy(codes + 16, pairs[p].row[1].codes + c, n);
            const __m256i both = _mm256_load_si256((const void *)codes);
            const __m256 scale = _mm256_setr_m128(_mm_set1_ps(scale_at(&pairs[p].row[0], c)),
                                                  _mm_set1_ps(scale_at(&pairs[p].row[1], c)));
            widen(both, v);
            pairs[p].greatest = _mm256_max_epu8(pairs[p].greatest, _mm256_or_si256(both, _mm256_set1_epi8((char)0x80)));
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const __m128i column = _mm_add_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32(4 * i));
                const __m128 there = _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32((int)n), column));
                v[i] = _mm256_mul_ps(_mm256_mul_ps(v[i], _mm256_set1_ps(0x1p120f)), scale);
                v[i] = _mm256_and_ps(v[i], _mm256_setr_m128(there, there));
#pragma GCC unroll 3
                for (int t = 0; t < T; t++) {
                    sum[p][t][i] = _mm256_fmadd_ps(v[i], twice(x[t] + c + (size_t)i * 4), sum[p][t][i]);
                }
            }
        }
    }
    if ((to + 15) / 16 % 2) { /* the other half of the step */
#pragma GCC unroll 2
        for (int p = 0; p < P; p++) {
#pragma GCC unroll 3
            for (int t = 0; t < T; t++) {
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) {
                    const __m256 q = twice(x[t] + (to + 15) / 16 * 16 + (size_t)i * 4);
                    sum[p][t][i] = _mm256_fmadd_ps(_mm256_setzero_ps(), q, sum[p][t][i]);
                }
            }
        }
    }
}

/* Scales of a block; false if one is too large to be multiplied by 2^120. */
INLINE int block_scales(pair *pairs, size_t c, int P) {
    int fit = 1;
#pragma GCC unroll 2
    for (int p = 0; p < P; p++) {
        const float a = scale_at(&pairs[p].row[0], c), b = scale_at(&pairs[p].row[1], c);
        fit = fit && a < 128 && a > -128 && b < 128 && b > -128;
        pairs[p].scale = _mm256_mul_ps(_mm256_setr_m128(_mm_set1_ps(a), _mm_set1_ps(b)), _mm256_set1_ps(0x1p120f));
    }
    return fit;
}

INLINE void finish(const pair *p, const __m256 sum[4], float *first, float *second) {
    const __m256 four = _mm256_add_ps(_mm256_add_ps(sum[0], sum[2]), _mm256_add_ps(sum[1], sum[3]));
    const __m256 two = _mm256_add_ps(four, _mm256_shuffle_ps(four, four, 0xee));
    const __m256 one = _mm256_add_ps(two, _mm256_shuffle_ps(two, two, 0x55));
    const int none = _mm256_movemask_epi8(_mm256_cmpeq_epi8(p->greatest, _mm256_set1_epi8((char)0xff)));
    *second = none & (int)0xffff0000 ? __builtin_nanf("") : _mm_cvtss_f32(_mm256_extractf128_ps(one, 1));
    *first = none & 0xffff ? __builtin_nanf("") : _mm_cvtss_f32(_mm256_castps256_ps128(one));
}

/* 2 * P rows, the last one twice where there are fewer, by T rows of activations. */
INLINE void few(const perigee_matrix *w, size_t first, size_t n, const float *const *x, float *y, size_t ldy, int P,
                int T) {
    const size_t k = w->cols, ahead = w->row_bytes > LONG_ROW ? NEAR : 2 * (size_t)P * w->row_bytes;
    pair pairs[PAIRS];
    __m256 sum[PAIRS][TOKENS][4];
#pragma GCC unroll 2
    for (int p = 0; p < P; p++) {
        const size_t r = first + 2 * (size_t)p;
        pairs[p].row[0] = find_row(w, r);
        pairs[p].row[1] = find_row(w, 2 * (size_t)p + 1 < n ? r + 1 : r);
        pairs[p].greatest = _mm256_setzero_si256();
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                sum[p][t][i] = _mm256_setzero_ps();
            }
        }
    }
    for (size_t begin = 0; begin < k; begin += BLOCK) {
        const size_t end = k - begin < BLOCK ? k : begin + BLOCK;
        size_t c = begin;
        if (block_scales(pairs, begin, P)) {
            for (; c + PRG_STEP <= end; c += PRG_STEP) {
                if (c % 64 == 0) {
#pragma GCC unroll 2
                    for (int p = 0; p < P; p++) {
                        _mm_prefetch((const char *)pairs[p].row[0].codes + c + ahead, _MM_HINT_T1);
                        _mm_prefetch((const char *)pairs[p].row[1].codes + c + ahead, _MM_HINT_T1);
                    }
                }
                half(pairs, c, x, sum, P, T);
                half(pairs, c + 16, x, sum, P, T);
            }
        }
        if (c < end) {
            plain_steps(pairs, c, end, x, sum, P, T);
        }
    }
#pragma GCC unroll 3
    for (int t = 0; t < T; t++) {
#pragma GCC unroll 2
        for (int p = 0; p < P; p++) {
            float out[2];
            finish(&pairs[p], sum[p][t], &out[0], &out[1]);
            memcpy(y + (size_t)t * ldy + 2 * (size_t)p, out, (2 * (size_t)p + 1 < n ? 2 : 1) * sizeof *y);
        }
    }
}

INLINE void few_rows(const perigee_matrix *w, size_t first, size_t count, const float *const *x, float *y, size_t ldy,
                     int P, int T) {
    size_t r = 0;
    for (; r + 2 * (size_t)P <= count; r += 2 * (size_t)P) {
        few(w, first + r, 2 * (size_t)P, x, y + r, ldy, P, T);
    }
    for (; r < count; r += 2) {
        few(w, first + r, count - r < 2 ? 1 : 2, x, y + r, ldy, 1, T);
    }
}

/* Eight codes of a row. */
INLINE __m256 decode_8(const uint8_t *codes, __m256 scale) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)codes));
    const __m256i none = _mm256_cmpeq_epi32(_mm256_and_si256(wide, _mm256_set1_epi32(127)), _mm256_set1_epi32(127));
    const __m256i bits = _mm256_and_si256(_mm256_slli_epi32(wide, 20), _mm256_set1_epi32((int)0x87f00000));
    const __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p120f));
    return _mm256_mul_ps(_mm256_blendv_ps(value, _mm256_set1_ps(__builtin_nanf("")), _mm256_castsi256_ps(none)), scale);
}

static void fill(const perigee_matrix *w, size_t r, size_t from, size_t to, float *panel) {
    const fp8_row row = find_row(w, r);
    float *high = panel + (to - from) * 2 * PANEL_TILE * PANEL_LANES;
    for (size_t s = from; s < to; s++, panel += 2 * PANEL_TILE * PANEL_LANES, high += 2 * PANEL_TILE * PANEL_LANES) {
        const size_t c = s * PRG_STEP, n = w->cols - c;
        const __m256 scale = _mm256_set1_ps(scale_at(&row, c));
        const uint8_t *codes = row.codes + c;
        uint8_t copy[PRG_STEP] = {0};
        if (n < PRG_STEP) {
            memcpy(copy, codes, n);
            codes = copy;
        }
        __m256 v[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            v[i] = decode_8(codes + i * 8, scale);
            if (n < PRG_STEP) { /* a scale that is negative, or no number, is not for columns that are not there */
                const __m256i column =
                    _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(i * 8));
                v[i] = _mm256_and_ps(v[i], _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), column)));
            }
        }
        _mm256_store_ps(panel, v[0]);
        _mm256_store_ps(high, v[1]);
        _mm256_store_ps(panel + PANEL_TILE * PANEL_LANES, v[2]);
        _mm256_store_ps(high + PANEL_TILE * PANEL_LANES, v[3]);
    }
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *scratch) {
    if (m > TOKENS) {
        panel_multiply(fill, w, first, count, packed, rows, m, y, ldy, scratch);
        return;
    }
    const float *x[TOKENS];
    for (size_t t = 0; t < m; t++) {
        x[t] = (const float *)(const void *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, t);
    }
    if (m == 1) {
        few_rows(w, first, count, x, y, ldy, PAIRS, 1);
    } else if (m == 2) {
        few_rows(w, first, count, x, y, ldy, 1, 2);
    } else if (m == 3) {
        few_rows(w, first, count, x, y, ldy, 1, 3);
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
    .row_tile = 2 * PAIRS,
    .token_tile = PANEL_TOKENS,
    .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_natural, scratch_bytes, multiply, NULL},
};
