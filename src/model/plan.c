#include "model/plan.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "dtype/dtype.h"
#include "model/bind.h"
#include "model/model.h"

enum { PART = 64 /* what a part of a resident store is rounded to */ };

/* Of a part of the store: its address. */
static int64_t table_of(size_t arena_bytes, int64_t vector_bytes, int64_t parts) {
    return (int64_t)arena_bytes + vector_bytes + parts * (int64_t)sizeof(void *) + (int64_t)sizeof(perigee_model);
}

static perigee_status plan_from_tensors(prg_checkpoint *checkpoint, prg_trunk trunk, prg_weight_plan *out,
                                        perigee_error **err) {
    prg_arena arena;
    prg_bound bound;
    prg_arena_init(&arena, checkpoint->allocator);
    perigee_status st = prg_bind(checkpoint, &arena, 0, trunk, false, &bound, err);
    if (st == PERIGEE_OK) {
        *out = (prg_weight_plan){.disk_bytes = bound.weight_bytes,
                                 .token_bytes = bound.token_bytes,
                                 .resident_bytes = prg_store_resident_bytes(bound.parts, bound.part_count),
                                 .relaid_bytes = bound.relaid_bytes,
                                 .vector_bytes = bound.vector_bytes,
                                 .table_bytes = table_of(arena.bytes, bound.vector_bytes, (int64_t)bound.part_count)};
    }
    prg_bound_free(checkpoint->allocator, &bound);
    prg_arena_free(&arena);
    return st;
}

/* The stored form in which a matrix is published. */
static uint32_t published_form(const prg_config *c, prg_component_id id, prg_scope scope) {
    if (scope == PRG_SCOPE_MODEL || id == PRG_PART_ROUTER) {
        return PERIGEE_DTYPE_BF16;
    }
    switch (c->quantization) {
    case PRG_QUANT_FP8:
        return PERIGEE_DTYPE_FP8;
    case PRG_QUANT_MXFP4:
        return scope == PRG_SCOPE_EXPERT ? PERIGEE_DTYPE_MXFP4 : PERIGEE_DTYPE_BF16;
    case PRG_QUANT_INT4:
        return scope == PRG_SCOPE_EXPERT ? PERIGEE_DTYPE_INT4 : PERIGEE_DTYPE_BF16;
    case PRG_QUANT_NONE:
        break;
    }
    return PERIGEE_DTYPE_BF16;
}

static int64_t published_vector_bytes(const prg_config *c, prg_component_id id) {
    switch (id) {
    case PRG_PART_KDA_A_LOG:
    case PRG_PART_KDA_DT_BIAS:
        return 4;
    case PRG_PART_ROUTER_BIAS: /* of Kimi Linear alone they are halves, as its convolutions are */
        return c->kda_layers > 0 && !c->full_rank_gate ? 2 : 4;
    case PRG_PART_KDA_CONV_Q:
    case PRG_PART_KDA_CONV_K:
    case PRG_PART_KDA_CONV_V:
    case PRG_PART_KDA_NORM:
        return c->full_rank_gate ? 4 : 2;
    default:
        return 2;
    }
}

static void add_component(const prg_config *c, prg_component_id id, prg_trunk trunk, prg_weight_plan *out,
                          int64_t *parts) {
    prg_component part = prg_component_of(c, id);
    int64_t instances = prg_component_instances(c, id), size = part.rows * part.columns, bytes, held;
    if (instances == 0) {
        return;
    }
    if (part.form == PRG_FORM_VECTOR) {
        bytes = held = size * published_vector_bytes(c, id);
        out->vector_bytes += (int64_t)prg_round_up((size_t)size * sizeof(float), 16) * instances;
    } else {
        uint32_t stored = published_form(c, id, part.scope), dtype = prg_trunk_form(trunk, id, stored);
        size_t codes = prg_dtype_row_bytes(dtype, (size_t)part.columns) * (size_t)part.rows;
        size_t scales = prg_dtype_matrix_bytes(dtype, (size_t)part.rows, (size_t)part.columns) - codes;
        size_t shape = dtype == PERIGEE_DTYPE_INT4 ? 2 * sizeof(int32_t) : 0;
        bytes = (int64_t)(prg_dtype_matrix_bytes(stored, (size_t)part.rows, (size_t)part.columns) + shape);
        held = (int64_t)(codes + scales + shape);
        out->relaid_bytes += dtype == stored ? 0 : held * instances;
        out->resident_bytes += (int64_t)(prg_round_up(codes, PART) + prg_round_up(scales, PART)) * instances;
        *parts += instances * (scales ? 2 : 1);
    }
    int64_t read = part.scope == PRG_SCOPE_EXPERT ? held * (instances / c->experts) * c->top_k : held * instances;
    if (id == PRG_PART_EMBED) {
        read = c->tied_head ? bytes + bytes / c->vocabulary : bytes / c->vocabulary;
    }
    out->disk_bytes += bytes * instances;
    out->token_bytes += read;
}

perigee_status prg_plan_weights(prg_checkpoint *checkpoint, prg_trunk trunk, prg_weight_plan *out,
                                perigee_error **err) {
    const prg_config *c = &checkpoint->config;
    int64_t parts = 0;
    if (checkpoint->file_count) {
        return plan_from_tensors(checkpoint, trunk, out, err);
    }
    *out = (prg_weight_plan){0};
    for (int id = 0; id < PRG_PART_COUNT; id++) {
        add_component(c, (prg_component_id)id, trunk, out, &parts);
    }
    size_t structs = (size_t)c->layers * sizeof(prg_layer);
    structs += (size_t)(prg_moe_layers(c, -1) * c->experts) * sizeof(prg_mlp_weights);
    out->table_bytes = table_of(structs, out->vector_bytes, parts);
    return PERIGEE_OK;
}
