/* Block formats by activations in int8 parts, a lane being a group.
 *
 * Products of bytes are summed in pairs to 16 bits, and there as far as they fit: all 8 of a lane for INT4
 * (8 * 2 * 15 * 127), 4 for MXFP4 (4 * 2 * 24 * 127), none for Q8_0, whose products are taken with their signs because
 * 255 * 127 * 2 would not fit. One row of activations reads codes as one linear stream and keeps them in registers. For
 * more, blocks of a few rows and superblocks are unpacked into a panel that stays in the nearest cache, and tiles of
 * outputs go over it; their running sums wait in memory between blocks. */
#include "kernels/avx2/parts_avx2.h"
#include "kernels/parts_rows.h"

enum {
    PANEL_ROWS = 8, /* as many as trees() takes */
    PANEL_SUPERS = 4,
    ROWS = 2, /* of a tile */
    TOKENS = 2,
    CHUNK = 128, /* rows of activations whose sums wait at a time */
    FAR = 8192,
    FAR_SCALES = 256
};

typedef struct panel_block {
    uint8_t q[PRG_SUPER];
    float scale[PRG_GROUPS];
} panel_block;

typedef struct panel {
    panel_block blocks[PANEL_ROWS][PANEL_SUPERS];
    float sums[][PANEL_ROWS][PRG_GROUPS];
} panel;

static size_t scratch_bytes(size_t m, size_t k) {
    (void)k;
    return m <= 1 ? 0 : sizeof(panel) + (m < CHUNK ? m : CHUNK) * PANEL_ROWS * PRG_GROUPS * sizeof(float);
}

/* gcc would add in another order, with more values at a time than there are registers. */
INLINE void hold(__m256i *v) {
    __asm__("" : "+x"(*v));
}

INLINE __m256i wider(__m256i halves) {
    return _mm256_madd_epi16(halves, _mm256_set1_epi16(1));
}

/* The sums of vectors 0 ... 3 and 4 ... 7 of bytes to one. */
INLINE __m256i of_bytes(__m256i even, __m256i odd) {
    return _mm256_add_epi32(_mm256_blend_epi32(even, odd, 0xf0), _mm256_permute2x128_si256(even, odd, 0x21));
}

/* A product of codes, whose sizes are given too, with activations, added to what 16 bits hold, or for Q8_0 32. */
INLINE void add_product(form f, __m256i codes, __m256i size, __m256i q, bool begin, __m256i *sum) {
    if (f == FORM_Q8_0) {
        const __m256i product = wider(_mm256_maddubs_epi16(size, _mm256_sign_epi8(q, codes)));
        *sum = begin ? product : _mm256_add_epi32(*sum, product);
    } else {
        const __m256i product = _mm256_maddubs_epi16(codes, q);
        *sum = begin ? product : _mm256_add_epi16(*sum, product);
    }
    hold(sum);
}

/* The integer dots of half a superblock, of lanes. */
INLINE __m256i dots(form f, const __m256i codes[8], const int8_t *q, const int32_t *start) {
    __m256i part[2];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const int into = f == FORM_INT4 ? 0 : j / 4;
        const __m256i size = f == FORM_Q8_0 ? _mm256_abs_epi8(codes[j]) : codes[j];
        add_product(f, codes[j], size, _mm256_load_si256((const void *)(q + j * 32)), j == into * 4, &part[into]);
    }
    if (f == FORM_Q8_0) {
        return of_bytes(part[0], part[1]);
    }
    const __m256i from = _mm256_load_si256((const void *)start);
    return f == FORM_INT4 ? _mm256_add_epi32(wider(part[0]), from)
                          : _mm256_add_epi32(_mm256_add_epi32(wider(part[0]), from), wider(part[1]));
}

INLINE __m256 scaled(__m256 sum, __m256i dot, __m256 w, __m256 x) {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_mul_ps(w, x), sum);
}

INLINE float one_row(form f, int wide, const uint8_t *codes, const uint8_t *scales, size_t k, const prg_part_block *x,
                     int parts) {
    __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t b = 0; b < prg_super_count(k); b++, x += parts) {
        superblock s;
        find_superblock(f, wide, codes, scales, k, b, &s);
        for (size_t i = 0; i < code_bytes(f, PRG_SUPER); i += 64) {
            _mm_prefetch((const char *)s.codes + FAR + i, _MM_HINT_T1);
        }
        _mm_prefetch((const char *)s.scales + FAR_SCALES, _MM_HINT_T1);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            __m256i v[8];
            load_codes(f, s.codes + (size_t)half * code_bytes(f, HALF), v);
            const __m256 scale = load_scales(f, wide, s.scales + (size_t)half * HALF_GROUPS * scale_bytes(f, wide));
#pragma GCC unroll 3
            for (int p = 0; p < parts; p++) {
                sums[half] = scaled(sums[half], dots(f, v, x[p].q + half * HALF, x[p].start + half * HALF_GROUPS),
                                    scale, _mm256_load_ps(x[p].scale + half * HALF_GROUPS));
            }
        }
    }
    return tree(sums[0], sums[1]);
}

