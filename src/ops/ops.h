/* Ops: the only callers of kernels. Each checks shapes by assertion, takes scratch, splits work over threads and looks
 * up the row. With one table and precision, an output's bits depend on its own inputs alone: never on the number of
 * threads, on how many rows of activations come together, or on how weights lie.
 *
 * All matrices of activations are float32 and row-major; `ld…` is the distance between rows in floats. */
#ifndef PRG_OPS_OPS_H
#define PRG_OPS_OPS_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "dtype/dtype.h"
#include "kernels/table.h"

/* What runs a step. The pool has been entered. */
typedef struct prg_exec {
    const prg_kernel_table *table;
    prg_pool *pool;
    prg_scratch *scratch;  /* an op takes from it and gives back before it returns */
    int64_t *weight_bytes; /* counts bytes of weights read, once for each op and matrix; may be NULL */
} prg_exec;

/* Activations that enter a product: rows 0 … m - 1 of x, or rows[0 … m - 1] of x when `rows` is given. Packed forms are
 * made inside. */
typedef struct prg_input {
    const float *x;
    size_t ldx;
    size_t m, k;
    const uint32_t *rows;
} prg_input;

/* y[t, r - first] = sum over c of w[r, c] * x[t, c], for rows first <= r < first + count of w. */
typedef struct prg_matmul_job {
    const perigee_matrix *w;
    size_t first, count;
    prg_input x;
    float *y;
    size_t ldy;
} prg_matmul_job;

/* Jobs run as one section: no barrier but one after packing and one at the end. Jobs with the same x share packing. */
perigee_status prg_matmul(const prg_exec *exec, const prg_matmul_job *jobs, size_t n, perigee_error **err);
/* The same as exact as float32 in every precision: for small products that decide, where an error is not averaged out.
 */
perigee_status prg_matmul_exact(const prg_exec *exec, const prg_matmul_job *jobs, size_t n, perigee_error **err);

typedef enum prg_activation { PRG_SILU, PRG_SITU } prg_activation;

typedef struct prg_gate {
    prg_activation kind;
    float beta;        /* SiTU: beta * tanh(g / beta) * sigmoid(g) * linear_beta * tanh(u / linear_beta) */
    float linear_beta; /* SiTU; 0: the up branch passes as it is */
} prg_gate;

/* y[t, r] = act((gate x[t])[r], (up x[t])[r]), all rows of gate and up. */
typedef struct prg_gated_job {
    const perigee_matrix *gate, *up;
    prg_input x;
    float *y;
    size_t ldy;
} prg_gated_job;

perigee_status prg_gated_matmul(const prg_exec *exec, const prg_gated_job *jobs, size_t n, prg_gate gate,
                                perigee_error **err);

/* y[target[t], :] += weight[t] * (w x[t]); jobs add in their order, each element of y by one thread. `target` NULL: t
 * itself; `weight` NULL: 1. */
typedef struct prg_weighted_job {
    const perigee_matrix *w;
    prg_input x;
    const uint32_t *target;
    const float *weight;
} prg_weighted_job;

perigee_status prg_weighted_matmul(const prg_exec *exec, const prg_weighted_job *jobs, size_t n, float *y, size_t ldy,
                                   perigee_error **err);

/* Most scratch that one call of the three above takes for `n` jobs whose inputs have `m` rows in all and at most k
 * columns, whatever the stored forms. */
size_t prg_matmul_scratch(const prg_kernel_table *table, size_t threads, size_t n, size_t m, size_t k);

/* y = gain * x / sqrt(mean(x^2) + eps), rows of n; y may be x. */
void prg_rms_norm(const prg_exec *exec, const float *x, size_t ldx, const float *gain, size_t m, size_t n, float eps,
                  float *y, size_t ldy);
/* As above over `groups` heads of n in each row with one gain of n, then times sigmoid(gate) elementwise. */
void prg_rms_norm_gated(const prg_exec *exec, const float *x, size_t ldx, const float *gain, const float *gate,
                        size_t ldg, size_t m, size_t groups, size_t n, float eps, float *y, size_t ldy);
/* y += x */
void prg_add_rows(const prg_exec *exec, const float *x, size_t ldx, size_t m, size_t n, float *y, size_t ldy);
/* y *= sigmoid(gate) */
void prg_sigmoid_gate(const prg_exec *exec, const float *gate, size_t ldg, size_t m, size_t n, float *y, size_t ldy);
/* First row that holds a value that is not finite, or m. */
size_t prg_first_not_finite(const prg_exec *exec, const float *x, size_t ldx, size_t m, size_t n);
/* One token id a row to float32. */
void prg_embed(const prg_exec *exec, const perigee_matrix *table, const int32_t *ids, size_t m, float *y, size_t ldy);

/* Bounds of sizes that no scratch is planned for; a config beyond them is refused. */
enum { PRG_RESIDUAL_SOURCES_MOST = 1024, PRG_CONV_TAPS_MOST = 16, PRG_KDA_DIM_MOST = 1024 };

/* Attention residual: score_j = sum_i rmsnorm(v_j)_i * key[i], y = sum_j softmax(score)_j v_j. sources: n pointers to
 * [m, width] with one ld; key = norm.weight * proj.weight, elementwise. y is none of the sources. */
void prg_residual_mix(const prg_exec *exec, const float *const *sources, size_t n, size_t ld, const float *key,
                      size_t m, size_t width, float eps, float *y, size_t ldy);

