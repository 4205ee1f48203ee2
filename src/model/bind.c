#include "model/bind.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/float_mode.h"
#include "model/binder.h"
#include "model/rope.h"

typedef struct shared {
    double inner_eps;
    prg_rope rotation;
    double scale_growth;
} shared;

static const float *bind_vector(prg_binder *b, prg_component_id id) {
    float *values;
    prg_binder_vector(b, id, &values);
    return values;
}

/* Attention residuals score with norm and projection in one: their product, element by element. */
static const float *bind_mix(prg_binder *b, prg_component_id norm, prg_component_id projection) {
    float *mix, *scores;
    prg_binder_vector(b, norm, &mix);
    prg_binder_vector(b, projection, &scores);
    for (int64_t i = 0; mix && scores && i < b->checkpoint->config.hidden; i++) {
        mix[i] *= scores[i];
    }
    return mix;
}

static void bind_mla(prg_binder *b, const shared *common, prg_mla_weights *w) {
    const prg_config *c = &b->checkpoint->config;
    w->heads = (size_t)c->heads;
    w->nope = (size_t)c->nope;
    w->rope = (size_t)c->rope;
    w->value = (size_t)c->value;
    w->rank = (size_t)c->kv_rank;
    w->q_rank = (size_t)c->q_rank;
    prg_binder_matrix(b, c->q_rank ? PRG_PART_MLA_Q_B : PRG_PART_MLA_Q, 0, &w->q);
    prg_binder_matrix(b, PRG_PART_MLA_Q_A, 0, &w->q_a);
    prg_binder_matrix(b, PRG_PART_MLA_KV_A, 0, &w->kv_a);
    prg_binder_matrix(b, PRG_PART_MLA_KV_B, 0, &w->kv_b);
    prg_binder_matrix(b, PRG_PART_MLA_GATE, 0, &w->gate);
    prg_binder_matrix(b, PRG_PART_MLA_OUT, 0, &w->out);
    w->q_a_norm = bind_vector(b, PRG_PART_MLA_Q_A_NORM);
    w->kv_a_norm = bind_vector(b, PRG_PART_MLA_KV_A_NORM);
    w->inner_eps = (float)common->inner_eps;
    w->scale = (float)(common->scale_growth / sqrt((double)(c->nope + c->rope)));
    w->rotary = c->rotary;
    w->rotation = common->rotation;
}

static void bind_kda(prg_binder *b, prg_kda_weights *w) {
    const prg_config *c = &b->checkpoint->config;
    float *rate;
    w->taps = (size_t)c->taps;
    w->eps = (float)c->eps;
    prg_binder_matrix(b, PRG_PART_KDA_Q, 0, &w->q);
    prg_binder_matrix(b, PRG_PART_KDA_K, 0, &w->k);
    prg_binder_matrix(b, PRG_PART_KDA_V, 0, &w->v);
    prg_binder_matrix(b, PRG_PART_KDA_F_A, 0, &w->f_a);
    prg_binder_matrix(b, PRG_PART_KDA_F_B, 0, &w->f_b);
    prg_binder_matrix(b, PRG_PART_KDA_BETA, 0, &w->beta);
    prg_binder_matrix(b, PRG_PART_KDA_GATE, 0, &w->gate);
    prg_binder_matrix(b, PRG_PART_KDA_GATE_A, 0, &w->gate_a);
    prg_binder_matrix(b, PRG_PART_KDA_GATE_B, 0, &w->gate_b);
    prg_binder_matrix(b, PRG_PART_KDA_OUT, 0, &w->out);
    w->conv[0] = bind_vector(b, PRG_PART_KDA_CONV_Q);
    w->conv[1] = bind_vector(b, PRG_PART_KDA_CONV_K);
    w->conv[2] = bind_vector(b, PRG_PART_KDA_CONV_V);
    w->norm = bind_vector(b, PRG_PART_KDA_NORM);
    prg_binder_vector(b, PRG_PART_KDA_A_LOG, &rate);
    for (int64_t i = 0; rate && i < c->kda_heads; i++) {
        rate[i] = (float)exp((double)rate[i]);
    }
    w->op = (prg_kda){.heads = (size_t)c->kda_heads,
                      .dim = (size_t)c->kda_dim,
                      .rate = rate,
                      .dt_bias = bind_vector(b, PRG_PART_KDA_DT_BIAS),
                      .has_lower_bound = c->has_lower_bound,
                      .lower_bound = (float)c->lower_bound};
}

