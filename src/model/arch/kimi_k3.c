/* Kimi K3: Kimi Linear with attention residuals, latent experts and output gates, wrapped by a vision model. */
#include <string.h>

#include "model/arch.h"
#include "model/arch/names.h"

static const char *match(const char *model_type) {
    return strcmp(model_type, "kimi_k3") == 0 ? "kimi_k3" : NULL;
}

static const char *const names[PRG_PART_COUNT] = {PRG_NAMES_OF_LINEAR};

const prg_arch prg_arch_kimi_k3 = {.name = "kimi_k3",
                                   .match = match,
                                   .keys = PRG_KEYS_OF_LINEAR,
                                   .names = names,
                                   .experts = "block_sparse_moe.experts"};
