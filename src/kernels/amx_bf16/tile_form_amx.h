/* Products of one stored form with activations in 1, 2 or 3 parts of bf16, on tiles.
 *
 * A file that includes this has defined, for its form:
 *   FORM_STEP_BYTES   bytes of codes of 32 columns
 *   FORM_GROUP        steps that share a scale of weights, a divisor of BLOCK_STEPS
 *   FORM_SCALED       whether sums of a group are multiplied by `scale` of tile_scales, or taken as they are
 *   FORM_PLAIN        whether codes are bf16, so that tiles are loaded from where they lie
 *   form_scales()     what form_decode() and the sums need of the scales of 16 rows and a block of columns
 *   form_decode()     a tile of 16 rows and 32 columns as bf16, exactly
 * and then defines a row for each precision with TILE_ROW().
 *
 * y = sum over blocks of 512 columns, sum over groups: scale * C, one fused multiply-add each from 0, in order. C
 * starts at 0 for each group and takes, for each step of 32 columns and each part, first the largest, one TDPBF16PS.
 * That instruction makes a chain of fused multiply-adds of the 16 even columns, one of the 16 odd ones, both from 0,
 * and adds their sum to C, each element by itself, so that bits depend on nothing beside a row of weights and a row of
 * activations. It rounds to nearest and takes and gives 0 for what is smaller than 2^-126, whatever MXCSR says: bounds
 * hold where 2^-16 of the products is above that. An activation of 2^128 (1 - 2^-9) or more counts as infinite.
 * Columns behind the last are zero in the activations, so codes there only have to be finite. */
#include "kernels/amx_bf16/tiles_amx.h"

/* Blocks of weights, of sums that are not added yet, of activations, and all sums of SPAN rows. */
typedef struct tile_scratch {
    char weights[2][BLOCK_STEPS][TILE_BYTES] __attribute__((aligned(64)));
    tile_scales scales[2] __attribute__((aligned(64)));
    tile_scales few_scales[4][2] __attribute__((aligned(64))); /* of blocks by turns */
    float sums[2][4][TILE][TILE] __attribute__((aligned(64))); /* two groups by turns, four tiles */
} tile_scratch;

INLINE size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

/* Rows of activations that are taken together: as even shares of m as cache allows. */
INLINE size_t chunk_tokens(size_t m, int parts) {
    const size_t most = (size_t)(MOST_TOKENS / (parts == 1 ? 1 : parts == 2 ? 3 : 2) * (parts == 2 ? 2 : 1));
    const size_t chunks = (m + most - 1) / most;
    return chunks <= 1 ? round_up(m, TILE) : round_up((m + chunks - 1) / chunks, PAIR);
}

/* Whether all columns of up to 16 rows of activations stay in cache. */
INLINE bool is_few(size_t m, size_t k, int parts) {
    return m <= 1 || (m <= TILE && tile_steps(k) * (size_t)parts * TILE_BYTES <= MOST_FEW);
}

INLINE size_t tile_scratch_bytes(size_t m, size_t k, int parts) {
    const size_t tokens = chunk_tokens(m, parts), own = round_up(sizeof(tile_scratch), 64);
    if (is_few(m, k, parts)) {
        return own + (m <= 1 ? 0 : tile_steps(k) * (size_t)parts * TILE_BYTES);
    }
    return own + tokens * BLOCK_STEPS * (size_t)parts * 2 * STEP + round_up(tokens, PAIR) * SPAN * sizeof(float);
}

/* Weights */

/* A tile at an edge: codes that are not there count as 0. */
static __attribute__((noinline)) void decode_edge(const uint8_t *codes, size_t row_bytes, size_t n, size_t bytes,
                                                  const tile_scales *scales, size_t step, char *tile) {
    uint8_t copy[TILE * FORM_STEP_BYTES] = {0};
    for (size_t r = 0; r < n; r++) {
        memcpy(copy + r * FORM_STEP_BYTES, codes + r * row_bytes, bytes);
    }
    form_decode(copy, FORM_STEP_BYTES, scales, step, tile);
}

