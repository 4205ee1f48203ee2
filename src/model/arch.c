#include "model/arch.h"

#include <stdio.h>

static const prg_arch *const archs[] = {
#define PRG_ARCH(name) &prg_arch_##name,
#include "model/arch.def"
#undef PRG_ARCH
};

const prg_arch *prg_arch_find(const char *model_type, const char **family) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const char *name = archs[i]->match(model_type);
        if (name) {
            *family = name;
            return archs[i];
        }
    }
    return NULL;
}

int prg_arch_tensor_name(const prg_arch *arch, prg_component_id id, prg_scope scope, int64_t layer, int64_t expert,
                         char *out, size_t size) {
    const char *name = arch->names[id];
    if (scope == PRG_SCOPE_MODEL) {
        return snprintf(out, size, "%s", name);
    }
    if (scope == PRG_SCOPE_EXPERT) {
        return snprintf(out, size, "model.layers.%lld.%s.%lld.%s", (long long)layer, arch->experts, (long long)expert,
                        name);
    }
    return snprintf(out, size, "model.layers.%lld.%s", (long long)layer, name);
}
