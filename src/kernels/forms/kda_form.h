/* Kimi Delta Attention, recurrent. With S the state before a token, a its decay and k its key,
 *     S' = diag(a) S,  u = beta (v - S'^T k),  o = S'^T q + (q . k) u,  and then S' + k u^T is the state.
 * The state in memory lacks the last token's decay and update: they are pending and are applied in the pass over S that
 * computes S'^T k and S'^T q of the next token, so that each token reads and writes S once. */
#ifndef PRG_KERNELS_KDA_FORM_H
#define PRG_KERNELS_KDA_FORM_H

#include <stdbool.h>

#include "kernels/lane_math.h"

/* Vectors of columns whose accumulators stay in registers, the rows that they take of a panel in memory before the next
 * columns have their turn, and the bytes that are fetched ahead of them: no result depends on any. Processors with AVX2
 * alone fetch more by themselves than with prefetches between. */
#if defined(__AVX512F__)
enum { KDA_WIDE = 4, KDA_STRIP = 1024, KDA_AHEAD = 2048 };
#elif defined(__AVX2__)
enum { KDA_WIDE = 2, KDA_STRIP = 16, KDA_AHEAD = 0 };
#else
enum { KDA_WIDE = 2, KDA_STRIP = 16, KDA_AHEAD = 2048 };
#endif
enum { KDA_BATCH = 16, KDA_BATCH_FLOATS = 1024, KDA_PANEL = PERIGEE_KDA_PANEL, KDA_ROWS = 5 };

/* What one token multiplies rows of S with. */
typedef struct kda_token {
    float *k, *decay;     /* become pending */
    float *k_old, *a_old; /* are pending */
    float *ak, *aq;       /* decay times key and query */
    float qk, beta;
    const float *ahead[KDA_ROWS]; /* rows of the token that is prepared next, which lie far apart */
} kda_token;

/* Where S is: in memory, in memory and not read again when written, in the nearest cache. */
typedef enum kda_way { KDA_MEMORY, KDA_STREAM, KDA_CACHED } kda_way;

INLINE float dot(const float *a, const float *b, size_t n) {
    lanes sum = lanes_zero();
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = n - i < LANES ? n - i : LANES;
        sum = lanes_fma(lanes_load_n(a + i, k), lanes_load_n(b + i, k), sum);
    }
    return lanes_sum(sum);
}

INLINE lanes decay_of(const perigee_kda_job *job, lanes f) {
    lanes rate = lanes_set(job->rate);
    if (job->has_lower_bound) {
        return lanes_exp(lanes_mul(lanes_set(job->lower_bound), lanes_sigmoid(lanes_mul(rate, f))));
    }
    return lanes_exp(lanes_sub(lanes_zero(), lanes_mul(rate, lanes_softplus(f))));
}

INLINE void kda_prepare(const perigee_kda_job *job, size_t t, kda_token *out) {
    const float *q = job->q + t * job->ld, *k = job->k + t * job->ld, *f = job->f + t * job->ld;
    size_t n = job->dim;
    lanes q_scale = lanes_set(1.0f / sqrtf(dot(q, q, n) + 1e-6f) * (1.0f / sqrtf((float)n)));
    lanes k_scale = lanes_set(1.0f / sqrtf(dot(k, k, n) + 1e-6f)), qk = lanes_zero();
    for (size_t i = 0; i < n; i += LANES) {
        size_t w = n - i < LANES ? n - i : LANES;
        lanes qi = lanes_mul(lanes_load_n(q + i, w), q_scale), ki = lanes_mul(lanes_load_n(k + i, w), k_scale);
        lanes a = decay_of(job, lanes_add(lanes_load_n(f + i, w), lanes_load_n(job->dt_bias + i, w)));
        lanes_store_n(out->k + i, w, ki);
        lanes_store_n(out->decay + i, w, a);
        lanes_store_n(out->ak + i, w, lanes_mul(a, ki));
        lanes_store_n(out->aq + i, w, lanes_mul(a, qi));
        qk = lanes_fma(qi, ki, qk);
    }
    float beta[LANES];
    lanes_store(beta, lanes_sigmoid(lanes_set(job->beta[t * job->ldbeta])));
    out->beta = beta[0];
    out->qk = lanes_sum(qk);
}

INLINE void kda_look_ahead(const perigee_kda_job *job, size_t t, kda_token *out) {
    t = t < job->m ? t : job->m - 1;
    out->ahead[0] = job->q + t * job->ld;
    out->ahead[1] = job->k + t * job->ld;
    out->ahead[2] = job->f + t * job->ld;
    out->ahead[3] = job->v + t * job->ld;
    out->ahead[4] = job->out + t * job->ldo;
}

