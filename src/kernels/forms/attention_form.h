/* Absorbed latent attention over one tile of keys, with an online softmax. A score is one chain of multiply-adds over
 * the width, an element of z one over the keys that its row sees: so neither depends on the rows beside it, nor on how
 * many of them are computed at once. */
#ifndef PRG_KERNELS_ATTENTION_FORM_H
#define PRG_KERNELS_ATTENTION_FORM_H

#include <stdbool.h>

#include "kernels/lane_math.h"
#include "perigee/sys/kernel.h"

enum { GROUP = PERIGEE_ATTENTION_GROUP, KEYS = PERIGEE_ATTENTION_KEYS, SCORE_CHUNK = 96 };
/* Vectors beside the six rows of a group whose accumulators stay in registers. */
#if defined(__AVX512F__)
enum { ATTENTION_WIDE = 4 };
#else
enum { ATTENTION_WIDE = 1 };
#endif

#if defined(__AVX512F__)
/* 16 rows of 16 floats to 16 columns. */
INLINE void transpose_block(const float *from, size_t ld, float *to) {
    __m512 r[16], s[16];
    UNROLLED(16)
    for (size_t i = 0; i < 16; i++) {
        r[i] = _mm512_loadu_ps(from + i * ld);
    }
    UNROLLED(8)
    for (size_t i = 0; i < 16; i += 2) {
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    /* r[4 i + j]: column 4 k + j of rows 4 i … 4 i + 3 in quarter k */
    UNROLLED(4)
    for (size_t i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(s[i]), b = _mm512_castps_pd(s[i + 2]);
        __m512d c = _mm512_castps_pd(s[i + 1]), d = _mm512_castps_pd(s[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
    }
    UNROLLED(4)
    for (size_t j = 0; j < 4; j++) {
        __m512 even01 = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88), odd01 = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd);
        __m512 even23 = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88);
        __m512 odd23 = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
        _mm512_storeu_ps(to + j * KEYS, _mm512_shuffle_f32x4(even01, even23, 0x88));
        _mm512_storeu_ps(to + (4 + j) * KEYS, _mm512_shuffle_f32x4(odd01, odd23, 0x88));
        _mm512_storeu_ps(to + (8 + j) * KEYS, _mm512_shuffle_f32x4(even01, even23, 0xdd));
        _mm512_storeu_ps(to + (12 + j) * KEYS, _mm512_shuffle_f32x4(odd01, odd23, 0xdd));
    }
}
#else
INLINE void transpose_block(const float *from, size_t ld, float *to) {
    for (size_t c = 0; c < LANES; c += 4) {
        for (size_t i = 0; i < LANES; i++) {
            const float *row = from + i * ld + c;
            to[c * KEYS + i] = row[0];
            to[(c + 1) * KEYS + i] = row[1];
            to[(c + 2) * KEYS + i] = row[2];
            to[(c + 3) * KEYS + i] = row[3];
        }
    }
}
#endif

/* [keys, width] to [width, 64]; keys that fill up the last vector are 0. */
static void transpose_keys(const float *from, size_t keys, size_t width, float *to) {
    for (size_t i = 0; i < keys; i += LANES) {
        size_t c = 0;
        if (i + LANES <= keys) {
            for (; c + LANES <= width; c += LANES) {
                transpose_block(from + i * width + c, width, to + c * KEYS + i);
            }
        }
        for (; c < width; c++) {
            for (size_t j = 0; j < LANES; j++) {
                to[c * KEYS + i + j] = i + j < keys ? from[(i + j) * width + c] : 0;
            }
        }
    }
}

/* Scores of six rows and `vectors` vectors of keys, over `count` columns more of the width. With each column `step`
 * bytes at `ahead` are fetched, so that memory works meanwhile. */
