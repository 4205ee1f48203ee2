/* Absorbed latent attention on tiles of bfloat16. Float32 numbers are sums of parts, each a bfloat16: three hold one
 * exactly. A product takes the pairs of parts whose orders add up to less than the number of parts; a bfloat16 latent
 * is one part and exact.
 *
 * Keys come in blocks of BLOCK at absolute multiples. Scores are kept with a row of queries in each lane, so that the
 * softmax needs no sums over lanes:
 *     S [keys, rows] = K [keys, width] Q^T,  P = 2^(S - max),  Z [rows, rank] = Z 2^(old max - max) + P^T K.
 * Nothing that one row of queries or one key is multiplied into depends on the others beside it: what a row does not
 * see weighs exactly 0. */
#include <math.h>

#include "kernels/amx_bf16/tiles_amx.h"
#include "kernels/lanes.h"

enum {
    PAIR_BYTES = 2 * TILE_BYTES,
    PARTS_MOST = 3,
    BLOCK = 128, /* keys, a divisor of PERIGEE_ATTENTION_STEP */
    KEY_STEPS = BLOCK / STEP,
    NEAR_STEPS = 9 /* of the width, whose keys and queries of one part stay in the nearest cache together */
};

/* What a walk keeps, in bytes from the start of its work. Tiles that are multiplied come in pairs, those of a pair, of
 * the parts and of what is summed over one after the other. */
typedef struct layout {
    size_t steps;   /* of 32 columns of the width */
    size_t columns; /* pairs of tiles of the rank */
    size_t used;    /* groups of 16 rows of queries */
    size_t groups;  /* the same, an even number */
    size_t q, keys, values, score, p, z, max, sum, visible;
    size_t bytes;
} layout;

static layout layout_of(size_t rank, size_t rope, size_t rows, size_t parts) {
    layout l = {.steps = (rank + rope + STEP - 1) / STEP,
                .columns = (rank + STEP - 1) / STEP,
                .used = (rows + TILE - 1) / TILE};
    l.groups = (l.used + 1) / 2 * 2;
    size_t at = 0;
#define TAKE(member, size) l.member = at, at += (size)
    TAKE(q, parts * l.groups * l.steps * TILE_BYTES);
    TAKE(keys, parts * l.steps * PAIR_BYTES);
    TAKE(values, parts * KEY_STEPS * l.columns * PAIR_BYTES);
    TAKE(score, BLOCK * l.groups * TILE * sizeof(float));
    TAKE(p, parts * l.groups * KEY_STEPS * TILE_BYTES);
    TAKE(z, l.groups * l.columns * PAIR_BYTES);
    TAKE(max, l.groups * TILE * sizeof(float));
    TAKE(sum, l.groups * TILE * sizeof(float));
    TAKE(visible, l.groups * TILE * sizeof(uint32_t));
#undef TAKE
    l.bytes = at;
    return l;
}

/* To the nearest bfloat16, halves away from 0. */
INLINE __m512 nearest(__m512 x) {
    const __m512i half = _mm512_set1_epi32(0x8000), top = _mm512_set1_epi32((int)0xffff0000u);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), top));
}

/* 32 floats to parts, each the nearest to what the ones before leave, which is exact; three hold a float32. */
INLINE void split(__m512 low, __m512 high, size_t parts, __m512i *out) {
    UNROLLED(3)
    for (size_t i = 0; i + 1 < parts; i++) {
        __m512 a = nearest(low), b = nearest(high);
        out[i] = (__m512i)_mm512_cvtne2ps_pbh(b, a);
        low = _mm512_sub_ps(low, a);
        high = _mm512_sub_ps(high, b);
    }
    out[parts - 1] = (__m512i)_mm512_cvtne2ps_pbh(high, low); /* NaN stays NaN here */
}

