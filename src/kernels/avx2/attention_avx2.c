/* Absorbed latent attention with rows of queries in lanes: a key's elements are broadcast, so that keys need not be
 * turned, and queries are turned once for all keys. A score is the same chain of multiply-adds over the width, an
 * element of z the same one over keys, and a sum of weights the same tree, as in forms/attention_form.h: the bits are
 * those of its tiles of 64 keys. */
#include <stdbool.h>

#include "kernels/lane_math.h"
#include "kernels/rows.h"

enum { EIGHT = 8, KEYS = PERIGEE_ATTENTION_KEYS, CHUNK = 192, PIECE = 8, LINE = 64 };
/* Vectors of rows that go together, and how many keys (columns of z) beside them fill the registers. */
enum { BLOCK_MOST = 3 };
#define BESIDE(v) ((size_t)((v) == 3 ? 4 : (v) == 2 ? 6 : 8))

/* In floats from the start of `work`. Blocks of rows lie one behind the other, in each of q and z column by column. */
typedef struct layout {
    size_t vectors; /* of 8 rows */
    size_t max, sum, seen, score, q, z, expanded, floats;
} layout;

static layout layout_of(size_t rank, size_t rope, size_t rows) {
    layout l = {.vectors = (rows + EIGHT - 1) / EIGHT};
    const size_t all = l.vectors * EIGHT, width = rank + rope;
    l.sum = l.max + (all + 15) / 16 * 16;
    l.seen = l.sum + (all + 15) / 16 * 16;
    l.score = l.seen + (all + 15) / 16 * 16;
    l.q = l.score + KEYS * BLOCK_MOST * EIGHT;
    l.z = l.q + all * width;
    l.expanded = l.z + all * rank;
    l.floats = l.expanded + KEYS * width + 16;
    return l;
}

static size_t work_bytes(size_t rank, size_t rope, size_t rows) {
    return layout_of(rank, rope, rows).floats * sizeof(float);
}

/* Vectors of the block that begins where `left` are left. Three keep both units busy with the fewest loads. */
static size_t block_of(size_t left) {
    return left == 4 ? 2 : left < BLOCK_MOST ? left : BLOCK_MOST;
}

/* Loaded once: compilers would have each multiply-add load its operand again, and loads would be what limits. */
INLINE __m256 in_register(const float *p) {
    __m256 x = _mm256_loadu_ps(p);
    __asm__("" : "+x"(x));
    return x;
}