/* Step `step` of the matrix, the `local`-th of its block, of n <= 16 rows from `row` on. */
INLINE void decode_tile(const perigee_matrix *w, size_t row, size_t n, size_t step, size_t local,
                        const tile_scales *scales, char *tile) {
    const uint8_t *codes = (const uint8_t *)w->codes + row * w->row_bytes + step * FORM_STEP_BYTES;
    const size_t left = w->cols - step * STEP;
    if (n >= TILE && left >= STEP) {
        form_decode(codes, w->row_bytes, scales, local, tile);
    } else {
        const size_t most = left < STEP ? (left * FORM_STEP_BYTES + STEP - 1) / STEP : FORM_STEP_BYTES;
        decode_edge(codes, w->row_bytes, n < TILE ? n : TILE, most, scales, local, tile);
    }
}

INLINE size_t rows_left(size_t end, size_t row) {
    return row >= end ? 0 : end - row < TILE ? end - row : TILE;
}

/* Where two tiles of weights lie for each step of a block: decoded, or in the matrix itself. */
typedef struct tile_weights {
    const char *first, *second;
    size_t row_bytes, step_bytes;
} tile_weights;

/* Codes that are needed later, and which rows of them are fetched meanwhile: some in each step, or they would hold up
 * the loads of tiles. */
typedef struct tile_ahead {
    const char *codes; /* of the first row of a pair of tiles, and of a block */
    size_t row_bytes, from, to;
} tile_ahead;

enum { LINE_STEPS = 64 / FORM_STEP_BYTES }; /* of a line of codes */

INLINE void prefetch_step(const tile_ahead *ahead, size_t step) {
    for (size_t r = ahead->from + step % LINE_STEPS; r < ahead->to; r += LINE_STEPS) {
        _mm_prefetch(ahead->codes + r * ahead->row_bytes + step * FORM_STEP_BYTES, _MM_HINT_T1);
    }
}

/* Sums */

/* sums += scale * C for `tokens` <= 16 rows of activations: lines of 16 by rows of weights. */
INLINE void add_tile(float (*c)[TILE], const float *scale, float *sums) {
#pragma GCC unroll 16
    for (size_t r = 0; r < TILE; r++) {
        const __m512 v = _mm512_load_ps(c[r]), sum = _mm512_load_ps(sums + r * TILE);
        _mm512_store_ps(sums + r * TILE,
                        FORM_SCALED ? _mm512_fmadd_ps(v, _mm512_set1_ps(scale[r]), sum) : _mm512_add_ps(v, sum));
    }
}

/* Many rows of activations */

/* Block [b, b + here) of the parts of rows t ... t + 15: [step][part] tiles whose rows are pairs of columns. */
INLINE void gather_tokens(const char *packed, size_t bytes, const uint32_t *rows, size_t t, size_t end, size_t b,
                          size_t here, int parts, char *out) {
    const size_t n = rows_left(end, t);
    const char *from[TILE];
    for (size_t i = 0; i < TILE; i++) {
        const size_t at = t + (i < n ? i : 0);
        from[i] = packed + (rows ? rows[at] : at) * bytes + b * (size_t)parts * 2 * STEP;
    }
    for (size_t i = 0; i < here * (size_t)parts; i++) {
        __m512i v[TILE];
#pragma GCC unroll 16
        for (size_t j = 0; j < TILE; j++) {
            v[j] = _mm512_load_si512(from[j] + i * 2 * STEP);
        }
        transpose_words(v);
#pragma GCC unroll 16
        for (size_t j = 0; j < TILE; j++) {
            _mm512_store_si512(out + i * TILE_BYTES + j * 64, v[j]);
        }
    }
}

