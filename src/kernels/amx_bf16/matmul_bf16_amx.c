/* Weights of BF16: tiles are loaded from where they lie, or copied where they are used more than once. */
#include "kernels/amx_bf16/tiles_amx.h"

enum { FORM_STEP_BYTES = 64, FORM_GROUP = BLOCK_STEPS, FORM_SCALED = 0, FORM_PLAIN = 1 };

typedef struct tile_scales {
    float scale[1][TILE];
} tile_scales;

INLINE void form_scales(const perigee_matrix *w, size_t row, size_t n, size_t step, size_t steps, tile_scales *out) {
    (void)w, (void)row, (void)n, (void)step, (void)steps, (void)out;
}

INLINE void form_decode(const uint8_t *codes, size_t row_bytes, const tile_scales *scales, size_t step, char *tile) {
    (void)scales, (void)step;
#pragma GCC unroll 16
    for (size_t r = 0; r < TILE; r++) {
        _mm512_store_si512(tile + r * 64, _mm512_loadu_si512(codes + r * row_bytes));
    }
}

#include "kernels/amx_bf16/tile_form_amx.h"

TILE_ROWS(bf16, BF16);