INLINE void score_block(const float *q, const float *keys, size_t count, bool begin, float *score, size_t vectors,
                        const char *ahead, size_t step) {
    lanes s[GROUP][4];
    UNROLLED(6)
    for (size_t i = 0; i < GROUP; i++) {
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            s[i][j] = begin ? lanes_zero() : lanes_load(score + i * KEYS + j * LANES);
        }
    }
    for (size_t c = 0; c < count; c++) {
        lanes x[4];
        lanes_prefetch(ahead + c * step);
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            x[j] = lanes_load(keys + c * KEYS + j * LANES);
        }
        UNROLLED(6)
        for (size_t i = 0; i < GROUP; i++) {
            lanes b = lanes_set(q[c * GROUP + i]);
            UNROLLED(4)
            for (size_t j = 0; j < vectors; j++) {
                s[i][j] = lanes_fma(b, x[j], s[i][j]);
            }
        }
    }
    UNROLLED(6)
    for (size_t i = 0; i < GROUP; i++) {
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            lanes_store(score + i * KEYS + j * LANES, s[i][j]);
        }
    }
}

/* Scores of one row to weights; what the row held so far is rescaled when the largest score grows. */
static void soften(const perigee_attention_tile *tile, size_t row, float *score) {
    size_t seen = tile->visible[row], ldz = (tile->rank + LANES - 1) / LANES * LANES;
    for (size_t i = seen; i < KEYS; i++) {
        score[i] = -INFINITY;
    }
    lanes v[4], most = lanes_set(-INFINITY), sum = lanes_zero();
    for (size_t j = 0; j < 4; j++) {
        v[j] = lanes_mul(lanes_load(score + j * LANES), lanes_set(tile->scale));
        most = lanes_max(most, v[j]);
    }
    float largest = lanes_largest(most);
    if (largest > tile->max[row]) {
        lanes shrink = lanes_exp(lanes_sub(lanes_set(tile->max[row]), lanes_set(largest)));
        float one[LANES], *z = tile->z + row * ldz;
        lanes_store(one, shrink);
        tile->max[row] = largest;
        tile->sum[row] *= one[0];
        for (size_t c = 0; c < ldz; c += LANES) {
            lanes_store(z + c, lanes_mul(lanes_load(z + c), shrink));
        }
    }
    for (size_t j = 0; j < 4; j++) {
        v[j] = lanes_exp(lanes_sub(v[j], lanes_set(tile->max[row])));
        lanes_store(score + j * LANES, v[j]);
        sum = lanes_add(sum, v[j]);
    }
    tile->sum[row] += lanes_sum(sum);
}

/* z[i] += sum over keys first <= t < end of weight[i, t] latent[t], for `rows` rows and `vectors` vectors of columns.
 */
INLINE void sum_block(const float *weight, const float *latent, size_t width, size_t first, size_t end, float *z,
                      size_t ldz, size_t rows, size_t vectors, size_t tail) {
    lanes a[GROUP][4];
    UNROLLED(6)
    for (size_t i = 0; i < rows; i++) {
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            a[i][j] = lanes_load(z + i * ldz + j * LANES);
        }
    }
    for (size_t t = first; t < end; t++) {
        lanes x[4];
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            x[j] = lanes_load_n(latent + t * width + j * LANES, j + 1 == vectors ? tail : LANES);
        }
        UNROLLED(6)
        for (size_t i = 0; i < rows; i++) {
            lanes p = lanes_set(weight[i * KEYS + t]);
            UNROLLED(4)
            for (size_t j = 0; j < vectors; j++) {
                a[i][j] = lanes_fma(p, x[j], a[i][j]);
            }
        }
    }
    UNROLLED(6)
    for (size_t i = 0; i < rows; i++) {
        UNROLLED(4)
        for (size_t j = 0; j < vectors; j++) {
            lanes_store(z + i * ldz + j * LANES, a[i][j]);
        }
    }
}