#define LAST(j) ((j) + 1 == vectors ? tail : LANES)

/* Rows i … end - 1 of `vectors` vectors of columns, the last of `tail` columns, of a panel with rows of `ld`, take in
 * the pending update; predictions and outputs of this token go on in `sums`. */
INLINE void kda_rows(const kda_token *token, size_t i, size_t end, const float *from, float *to, size_t ld,
                     const float *update, lanes sums[2][8], size_t vectors, size_t tail, kda_way way) {
    lanes u[8], r[8], p[8];
    UNROLLED(8)
    for (size_t j = 0; j < vectors; j++) {
        u[j] = lanes_load_n(update + j * LANES, LAST(j));
        r[j] = sums[0][j];
        p[j] = sums[1][j];
    }
    for (; i < end; i++) {
        lanes ak = lanes_set(token->ak[i]), aq = lanes_set(token->aq[i]);
        lanes a = lanes_set(token->a_old[i]), k = lanes_set(token->k_old[i]);
        if (way == KDA_CACHED && i % LANES == 0) {
            for (size_t j = 0; j < KDA_ROWS; j++) {
                lanes_prefetch(token->ahead[j] + i);
            }
        }
        UNROLLED(8)
        for (size_t j = 0; j < vectors; j++) {
            const float *at = from + i * ld + j * LANES;
            if (KDA_AHEAD > 0 && way != KDA_CACHED) {
                lanes_prefetch((const char *)at + KDA_AHEAD);
            }
            lanes s = lanes_fma(k, u[j], lanes_mul(a, lanes_load_n(at, LAST(j))));
            if (way == KDA_STREAM) {
                lanes_stream(to + i * ld + j * LANES, s);
            } else {
                lanes_store_n(to + i * ld + j * LANES, LAST(j), s);
            }
            r[j] = lanes_fma(ak, s, r[j]);
            p[j] = lanes_fma(aq, s, p[j]);
        }
    }
    UNROLLED(8)
    for (size_t j = 0; j < vectors; j++) {
        sums[0][j] = r[j];
        sums[1][j] = p[j];
    }
}

/* Behind the last row: u becomes the pending update of this token. */
INLINE void kda_finish(const kda_token *token, const float *v, float *out, float *update, lanes sums[2][8],
                       size_t vectors, size_t tail) {
    lanes beta = lanes_set(token->beta), qk = lanes_set(token->qk);
    UNROLLED(8)
    for (size_t j = 0; j < vectors; j++) {
        lanes next = lanes_mul(beta, lanes_sub(lanes_load_n(v + j * LANES, LAST(j)), sums[0][j]));
        lanes_store_n(out + j * LANES, LAST(j), lanes_fma(qk, next, sums[1][j]));
        lanes_store_n(update + j * LANES, LAST(j), next);
    }
}

#undef LAST

INLINE void kda_pass(const kda_token *token, size_t dim, const float *from, float *to, size_t ld, const float *v,
                     float *out, float *update, size_t vectors, size_t tail, kda_way way) {
    lanes sums[2][8];
    UNROLLED(8)
    for (size_t j = 0; j < vectors; j++) {
        sums[0][j] = sums[1][j] = lanes_zero();
    }
    kda_rows(token, 0, dim, from, to, ld, update, sums, vectors, tail, way);
    kda_finish(token, v, out, update, sums, vectors, tail);
}

/* All tokens of a batch over `vectors` vectors of columns from c on, in the panel of `ld` columns from column `begin`
 * on. */
INLINE void kda_columns(const perigee_kda_job *job, const kda_token *tokens, size_t first, size_t count, size_t begin,
                        size_t ld, size_t c, float *update, size_t vectors, size_t tail) {
    size_t at = begin * job->dim + c - begin;
    /* one token to another place: what is written goes past the caches, or its old contents would be read first */
    bool stream = tail == LANES && job->m == 1 && job->next != job->state && ld % LANES == 0 &&
                  (uintptr_t)(job->next + at) % (LANES * sizeof(float)) == 0;
    for (size_t i = 0; i < count; i++) {
        size_t t = first + i;
        const float *v = job->v + t * job->ld + c;
        float *out = job->out + t * job->ldo + c;
        if (t == 0 && stream) {
            kda_pass(&tokens[i], job->dim, job->state + at, job->next + at, ld, v, out, update + c, vectors, LANES,
                     KDA_STREAM);
        } else if (t == 0) {
            kda_pass(&tokens[i], job->dim, job->state + at, job->next + at, ld, v, out, update + c, vectors, tail,
                     KDA_MEMORY);
        } else {
            kda_pass(&tokens[i], job->dim, job->next + at, job->next + at, ld, v, out, update + c, vectors, tail,
                     KDA_CACHED);
        }
    }
}

