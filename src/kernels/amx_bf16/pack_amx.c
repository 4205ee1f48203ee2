/* Activations in parts of bf16. */
#include "kernels/amx_bf16/tiles_amx.h"

INLINE void pack_step(__m512 low, __m512 high, int parts, char *out) {
#pragma GCC unroll 3
    for (int p = 0; p < parts; p++) {
        const __m256i a = (__m256i)_mm512_cvtneps_pbh(low), b = (__m256i)_mm512_cvtneps_pbh(high);
        _mm512_store_si512(out + p * 2 * STEP, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
        low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16)));
        high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16)));
    }
}

INLINE void pack(const float *x, size_t ldx, size_t m, size_t k, int parts, void *packed) {
    const size_t bytes = tile_packed_bytes(k, parts), whole = k / STEP, tail = k % STEP,
                 each = (size_t)parts * 2 * STEP;
    for (size_t t = 0; t < m; t++) {
        char *out = (char *)packed + t * bytes;
        const float *from = x + t * ldx;
        for (size_t s = 0; s < whole; s++, out += each) {
            pack_step(_mm512_loadu_ps(from + s * STEP), _mm512_loadu_ps(from + s * STEP + 16), parts, out);
        }
        if (tail) {
            const uint32_t mask = (1u << tail) - 1;
            pack_step(_mm512_maskz_loadu_ps((__mmask16)mask, from + whole * STEP),
                      _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + whole * STEP + 16), parts, out);
            out += each;
        }
        _mm512_store_si512(out, _mm512_setzero_si512());
    }
}

#define TILE_PACK(parts)                                                                                               \
    size_t prg_tile_packed_bytes_##parts(size_t k) {                                                                   \
        return tile_packed_bytes(k, parts);                                                                            \
    }                                                                                                                  \
    void prg_tile_pack_##parts(const float *x, size_t ldx, size_t m, size_t k, void *packed) {                         \
        pack(x, ldx, m, k, parts, packed);                                                                             \
    }
TILE_PACK(1)
TILE_PACK(2)
TILE_PACK(3)