/* Queries times what makes scores exponents of 2, in tiles of [pair of columns, row]. */
INLINE void pack_queries(const perigee_attention_walk *w, size_t parts) {
    layout l = layout_of(w->rank, w->rope, w->rows, parts);
    size_t width = w->rank + w->rope;
    const __m512 scale = _mm512_set1_ps(w->scale * 1.44269504f);
    for (size_t g = 0; g < l.groups; g++) {
        unsigned char *to = (unsigned char *)w->work + l.q + g / 2 * l.steps * parts * PAIR_BYTES + g % 2 * TILE_BYTES;
        for (size_t k = 0; k < l.steps; k++) {
            size_t left = width - k * STEP, low = left < 16 ? left : 16, high = left < 32 ? left - low : 16;
            __m512i r[PARTS_MOST][16];
            for (size_t i = 0; i < TILE; i++) {
                const float *q = w->q + (g * TILE + i) * w->ldq + k * STEP;
                __m512 a = _mm512_setzero_ps(), b = a;
                if (g * TILE + i < w->rows) {
                    a = _mm512_mul_ps(lanes_load_n(q, low), scale);
                    b = high ? _mm512_mul_ps(lanes_load_n(q + 16, high), scale) : b;
                }
                __m512i of[PARTS_MOST];
                split(a, b, parts, of);
                for (size_t j = 0; j < parts; j++) {
                    r[j][i] = of[j];
                }
            }
            for (size_t j = 0; j < parts; j++, to += PAIR_BYTES) {
                transpose_words(r[j]);
                for (size_t i = 0; i < TILE; i++) {
                    _mm512_store_si512(to + i * 64, r[j][i]);
                }
            }
        }
    }
}

INLINE void begin(const perigee_attention_walk *w, size_t parts) {
    layout l = layout_of(w->rank, w->rope, w->rows, parts);
    unsigned char *work = w->work;
    pack_queries(w, parts);
    memset(work + l.z, 0, l.max - l.z);
    memset(work + l.sum, 0, l.visible - l.sum);
    float *max = (float *)(void *)(work + l.max);
    for (size_t i = 0; i < l.groups * TILE; i++) {
        max[i] = -INFINITY;
    }
}

/* 32 latents of one key as parts; columns from `count` on are 0. */
INLINE void load_latents(const void *row, bool bf16, size_t at, size_t count, size_t parts, __m512i *out) {
    if (bf16) {
        const uint16_t *from = (const uint16_t *)row + at;
        out[0] =
            count >= STEP ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16((__mmask32)((1u << count) - 1u), from);
        return;
    }
    const float *from = (const float *)row + at;
    if (count >= STEP) {
        split(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16), parts, out);
    } else {
        size_t low = count < 16 ? count : 16;
        split(lanes_load_n(from, low), count > 16 ? lanes_load_n(from + 16, count - 16) : _mm512_setzero_ps(), parts,
              out);
    }
}

/* Keys 32 s … of a block, in tiles of [key, column] for scores and of [pair of keys, column] for values. Of 32 columns
 * a pair of tiles holds 8 j + 0 … 3 in the first and 8 j + 4 … 7 in the second. Keys that are not there are 0. */
INLINE void stage_keys(const perigee_attention_walk *w, const layout *l, size_t s, size_t at, size_t keys, bool bf16,
                       size_t parts) {
    size_t width = w->rank + w->rope, row_bytes = width * (bf16 ? sizeof(uint16_t) : sizeof(float));
    /* the 32 lie in one tile of the cache */
    const unsigned char *from =
        (const unsigned char *)w->latents[at / PERIGEE_ATTENTION_KEYS] + at % PERIGEE_ATTENTION_KEYS * row_bytes;
    unsigned char *key_to = (unsigned char *)w->work + l->keys;
    unsigned char *value_to = (unsigned char *)w->work + l->values + s * parts * PAIR_BYTES;
    for (size_t k = 0; k < l->steps; k++) {
        for (size_t i = 0; i < STEP; i += 2) {
            __m512i of[2][PARTS_MOST];
            UNROLLED(2)
            for (size_t j = 0; j < 2; j++) {
                if (i + j < keys) {
                    load_latents(from + (i + j) * row_bytes, bf16, k * STEP, width - k * STEP, parts, of[j]);
                } else {
                    of[j][0] = of[j][1] = of[j][2] = _mm512_setzero_si512();
                }
            }
            UNROLLED(3)
            for (size_t p = 0; p < parts; p++) {
                unsigned char *to = key_to + (k * parts + p) * PAIR_BYTES + i * 64;
                _mm512_store_si512(to, of[0][p]);
                _mm512_store_si512(to + 64, of[1][p]);
                if (k < l->columns) {
                    to = value_to + (k * KEY_STEPS * parts + p) * PAIR_BYTES + i / 2 * 64;
                    _mm512_store_si512(to, _mm512_unpacklo_epi16(of[0][p], of[1][p]));
                    _mm512_store_si512(to + TILE_BYTES, _mm512_unpackhi_epi16(of[0][p], of[1][p]));
                }
            }
        }
    }
}