static void bind_experts(prg_binder *b, prg_moe_weights *w) {
    const prg_config *c = &b->checkpoint->config;
    w->first_group = b->group + 1;
    w->experts = prg_arena_alloc(b->arena, (size_t)c->experts, sizeof *w->experts);
    if (!w->experts) {
        b->status = prg_fail_memory(b->err);
        return;
    }
    int64_t before = b->out->weight_bytes;
    for (int64_t e = 0; e < c->experts && b->status == PERIGEE_OK; e++) {
        b->group++;
        prg_binder_matrix(b, PRG_PART_EXPERT_GATE, e, &w->experts[e].gate);
        prg_binder_matrix(b, PRG_PART_EXPERT_UP, e, &w->experts[e].up);
        prg_binder_matrix(b, PRG_PART_EXPERT_DOWN, e, &w->experts[e].down);
    }
    b->out->token_bytes += (int64_t)((double)(b->out->weight_bytes - before) / (double)c->experts * (double)c->top_k);
}

static void bind_moe(prg_binder *b, prg_moe_weights *w) {
    const prg_config *c = &b->checkpoint->config;
    w->router = (prg_router){.experts = (size_t)c->experts,
                             .top_k = (size_t)c->top_k,
                             .groups = (size_t)c->expert_groups,
                             .top_groups = (size_t)c->top_groups,
                             .softmax = c->softmax_router,
                             .renormalise = c->renormalise,
                             .scale = (float)c->routed_scale,
                             .bias = bind_vector(b, PRG_PART_ROUTER_BIAS)};
    w->latent = (size_t)prg_expert_width(c);
    w->inner = (size_t)c->moe_intermediate;
    w->eps = (float)c->eps;
    w->has_shared = c->shared_experts > 0;
    prg_binder_matrix(b, PRG_PART_ROUTER, 0, &w->router_gate);
    prg_binder_matrix(b, PRG_PART_LATENT_DOWN, 0, &w->latent_down);
    prg_binder_matrix(b, PRG_PART_LATENT_UP, 0, &w->latent_up);
    w->latent_norm = bind_vector(b, PRG_PART_LATENT_NORM);
    prg_binder_matrix(b, PRG_PART_SHARED_GATE, 0, &w->shared.gate);
    prg_binder_matrix(b, PRG_PART_SHARED_UP, 0, &w->shared.up);
    prg_binder_matrix(b, PRG_PART_SHARED_DOWN, 0, &w->shared.down);
    bind_experts(b, w);
}

static void bind_layer(prg_binder *b, const shared *common, int64_t index, prg_layer *layer) {
    const prg_config *c = &b->checkpoint->config;
    b->layer = index;
    layer->is_kda = c->is_kda[index];
    layer->is_moe = prg_config_is_moe(c, index);
    layer->group = b->group;
    layer->act = c->act;
    layer->bank = c->residual_block > 0 && index % c->residual_block == 0;
    layer->attention_mix = bind_mix(b, PRG_PART_ATTENTION_RES_NORM, PRG_PART_ATTENTION_RES_PROJ);
    layer->ffn_mix = bind_mix(b, PRG_PART_FFN_RES_NORM, PRG_PART_FFN_RES_PROJ);
    layer->input_norm = bind_vector(b, PRG_PART_INPUT_NORM);
    layer->ffn_norm = bind_vector(b, PRG_PART_FFN_NORM);
    if (layer->is_kda) {
        bind_kda(b, &layer->attention.kda);
    } else {
        bind_mla(b, common, &layer->attention.mla);
    }
    if (layer->is_moe) {
        bind_moe(b, &layer->ffn.moe);
    } else {
        prg_binder_matrix(b, PRG_PART_MLP_GATE, 0, &layer->ffn.mlp.gate);
        prg_binder_matrix(b, PRG_PART_MLP_UP, 0, &layer->ffn.mlp.up);
        prg_binder_matrix(b, PRG_PART_MLP_DOWN, 0, &layer->ffn.mlp.down);
    }
    b->group++;
}

