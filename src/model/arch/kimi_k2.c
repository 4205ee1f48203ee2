/* Kimi K2, K2.5 and Moonlight: the layout of DeepSeek-V3. */
#include <string.h>

#include "model/arch.h"
#include "model/arch/names.h"

static const char *match(const char *model_type) {
    static const char *const families[] = {"kimi_k2", "kimi_k25", "deepseek_v3"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(model_type, families[i]) == 0) {
            return families[i];
        }
    }
    return NULL;
}

/* Extras of the later families have names too, so that a config that asks for them finds its tensors. */
static const char *const names[PRG_PART_COUNT] = {PRG_NAMES_OF_MODEL, PRG_NAMES_OF_MLA, PRG_NAMES_OF_KDA,
                                                  PRG_NAMES_OF_MOE("mlp", "gate_proj", "up_proj", "down_proj"),
                                                  PRG_NAMES_OF_RESIDUALS};

const prg_arch prg_arch_kimi_k2 = {.name = "kimi_k2",
                                   .match = match,
                                   .keys = {.experts = "n_routed_experts",
                                            .top_k = "num_experts_per_tok",
                                            .shared_experts = "n_shared_experts",
                                            .groups = "n_group",
                                            .renormalise = "norm_topk_prob",
                                            .scoring = "scoring_func",
                                            .default_context = 4096},
                                   .names = names,
                                   .experts = "mlp.experts"};
