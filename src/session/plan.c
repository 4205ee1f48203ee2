#include "session/plan.h"

#include <string.h>

#include "base/error.h"
#include "layers/layers.h"
#include "session/session.h"

/* Scratch that an automatic chunk may take at a hidden width of 2,048; it grows with the square of the width, as
 * weights do. */
static const size_t usual_scratch = (size_t)57 << 20;
enum { USUAL_HIDDEN = 2048, LONGEST_CHUNK = 512, SHORTEST_CHUNK = 32, HEAD_FLOATS = 1 << 20 };

static size_t max(size_t a, size_t b) {
    return a > b ? a : b;
}

/* A matrix that is there, of this many rows. */
static prg_weight rows_of(int64_t rows) {
    return (prg_weight){.dtype = PERIGEE_DTYPE_F32, .rows = (uint64_t)rows};
}

static prg_mla_weights mla_sizes(const prg_config *c) {
    prg_mla_weights w = {.heads = (size_t)c->heads,
                         .nope = (size_t)c->nope,
                         .rope = (size_t)c->rope,
                         .value = (size_t)c->value,
                         .rank = (size_t)c->kv_rank,
                         .q_rank = (size_t)c->q_rank};
    if (c->mla_gate) {
        w.gate = rows_of(c->heads * c->value);
    }
    return w;
}

static prg_kda_weights kda_sizes(const prg_config *c) {
    prg_kda_weights w = {.op = {.heads = (size_t)c->kda_heads, .dim = (size_t)c->kda_dim}, .taps = (size_t)c->taps};
    w.f_a = rows_of(c->kda_dim);
    if (c->full_rank_gate) {
        w.gate = rows_of(c->kda_heads * c->kda_dim);
    } else {
        w.gate_a = rows_of(c->kda_dim);
    }
    return w;
}

static prg_moe_weights moe_sizes(const prg_config *c) {
    prg_moe_weights w = {.router = {.experts = (size_t)c->experts, .top_k = (size_t)c->top_k},
                         .latent = (size_t)(c->expert_latent > 0 ? c->expert_latent : c->hidden),
                         .inner = (size_t)c->moe_intermediate,
                         .has_shared = c->shared_experts > 0};
    if (c->expert_latent > 0) {
        w.latent_down = rows_of(c->expert_latent);
    }
    w.shared.gate = rows_of(c->shared_experts * c->moe_intermediate);
    return w;
}

size_t prg_head_tile(size_t rows, size_t vocabulary) {
    const size_t columns = max(HEAD_FLOATS / max(rows, 1) & ~(size_t)63, 64);
    return columns < vocabulary ? columns : vocabulary;
}

static size_t head_scratch(const prg_sizing *sizing, const prg_config *config) {
    const size_t vocabulary = (size_t)config->vocabulary;
    const size_t product = prg_matmul_scratch(sizing->table, sizing->threads, 1, sizing->m, sizing->hidden);
    const size_t tile = sizing->segments > 1 ? sizing->m * prg_head_tile(sizing->m, vocabulary) : 0;
    return product + prg_scratch_bytes(tile, sizeof(float));
}

size_t prg_pass_scratch(const prg_config *config, const prg_kernel_table *table, size_t threads, size_t rows,
                        size_t segments) {
    const prg_sizing sizing = {table, threads, (size_t)config->hidden, rows, segments};
    size_t most = head_scratch(&sizing, config);
    bool dense = false, moe = false;
    for (int64_t i = 0; i < config->layers; i++) {
        const bool is_moe = prg_config_is_moe(config, i);
        dense = dense || !is_moe;
        moe = moe || is_moe;
    }
    if (config->kda_layers < config->layers) {
        const prg_mla_weights w = mla_sizes(config);
        most = max(most, prg_layer_mla_scratch(&sizing, &w));
    }
    if (config->kda_layers > 0) {
        const prg_kda_weights w = kda_sizes(config);
        most = max(most, prg_layer_kda_scratch(&sizing, &w));
    }
    if (dense) {
        most = max(most, prg_layer_mlp_scratch(&sizing, (size_t)config->intermediate));
    }
    if (moe) {
        const prg_moe_weights w = moe_sizes(config);
        most = max(most, prg_layer_moe_scratch(&sizing, &w));
    }
    size_t banks = 0;
    if (config->residual_block > 0) {
        banks = (size_t)((config->layers + config->residual_block - 1) / config->residual_block);
    }
    return (3 + banks) * prg_scratch_bytes(rows * sizing.hidden, sizeof(float)) +
           prg_scratch_bytes(rows, sizeof(int64_t)) + prg_scratch_bytes(rows, sizeof(int32_t)) +
           prg_scratch_bytes(segments, sizeof(prg_segment)) + 2 * prg_scratch_bytes(banks + 1, sizeof(float *)) + most;
}