static void bind_all(prg_binder *b, double inner_eps) {
    const prg_config *c = &b->checkpoint->config;
    prg_bound *o = b->out;
    shared common = {.inner_eps = inner_eps, .scale_growth = 1};
    if (c->rotary) {
        b->status = prg_rope_make(b->arena, c, &common.rotation, &common.scale_growth, b->err);
        if (b->status != PERIGEE_OK) {
            return;
        }
    }
    b->layer = -1;
    o->embed_group = b->group;
    prg_binder_matrix(b, PRG_PART_EMBED, 0, &o->embed);
    b->group++;
    if (b->status == PERIGEE_OK) {
        o->layers = prg_arena_alloc(b->arena, (size_t)c->layers, sizeof *o->layers);
        b->status = o->layers ? PERIGEE_OK : prg_fail_memory(b->err);
    }
    for (int64_t i = 0; i < c->layers && b->status == PERIGEE_OK; i++) {
        bind_layer(b, &common, i, &o->layers[i]);
    }
    b->layer = -1;
    o->final_mix = bind_mix(b, PRG_PART_OUTPUT_RES_NORM, PRG_PART_OUTPUT_RES_PROJ);
    o->final_norm = bind_vector(b, PRG_PART_FINAL_NORM);
    if (c->tied_head) {
        o->head = o->embed;
        o->head_group = o->embed_group;
    } else {
        o->head_group = b->group;
        prg_binder_matrix(b, PRG_PART_HEAD, 0, &o->head);
        b->group++;
    }
    o->group_count = b->group;
}

/* What nothing asked for is not an error, but worth a line. */
static void warn_of_unused(const prg_checkpoint *c) {
    const prg_tensor *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < c->tensors.count; i++) {
        const prg_tensor *t = &c->tensors.items[i];
        if (t->text && !t->used) {
            first = first ? first : t;
            count++;
        }
    }
    if (count) {
        char name[PRG_TENSOR_NAME];
        prg_checkpoint_name_of(c, first, name);
        prg_log_line(c->log, PRG_LOG_WARNING, "%zu tensors are of no known kind and not used, the first is %s in %s",
                     count, name, c->names[first->file]);
    }
}

perigee_status prg_bind(prg_checkpoint *checkpoint, prg_arena *arena, double inner_eps, prg_trunk trunk, bool read,
                        prg_bound *out, perigee_error **err) {
    *out = (prg_bound){0};
    fenv_t host;
    prg_binder b = {.checkpoint = checkpoint,
                    .arena = arena,
                    .out = out,
                    .read = read,
                    .trunk = trunk,
                    .file = {NULL, -1, 0, NULL},
                    .file_index = -1,
                    .err = err};
    prg_float_mode_enter(&host);
    bind_all(&b, inner_eps);
    prg_float_mode_leave(&host);
    prg_file_close(&b.file);
    if (b.status == PERIGEE_OK) {
        warn_of_unused(checkpoint);
    }
    return b.status;
}

void prg_bound_free(prg_allocator *allocator, prg_bound *bound) {
    prg_free(allocator, bound->parts);
    bound->parts = NULL;
    bound->part_count = bound->part_capacity = 0;
    prg_free(allocator, bound->conversions);
    bound->conversions = NULL;
    bound->conversion_count = bound->conversion_capacity = 0;
}
