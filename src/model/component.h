/* The kinds of tensors of a model, as its config has them. */
#ifndef PRG_MODEL_COMPONENT_H
#define PRG_MODEL_COMPONENT_H

#include "model/config.h"

typedef enum prg_component_id {
#define PRG_COMPONENT(id, name, title, scope, form, rows, columns, present) PRG_PART_##id,
#include "model/component.def"
#undef PRG_COMPONENT
    PRG_PART_COUNT
} prg_component_id;

typedef enum prg_scope {
    PRG_SCOPE_MODEL,
    PRG_SCOPE_LAYER,
    PRG_SCOPE_KDA,
    PRG_SCOPE_MLA,
    PRG_SCOPE_DENSE,
    PRG_SCOPE_MOE,
    PRG_SCOPE_EXPERT
} prg_scope;

typedef enum prg_form { PRG_FORM_MATRIX, PRG_FORM_VECTOR } prg_form;

/* A row of the table, for one config. */
typedef struct prg_component {
    const char *name, *title;
    prg_scope scope;
    prg_form form;
    int64_t rows, columns;
    bool present;
} prg_component;

/* Width of a routed expert's input. */
int64_t prg_expert_width(const prg_config *c);
prg_component prg_component_of(const prg_config *c, prg_component_id id);
/* True if a layer has tensors of this scope; false for those of the model. */
bool prg_scope_has(const prg_config *c, prg_scope scope, int64_t layer);
/* Layers with a mixture of experts; all, or those with KDA only or without it only (kind 1, 0; -1: all). */
int64_t prg_moe_layers(const prg_config *c, int kda);
/* Instances in the whole model. */
int64_t prg_component_instances(const prg_config *c, prg_component_id id);
/* All weights; false if they can't be counted in 63 bits. */
bool prg_component_total(const prg_config *c, int64_t *out);

#endif