static perigee_status read_options(const prg_config *config, const perigee_options *options, prg_session_plan *plan,
                                   perigee_error **err) {
    const int64_t context = prg_options_int(options, PERIGEE_OPTION_CONTEXT);
    if (context > config->context) {
        return prg_fail(err, PERIGEE_E_RANGE, "context of %lld tokens: the model was made for %lld", (long long)context,
                        (long long)config->context);
    }
    plan->context = (size_t)(context > 0 ? context : config->context);
    const char *type = prg_options_string(options, PERIGEE_OPTION_CACHE_TYPE);
    plan->bf16 = strcmp(type, "bfloat16") == 0 || strcmp(type, "bf16") == 0;
    if (!plan->bf16 && strcmp(type, "float32") != 0) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "cache_type '%s': neither float32 nor bfloat16", type);
    }
    plan->chunk = (size_t)prg_options_int(options, PERIGEE_OPTION_CHUNK);
    plan->checkpoints = prg_options_int(options, PERIGEE_OPTION_CHECKPOINTS);
    plan->checkpoint_every = (size_t)prg_options_int(options, PERIGEE_OPTION_CHECKPOINT_INTERVAL);
    return PERIGEE_OK;
}

static size_t automatic_chunk(const prg_config *config, const prg_kernel_table *table, size_t threads) {
    const double wide = (double)config->hidden / USUAL_HIDDEN;
    const double limit = (double)usual_scratch * (wide > 1 ? wide * wide : 1);
    size_t chunk = LONGEST_CHUNK;
    while (chunk > SHORTEST_CHUNK && (double)prg_pass_scratch(config, table, threads, chunk, 1) > limit) {
        chunk /= 2;
    }
    return chunk;
}

perigee_status prg_session_plan_make(const prg_config *config, const prg_kernel_table *table, size_t threads,
                                     const perigee_options *options, prg_session_plan *out, perigee_error **err) {
    prg_session_plan plan = {0};
    perigee_status st = read_options(config, options, &plan, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (plan.chunk == 0) {
        plan.chunk = automatic_chunk(config, table, threads);
    }
    plan.chunk = plan.chunk < plan.context ? plan.chunk : plan.context;
    plan.kda_layers = (size_t)config->kda_layers;
    plan.mla_layers = (size_t)(config->layers - config->kda_layers);
    plan.latent_bytes = (size_t)(config->kv_rank + config->rope) * (plan.bf16 ? sizeof(uint16_t) : sizeof(float));
    if (plan.kda_layers > 0) {
        const prg_kda_weights w = kda_sizes(config);
        plan.kda_floats = prg_layer_kda_floats(&w);
        plan.kda_heads = w.op.heads;
        plan.kda_dim = w.op.dim;
    }
    plan.token_bytes = plan.latent_bytes * plan.mla_layers;
    const size_t blocks = (plan.context + PRG_CACHE_BLOCK - 1) / PRG_CACHE_BLOCK;
    plan.fixed_bytes = sizeof(perigee_session) + 2 * plan.kda_layers * plan.kda_floats * sizeof(float) +
                       plan.context * sizeof(int32_t) + blocks * (sizeof(prg_cache_block *) + sizeof(void *)) +
                       (size_t)config->vocabulary * sizeof(float);
    plan.scratch_bytes = prg_pass_scratch(config, table, threads, plan.chunk, 1);
    if (plan.context > 1) { /* a batch or a trace cuts even a step that is no longer than a chunk */
        plan.scratch_bytes += prg_scratch_bytes(plan.kda_layers * plan.kda_floats, sizeof(float));
    }
    *out = plan;
    return PERIGEE_OK;
}
