/* Products with weights of FP8. Codes become float32 times their block's scale, rounded once, as the codec does it: for
 * one row of activations in registers, else in a panel that the row of F32 multiplies. So the bits are those of decoded
 * weights. */
#include "kernels/avx512/float_tile_avx512.h"
#include "kernels/rows.h"

enum { SIDE = 2, BLOCK = 128, PANEL_ROWS = 48, FAR = 2048 };

static size_t padded_cols(size_t k) {
    return (k + 15) / 16 * 16;
}

static size_t panel_bytes(size_t k) {
    return PANEL_ROWS * padded_cols(k) * sizeof(float);
}

static size_t scratch_bytes(size_t m, size_t k) {
    return m <= 1 ? 0 : panel_bytes(k) + prg_matmul_f32_avx512.run.matmul.scratch_bytes(m, k);
}

/* 16 codes. No subnormal of float32 is made on the way: the processor takes a hundred cycles for one. */
INLINE __m512 decode_16(__m128i codes, __m512 scale) {
    const __m512i wide = _mm512_cvtepi8_epi32(codes);
    const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(127));
    const __m512i sign = _mm512_and_si512(wide, _mm512_set1_epi32((int)0x80000000));
    const __m512i normal = _mm512_add_epi32(_mm512_slli_epi32(magnitude, 20), _mm512_set1_epi32(120 << 23));
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(8));
    const __mmask16 is_none = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(127));
    __m512 value = _mm512_castsi512_ps(normal);
    value = _mm512_mask_mul_ps(value, is_small, _mm512_cvtepi32_ps(magnitude), _mm512_set1_ps(0x1p-9f));
    value = _mm512_mask_mov_ps(value, is_none, _mm512_set1_ps(__builtin_nanf("")));
    return _mm512_mul_ps(_mm512_or_ps(value, _mm512_castsi512_ps(sign)), scale);
}

typedef struct fp8_row {
    const uint8_t *codes, *scales;
} fp8_row;

INLINE fp8_row find_row(const perigee_matrix *w, size_t row) {
    return (fp8_row){(const uint8_t *)w->codes + row * w->row_bytes,
                     (const uint8_t *)w->scales + row / BLOCK * w->scale_row_bytes};
}

INLINE __m512 scale_at(const fp8_row *row, size_t c) {
    float scale;
    memcpy(&scale, row->scales + c / BLOCK * sizeof scale, sizeof scale);
    return _mm512_set1_ps(scale);
}

/* Columns c ... c + 15, zeros behind the last. */
INLINE __m512 decode_at(const fp8_row *row, size_t c, size_t k) {
    if (c + 16 <= k) {
        return decode_16(_mm_loadu_si128((const void *)(row->codes + c)), scale_at(row, c));
    }
    if (c >= k) {
        return _mm512_setzero_ps();
    }
    const __mmask16 mask = (__mmask16)((1u << (k - c)) - 1);
    return _mm512_maskz_mov_ps(mask, decode_16(_mm_maskz_loadu_epi8(mask, row->codes + c), scale_at(row, c)));
}

INLINE void one_row(const perigee_matrix *w, size_t first, const float *x, float *y, int R) {
    const size_t k = w->cols;
    fp8_row rows[SIDE];
    __m512 sum[SIDE];
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
        rows[r] = find_row(w, first + (size_t)r);
        sum[r] = _mm512_setzero_ps();
    }
    for (size_t c = 0; c < k; c += PRG_STEP) {
#pragma GCC unroll 2
        for (int r = 0; r < R; r++) {
            if (c % 64 == 0) {
                _mm_prefetch((const char *)rows[r].codes + c + FAR, _MM_HINT_T1);
            }
            sum[r] = _mm512_fmadd_ps(decode_at(&rows[r], c, k), _mm512_load_ps(x + c), sum[r]);
            sum[r] = _mm512_fmadd_ps(decode_at(&rows[r], c + 16, k), _mm512_load_ps(x + c + 16), sum[r]);
        }
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
        y[r] = tree_1(sum[r]);
    }
}

static void decode_panel(const perigee_matrix *w, size_t first, size_t n, float *panel) {
    for (size_t r = 0; r < n; r++) {
        const fp8_row row = find_row(w, first + r), next = find_row(w, first + r + PANEL_ROWS);
        for (size_t c = 0; c < w->cols; c += 16) {
            if (c % 64 == 0) {
                _mm_prefetch((const char *)next.codes + c, _MM_HINT_T1);
            }
            _mm512_store_ps(panel + r * padded_cols(w->cols) + c, decode_at(&row, c, w->cols));
        }
    }
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *scratch) {
    if (m == 1) {
        const float *x = (const float *)(const void *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, 0);
        size_t r = 0;
        for (; r + SIDE <= count; r += SIDE) {
            one_row(w, first + r, x, y + r, SIDE);
        }
        for (; r < count; r++) {
            one_row(w, first + r, x, y + r, 1);
        }
        return;
    }
    for (size_t r = 0; r < count; r += PANEL_ROWS) {
        const size_t n = count - r < PANEL_ROWS ? count - r : PANEL_ROWS;
        decode_panel(w, first + r, n, scratch);
        const perigee_matrix panel = {.dtype = PERIGEE_DTYPE_F32,
                                      .rows = n,
                                      .cols = w->cols,
                                      .codes = scratch,
                                      .row_bytes = padded_cols(w->cols) * sizeof(float)};
        prg_matmul_f32_avx512.run.matmul.multiply(&panel, 0, n, packed, rows, m, y + r, ldy,
                                                  (char *)scratch + panel_bytes(w->cols));
    }
}

const perigee_kernel_row prg_matmul_fp8_avx512 = {
    .struct_size = sizeof(perigee_kernel_row),
    .op = PERIGEE_OP_MATMUL,
    .dtype = PERIGEE_DTYPE_FP8,
    .precision = PERIGEE_PRECISION_EXACT,
    .features = PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512,
    .priority = 200,
    .error_bound = 1e-6,
    .name = "matmul_fp8_avx512",
    .isa = "avx512",
    .numerics = PRG_NUMERICS_NATURAL,
    .signature = PRG_MATMUL_SIGNATURE,
    .row_tile = PANEL_ROWS,
    .token_tile = 1,
    .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_natural, scratch_bytes, multiply, NULL},
};
