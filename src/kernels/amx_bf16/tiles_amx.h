/* Tiles, packing and shapes that all products of this folder share; the order of sums is told in tile_form_amx.h. */
#ifndef PRG_KERNELS_TILES_AMX_H
#define PRG_KERNELS_TILES_AMX_H

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/lanes16.h"
#include "kernels/rows.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    STEP = 32,          /* columns that a tile multiplies */
    BLOCK_STEPS = 16,   /* steps whose sums are added to those before as a whole */
    TILE = 16,          /* rows of weights, and rows of activations, of a tile */
    TILE_BYTES = 1024,  /* 16 rows of 32 values of bf16, or of 16 floats */
    PAIR = 2 * TILE,    /* rows of either that are worked on together */
    FEW_PAIRS = 2,      /* of tiles of activations for which weights of bf16 are not copied */
    SPAN = 512,         /* rows of weights over which a block of activations stays in cache, a multiple of PAIR, */
    MOST_TOKENS = 384,  /* and as many rows of activations, of one part; fewer for more parts */
    MOST_FEW = 1 << 20, /* bytes of up to 16 rows of activations, all columns */
    RING = 4,           /* tiles that are decoded early lie in turns at these places, */
    EARLY = 3,          /* steps that are decoded before the one that is multiplied, */
    NEAR = 1024         /* bytes of a row */
};

/* The compiler doesn't know that a tile is loaded from memory. */
#define TILE_LOAD(tile, from, stride)                                                                                  \
    do {                                                                                                               \
        __asm__ volatile("" ::: "memory");                                                                             \
        _tile_loadd(tile, from, stride);                                                                               \
    } while (0)

/* Sums in tiles 0 to 3, weights in 4 and 5, activations in 6 and 7, which are 4 * `tokens` bytes wide. */
INLINE void tiles_begin(size_t tokens) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } __attribute__((aligned(64))) shape = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        shape.rows[i] = TILE;
        shape.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? 2 * STEP : 4 * tokens);
    }
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(&shape);
}

/* Nothing of the tiles stays in the caller's thread. */
INLINE void tiles_end(void) {
    _tile_release();
}

static inline size_t tile_steps(size_t k) {
    return (k + STEP - 1) / STEP;
}

/* A packed row: for each step, its parts, 32 values each; a line more, so that rows don't fall on the same sets of a
 * cache. */
static inline size_t tile_packed_bytes(size_t k, int parts) {
    return (tile_steps(k) * (size_t)parts + 1) * 2 * STEP;
}

/* Activations in 1, 2 or 3 parts: the nearest bf16, then the nearest to the rest, which is exact. The same functions
 * for all forms, so that what is packed once serves them all. */
#define TILE_PACK(parts)                                                                                               \
    size_t prg_tile_packed_bytes_##parts(size_t k);                                                                    \
    void prg_tile_pack_##parts(const float *x, size_t ldx, size_t m, size_t k, void *packed);
TILE_PACK(1)
TILE_PACK(2)
TILE_PACK(3)
#undef TILE_PACK

/* 16 x 16 words of 32 bits: rows become columns. */
INLINE void transpose_words(__m512i v[16]) {
    __m512i u[16];
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        u[i] = _mm512_unpacklo_epi64(a, c);
        u[i + 1] = _mm512_unpackhi_epi64(a, c);
        u[i + 2] = _mm512_unpacklo_epi64(b, d);
        u[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* lanes of 128 bits: column i, 4 + i, 8 + i, 12 + i */
        const __m512i a = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88), b = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xdd);
        v[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        v[8 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
        v[4 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
        v[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

#endif
