/* What config.json says, checked and in one form for all families. */
#ifndef PRG_MODEL_CONFIG_H
#define PRG_MODEL_CONFIG_H

#include "base/json.h"
#include "ops/ops.h"

typedef enum prg_quantization { PRG_QUANT_NONE, PRG_QUANT_MXFP4, PRG_QUANT_INT4, PRG_QUANT_FP8 } prg_quantization;

enum { PRG_MAX_END_IDS = 64 };

typedef struct prg_config {
    const struct prg_arch *arch;
    const char *family; /* static: kimi_k3, kimi_linear, kimi_k2, kimi_k25, deepseek_v3 */
    int64_t vocabulary, hidden, layers, context;
    /* latent attention */
    int64_t heads, q_rank, kv_rank, nope, rope, value;
    bool rotary, mla_gate;
    double rope_theta;
    bool yarn;
    double yarn_factor, yarn_beta_fast, yarn_beta_slow, yarn_mscale, yarn_mscale_all;
    int64_t yarn_original;
    /* Kimi Delta Attention */
    bool *is_kda; /* [layers] */
    int64_t kda_layers;
    int64_t kda_heads, kda_dim, taps;
    bool full_rank_gate, has_lower_bound;
    double lower_bound;
    /* feed-forward */
    prg_gate act;
    int64_t intermediate, first_dense, moe_every;
    int64_t experts, top_k, moe_intermediate, shared_experts, expert_groups, top_groups;
    int64_t expert_latent; /* 0: none */
    bool latent_norm, renormalise, softmax_router;
    double routed_scale;
    /* the rest */
    int64_t residual_block; /* attention residuals; 0: plain */
    double eps;
    bool tied_head;
    prg_quantization quantization;
    int64_t bos; /* or -1 */
    int32_t end_ids[PRG_MAX_END_IDS];
    size_t end_count;
} prg_config;

/* Read config.json and, if it is there, generation_config.json beside it. `path`: a folder, or a config file. Every
 * size is checked to be positive and sane and every product of them to fit. Lists lie in the arena. */
perigee_status prg_config_read(prg_arena *arena, const char *path, prg_config *out, perigee_error **err);
/* The same from memory; without generation config. `file` is for messages. */
perigee_status prg_config_parse(prg_arena *arena, const char *text, size_t length, const char *file, prg_config *out,
                                perigee_error **err);
/* True if this layer (zero-based) has a mixture of experts. */
bool prg_config_is_moe(const prg_config *config, int64_t layer);

#endif
