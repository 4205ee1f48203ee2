/* Kimi Linear: KDA and latent attention without positions. */
#include <string.h>

#include "model/arch.h"
#include "model/arch/names.h"

static const char *match(const char *model_type) {
    return strcmp(model_type, "kimi_linear") == 0 ? "kimi_linear" : NULL;
}

static const char *const names[PRG_PART_COUNT] = {PRG_NAMES_OF_LINEAR};

const prg_arch prg_arch_kimi_linear = {.name = "kimi_linear",
                                       .match = match,
                                       .keys = PRG_KEYS_OF_LINEAR,
                                       .names = names,
                                       .experts = "block_sparse_moe.experts"};