/* One panel of columns for all rows: the keys that all six rows of a group see together, the others row by row. */
INLINE void sum_panel(const perigee_attention_tile *tile, const float *weight, const float *latent, size_t c,
                      size_t vectors, size_t tail) {
    size_t ldz = (tile->rank + LANES - 1) / LANES * LANES, width = tile->rank + tile->rope;
    for (size_t row = 0; row < tile->rows; row += GROUP) {
        size_t n = tile->rows - row < GROUP ? tile->rows - row : GROUP, common = 0;
        float *z = tile->z + row * ldz + c;
        if (n == GROUP) {
            common = KEYS;
            for (size_t i = 0; i < GROUP; i++) {
                common = tile->visible[row + i] < common ? tile->visible[row + i] : common;
            }
            if (common) {
                sum_block(weight + row * KEYS, latent + c, width, 0, common, z, ldz, GROUP, vectors, tail);
            }
        }
        for (size_t i = 0; i < n; i++) {
            if (tile->visible[row + i] > common) {
                sum_block(weight + (row + i) * KEYS, latent + c, width, common, tile->visible[row + i], z + i * ldz,
                          ldz, 1, vectors, tail);
            }
        }
    }
}

/* The most that a row of the group sees. */
INLINE size_t group_sees(const perigee_attention_tile *tile, size_t row) {
    size_t end = row + GROUP < tile->rows ? row + GROUP : tile->rows, seen = 0;
    for (; row < end; row++) {
        seen = tile->visible[row] > seen ? tile->visible[row] : seen;
    }
    return seen;
}

/* By chunks of columns, so that those of all keys stay in the nearest cache while the groups of rows pass. */
static void score_rows(const perigee_attention_tile *tile, const float *keys, float *weight) {
    size_t width = tile->rank + tile->rope, groups = (tile->rows + GROUP - 1) / GROUP, step = 0;
    const char *ahead = (const char *)tile->q;
    if (tile->next) {
        ahead = tile->next;
        step = (KEYS * (tile->bf16 ? sizeof(uint16_t) : sizeof(float)) + groups - 1) / groups;
    }
    for (size_t c = 0; c < width; c += SCORE_CHUNK) {
        size_t count = width - c < SCORE_CHUNK ? width - c : SCORE_CHUNK;
        for (size_t row = 0; row < tile->rows; row += GROUP) {
            const float *q = tile->q + row * width + c * GROUP;
            size_t seen = group_sees(tile, row), k = 0;
            const char *part = ahead + (c * groups + row / GROUP * count) * step;
            for (; k + (ATTENTION_WIDE - 1) * LANES < seen; k += ATTENTION_WIDE * LANES) {
                score_block(q, keys + c * KEYS + k, count, c == 0, weight + row * KEYS + k, ATTENTION_WIDE, part, step);
            }
            for (; k < seen; k += LANES) {
                score_block(q, keys + c * KEYS + k, count, c == 0, weight + row * KEYS + k, 1, part, step);
            }
        }
    }
    for (size_t row = 0; row < tile->rows; row++) {
        if (tile->visible[row]) {
            soften(tile, row, weight + row * KEYS);
        }
    }
}

static void attention(const perigee_attention_tile *tile) {
    size_t width = tile->rank + tile->rope;
    float *keys = tile->scratch, *expanded = keys + KEYS * width, *weight = expanded + KEYS * width;
    const float *latent = tile->latent;
    if (tile->bf16) {
        const uint16_t *half = tile->latent;
        for (size_t i = 0; i < tile->keys * width; i += LANES) {
            size_t left = tile->keys * width - i, n = left < LANES ? left : LANES;
            lanes_store_n(expanded + i, n, lanes_load_bf16_n(half + i, n));
        }
        latent = expanded;
    }
    transpose_keys(latent, tile->keys, width, keys);
    score_rows(tile, keys, weight);
    size_t c = 0;
    for (; c + ATTENTION_WIDE * LANES <= tile->rank; c += ATTENTION_WIDE * LANES) {
        sum_panel(tile, weight, latent, c, ATTENTION_WIDE, LANES);
    }
    for (; c < tile->rank; c += LANES) {
        size_t left = tile->rank - c;
        sum_panel(tile, weight, latent, c, 1, left < LANES ? left : LANES);
    }
}

#endif