#define LOAD_A(i)                                                                                                      \
    TILE_LOAD(4, a + (i)*PAIR_BYTES, 64);                                                                              \
    if (high == 2) {                                                                                                   \
        TILE_LOAD(5, a + (i)*PAIR_BYTES + TILE_BYTES, 64);                                                             \
    }
#define LOAD_B(i)                                                                                                      \
    TILE_LOAD(6, b + (i)*PAIR_BYTES, 64);                                                                              \
    if (wide == 2) {                                                                                                   \
        TILE_LOAD(7, b + (i)*PAIR_BYTES + TILE_BYTES, 64);                                                             \
    }
#define PRODUCTS()                                                                                                     \
    _tile_dpbf16ps(0, 4, 6);                                                                                           \
    if (wide == 2) {                                                                                                   \
        _tile_dpbf16ps(1, 4, 7);                                                                                       \
    }                                                                                                                  \
    if (high == 2) {                                                                                                   \
        _tile_dpbf16ps(2, 5, 6);                                                                                       \
        if (wide == 2) {                                                                                               \
            _tile_dpbf16ps(3, 5, 7);                                                                                   \
        }                                                                                                              \
    }

/* Lines of the next block, so many fetched with each step of a product: memory works meanwhile. */
typedef struct fetch {
    const char *at;
    size_t lines;
} fetch;

/* Half of the run of 32 latents that comes BLOCK keys after key `at` of the walk, over `steps`. */
INLINE fetch fetch_half(const perigee_attention_walk *w, size_t at, size_t half, bool bf16, size_t steps) {
    size_t next = at + BLOCK, tile = next / PERIGEE_ATTENTION_KEYS;
    size_t bytes = STEP * (w->rank + w->rope) * (bf16 ? sizeof(uint16_t) : sizeof(float));
    const char *from = NULL;
    if (next < w->keys) {
        from = w->latents[tile];
    } else if (next >= PERIGEE_ATTENTION_STEP && tile - PERIGEE_ATTENTION_STEP / PERIGEE_ATTENTION_KEYS < w->n_next) {
        from = w->next[tile - PERIGEE_ATTENTION_STEP / PERIGEE_ATTENTION_KEYS];
    }
    if (!from || steps == 0) {
        return (fetch){NULL, 0};
    }
    from += next % PERIGEE_ATTENTION_KEYS / STEP * bytes + half * (bytes / 2);
    return (fetch){from, (bytes / 128 + steps - 1) / steps};
}

/* `high` by `wide` tiles of sums += a b over `steps`; smaller products of parts first, each pair of parts one change
 * away from the one before it. */
