/* Names that the architectures share, for their name maps. */
#ifndef PRG_MODEL_ARCH_NAMES_H
#define PRG_MODEL_ARCH_NAMES_H

#define PRG_NAMES_OF_MODEL                                                                                             \
    [PRG_PART_EMBED] = "model.embed_tokens", [PRG_PART_FINAL_NORM] = "model.norm.weight", [PRG_PART_HEAD] = "lm_head", \
    [PRG_PART_INPUT_NORM] = "input_layernorm.weight", [PRG_PART_FFN_NORM] = "post_attention_layernorm.weight",         \
    [PRG_PART_MLP_GATE] = "mlp.gate_proj", [PRG_PART_MLP_UP] = "mlp.up_proj", [PRG_PART_MLP_DOWN] = "mlp.down_proj"

#define PRG_NAMES_OF_MLA                                                                                               \
    [PRG_PART_MLA_Q] = "self_attn.q_proj", [PRG_PART_MLA_Q_A] = "self_attn.q_a_proj",                                  \
    [PRG_PART_MLA_Q_A_NORM] = "self_attn.q_a_layernorm.weight", [PRG_PART_MLA_Q_B] = "self_attn.q_b_proj",             \
    [PRG_PART_MLA_KV_A] = "self_attn.kv_a_proj_with_mqa",                                                              \
    [PRG_PART_MLA_KV_A_NORM] = "self_attn.kv_a_layernorm.weight", [PRG_PART_MLA_KV_B] = "self_attn.kv_b_proj",         \
    [PRG_PART_MLA_GATE] = "self_attn.g_proj", [PRG_PART_MLA_OUT] = "self_attn.o_proj"

/* `moe`: the module of the mixture within a layer */
#define PRG_NAMES_OF_MOE(moe, gate, up, down)                                                                          \
    [PRG_PART_ROUTER] = moe ".gate", [PRG_PART_ROUTER_BIAS] = moe ".gate.e_score_correction_bias",                     \
    [PRG_PART_EXPERT_GATE] = gate, [PRG_PART_EXPERT_UP] = up, [PRG_PART_EXPERT_DOWN] = down,                           \
    [PRG_PART_SHARED_GATE] = moe ".shared_experts.gate_proj", [PRG_PART_SHARED_UP] = moe ".shared_experts.up_proj",    \
    [PRG_PART_SHARED_DOWN] = moe ".shared_experts.down_proj", [PRG_PART_LATENT_DOWN] = moe ".routed_expert_down_proj", \
    [PRG_PART_LATENT_UP] = moe ".routed_expert_up_proj", [PRG_PART_LATENT_NORM] = moe ".routed_expert_norm.weight"

#define PRG_NAMES_OF_KDA                                                                                               \
    [PRG_PART_KDA_Q] = "self_attn.q_proj", [PRG_PART_KDA_K] = "self_attn.k_proj",                                      \
    [PRG_PART_KDA_V] = "self_attn.v_proj", [PRG_PART_KDA_CONV_Q] = "self_attn.q_conv1d.weight",                        \
    [PRG_PART_KDA_CONV_K] = "self_attn.k_conv1d.weight", [PRG_PART_KDA_CONV_V] = "self_attn.v_conv1d.weight",          \
    [PRG_PART_KDA_F_A] = "self_attn.f_a_proj", [PRG_PART_KDA_F_B] = "self_attn.f_b_proj",                              \
    [PRG_PART_KDA_DT_BIAS] = "self_attn.dt_bias", [PRG_PART_KDA_A_LOG] = "self_attn.A_log",                            \
    [PRG_PART_KDA_BETA] = "self_attn.b_proj", [PRG_PART_KDA_GATE] = "self_attn.g_proj",                                \
    [PRG_PART_KDA_GATE_A] = "self_attn.g_a_proj", [PRG_PART_KDA_GATE_B] = "self_attn.g_b_proj",                        \
    [PRG_PART_KDA_NORM] = "self_attn.o_norm.weight", [PRG_PART_KDA_OUT] = "self_attn.o_proj"

#define PRG_NAMES_OF_RESIDUALS                                                                                         \
    [PRG_PART_ATTENTION_RES_NORM] = "self_attention_res_norm.weight",                                                  \
    [PRG_PART_ATTENTION_RES_PROJ] = "self_attention_res_proj.weight", [PRG_PART_FFN_RES_NORM] = "mlp_res_norm.weight", \
    [PRG_PART_FFN_RES_PROJ] = "mlp_res_proj.weight", [PRG_PART_OUTPUT_RES_NORM] = "model.output_attn_res_norm.weight", \
    [PRG_PART_OUTPUT_RES_PROJ] = "model.output_attn_res_proj.weight"

/* Kimi Linear's, which K3 took over. */
#define PRG_NAMES_OF_LINEAR                                                                                            \
    PRG_NAMES_OF_MODEL, PRG_NAMES_OF_MLA, PRG_NAMES_OF_KDA, PRG_NAMES_OF_RESIDUALS,                                    \
        PRG_NAMES_OF_MOE("block_sparse_moe", "w1", "w3", "w2")

#define PRG_KEYS_OF_LINEAR                                                                                             \
    {                                                                                                                  \
        .experts = "num_experts", .top_k = "num_experts_per_token", .shared_experts = "num_shared_experts",            \
        .groups = "num_expert_group", .renormalise = "moe_renormalize", .scoring = "moe_router_activation_func",       \
        .default_context = 1048576                                                                                     \
    }

#endif
