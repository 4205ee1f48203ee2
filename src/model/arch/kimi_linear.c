/* Kimi Linear: KDA and latent attention without positions. */
#include <string.h>

#include "model/arch.h"
#include "model/arch/names.h"

static const char *match(const char *model_type) {
    return strcmp(model_type, "kimi_linear") == 0 ? "kimi_linear" : NULL;
}

static const char *const names[PRG_PART_COUNT] = {PRG_NAMES_OF_MODEL, PRG_NAMES_OF_MLA, PRG_NAMES_OF_KDA,
                                                  PRG_NAMES_OF_MOE("block_sparse_moe", "w1", "w3", "w2"),
                                                  PRG_NAMES_OF_RESIDUALS};

const prg_arch prg_arch_kimi_linear = {.name = "kimi_linear",
                                       .match = match,
                                       .keys = {.experts = "num_experts",
                                                .top_k = "num_experts_per_token",
                                                .shared_experts = "num_shared_experts",
                                                .groups = "num_expert_group",
                                                .renormalise = "moe_renormalize",
                                                .scoring = "moe_router_activation_func",
                                                .default_context = 1048576},
                                       .names = names,
                                       .experts = "block_sparse_moe.experts"};