INLINE void multiply(const unsigned char *a, const unsigned char *b, size_t steps, size_t high, size_t wide,
                     size_t a_parts, size_t b_parts, fetch *ahead) {
    for (size_t s = 0; s < steps; s++, a += a_parts * PAIR_BYTES, b += b_parts * PAIR_BYTES) {
        for (size_t i = 0; i < ahead->lines; i++, ahead->at += 64) {
            lanes_prefetch(ahead->at);
        }
        if (a_parts == 3 && b_parts == 3) {
            LOAD_A(2)
            LOAD_B(0)
            PRODUCTS()
            LOAD_A(1)
            PRODUCTS() LOAD_B(1) PRODUCTS() LOAD_A(0) LOAD_B(2) PRODUCTS() LOAD_B(1) PRODUCTS() LOAD_B(0) PRODUCTS()
        } else if (a_parts == 2 && b_parts == 2) {
            LOAD_A(1) LOAD_B(0) PRODUCTS() LOAD_A(0) PRODUCTS() LOAD_B(1) PRODUCTS()
        } else if (b_parts == 1) {
            LOAD_B(0)
            for (size_t i = a_parts; i-- > 0;) {
                LOAD_A(i) PRODUCTS()
            }
        } else {
            LOAD_A(0)
            for (size_t i = b_parts; i-- > 0;) {
                LOAD_B(i) PRODUCTS()
            }
        }
    }
}

/* The most that a row of the groups first … sees. */
INLINE size_t groups_see(const uint32_t *visible, size_t first, size_t count) {
    uint32_t most = 0;
    for (size_t i = first * TILE; i < (first + count) * TILE; i++) {
        most = visible[i] > most ? visible[i] : most;
    }
    return most;
}

/* What the pair of groups sees that group g is of, in whole steps: so far both are computed. */
INLINE size_t pair_sees(const unsigned char *work, const layout *l, size_t g) {
    const uint32_t *visible = (const uint32_t *)(const void *)(work + l->visible);
    return (groups_see(visible, g / 2 * 2, 2) + STEP - 1) / STEP * STEP;
}

/* Scores of the 32 keys that are staged, `key` being the first. By chunks of the width, so that those of the keys stay
 * in the nearest cache while the rows of queries pass. */
INLINE void score_keys(unsigned char *work, const layout *l, size_t key, size_t parts, size_t key_parts, fetch ahead) {
    size_t ld = l->groups * TILE * sizeof(float), chunk = key_parts == 1 ? NEAR_STEPS : l->steps;
    for (size_t k = 0; k < l->steps; k += chunk) {
        size_t steps = l->steps - k < chunk ? l->steps - k : chunk;
        const unsigned char *a = work + l->keys + k * key_parts * PAIR_BYTES;
        for (size_t g = 0; g < l->groups; g += 2) {
            if (pair_sees(work, l, g) <= key) {
                continue;
            }
            const unsigned char *b = work + l->q + (g / 2 * l->steps + k) * parts * PAIR_BYTES;
            unsigned char *to = work + l->score + key * ld + g * TILE * sizeof(float);
            if (k == 0) {
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
            } else {
                TILE_LOAD(0, to, ld);
                TILE_LOAD(1, to + TILE * sizeof(float), ld);
                TILE_LOAD(2, to + TILE * ld, ld);
                TILE_LOAD(3, to + TILE * ld + TILE * sizeof(float), ld);
            }
            if (g + 1 < l->used) {
                multiply(a, b, steps, 2, 2, key_parts, parts, &ahead);
                _tile_stored(1, to + TILE * sizeof(float), ld);
                _tile_stored(3, to + TILE * ld + TILE * sizeof(float), ld);
            } else {
                multiply(a, b, steps, 2, 1, key_parts, parts, &ahead);
            }
            _tile_stored(0, to, ld);
            _tile_stored(2, to + TILE * ld, ld);
        }
    }
}

