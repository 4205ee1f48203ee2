/* What sets one architecture apart: which configs are its own, how its config and its tensors are named. */
#ifndef PRG_MODEL_ARCH_H
#define PRG_MODEL_ARCH_H

#include "model/component.h"

/* Names of keys that differ between the families. */
typedef struct prg_config_keys {
    const char *experts, *top_k, *shared_experts, *groups, *renormalise, *scoring;
    int64_t default_context; /* where the config has none */
} prg_config_keys;

typedef struct prg_arch {
    const char *name;
    /* The family's name, static, or NULL if the config is of another architecture. */
    const char *(*match)(const char *model_type);
    prg_config_keys keys;
    /* Of each component: for a matrix the module, for a vector the whole name; within the model, the layer or the
     * expert. */
    const char *const *names;
    const char *experts; /* module of the experts within a layer */
} prg_arch;

#define PRG_ARCH(name) extern const prg_arch prg_arch_##name;
#include "model/arch.def"
#undef PRG_ARCH

/* By the text model's and the outer model_type; NULL if there is none. */
const prg_arch *prg_arch_find(const char *model_type, const char **family);
/* The name of a tensor without a prefix and, for matrices, without the last ".weight…". */
int prg_arch_tensor_name(const prg_arch *arch, prg_component_id id, prg_scope scope, int64_t layer, int64_t expert,
                         char *out, size_t size);

#endif