/* One group: steps [g, last) of the block for a pair of tiles of weights and one or two of activations. */
INLINE void group_tiles(const tile_weights *a, size_t g, size_t last, const char *x0, const char *x1, int parts,
                        bool two, const tile_ahead *ahead, float (*c)[TILE][TILE]) {
    _tile_zero(0);
    _tile_zero(2);
    if (two) {
        _tile_zero(1);
        _tile_zero(3);
    }
    for (size_t i = g; i < last; i++) {
        prefetch_step(ahead, i);
        TILE_LOAD(4, a->first + i * a->step_bytes, a->row_bytes);
        TILE_LOAD(5, a->second + i * a->step_bytes, a->row_bytes);
#pragma GCC unroll 3
        for (int p = 0; p < parts; p++) {
            const size_t at = (i * (size_t)parts + (size_t)p) * TILE_BYTES;
            TILE_LOAD(6, x0 + at, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(2, 5, 6);
            if (two) {
                TILE_LOAD(7, x1 + at, 64);
                _tile_dpbf16ps(1, 4, 7);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
    }
    _tile_stored(0, c[0], 64);
    _tile_stored(2, c[2], 64);
    if (two) {
        _tile_stored(1, c[1], 64);
        _tile_stored(3, c[3], 64);
    }
}

INLINE void add_group(tile_scratch *s, size_t turn, size_t group, bool two, float *sums) {
    add_tile(s->sums[turn][0], s->scales[0].scale[FORM_SCALED ? group : 0], sums);
    add_tile(s->sums[turn][2], s->scales[1].scale[FORM_SCALED ? group : 0], sums + 2 * TILE * TILE);
    if (two) {
        add_tile(s->sums[turn][1], s->scales[0].scale[FORM_SCALED ? group : 0], sums + TILE * TILE);
        add_tile(s->sums[turn][3], s->scales[1].scale[FORM_SCALED ? group : 0], sums + 3 * TILE * TILE);
    }
}

/* A block of a pair of tiles of weights by one or two of activations; sums: four tiles. */
INLINE void block_tiles(tile_scratch *s, const tile_weights *a, size_t here, const char *x0, const char *x1, int parts,
                        bool two, const tile_ahead *ahead, float *sums) {
    size_t turn = 0;
    for (size_t g = 0; g < here; g += FORM_GROUP, turn ^= 1) {
        group_tiles(a, g, g + FORM_GROUP < here ? g + FORM_GROUP : here, x0, x1, parts, two, ahead, s->sums[turn]);
        if (g > 0) { /* the group before: its stores have reached the cache meanwhile */
            add_group(s, turn ^ 1, g / FORM_GROUP - 1, two, sums);
        }
    }
    add_group(s, turn ^ 1, (here - 1) / FORM_GROUP, two, sums);
}

/* n <= 16 rows of weights by those rows of activations that are there: a line of sums becomes a column of y. */
INLINE void finish_tile(const float *sums, size_t n, size_t tokens, float *y, size_t ldy) {
    __m512i v[TILE];
#pragma GCC unroll 16
    for (size_t r = 0; r < TILE; r++) {
        v[r] = _mm512_load_si512(sums + r * TILE);
    }
    transpose_words(v);
    const __mmask16 mask = (__mmask16)((1u << n) - 1);
#pragma GCC unroll 16
    for (size_t t = 0; t < TILE; t++) {
        if (t < tokens) {
            _mm512_mask_storeu_ps(y + t * ldy, mask, _mm512_castsi512_ps(v[t]));
        }
    }
}

/* One to sixteen rows of activations: all columns of a pair of tiles of weights at once, which are read in one stream
 */

/* A pair of tiles of weights, from `row` on. */
typedef struct few_job {
    const perigee_matrix *w;
    size_t row, n0, n1, steps;
    tile_scratch *s;
} few_job;

/* Whether step t is loaded from where it lies. */
INLINE bool few_plain(const few_job *job, size_t t) {
    return FORM_PLAIN && job->n1 == TILE && (t + 1) * STEP <= job->w->cols;
}

INLINE tile_scales *few_scales(const few_job *job, size_t t) {
    return job->s->few_scales[t / BLOCK_STEPS % 4];
}

/* Decode step t. A tile is loaded some steps later: a load waits until all that it takes has reached the cache. */
INLINE void few_prepare(const few_job *job, size_t t) {
    tile_scales *scales = few_scales(job, t);
    const size_t at = t % BLOCK_STEPS;
    if (at == 0) {
        const size_t here = job->steps - t < BLOCK_STEPS ? job->steps - t : BLOCK_STEPS;
        form_scales(job->w, job->row, job->n0, t, here, &scales[0]);
        form_scales(job->w, job->row + TILE, job->n1, t, here, &scales[1]);
    }
    if (!few_plain(job, t)) {
        decode_tile(job->w, job->row, job->n0, t, at, &scales[0], job->s->weights[0][t % RING]);
        decode_tile(job->w, job->row + TILE, job->n1, t, at, &scales[1], job->s->weights[1][t % RING]);
    }
}

/* Once for each line: some bytes ahead in the same rows, or in those of the next pair. */
INLINE void few_prefetch(const few_job *job, size_t t) {
    const size_t row_bytes = job->w->row_bytes, at = t * FORM_STEP_BYTES + NEAR;
    const char *ahead = (const char *)job->w->codes + job->row * row_bytes + at +
                        (at < row_bytes ? 0 : (PAIR - 1) * row_bytes) + t % LINE_STEPS * row_bytes;
#pragma GCC unroll 32
    for (size_t r = 0; r < PAIR; r += LINE_STEPS) {
        _mm_prefetch(ahead + r * row_bytes, _MM_HINT_T1);
    }
}

INLINE void few_step(const few_job *job, size_t t, const char *x, int parts, bool one) {
    const size_t stride = one ? 4 : 64, each = one ? 64 : TILE_BYTES;
    if (few_plain(job, t)) {
        const char *codes = (const char *)job->w->codes + job->row * job->w->row_bytes + t * FORM_STEP_BYTES;
        TILE_LOAD(4, codes, job->w->row_bytes);
        TILE_LOAD(5, codes + TILE * job->w->row_bytes, job->w->row_bytes);
    } else {
        TILE_LOAD(4, job->s->weights[0][t % RING], 64);
        TILE_LOAD(5, job->s->weights[1][t % RING], 64);
    }
#pragma GCC unroll 3
    for (int p = 0; p < parts; p++) {
        TILE_LOAD(6, x + (t * (size_t)parts + (size_t)p) * each, stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 5, 6);
    }
}

/* The sums of the group that begins at step t; `one`: a line of sums is 16 rows of weights; else as add_tile(). */
INLINE void few_add(const few_job *job, size_t t, bool one, float (*sums)[TILE][TILE]) {
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        const float *scale = few_scales(job, t)[i].scale[FORM_SCALED ? t % BLOCK_STEPS / FORM_GROUP : 0];
        float(*c)[TILE] = job->s->sums[t / FORM_GROUP % 2][i];
        if (!one) {
            add_tile(c, scale, sums[i][0]);
            continue;
        }
        const __m512 v = _mm512_load_ps(c[0]), sum = _mm512_load_ps(sums[i][0]);
        _mm512_store_ps(sums[i][0],
                        FORM_SCALED ? _mm512_fmadd_ps(v, _mm512_load_ps(scale), sum) : _mm512_add_ps(v, sum));
    }
}

INLINE void few_pair(const few_job *job, const char *x, size_t m, int parts, bool one, float *y, size_t ldy) {
    const size_t stride = one ? 4 : 64;
    float sums[2][TILE][TILE] __attribute__((aligned(64)));
    memset(sums, 0, sizeof sums);
    for (size_t t = 0; t < EARLY && t < job->steps; t++) {
        few_prepare(job, t);
    }
    for (size_t g = 0; g < job->steps; g += FORM_GROUP) {
        const size_t last = g + FORM_GROUP < job->steps ? g + FORM_GROUP : job->steps;
        _tile_zero(0);
        _tile_zero(1);
        for (size_t t = g; t < last; t++) {
            if (t + EARLY < job->steps) {
                few_prepare(job, t + EARLY);
            }
            few_prefetch(job, t);
            few_step(job, t, x, parts, one);
        }
        _tile_stored(0, job->s->sums[g / FORM_GROUP % 2][0], stride);
        _tile_stored(1, job->s->sums[g / FORM_GROUP % 2][1], stride);
        if (g > 0) { /* the group before: its stores have reached the cache meanwhile */
            few_add(job, g - FORM_GROUP, one, sums);
        }
    }
    few_add(job, (job->steps - 1) / FORM_GROUP * FORM_GROUP, one, sums);
    if (one) {
        _mm512_mask_storeu_ps(y, (__mmask16)((1u << job->n0) - 1), _mm512_load_ps(sums[0][0]));
        _mm512_mask_storeu_ps(y + TILE, (__mmask16)((1u << job->n1) - 1), _mm512_load_ps(sums[1][0]));
    } else {
        finish_tile(sums[0][0], job->n0, m, y, ldy);
        finish_tile(sums[1][0], job->n1, m, y + TILE, ldy);
    }
}

/* m <= 16 rows of activations by all rows of weights. */
INLINE void few_rows(const perigee_matrix *w, size_t first, size_t count, const char *x, size_t m, int parts, float *y,
                     size_t ldy, tile_scratch *s) {
    for (size_t r = 0; r < count; r += PAIR) {
        const few_job job = {w, first + r, rows_left(count, r), rows_left(count, r + TILE), tile_steps(w->cols), s};
        if (m == 1) {
            few_pair(&job, x, m, parts, true, y + r, ldy);
        } else {
            few_pair(&job, x, m, parts, false, y + r, ldy);
        }
    }
}

typedef struct tile_job {
    const perigee_matrix *w;
    const char *packed;
    const uint32_t *rows;
    float *y; /* of the first of the span's rows */
    size_t ldy;
    tile_scratch *scratch;
    char *x;     /* [tile of activations][step][part] tiles */
    float *sums; /* [pair of tiles of weights][pair of tiles of activations] four tiles */
} tile_job;

/* A block of the columns of rows [row, end) of weights by rows [first, last) of activations. */
INLINE void span_block(const tile_job *job, size_t row, size_t end, size_t first, size_t last, size_t b, int parts) {
    const perigee_matrix *w = job->w;
    tile_scratch *s = job->scratch;
    const size_t steps = tile_steps(w->cols), here = steps - b < BLOCK_STEPS ? steps - b : BLOCK_STEPS;
    const size_t strip = BLOCK_STEPS * (size_t)parts * TILE_BYTES, pairs = (last - first + PAIR - 1) / PAIR;
    for (size_t t = first; t < last; t += TILE) {
        gather_tokens(job->packed, tile_packed_bytes(w->cols, parts), job->rows, t, last, b, here, parts,
                      job->x + (t - first) / TILE * strip);
    }
    for (size_t r = row; r < end; r += PAIR) {
        const size_t n0 = rows_left(end, r), n1 = rows_left(end, r + TILE);
        form_scales(w, r, n0, b, here, &s->scales[0]);
        form_scales(w, r + TILE, n1, b, here, &s->scales[1]);
        const char *codes = (const char *)w->codes + r * w->row_bytes + b * FORM_STEP_BYTES;
        const bool plain = FORM_PLAIN && pairs <= FEW_PAIRS && n1 == TILE && (b + here) * STEP <= w->cols;
        const tile_weights a = plain ? (tile_weights){codes, codes + TILE * w->row_bytes, w->row_bytes, FORM_STEP_BYTES}
                                     : (tile_weights){s->weights[0][0], s->weights[1][0], 64, TILE_BYTES};
        for (size_t i = 0; !plain && i < here; i++) {
            decode_tile(w, r, n0, b + i, i, &s->scales[0], s->weights[0][i]);
            decode_tile(w, r + TILE, n1, b + i, i, &s->scales[1], s->weights[1][i]);
        }
        const bool next_row = r + PAIR < end, next_block = b + BLOCK_STEPS < steps;
        const char *next = (const char *)w->codes +
                           (next_row     ? r + PAIR
                            : next_block ? row
                                         : end) *
                               w->row_bytes +
                           (next_row     ? b
                            : next_block ? b + BLOCK_STEPS
                                         : 0) *
                               FORM_STEP_BYTES;
        for (size_t p = 0; p < pairs; p++) {
            const size_t t = first + p * PAIR;
            const char *x = job->x + (t - first) / TILE * strip;
            float *sums = job->sums + ((r - row) / PAIR * pairs + p) * 4 * TILE * TILE;
            const tile_ahead ahead = {next, w->row_bytes, PAIR * p / pairs / LINE_STEPS * LINE_STEPS,
                                      PAIR * (p + 1) / pairs / LINE_STEPS * LINE_STEPS};
            if (last - t > TILE) {
                block_tiles(s, &a, here, x, x + strip, parts, true, &ahead, sums);
            } else {
                block_tiles(s, &a, here, x, x, parts, false, &ahead, sums);
            }
            for (size_t j = 0; b + BLOCK_STEPS >= steps && j < 4; j++) {
                const size_t from = t + j % 2 * TILE, tokens = rows_left(last, from);
                finish_tile(sums + j * TILE * TILE, j < 2 ? n0 : n1, tokens,
                            job->y + from * job->ldy + (r - row) + j / 2 * TILE, job->ldy);
            }
        }
    }
}

INLINE void tile_multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                          size_t m, float *y, size_t ldy, void *scratch, int parts) {
    if (m == 0 || count == 0) {
        return;
    }
    const size_t bytes = tile_packed_bytes(w->cols, parts);
    char *x = (char *)scratch + round_up(sizeof(tile_scratch), 64);
    tiles_begin(m == 1 ? 1 : TILE);
    if (m == 1) {
        few_rows(w, first, count, (const char *)packed + (rows ? rows[0] : 0) * bytes, 1, parts, y, ldy, scratch);
    } else if (is_few(m, w->cols, parts)) {
        gather_tokens(packed, bytes, rows, 0, m, 0, tile_steps(w->cols), parts, x);
        few_rows(w, first, count, x, m, parts, y, ldy, scratch);
    }
    const size_t tokens = chunk_tokens(m, parts);
    float *sums = (float *)(void *)(x + tokens * BLOCK_STEPS * (size_t)parts * 2 * STEP);
    for (size_t t = 0; !is_few(m, w->cols, parts) && t < m; t += tokens) {
        const size_t last = m - t < tokens ? m : t + tokens;
        for (size_t r = 0; r < count; r += SPAN) {
            const size_t span = count - r < SPAN ? count - r : SPAN;
            const tile_job job = {w, packed, rows, y + r, ldy, scratch, x, sums};
            memset(sums, 0, round_up(span, PAIR) * round_up(last - t, PAIR) * sizeof *sums);
            for (size_t b = 0; b < tile_steps(w->cols); b += BLOCK_STEPS) {
                span_block(&job, first + r, first + r + span, t, last, b, parts);
            }
        }
    }
    tiles_end();
}

#define TILE_ROW(type, TYPE, level, LEVEL, parts, bound)                                                               \
    static size_t scratch_bytes_##level(size_t m, size_t k) {                                                          \
        return tile_scratch_bytes(m, k, parts);                                                                        \
    }                                                                                                                  \
    static void multiply_##level(const perigee_matrix *w, size_t first, size_t count, const void *packed,              \
                                 const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {                \
        tile_multiply(w, first, count, packed, rows, m, y, ldy, scratch, parts);                                       \
    }                                                                                                                  \
    const perigee_kernel_row prg_matmul_##type##_##level##_amx_bf16 = {                                                \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_##LEVEL,                                                                        \
        .features = PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512 | PERIGEE_CPU_AVX512_VNNI | PERIGEE_CPU_AVX512_BF16 |        \
                    PERIGEE_CPU_AMX_BF16,                                                                              \
        .priority = 500,                                                                                               \
        .error_bound = (bound),                                                                                        \
        .name = "matmul_" #type "_" #level "_amx_bf16",                                                                \
        .isa = "amx_bf16",                                                                                             \
        .numerics = "bf16 tiles, " #parts " parts, blocks of 512",                                                     \
        .signature = PRG_MATMUL_SIGNATURE,                                                                             \
        .row_tile = PAIR,                                                                                              \
        .token_tile = PAIR,                                                                                            \
        .run.matmul = {prg_tile_packed_bytes_##parts, prg_tile_pack_##parts, scratch_bytes_##level, multiply_##level,  \
                       NULL},                                                                                          \
    }

#define TILE_ROWS(type, TYPE)                                                                                          \
    TILE_ROW(type, TYPE, exact, EXACT, 3, 1e-6);                                                                       \
    TILE_ROW(type, TYPE, balanced, BALANCED, 2, 3e-5);                                                                 \
    TILE_ROW(type, TYPE, fast, FAST, 1, 1e-2)