/* 2^x for x <= 0: 2^n 2^r, |r| <= 1/2; relative error 2e-9, 3e-6 or 8e-5, and that of float32. */
INLINE __m512 power_of_2(__m512 x, size_t parts) {
    x = _mm512_max_ps(_mm512_set1_ps(-160.0f), x); /* the second stays if it is NaN */
    const __m512 rounder = _mm512_set1_ps(12582912.0f);
    __m512 n = _mm512_sub_ps(_mm512_add_ps(x, rounder), rounder), r = _mm512_sub_ps(x, n), p;
#define NEXT(c) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
    if (parts == 3) {
        p = _mm512_set1_ps(1.5345812165e-04f);
        NEXT(1.3399931209e-03f)
        NEXT(9.6184889565e-03f) NEXT(5.5503287770e-02f) NEXT(2.4022646891e-01f) NEXT(6.9314720574e-01f) NEXT(1.0f)
    } else if (parts == 2) {
        p = _mm512_set1_ps(9.5701020146e-03f);
        NEXT(5.5917860306e-02f) NEXT(2.4024744825e-01f) NEXT(6.9312181474e-01f) NEXT(9.9999926145e-01f)
    } else {
        p = _mm512_set1_ps(5.5171669093e-02f);
        NEXT(2.4261112222e-01f) NEXT(6.9326098545e-01f) NEXT(9.9992807354e-01f)
    }
#undef NEXT
    return _mm512_scalef_ps(p, n);
}

/* What a group of rows holds so far, times `shrink`. */
static void shrink_group(float *z, size_t columns, __m512 shrink) {
    float by[TILE];
    _mm512_storeu_ps(by, shrink);
    for (size_t c = 0; c < columns; c++, z += 4 * TILE * TILE) {
        for (size_t i = 0; i < 2 * TILE; i++) {
            _mm512_store_ps(z + i * TILE, _mm512_mul_ps(_mm512_load_ps(z + i * TILE), _mm512_set1_ps(by[i % TILE])));
        }
    }
}

/* Of each pair of groups and each pair of tiles of columns: two tiles of the first group, two of the second. */
INLINE size_t z_at(const layout *l, size_t g, size_t c) {
    return l->z + ((g / 2 * l->columns + c) * 2 + g % 2) * PAIR_BYTES;
}

/* Scores of 16 rows of queries to weights, in tiles of [row, key]. */
INLINE void soften(unsigned char *work, const layout *l, size_t g, size_t parts) {
    float *score = (float *)(void *)(work + l->score) + g * TILE, *max = (float *)(void *)(work + l->max) + g * TILE;
    float *sum = (float *)(void *)(work + l->sum) + g * TILE;
    const uint32_t *visible = (const uint32_t *)(void *)(work + l->visible) + g * TILE;
    size_t ld = l->groups * TILE, seen = pair_sees(work, l, g), all = BLOCK;
    for (size_t i = 0; i < TILE; i++) {
        all = visible[i] < all ? visible[i] : all;
    }
    const __m512 nothing = _mm512_set1_ps(-INFINITY);
    const __m512i sees = _mm512_loadu_si512(visible);
    __m512 old = _mm512_loadu_ps(max), most[4] = {old, old, old, old};
    for (size_t k = all / 4 * 4; k < seen; k++) {
        __mmask16 there = _mm512_cmpgt_epu32_mask(sees, _mm512_set1_epi32((int)k));
        _mm512_storeu_ps(score + k * ld, _mm512_mask_blend_ps(there, nothing, _mm512_loadu_ps(score + k * ld)));
    }
    for (size_t k = 0; k < seen; k += 4) {
        UNROLLED(4)
        for (size_t j = 0; j < 4; j++) {
            most[j] = _mm512_max_ps(most[j], _mm512_loadu_ps(score + (k + j) * ld));
        }
    }
    __m512 now = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    __m512 base = _mm512_mask_blend_ps(_mm512_cmp_ps_mask(now, nothing, _CMP_EQ_OQ), now, _mm512_setzero_ps());
    __m512 total = _mm512_loadu_ps(sum);
    if (_mm512_cmp_ps_mask(now, old, _CMP_NEQ_UQ)) {
        __m512 shrink = power_of_2(_mm512_sub_ps(old, base), 3);
        total = _mm512_mul_ps(total, shrink);
        shrink_group((float *)(void *)(work + z_at(l, g, 0)), l->columns, shrink);
        _mm512_storeu_ps(max, now);
    }
    unsigned char *to = work + l->p + g / 2 * KEY_STEPS * parts * PAIR_BYTES + g % 2 * TILE_BYTES;
    for (size_t k = 0; k < seen; k += STEP) {
        __m512i pairs[PARTS_MOST][16];
        for (size_t i = 0; i < 16; i++) {
            const float *s = score + (k + 2 * i) * ld;
            __m512 a = power_of_2(_mm512_sub_ps(_mm512_loadu_ps(s), base), parts);
            __m512 b = power_of_2(_mm512_sub_ps(_mm512_loadu_ps(s + ld), base), parts);
            total = _mm512_add_ps(total, _mm512_add_ps(a, b));
            UNROLLED(3)
            for (size_t p = 0; p < parts; p++) {
                __m512 x = nearest(a), y = nearest(b);
                pairs[p][i] = _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(x), 16), _mm512_castps_si512(y));
                a = _mm512_sub_ps(a, x);
                b = _mm512_sub_ps(b, y);
            }
        }
        for (size_t p = 0; p < parts; p++, to += PAIR_BYTES) {
            transpose_words(pairs[p]);
            for (size_t i = 0; i < 16; i++) {
                _mm512_store_si512(to + i * 64, pairs[p][i]);
            }
        }
    }
    _mm512_storeu_ps(sum, total);
}