typedef struct prg_router {
    size_t experts, top_k;
    size_t groups, top_groups; /* 1, 1: none */
    bool softmax;              /* else sigmoid */
    bool renormalise;
    float scale;
    const float *bias; /* [experts] or NULL; selects only */
} prg_router;

/* chosen and weight [m, top_k], ascending ids in each row; logits [m, experts] are overwritten. A tie goes to the lower
 * index. Groups outside the best are masked with minus infinity. Ids are valid and distinct whatever the
 * logits are, NaN included. */
void prg_route(const prg_exec *exec, const prg_router *router, float *logits, size_t m, uint32_t *chosen,
               float *weight);

typedef struct prg_rope {
    size_t pairs;            /* half of the rotated dims */
    const double *frequency; /* [pairs], the YaRN blend included */
    float factor;            /* of cos and sin */
} prg_rope;

/* Rotate neighbouring pairs of 2 * pairs values at x + t * ldx + h * head_stride, for m rows and `heads` heads, row t
 * at position[t]. */
void prg_rope_apply(const prg_exec *exec, const prg_rope *rope, float *x, size_t ldx, size_t m, size_t heads,
                    size_t head_stride, const int64_t *position);

/* Latent cache of one layer of one sequence: blocks of `block` tokens, each [block, rank + rope] of float32 or
 * bfloat16: normed latent, then the shared key (rotated, or as it is). */
typedef struct prg_latents {
    void *const *blocks;
    size_t block; /* a power of two and a multiple of 64 */
    size_t rank, rope;
    bool bf16;
} prg_latents;

/* Write m rows [rank + rope] of float32 at positions first …. */
void prg_latents_put(const prg_exec *exec, const prg_latents *cache, const float *rows, size_t ld, size_t first,
                     size_t m);

/* One sequence of an attention call: rows [row, row + m) of q and out are its tokens at positions first …. */
typedef struct prg_attention_part {
    size_t row, m;
    size_t first;
    prg_latents cache; /* holds positions 0 … first + m - 1 */
} prg_attention_part;

typedef struct prg_attention {
    size_t heads, nope, value, rank, rope;
    float scale;
    const perigee_matrix
        *kv_b;      /* [heads * (nope + value), rank]: a head's first `nope` rows for keys, the rest values */
    const float *q; /* [m, heads * (nope + rope)]: nope, then rope, a head */
    size_t ldq;
    float *out; /* [m, heads * value] */
    size_t ldo;
} prg_attention;

/* Causal attention over latents with absorbed projections; all parts in one section. */
perigee_status prg_attend(const prg_exec *exec, const prg_attention *attention, const prg_attention_part *parts,
                          size_t n, perigee_error **err);
/* Most scratch that it takes for m rows in all. */
size_t prg_attend_scratch(const prg_kernel_table *table, size_t threads, const prg_attention *attention, size_t m);

/* Short causal depthwise convolution over time, then SiLU: y[t, c] = silu(sum_j taps[c, j] * u[t - n + 1 + j, c]).
 * history [n - 1, channels] holds the inputs before row 0, oldest first; next receives the same after row m - 1 and is
 * not history. y may be u. */
void prg_short_conv(const prg_exec *exec, const float *taps, size_t n_taps, const float *history, float *next,
                    const float *u, size_t ldu, size_t m, size_t channels, float *y, size_t ldy);

/* Kimi Delta Attention, recurrent form. */
typedef struct prg_kda {
    size_t heads, dim;    /* keys and values alike */
    const float *rate;    /* [heads]: exp(A_log) */
    const float *dt_bias; /* [heads * dim] */
    bool has_lower_bound; /* decay = lower_bound * sigmoid(rate * (f + dt_bias)), else -rate * softplus(f + dt_bias) */
    float lower_bound;
} prg_kda;

/* Floats of state of one sequence and layer: S of every head in panels of columns, and the vectors of the last rank-1
 * update, which is still pending; perigee/sys/kernel.h has the form, which is the same for every table. All zero is the
 * empty state. */
size_t prg_kda_state_floats(const prg_kda *kda);

/* Floats of it that are S; what is pending stands behind them. */
size_t prg_kda_square_floats(const prg_kda *kda);

typedef struct prg_kda_part {
    size_t row, m;
    const float *state;  /* before */
    float *next;         /* after the m tokens; may be `state` */
    float *next_pending; /* where what is pending then goes, if not behind `next` */
} prg_kda_part;

/* A part of one token whose `next` was `state`, but whose next_pending was another place, took the token into the
 * latter alone: S has what was pending before. Make the identity pending instead, and the state is what it was before
 * the token, bit for bit in all that follows. */
void prg_kda_take_back(const prg_kda *kda, float *state);

/* q, k, v [m, heads * dim] after convolution (inside: L2 norm with 1e-6, q times dim^-0.5), f of the same shape (decay
 * before its bias), beta [m, heads] before the sigmoid; out [m, heads * dim]. */
typedef struct prg_kda_input {
    const float *q, *k, *v, *f;
    size_t ld;
    const float *beta;
    size_t ldbeta;
    float *out;
    size_t ldo;
} prg_kda_input;

void prg_kda_run(const prg_exec *exec, const prg_kda *kda, const prg_kda_input *in, const prg_kda_part *parts,
                 size_t n);

#endif