INLINE void transpose_eight(__m256 r[EIGHT]) {
    __m256 s[EIGHT];
    UNROLLED(4)
    for (size_t i = 0; i < EIGHT; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLLED(2)
    for (size_t i = 0; i < EIGHT; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    UNROLLED(4)
    for (size_t i = 0; i < 4; i++) {
        s[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        s[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    UNROLLED(8)
    for (size_t i = 0; i < EIGHT; i++) {
        r[i] = s[i];
    }
}

static void begin(const perigee_attention_walk *w) {
    const layout l = layout_of(w->rank, w->rope, w->rows);
    const size_t width = w->rank + w->rope;
    float *work = w->work;
    for (size_t i = 0; i < l.vectors * EIGHT; i++) {
        work[l.max + i] = -INFINITY;
        work[l.sum + i] = 0;
    }
    memset(work + l.z, 0, l.vectors * EIGHT * w->rank * sizeof *work);
    float *to = work + l.q;
    for (size_t at = 0, v; at < l.vectors; at += v, to += v * EIGHT * width) {
        v = block_of(l.vectors - at);
        for (size_t i = 0; i < v; i++) {
            const size_t row = (at + i) * EIGHT, n = w->rows - row < EIGHT ? w->rows - row : EIGHT;
            for (size_t c = 0; c < width; c += EIGHT) {
                const size_t count = width - c < EIGHT ? width - c : EIGHT;
                const __m256i some = lanes_first(count, 0);
                __m256 r[EIGHT];
                for (size_t j = 0; j < EIGHT; j++) {
                    r[j] = j < n ? _mm256_maskload_ps(w->q + (row + j) * w->ldq + c, some) : _mm256_setzero_ps();
                }
                transpose_eight(r);
                for (size_t j = 0; j < count; j++) {
                    _mm256_storeu_ps(to + ((c + j) * v + i) * EIGHT, r[j]);
                }
            }
        }
    }
}

/* What is fetched towards the second cache beside the scores: `lines` lines in each piece of columns. */
typedef struct ahead {
    const char *at;
    size_t lines, bytes; /* of a piece */
} ahead;

/* Scores of `n` keys and v vectors of rows, over `count` columns more of the width. */
INLINE void score_keys(const float *q, const float *key, size_t width, size_t count, bool first, float *score, size_t v,
                       size_t n, const ahead *next) {
    __m256 s[8][BLOCK_MOST];
    UNROLLED(8)
    for (size_t j = 0; j < n; j++) {
        UNROLLED(3)
        for (size_t i = 0; i < v; i++) {
            s[j][i] = first ? _mm256_setzero_ps() : _mm256_loadu_ps(score + (j * v + i) * EIGHT);
        }
    }
    const char *fetch = next->at;
    for (size_t c = 0; c < count;) {
        const size_t end = count - c < PIECE ? count : c + PIECE;
        for (size_t i = 0; i < next->lines; i++) {
            lanes_prefetch(fetch + i * LINE);
        }
        fetch += next->bytes;
        for (; c < end; c++) {
            __m256 x[BLOCK_MOST];
            UNROLLED(3)
            for (size_t i = 0; i < v; i++) {
                x[i] = in_register(q + (c * v + i) * EIGHT);
            }
            UNROLLED(8)
            for (size_t j = 0; j < n; j++) {
                const __m256 b = _mm256_broadcast_ss(key + j * width + c);
                UNROLLED(3)
                for (size_t i = 0; i < v; i++) {
                    s[j][i] = _mm256_fmadd_ps(x[i], b, s[j][i]);
                }
            }
        }
    }
    UNROLLED(8)
    for (size_t j = 0; j < n; j++) {
        UNROLLED(3)
        for (size_t i = 0; i < v; i++) {
            _mm256_storeu_ps(score + (j * v + i) * EIGHT, s[j][i]);
        }
    }
}

/* By chunks of columns, so that those of the queries stay in the nearest cache. */
INLINE void score_tile(const float *q, const float *latent, size_t width, size_t keys, float *score, size_t v,
                       ahead *next) {
    const size_t n = BESIDE(v);
    for (size_t c = 0; c < width; c += CHUNK) {
        const size_t count = width - c < CHUNK ? width - c : CHUNK;
        size_t t = 0;
        for (; t + n <= keys; t += n) {
            score_keys(q + c * v * EIGHT, latent + t * width + c, width, count, c == 0, score + t * v * EIGHT, v, n,
                       next);
            next->at += (count + PIECE - 1) / PIECE * next->bytes;
        }
        for (; t + 4 <= keys; t += 4) {
            score_keys(q + c * v * EIGHT, latent + t * width + c, width, count, c == 0, score + t * v * EIGHT, v, 4,
                       next);
            next->at += (count + PIECE - 1) / PIECE * next->bytes;
        }
        for (; t < keys; t++) {
            const ahead none = {next->at, 0, 0};
            score_keys(q + c * v * EIGHT, latent + t * width + c, width, count, c == 0, score + t * v * EIGHT, v, 1,
                       &none);
        }
    }
}

/* How many keys some rows see: `common` all of them, `most` one of them. */
typedef struct views {
    size_t common, most;
    const uint32_t *seen;
} views;

static views view_of(const uint32_t *seen, size_t rows) {
    views view = {KEYS, 0, seen};
    for (size_t i = 0; i < rows; i++) {
        view.common = seen[i] < view.common ? seen[i] : view.common;
        view.most = seen[i] > view.most ? seen[i] : view.most;
    }
    return view;
}

/* Which of eight rows see key t. */
INLINE __m256 sees(const uint32_t *seen, size_t t) {
    const __m256i n = _mm256_loadu_si256((const __m256i *)(const void *)seen);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(n, _mm256_set1_epi32((int)t)));
}

/* Scores of vector i of a block to weights, -0 where a row does not see: so its sums stay as they are, to the sign of
 * zero. Returns whether a largest score grew; `shrink` is what the sums so far are to be multiplied with. */
INLINE bool soften(const views *view, size_t i, float scale, float *score, size_t ld, float *max, float *sum,
                   __m256 *shrink) {
    __m256 high = _mm256_set1_ps(-INFINITY), old = _mm256_loadu_ps(max), whole = _mm256_loadu_ps(sum);
    for (size_t t = 0; t < view->most; t++) {
        __m256 s = _mm256_mul_ps(_mm256_loadu_ps(score + t * ld), _mm256_set1_ps(scale));
        if (t >= view->common) {
            s = _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), s, sees(view->seen + i * EIGHT, t));
        }
        _mm256_storeu_ps(score + t * ld, s);
        high = _mm256_max_ps(high, s);
    }
    const __m256 grown = _mm256_cmp_ps(high, old, _CMP_GT_OQ);
    const bool any = _mm256_movemask_ps(grown) != 0;
    *shrink = _mm256_set1_ps(1);
    if (any) {
        const __m256 less = _mm256_sub_ps(old, high);
        *shrink = _mm256_blendv_ps(*shrink, lanes_exp((lanes){less, less}).a, grown);
        old = _mm256_blendv_ps(old, high, grown);
        whole = _mm256_mul_ps(whole, *shrink);
        _mm256_storeu_ps(max, old);
    }
    __m256 s[LANES];
    for (size_t t = 0; t < LANES; t++) {
        s[t] = _mm256_setzero_ps();
    }
    for (size_t t = 0; t < view->most; t += 2) {
        const bool both = t + 1 < view->most;
        const lanes x = {_mm256_loadu_ps(score + t * ld), _mm256_loadu_ps(score + (t + both) * ld)};
        lanes e = lanes_exp(lanes_sub(x, (lanes){old, old}));
        if (t + 1 >= view->common) {
            e.a = _mm256_blendv_ps(_mm256_set1_ps(-0.0f), e.a, sees(view->seen + i * EIGHT, t));
            e.b = _mm256_blendv_ps(_mm256_set1_ps(-0.0f), e.b, sees(view->seen + i * EIGHT, t + 1));
        }
        _mm256_storeu_ps(score + t * ld, e.a);
        s[t % LANES] = _mm256_add_ps(s[t % LANES], e.a);
        if (both) {
            _mm256_storeu_ps(score + (t + 1) * ld, e.b);
            s[t % LANES + 1] = _mm256_add_ps(s[t % LANES + 1], e.b);
        }
    }
    for (size_t half = LANES / 2; half; half /= 2) {
        for (size_t t = 0; t < half; t++) {
            s[t] = _mm256_add_ps(s[t], s[t + half]);
        }
    }
    _mm256_storeu_ps(sum, _mm256_add_ps(whole, s[0]));
    return any;
}

/* z of `n` columns and v vectors of rows takes in keys first <= t < end. Both it and the weights go on by `ld` from
 * column to column and from key to key. `seen`: of eight rows, how many keys each sees; what is hidden may be no
 * number.
 */
INLINE void sum_columns(const float *weight, const float *latent, size_t width, size_t first, size_t end, float *z,
                        size_t ld, const __m256 *shrink, size_t v, size_t n, const uint32_t *seen) {
    __m256 a[8][BLOCK_MOST];
    UNROLLED(8)
    for (size_t j = 0; j < n; j++) {
        UNROLLED(3)
        for (size_t i = 0; i < v; i++) {
            a[j][i] = _mm256_loadu_ps(z + j * ld + i * EIGHT);
            if (shrink) {
                a[j][i] = _mm256_mul_ps(a[j][i], shrink[i]);
            }
        }
    }
    for (size_t t = first; t < end; t++) {
        __m256 x[BLOCK_MOST], mask = _mm256_setzero_ps();
        UNROLLED(3)
        for (size_t i = 0; i < v; i++) {
            x[i] = in_register(weight + t * ld + i * EIGHT);
        }
        if (seen) {
            mask = sees(seen, t);
        }
        UNROLLED(8)
        for (size_t j = 0; j < n; j++) {
            __m256 b = _mm256_broadcast_ss(latent + t * width + j);
            if (seen) {
                b = _mm256_and_ps(b, mask);
            }
            UNROLLED(3)
            for (size_t i = 0; i < v; i++) {
                a[j][i] = _mm256_fmadd_ps(x[i], b, a[j][i]);
            }
        }
    }
    UNROLLED(8)
    for (size_t j = 0; j < n; j++) {
        UNROLLED(3)
        for (size_t i = 0; i < v; i++) {
            _mm256_storeu_ps(z + j * ld + i * EIGHT, a[j][i]);
        }
    }
}

INLINE void sum_keys(const float *weight, const float *latent, size_t rank, size_t width, size_t first, size_t end,
                     float *z, size_t ld, const __m256 *shrink, size_t v, const uint32_t *seen) {
    const size_t n = BESIDE(v);
    size_t c = 0;
    if (first == end && !shrink) {
        return;
    }
    for (; c + n <= rank; c += n) {
        sum_columns(weight, latent + c, width, first, end, z + c * ld, ld, shrink, v, n, seen);
    }
    for (; c < rank; c++) {
        sum_columns(weight, latent + c, width, first, end, z + c * ld, ld, shrink, v, 1, seen);
    }
}

/* The keys that all rows of a block see together, then eight rows at a time. */
INLINE void sum_tile(const float *weight, const float *latent, size_t rank, size_t width, float *z,
                     const __m256 *shrink, size_t v, const views *view) {
    sum_keys(weight, latent, rank, width, 0, view->common, z, v * EIGHT, shrink, v, NULL);
    for (size_t i = 0; i < v && view->common < view->most; i++) {
        const views own = view_of(view->seen + i * EIGHT, EIGHT);
        sum_keys(weight + i * EIGHT, latent, rank, width, view->common, own.common, z + i * EIGHT, v * EIGHT, NULL, 1,
                 NULL);
        sum_keys(weight + i * EIGHT, latent, rank, width, own.common, own.most, z + i * EIGHT, v * EIGHT, NULL, 1,
                 own.seen);
    }
}

/* Where a block of rows is. */
typedef struct block {
    const float *q;
    float *z, *max, *sum, *score;
} block;

INLINE void attend(const perigee_attention_walk *w, const block *b, const float *latent, const views *view, size_t v,
                   ahead *next) {
    const size_t width = w->rank + w->rope;
    __m256 shrink[BLOCK_MOST];
    bool grown = false;
    score_tile(b->q, latent, width, view->most, b->score, v, next);
    for (size_t i = 0; i < v; i++) {
        grown |= soften(view, i, w->scale, b->score + i * EIGHT, v * EIGHT, b->max + i * EIGHT, b->sum + i * EIGHT,
                        &shrink[i]);
    }
    if (grown) {
        sum_tile(b->score, latent, w->rank, width, b->z, shrink, v, view);
    } else {
        sum_tile(b->score, latent, w->rank, width, b->z, NULL, v, view);
    }
}

static void attend_1(const perigee_attention_walk *w, const block *b, const float *latent, const views *view,
                     ahead *next) {
    attend(w, b, latent, view, 1, next);
}

static void attend_2(const perigee_attention_walk *w, const block *b, const float *latent, const views *view,
                     ahead *next) {
    attend(w, b, latent, view, 2, next);
}

static void attend_3(const perigee_attention_walk *w, const block *b, const float *latent, const views *view,
                     ahead *next) {
    attend(w, b, latent, view, 3, next);
}

static void step_tile(const perigee_attention_walk *w, const layout *l, const float *latent, ahead next) {
    const size_t width = w->rank + w->rope;
    float *work = w->work;
    const uint32_t *seen = (const uint32_t *)(const void *)(work + l->seen);
    for (size_t at = 0, v; at < l->vectors; at += v) {
        v = block_of(l->vectors - at);
        const views view = view_of(seen + at * EIGHT, v * EIGHT);
        if (view.most == 0) {
            continue;
        }
        const block b = {work + l->q + at * EIGHT * width, work + l->z + at * EIGHT * w->rank,
                         work + l->max + at * EIGHT, work + l->sum + at * EIGHT, work + l->score};
        (v == 3 ? attend_3 : v == 2 ? attend_2 : attend_1)(w, &b, latent, &view, &next);
    }
}

/* Shares a tile of latents out over the pieces of columns of a tile's scores. */
static ahead fetch(const layout *l, const void *next, size_t width, size_t bytes) {
    if (!next) {
        return (ahead){"", 0, 0}; /* steps of nothing are counted from it, which NULL does not allow */
    }
    size_t pieces = 0;
    for (size_t at = 0, v; at < l->vectors; at += v) {
        v = block_of(l->vectors - at);
        pieces += KEYS / BESIDE(v) * (width / PIECE);
    }
    const size_t each = pieces ? (bytes + pieces - 1) / pieces : 0;
    return (ahead){next, (each + LINE - 1) / LINE, each};
}

static void step(const perigee_attention_walk *w) {
    const layout l = layout_of(w->rank, w->rope, w->rows);
    const size_t width = w->rank + w->rope, bytes = KEYS * width * (w->bf16 ? sizeof(uint16_t) : sizeof(float));
    float *work = w->work;
    uint32_t *seen = (uint32_t *)(void *)(work + l.seen);
    for (size_t first = 0; first < w->keys; first += KEYS) {
        const size_t keys = w->keys - first < KEYS ? w->keys - first : KEYS;
        const void *latent = w->latents[first / KEYS], *next = NULL; /* only whole tiles are fetched early */
        if (first + 2 * KEYS <= w->keys) {
            next = w->latents[first / KEYS + 1];
        } else if (first + KEYS >= w->keys && w->n_next > 0) {
            next = w->next[0];
        }
        for (size_t i = 0; i < l.vectors * EIGHT; i++) { /* rows that fill up see what the last one sees */
            const size_t sees = w->visible[i < w->rows ? i : w->rows - 1];
            seen[i] = (uint32_t)(sees < first ? 0 : sees - first < keys ? sees - first : keys);
        }
        if (w->bf16) {
            const uint16_t *half = latent;
            for (size_t i = 0; i < keys * width; i += LANES) {
                const size_t left = keys * width - i, n = left < LANES ? left : LANES;
                lanes_store_n(work + l.expanded + i, n, lanes_load_bf16_n(half + i, n));
            }
            latent = work + l.expanded;
        }
        step_tile(w, &l, latent, fetch(&l, next, width, bytes));
    }
}

/* Means, back to rows. */
static void end(const perigee_attention_walk *w) {
    const layout l = layout_of(w->rank, w->rope, w->rows);
    const float *work = w->work, *from = work + l.z;
    for (size_t at = 0, v; at < l.vectors; at += v, from += v * EIGHT * w->rank) {
        v = block_of(l.vectors - at);
        for (size_t i = 0; i < v; i++) {
            const size_t row = (at + i) * EIGHT, n = w->rows - row < EIGHT ? w->rows - row : EIGHT;
            const __m256 whole = _mm256_div_ps(_mm256_set1_ps(1), _mm256_loadu_ps(work + l.sum + row));
            for (size_t c = 0; c < w->rank; c += EIGHT) {
                const size_t count = w->rank - c < EIGHT ? w->rank - c : EIGHT;
                __m256 r[EIGHT];
                for (size_t j = 0; j < EIGHT; j++) {
                    r[j] = _mm256_setzero_ps();
                    if (j < count) {
                        r[j] = _mm256_mul_ps(_mm256_loadu_ps(from + ((c + j) * v + i) * EIGHT), whole);
                    }
                }
                transpose_eight(r);
                for (size_t j = 0; j < n; j++) {
                    float *to = w->z + (row + j) * w->ldz + c;
                    if (count == EIGHT) {
                        _mm256_storeu_ps(to, r[j]);
                    } else {
                        _mm256_maskstore_ps(to, lanes_first(count, 0), r[j]);
                    }
                }
            }
        }
    }
}

const perigee_kernel_row prg_attention_avx2 = {.struct_size = sizeof(perigee_kernel_row),
                                               .op = PERIGEE_OP_ATTENTION,
                                               .dtype = PERIGEE_DTYPE_NONE,
                                               .precision = PERIGEE_PRECISION_EXACT,
                                               .features = PERIGEE_CPU_AVX2,
                                               .priority = 100,
                                               .error_bound = 1e-6,
                                               .name = "attention_avx2",
                                               .isa = "avx2",
                                               .numerics = "lanes16",
                                               .row_tile = EIGHT,
                                               .token_tile = 1,
                                               .run.attention = {NULL, work_bytes, begin, step, end}};