/* Z += P^T K over the keys of a block. */
INLINE void sum_values(const perigee_attention_walk *w, const layout *l, size_t first, bool bf16, size_t parts) {
    unsigned char *work = w->work;
    size_t key_parts = bf16 ? 1 : parts, runs = 0, each = (l->columns + KEY_STEPS - 1) / KEY_STEPS;
    for (size_t g = 0; g < l->groups; g += 2) {
        runs += pair_sees(work, l, g) / STEP;
    }
    fetch ahead = {NULL, 0};
    size_t span = KEY_STEPS * parts * PAIR_BYTES;
    const unsigned char *b = work + l->values;
    for (size_t c = 0; c < l->columns; c++, b += KEY_STEPS * key_parts * PAIR_BYTES) {
        const unsigned char *a = work + l->p;
        if (c % each == 0) {
            ahead = fetch_half(w, first + c / each * STEP, 1, bf16, each * runs);
        }
        for (size_t g = 0; g < l->groups; g += 2, a += span) {
            size_t steps = pair_sees(work, l, g) / STEP;
            if (steps == 0) {
                continue;
            }
            unsigned char *z = work + z_at(l, g, c);
            TILE_LOAD(0, z, 64);
            TILE_LOAD(1, z + TILE_BYTES, 64);
            if (g + 1 < l->used) {
                TILE_LOAD(2, z + PAIR_BYTES, 64);
                TILE_LOAD(3, z + PAIR_BYTES + TILE_BYTES, 64);
                multiply(a, b, steps, 2, 2, parts, key_parts, &ahead);
                _tile_stored(2, z + PAIR_BYTES, 64);
                _tile_stored(3, z + PAIR_BYTES + TILE_BYTES, 64);
            } else {
                multiply(a, b, steps, 1, 2, parts, key_parts, &ahead);
            }
            _tile_stored(0, z, 64);
            _tile_stored(1, z + TILE_BYTES, 64);
        }
    }
}

INLINE void walk_block(const perigee_attention_walk *w, const layout *l, size_t first, bool bf16, size_t parts) {
    unsigned char *work = w->work;
    uint32_t *visible = (uint32_t *)(void *)(work + l->visible);
    size_t keys = w->keys - first < BLOCK ? w->keys - first : BLOCK, key_parts = bf16 ? 1 : parts;
    for (size_t i = 0; i < l->groups * TILE; i++) {
        uint32_t sees = i < w->rows && w->visible[i] > first ? w->visible[i] - (uint32_t)first : 0;
        visible[i] = sees < keys ? sees : (uint32_t)keys;
    }
    size_t most = groups_see(visible, 0, l->groups);
    for (size_t s = 0; s * STEP < most; s++) {
        stage_keys(w, l, s, first + s * STEP, keys - s * STEP, bf16, key_parts);
        score_keys(work, l, s * STEP, parts, key_parts,
                   fetch_half(w, first + s * STEP, 0, bf16, l->groups / 2 * l->steps));
    }
    for (size_t g = 0; g < l->used; g++) {
        if (pair_sees(work, l, g)) {
            soften(work, l, g, parts);
        }
    }
    sum_values(w, l, first, bf16, parts);
}

