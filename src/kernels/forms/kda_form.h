/* Kimi Delta Attention, recurrent. With S the state before a token, a its decay and k its key,
 *     S' = diag(a) S,  u = beta (v - S'^T k),  o = S'^T q + (q . k) u,  and then S' + k u^T is the state.
 * The state in memory lacks the last token's decay and update: they are pending and are applied in the pass over S that
 * computes S'^T k and S'^T q of the next token, so that each token reads and writes S once. */
#ifndef PRG_KERNELS_KDA_FORM_H
#define PRG_KERNELS_KDA_FORM_H

#include "kernels/lane_math.h"

/* Vectors of columns whose accumulators stay in registers; no result depends on it. */
#if defined(__AVX512F__)
enum { KDA_WIDE = 8, KDA_NARROW = 4 };
#else
enum { KDA_WIDE = 2, KDA_NARROW = 2 };
#endif
enum { KDA_BATCH = 16, KDA_BATCH_FLOATS = 1024 };

/* What one token multiplies rows of S with. */
typedef struct kda_token {
    float *k, *decay;     /* become pending */
    float *k_old, *a_old; /* are pending */
    float *ak, *aq;       /* decay times key and query */
    float qk, beta;
} kda_token;

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

/* `vectors` vectors of columns, the last of `tail` columns: u becomes the pending update of this token. */
INLINE void kda_pass(const kda_token *token, size_t dim, const float *from, float *to, const float *v, float *out,
                     float *update, size_t vectors, size_t tail) {
    lanes u[8], r[8], p[8];
#define LAST(j) ((j) + 1 == vectors ? tail : LANES)
#pragma GCC unroll 8
    for (size_t j = 0; j < vectors; j++) {
        u[j] = lanes_load_n(update + j * LANES, LAST(j));
        r[j] = p[j] = lanes_zero();
    }
    for (size_t i = 0; i < dim; i++) {
        lanes ak = lanes_set(token->ak[i]), aq = lanes_set(token->aq[i]);
        lanes a = lanes_set(token->a_old[i]), k = lanes_set(token->k_old[i]);
#pragma GCC unroll 8
        for (size_t j = 0; j < vectors; j++) {
            lanes s = lanes_fma(k, u[j], lanes_mul(a, lanes_load_n(from + i * dim + j * LANES, LAST(j))));
            lanes_store_n(to + i * dim + j * LANES, LAST(j), s);
            r[j] = lanes_fma(ak, s, r[j]);
            p[j] = lanes_fma(aq, s, p[j]);
        }
    }
    lanes beta = lanes_set(token->beta), qk = lanes_set(token->qk);
#pragma GCC unroll 8
    for (size_t j = 0; j < vectors; j++) {
        lanes next = lanes_mul(beta, lanes_sub(lanes_load_n(v + j * LANES, LAST(j)), r[j]));
        lanes_store_n(out + j * LANES, LAST(j), lanes_fma(qk, next, p[j]));
        lanes_store_n(update + j * LANES, LAST(j), next);
    }
#undef LAST
}

/* All tokens of a batch over columns c …; S of the panel stays in the nearest cache. */
INLINE void kda_panel(const perigee_kda_job *job, const kda_token *tokens, size_t first, size_t count, size_t c,
                      float *update, size_t vectors, size_t tail) {
    for (size_t i = 0; i < count; i++) {
        size_t t = first + i;
        const float *from = t == 0 ? job->state : job->next;
        kda_pass(&tokens[i], job->dim, from + c, job->next + c, job->v + t * job->ld + c, job->out + t * job->ldo + c,
                 update + c, vectors, tail);
    }
}

/* Columns in panels of `wide` vectors; what is left goes vector by vector. */
INLINE void kda_batch(const perigee_kda_job *job, const kda_token *tokens, size_t first, size_t count, float *update,
                      size_t wide) {
    size_t c = 0;
    for (; c + wide * LANES <= job->dim; c += wide * LANES) {
        kda_panel(job, tokens, first, count, c, update, wide, LANES);
    }
    for (; c < job->dim; c += LANES) {
        size_t left = job->dim - c;
        kda_panel(job, tokens, first, count, c, update, 1, left < LANES ? left : LANES);
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
                at, at + n, i ? tokens[i - 1].k : old, i ? tokens[i - 1].decay : old + n, at + 2 * n, at + 3 * n, 0, 0};
            kda_prepare(job, first + i, &tokens[i]);
        }
        if (count == 1) {
            kda_batch(job, tokens, first, count, update, KDA_WIDE);
        } else {
            kda_batch(job, tokens, first, count, update, KDA_NARROW);
        }
        memcpy(old, tokens[count - 1].k, n * sizeof(float));
        memcpy(old + n, tokens[count - 1].decay, n * sizeof(float));
    }
    memcpy(job->next_pending, old, 2 * n * sizeof(float));
    memcpy(job->next_pending + 2 * n, update, n * sizeof(float));
}

#endif