/* The first token of a whole panel, from memory: a few rows of all columns at a time, so that memory is read as it
 * lies. */
INLINE void kda_first(const perigee_kda_job *job, const kda_token *token, size_t begin, float *update, kda_way way) {
    enum { PARTS = KDA_PANEL / (KDA_WIDE * LANES), PART = KDA_WIDE * LANES };
    lanes sums[PARTS][2][8];
    const float *from = job->state + begin * job->dim;
    float *to = job->next + begin * job->dim;
    for (size_t k = 0; k < PARTS; k++) {
        for (size_t j = 0; j < KDA_WIDE; j++) {
            sums[k][0][j] = sums[k][1][j] = lanes_zero();
        }
    }
    for (size_t i = 0; i < job->dim; i += KDA_STRIP) {
        size_t end = job->dim - i < KDA_STRIP ? job->dim : i + KDA_STRIP;
        for (size_t k = 0; k < PARTS; k++) {
            kda_rows(token, i, end, from + k * PART, to + k * PART, KDA_PANEL, update + k * PART, sums[k], KDA_WIDE,
                     LANES, way);
        }
    }
    for (size_t k = 0; k < PARTS; k++) {
        kda_finish(token, job->v + begin + k * PART, job->out + begin + k * PART, update + k * PART, sums[k], KDA_WIDE,
                   LANES);
    }
}

/* A panel stays in the nearest cache while the tokens pass. */
INLINE void kda_batch(const perigee_kda_job *job, const kda_token *tokens, size_t first, size_t count, float *update) {
    for (size_t begin = 0; begin < job->dim; begin += KDA_PANEL) {
        size_t ld = job->dim - begin < KDA_PANEL ? job->dim - begin : KDA_PANEL, c = begin;
        if (job->m == 1 && ld == KDA_PANEL) {
            if (job->next != job->state && (uintptr_t)(job->next + begin * job->dim) % (LANES * sizeof(float)) == 0) {
                kda_first(job, tokens, begin, update + begin, KDA_STREAM);
            } else {
                kda_first(job, tokens, begin, update + begin, KDA_MEMORY);
            }
            continue;
        }
        for (; c + KDA_WIDE * LANES <= begin + ld; c += KDA_WIDE * LANES) {
            kda_columns(job, tokens, first, count, begin, ld, c, update, KDA_WIDE, LANES);
        }
        for (; c < begin + ld; c += LANES) {
            size_t left = begin + ld - c;
            kda_columns(job, tokens, first, count, begin, ld, c, update, 1, left < LANES ? left : LANES);
        }
    }
}

/* Scratch: the pending update, pending key and decay, then k, decay, ak and aq of each token of a batch. */
static void kda(const perigee_kda_job *job) {
    size_t n = job->dim;
    float *update = job->scratch, *old = update + n, *vectors = old + 2 * n;
    memcpy(update, job->pending + 2 * n, n * sizeof(float));
    memcpy(old, job->pending, 2 * n * sizeof(float));
    size_t batch = KDA_BATCH_FLOATS / n < KDA_BATCH ? KDA_BATCH_FLOATS / n : KDA_BATCH;
    batch = batch ? batch : 1;
    for (size_t first = 0; first < job->m; first += batch) {
        size_t count = job->m - first < batch ? job->m - first : batch;
        kda_token tokens[KDA_BATCH];
        for (size_t i = 0; i < count; i++) {
            float *at = vectors + i * 4 * n;
            tokens[i] = (kda_token){
                at, at + n, i ? tokens[i - 1].k : old, i ? tokens[i - 1].decay : old + n, at + 2 * n, at + 3 * n, 0,
                0,  {0}};
            kda_prepare(job, first + i, &tokens[i]);
            kda_look_ahead(job, first + i + batch, &tokens[i]);
        }
        kda_batch(job, tokens, first, count, update);
        memcpy(old, tokens[count - 1].k, n * sizeof(float));
        memcpy(old + n, tokens[count - 1].decay, n * sizeof(float));
    }
    lanes_stream_end();
    memcpy(job->next_pending, old, 2 * n * sizeof(float));
    memcpy(job->next_pending + 2 * n, update, n * sizeof(float));
}

#endif