/* Superblocks from ... from + supers - 1 of n rows. What the next panel takes is fetched ahead. */
INLINE void fill_panel(form f, int wide, const perigee_matrix *w, size_t first, size_t n, size_t from, size_t supers,
                       panel *out) {
    for (size_t r = 0; r < n; r++) {
        const uint8_t *codes = (const uint8_t *)w->codes + (first + r) * w->row_bytes;
        const uint8_t *scales = (const uint8_t *)w->scales + (first + r) * w->scale_row_bytes;
        for (size_t b = 0; b < supers; b++) {
            superblock s;
            find_superblock(f, wide, codes, scales, w->cols, from + b, &s);
            for (size_t i = 0; i < code_bytes(f, PRG_SUPER); i += 64) {
                _mm_prefetch((const char *)codes + PANEL_ROWS * w->row_bytes + (from + b) * code_bytes(f, PRG_SUPER) +
                                 i,
                             _MM_HINT_T1);
            }
            panel_block *to = &out->blocks[r][b];
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                __m256i v[8];
                load_codes(f, s.codes + (size_t)half * code_bytes(f, HALF), v);
#pragma GCC unroll 8
                for (int j = 0; j < 8; j++) {
                    _mm256_store_si256((void *)(to->q + half * HALF + j * 32), v[j]);
                }
                _mm256_store_ps(to->scale + half * HALF_GROUPS,
                                load_scales(f, wide, s.scales + (size_t)half * HALF_GROUPS * scale_bytes(f, wide)));
            }
        }
    }
}

/* Vector j of ROWS x T products, added to what 16 bits hold, or for Q8_0 32. */
INLINE void tile_step(form f, const uint8_t *const *w, const int8_t *const *q, int j, int T, bool begin, __m256i *sum) {
    __m256i v[ROWS], size[ROWS];
#pragma GCC unroll 2
    for (int r = 0; r < ROWS; r++) {
        v[r] = _mm256_load_si256((const void *)(w[r] + j * 32));
        hold(&v[r]);
        size[r] = f == FORM_Q8_0 ? _mm256_abs_epi8(v[r]) : v[r];
    }
#pragma GCC unroll 3
    for (int t = 0; t < T; t++) {
        __m256i x = _mm256_load_si256((const void *)(q[t] + j * 32));
        hold(&x);
#pragma GCC unroll 2
        for (int r = 0; r < ROWS; r++) {
            add_product(f, v[r], size[r], x, begin, &sum[r * T + t]);
        }
    }
}