INLINE void walk(const perigee_attention_walk *w, size_t parts) {
    layout l = layout_of(w->rank, w->rope, w->rows, parts);
    tiles_begin(TILE);
    for (size_t first = 0; first < w->keys; first += BLOCK) {
        if (w->bf16) {
            walk_block(w, &l, first, true, parts);
        } else {
            walk_block(w, &l, first, false, parts);
        }
    }
    tiles_end();
}

/* Back to rows, columns in order. */
INLINE void end(const perigee_attention_walk *w, size_t parts) {
    layout l = layout_of(w->rank, w->rope, w->rows, parts);
    const unsigned char *work = w->work;
    const float *sum = (const float *)(const void *)(work + l.sum);
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (size_t row = 0; row < w->rows; row++) {
        const float *from = (const float *)(const void *)(work + z_at(&l, row / TILE, 0)) + row % TILE * TILE;
        float *to = w->z + row * w->ldz;
        const __m512 whole = _mm512_set1_ps(1.0f / sum[row]);
        for (size_t c = 0; c < w->rank; c += STEP, from += 4 * TILE * TILE) {
            size_t left = w->rank - c;
            __m512 a = _mm512_load_ps(from), b = _mm512_load_ps(from + TILE * TILE);
            /* zeros of one sign, whatever was left out on the way */
            __m512 x = _mm512_fmadd_ps(_mm512_permutex2var_ps(a, low, b), whole, _mm512_setzero_ps());
            __m512 y = _mm512_fmadd_ps(_mm512_permutex2var_ps(a, high, b), whole, _mm512_setzero_ps());
            lanes_store_n(to + c, left < 16 ? left : 16, x);
            if (left > 16) {
                lanes_store_n(to + c + 16, left < 32 ? left - 16 : 16, y);
            }
        }
    }
}

#define ROW(precision_, parts, bound)                                                                                  \
    static size_t work_bytes_##precision_(size_t rank, size_t rope, size_t rows) {                                     \
        return layout_of(rank, rope, rows, parts).bytes;                                                               \
    }                                                                                                                  \
    static void begin_##precision_(const perigee_attention_walk *w) {                                                  \
        begin(w, parts);                                                                                               \
    }                                                                                                                  \
    static void walk_##precision_(const perigee_attention_walk *w) {                                                   \
        walk(w, parts);                                                                                                \
    }                                                                                                                  \
    static void end_##precision_(const perigee_attention_walk *w) {                                                    \
        end(w, parts);                                                                                                 \
    }                                                                                                                  \
    const perigee_kernel_row prg_attention_##precision_##_amx_bf16 = {                                                 \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_ATTENTION,                                                                                    \
        .dtype = PERIGEE_DTYPE_NONE,                                                                                   \
        .precision = PRECISION_##precision_,                                                                           \
        .features = PERIGEE_CPU_AVX512_VNNI | PERIGEE_CPU_AVX512_BF16 | PERIGEE_CPU_AMX_BF16,                          \
        .priority = 500,                                                                                               \
        .error_bound = bound,                                                                                          \
        .name = "attention_" #precision_ "_amx_bf16",                                                                  \
        .isa = "amx_bf16",                                                                                             \
        .numerics = "amx bf16, " #parts " parts",                                                                      \
        .row_tile = TILE,                                                                                              \
        .token_tile = 1,                                                                                               \
        .run.attention = {NULL, work_bytes_##precision_, begin_##precision_, walk_##precision_, end_##precision_}};

#define PRECISION_exact PERIGEE_PRECISION_EXACT
#define PRECISION_balanced PERIGEE_PRECISION_BALANCED
#define PRECISION_fast PERIGEE_PRECISION_FAST
ROW(exact, 3, 1e-6)
ROW(balanced, 2, 2e-5)
ROW(fast, 1, 1e-2)
