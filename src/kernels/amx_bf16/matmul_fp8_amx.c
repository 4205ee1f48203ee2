/* Weights of FP8: a code is exact in bf16, and the sum of 128 columns is multiplied by their block's scale. */
#include "kernels/amx_bf16/tiles_amx.h"

enum { FORM_STEP_BYTES = 32, FORM_GROUP = 4, FORM_SCALED = 1, FORM_PLAIN = 0, SCALE_ROWS = 128 };

typedef struct tile_scales {
    float scale[BLOCK_STEPS / FORM_GROUP][TILE];
} tile_scales;

INLINE void form_scales(const perigee_matrix *w, size_t row, size_t n, size_t step, size_t steps, tile_scales *out) {
    for (size_t g = 0; g * FORM_GROUP < steps; g++) {
        const char *column = (const char *)w->scales + (step / FORM_GROUP + g) * sizeof(float);
        for (size_t r = 0; r < n; r++) {
            memcpy(&out->scale[g][r], column + (row + r) / SCALE_ROWS * w->scale_row_bytes, sizeof(float));
        }
    }
}

INLINE void form_decode(const uint8_t *codes, size_t row_bytes, const tile_scales *scales, size_t step, char *tile) {
    static const uint16_t small[32]
        __attribute__((aligned(64))) = {0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60};
    (void)scales, (void)step;
    const __m512i subnormal = _mm512_load_si512(small);
#pragma GCC unroll 16
    for (size_t r = 0; r < TILE; r++) {
        const __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(codes + r * row_bytes)));
        const __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi16(127));
        __m512i value = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
        value = _mm512_mask_permutexvar_epi16(value, _mm512_cmplt_epi16_mask(magnitude, _mm512_set1_epi16(8)),
                                              magnitude, subnormal);
        value = _mm512_mask_mov_epi16(value, _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(127)),
                                      _mm512_set1_epi16(0x7fc0));
        /* bit 15 of `wide`, the rest of `value` */
        _mm512_store_si512(tile + r * 64,
                           _mm512_ternarylogic_epi32(_mm512_set1_epi16((short)0x8000), wide, value, 0xca));
    }
}

#include "kernels/amx_bf16/tile_form_amx.h"

TILE_ROWS(fp8, FP8);