INLINE void tile_dots(form f, const uint8_t *const *w, const int8_t *const *q, const int32_t *const *start, int T,
                      __m256i *dot) {
    __m256i part[2][ROWS * TOKENS];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const int into = f == FORM_INT4 ? 0 : h;
#pragma GCC unroll 4
        for (int j = h * 4; j < h * 4 + 4; j++) {
            tile_step(f, w, q, j, T, j == into * 4, part[into]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < ROWS * T; i++) {
            if (f == FORM_MXFP4) {
                part[h][i] = wider(part[h][i]);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < ROWS * T; i++) {
        if (f == FORM_Q8_0) {
            dot[i] = of_bytes(part[0][i], part[1][i]);
        } else {
            const __m256i from = _mm256_load_si256((const void *)start[i % T]);
            dot[i] =
                _mm256_add_epi32(f == FORM_INT4 ? wider(part[0][i]) : _mm256_add_epi32(part[0][i], part[1][i]), from);
        }
    }
}

/* Superblocks of a panel for rows r ... r + ROWS - 1 and T rows of activations. */
INLINE void tile(form f, panel *w, size_t r, size_t t, size_t supers, int parts, bool begin,
                 const prg_part_block *const *x, int T) {
#pragma GCC unroll 1
    for (int half = 0; half < 2; half++) {
        __m256 sum[ROWS * TOKENS];
#pragma GCC unroll 4
        for (int i = 0; i < ROWS * T; i++) {
            const float *from = w->sums[t + (size_t)(i % T)][r + (size_t)(i / T)] + half * HALF_GROUPS;
            sum[i] = begin ? _mm256_setzero_ps() : _mm256_load_ps(from);
        }
        for (size_t b = 0; b < supers; b++) {
#pragma GCC unroll 1
            for (int p = 0; p < parts; p++) {
                __asm__ volatile("" ::: "memory"); /* or codes of all parts are loaded before, and spilled */
                const size_t at = b * (size_t)parts + (size_t)p;
                const uint8_t *codes[ROWS];
                const int8_t *q[TOKENS];
                const int32_t *start[TOKENS];
                __m256i dot[ROWS * TOKENS];
#pragma GCC unroll 2
                for (size_t i = 0; i < ROWS; i++) {
                    codes[i] = w->blocks[r + i][b].q + half * HALF;
                }
#pragma GCC unroll 3
                for (int i = 0; i < T; i++) {
                    q[i] = x[i][at].q + half * HALF;
                    start[i] = x[i][at].start + half * HALF_GROUPS;
                }
                tile_dots(f, codes, q, start, T, dot);
#pragma GCC unroll 4
                for (int i = 0; i < ROWS * T; i++) {
                    sum[i] = scaled(sum[i], dot[i],
                                    _mm256_load_ps(w->blocks[r + (size_t)(i / T)][b].scale + half * HALF_GROUPS),
                                    _mm256_load_ps(x[i % T][at].scale + half * HALF_GROUPS));
                }
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < ROWS * T; i++) {
            _mm256_store_ps(w->sums[t + (size_t)(i % T)][r + (size_t)(i / T)] + half * HALF_GROUPS, sum[i]);
        }
    }
}

/* Rows 0 ... n - 1 of a panel by rows t0 ... t0 + m - 1 of activations. */
INLINE void panel_products(form f, int parts, panel *w, size_t n, size_t from, size_t supers, size_t blocks,
                           const prg_part_block *packed, const uint32_t *rows, size_t t0, size_t m) {
    for (size_t t = 0; t < m; t += TOKENS) {
        const prg_part_block *x[TOKENS];
        for (size_t i = 0; i < TOKENS && t + i < m; i++) {
            x[i] = packed + (rows ? rows[t0 + t + i] : t0 + t + i) * blocks + from * (size_t)parts;
        }
        for (size_t r = 0; r < n; r += ROWS) {
            if (m - t >= TOKENS) {
                tile(f, w, r, t, supers, parts, from == 0, x, TOKENS);
            } else {
                tile(f, w, r, t, supers, parts, from == 0, x, 1);
            }
        }
    }
}

typedef float one_row_function(int wide, const uint8_t *codes, const uint8_t *scales, size_t k,
                               const prg_part_block *x);

INLINE void multiply(form f, int parts, one_row_function *one, const perigee_matrix *w, size_t first, size_t count,
                     const void *packed, const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    const size_t all = prg_super_count(w->cols), blocks = all * (size_t)parts;
    const int wide = f == FORM_Q8_0 && w->scale_dtype == PERIGEE_DTYPE_F32;
    if (m == 1) {
        const prg_part_block *x = (const prg_part_block *)packed + (rows ? rows[0] : 0) * blocks;
        for (size_t r = 0; r < count; r++) {
            y[r] = one(wide, (const uint8_t *)w->codes + (first + r) * w->row_bytes,
                       (const uint8_t *)w->scales + (first + r) * w->scale_row_bytes, w->cols, x);
        }
        return;
    }
    for (size_t t = 0; t < m && all == 0; t++) { /* no panel begins the sums */
        memset(y + t * ldy, 0, count * sizeof *y);
    }
    panel *side = scratch;
    for (size_t t0 = 0; t0 < m && all > 0; t0 += CHUNK) {
        const size_t tokens = m - t0 < CHUNK ? m - t0 : CHUNK;
        for (size_t r = 0; r < count; r += PANEL_ROWS) {
            const size_t n = count - r < PANEL_ROWS ? count - r : PANEL_ROWS;
            for (size_t b = 0; b < all; b += PANEL_SUPERS) {
                const size_t supers = all - b < PANEL_SUPERS ? all - b : PANEL_SUPERS;
                fill_panel(f, wide, w, first + r, n, b, supers, side);
                panel_products(f, parts, side, n, b, supers, blocks, packed, rows, t0, tokens);
            }
            for (size_t t = 0; t < tokens; t++) {
                float out[PANEL_ROWS];
                _mm256_storeu_ps(out, trees((const float(*)[PRG_GROUPS])side->sums[t]));
                memcpy(y + (t0 + t) * ldy + r, out, n * sizeof *out);
            }
        }
    }
}

#define PRG_PARTS_FORMAT(type, TYPE, order, offset, factor, precision, PRECISION, parts, bound)                        \
    static size_t packed_bytes_##type##_##precision(size_t k) {                                                        \
        return prg_parts_packed_bytes(k, parts);                                                                       \
    }                                                                                                                  \
    static void pack_##type##_##precision(const float *x, size_t ldx, size_t m, size_t k, void *packed) {              \
        pack_rows(FORM_##TYPE, x, ldx, m, k, offset, factor, parts, packed);                                           \
    }                                                                                                                  \
    static __attribute__((noinline)) float one_##type##_##precision(                                                   \
        int wide, const uint8_t *codes, const uint8_t *scales, size_t k, const prg_part_block *x) {                    \
        return one_row(FORM_##TYPE, wide, codes, scales, k, x, parts);                                                 \
    }                                                                                                                  \
    static void multiply_##type##_##precision(const perigee_matrix *w, size_t first, size_t count, const void *packed, \
                                              const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {   \
        multiply(FORM_##TYPE, parts, one_##type##_##precision, w, first, count, packed, rows, m, y, ldy, scratch);     \
    }                                                                                                                  \
    PRG_PARTS_ROW(type, TYPE, precision, PRECISION, parts, bound, avx2, PERIGEE_CPU_AVX2, 100, PANEL_ROWS, TOKENS)
#include "kernels/parts_formats.def"
#undef PRG_PARTS_FORMAT
