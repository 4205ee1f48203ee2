/* Bound weights of a layer: references into the store, and the small vectors as float32. Filled in once by the model.
 */
#ifndef PRG_LAYERS_WEIGHTS_H
#define PRG_LAYERS_WEIGHTS_H

#include "ops/ops.h"
#include "store/store.h"

/* Multi-head latent attention. */
typedef struct prg_mla_weights {
    size_t heads, nope, rope, value, rank, q_rank; /* q_rank 0: q is projected directly */
    prg_weight q;                                  /* q_b_proj or q_proj: [heads * (nope + rope), q_rank or hidden] */
    prg_weight q_a;                                /* [q_rank, hidden] */
    prg_weight kv_a;                               /* [rank + rope, hidden] */
    prg_weight kv_b;                               /* [heads * (nope + value), rank] */
    prg_weight gate;                               /* [heads * value, hidden], or none */
    prg_weight out;                                /* [hidden, heads * value] */
    const float *q_a_norm;                         /* [q_rank] */
    const float *kv_a_norm;                        /* [rank] */
    float inner_eps;
    float scale; /* of scores, the YaRN term included */
    bool rotary;
    prg_rope rotation;
} prg_mla_weights;

/* Kimi Delta Attention. */
typedef struct prg_kda_weights {
    prg_kda op;
    size_t taps;
    prg_weight q, k, v;        /* [heads * dim, hidden] */
    const float *conv[3];      /* of q, k, v: [heads * dim, taps] */
    prg_weight f_a, f_b;       /* [low, hidden], [heads * dim, low] */
    prg_weight beta;           /* [heads, hidden] */
    prg_weight gate;           /* [heads * dim, hidden], or none and instead */
    prg_weight gate_a, gate_b; /* the low-rank form */
    const float *norm;         /* [dim] */
    prg_weight out;            /* [hidden, heads * dim] */
    float eps;
} prg_kda_weights;

typedef struct prg_mlp_weights {
    prg_weight gate, up, down;
} prg_mlp_weights;

typedef struct prg_moe_weights {
    prg_router router;
    prg_weight router_gate;            /* [experts, hidden] */
    size_t latent;                     /* width of the experts' input: hidden where there is no latent */
    size_t inner;                      /* width inside an expert */
    prg_weight latent_down, latent_up; /* [latent, hidden], [hidden, latent]; or none */
    const float *latent_norm;          /* [latent], or NULL */
    prg_mlp_weights *experts;          /* [experts] */
    uint32_t first_group;              /* expert e is group first_group + e */
    bool has_shared;
    prg_mlp_weights shared;
    float eps;
} prg_moe_weights;

typedef struct prg_layer {
    bool is_kda, is_moe;
    uint32_t group; /* all of the layer but its routed experts */
    union {
        prg_mla_weights mla;
        prg_kda_weights kda;
    } attention;
    union {
        prg_mlp_weights mlp;
        prg_moe_weights moe;
    } ffn;
    prg_gate act;
    const float *input_norm, *ffn_norm; /* [hidden] */
    /* attention residuals: norm weight times projection, elementwise [hidden]; NULL for plain residuals */
    const float *attention_mix, *ffn_mix;
    bool bank; /* attention residuals: the running sum is stored before this layer's attention and starts anew */
} prg_layer;

#endif
