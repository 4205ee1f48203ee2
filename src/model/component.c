#include "model/component.h"

#include "base/checked_math.h"

int64_t prg_expert_width(const prg_config *c) {
    return c->expert_latent > 0 ? c->expert_latent : c->hidden;
}

prg_component prg_component_of(const prg_config *c, prg_component_id id) {
    switch (id) {
#define PRG_COMPONENT(id, name, title, scope, form, rows, columns, present)                                            \
    case PRG_PART_##id:                                                                                                \
        return (prg_component){name, title, PRG_SCOPE_##scope, PRG_FORM_##form, rows, columns, present};
#include "model/component.def"
#undef PRG_COMPONENT
    case PRG_PART_COUNT:
        break;
    }
    return (prg_component){"", "", PRG_SCOPE_MODEL, PRG_FORM_VECTOR, 0, 0, false};
}

bool prg_config_is_moe(const prg_config *config, int64_t layer) {
    return config->experts > 0 && layer >= config->first_dense && layer % config->moe_every == 0;
}

bool prg_scope_has(const prg_config *c, prg_scope scope, int64_t layer) {
    switch (scope) {
    case PRG_SCOPE_MODEL:
        return false;
    case PRG_SCOPE_LAYER:
        return true;
    case PRG_SCOPE_KDA:
        return c->is_kda[layer];
    case PRG_SCOPE_MLA:
        return !c->is_kda[layer];
    case PRG_SCOPE_DENSE:
        return !prg_config_is_moe(c, layer);
    case PRG_SCOPE_MOE:
    case PRG_SCOPE_EXPERT:
        return prg_config_is_moe(c, layer);
    }
    return false;
}

int64_t prg_moe_layers(const prg_config *c, int kda) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->layers; i++) {
        count += prg_config_is_moe(c, i) && (kda < 0 || c->is_kda[i] == (kda == 1));
    }
    return count;
}

int64_t prg_component_instances(const prg_config *c, prg_component_id id) {
    prg_component part = prg_component_of(c, id);
    if (!part.present) {
        return 0;
    }
    switch (part.scope) {
    case PRG_SCOPE_MODEL:
        return 1;
    case PRG_SCOPE_LAYER:
        return c->layers;
    case PRG_SCOPE_KDA:
        return c->kda_layers;
    case PRG_SCOPE_MLA:
        return c->layers - c->kda_layers;
    case PRG_SCOPE_DENSE:
        return c->layers - prg_moe_layers(c, -1);
    case PRG_SCOPE_MOE:
        return prg_moe_layers(c, -1);
    case PRG_SCOPE_EXPERT:
        return prg_moe_layers(c, -1) * c->experts;
    }
    return 0;
}

bool prg_component_total(const prg_config *c, int64_t *out) {
    int64_t total = 0;
    for (int id = 0; id < PRG_PART_COUNT; id++) {
        prg_component part = prg_component_of(c, (prg_component_id)id);
        int64_t size;
        if (!prg_mul_i64(part.rows, part.columns, &size) ||
            !prg_mul_i64(size, prg_component_instances(c, (prg_component_id)id), &size) ||
            !prg_add_i64(total, size, &total)) {
            return false;
        }
    }
    *out = total;
    return true;
}
