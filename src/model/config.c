#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "model/arch.h"
#include "model/component.h"
#include "model/config_reader.h"
#include "os/os.h"

/* Bounds far beyond any model, so small that no product of a layer's sizes leaves 63 bits. */
enum {
    MOST_VOCABULARY = 1 << 24,
    MOST_WIDTH = 1 << 20,
    MOST_LAYERS = 4096,
    MOST_HEADS = 1 << 14,
    MOST_HEAD_WIDTH = 1 << 13,
    MOST_EXPERTS = 1 << 16,
    LARGEST_FILE = 16 << 20,
    DEPTH = 64
};

static const int64_t most_positions = INT64_C(1) << 40;
/* A context is stretched, not shrunk; angles of all positions stay whole numbers of turns that 64 bits hold. */
static const double least_stretch = 1e-3;
/* So many elements that their bytes in any form, and the sums of them in a plan, fit in 63 bits. */
static const int64_t most_elements = INT64_C(1) << 58;

static void read_shape(prg_config_reader *r, prg_config *c) {
    const prg_json *t = r->text;
    const char *context = prg_config_get(t, "max_position_embeddings") ? "max_position_embeddings" : "model_max_length";
    c->vocabulary = prg_config_int(r, t, "vocab_size", 1, MOST_VOCABULARY, PRG_REQUIRED);
    c->hidden = prg_config_int(r, t, "hidden_size", 1, MOST_WIDTH, PRG_REQUIRED);
    c->layers = prg_config_int(r, t, "num_hidden_layers", 1, MOST_LAYERS, PRG_REQUIRED);
    c->context = prg_config_int(r, t, context, 1, most_positions, c->arch->keys.default_context);
    c->eps = prg_config_real(r, t, "rms_norm_eps", 0, 1, NAN);
    c->residual_block = prg_config_int(r, t, "attn_res_block_size", 1, MOST_LAYERS, 0);
    /* a bank for each block that begins, and the running sum */
    if (c->residual_block > 0 && (c->layers - 1) / c->residual_block + 2 > PRG_RESIDUAL_SOURCES_MOST) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "attn_res_block_size", "more than %d blocks",
                        (int)PRG_RESIDUAL_SOURCES_MOST - 1);
    }
    c->tied_head =
        prg_config_flag(r, t, "tie_word_embeddings", prg_config_flag(r, r->top, "tie_word_embeddings", false));
}

static void read_yarn(prg_config_reader *r, prg_config *c, const prg_json *scaling) {
    c->yarn = true;
    c->yarn_factor = prg_config_real(r, scaling, "factor", least_stretch, 1e6, NAN);
    c->yarn_original = prg_config_int(r, scaling, "original_max_position_embeddings", 1, most_positions, PRG_REQUIRED);
    c->yarn_beta_fast = prg_config_real(r, scaling, "beta_fast", 0, 1e6, 32);
    c->yarn_beta_slow = prg_config_real(r, scaling, "beta_slow", 0, 1e6, 1);
    c->yarn_mscale = prg_config_real(r, scaling, "mscale", -1e-300, 1e6, 1);
    c->yarn_mscale_all = prg_config_real(r, scaling, "mscale_all_dim", -1e-300, 1e6, 0);
}

static void read_rotation(prg_config_reader *r, prg_config *c) {
    static const char *const kinds[] = {"default", "yarn", NULL};
    c->rotary = !prg_config_flag(r, r->text, "mla_use_nope", false);
    if (!c->rotary) {
        return;
    }
    if (c->rope % 2 != 0) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "qk_rope_head_dim", "%lld is odd; values rotate in pairs",
                        (long long)c->rope);
    }
    c->rope_theta = prg_config_real(r, r->text, "rope_theta", 1, 1e12, 10000);
    const prg_json *scaling = prg_config_get(r->text, "rope_scaling");
    if (!scaling) {
        return;
    }
    if (scaling->kind != PRG_JSON_OBJECT) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "rope_scaling", "not an object");
        return;
    }
    const char *key = prg_config_get(scaling, "type") ? "type" : "rope_type";
    if (prg_config_choice(r, scaling, key, kinds, 0) == 1) {
        read_yarn(r, c, scaling);
    }
}

static void read_latent_attention(prg_config_reader *r, prg_config *c) {
    const prg_json *t = r->text;
    c->heads = prg_config_int(r, t, "num_attention_heads", 1, MOST_HEADS, PRG_REQUIRED);
    c->q_rank = prg_config_int(r, t, "q_lora_rank", 1, MOST_WIDTH, 0);
    c->kv_rank = prg_config_int(r, t, "kv_lora_rank", 1, MOST_WIDTH, PRG_REQUIRED);
    c->nope = prg_config_int(r, t, "qk_nope_head_dim", 1, MOST_HEAD_WIDTH, PRG_REQUIRED);
    c->rope = prg_config_int(r, t, "qk_rope_head_dim", 1, MOST_HEAD_WIDTH, PRG_REQUIRED);
    c->value = prg_config_int(r, t, "v_head_dim", 1, MOST_HEAD_WIDTH, PRG_REQUIRED);
    c->mla_gate = prg_config_flag(r, t, "mla_use_output_gate", false);
    if (prg_config_flag(r, t, "attention_bias", false)) {
        prg_config_fail(r, PERIGEE_E_UNSUPPORTED, "attention_bias", "biases are not supported");
    }
    read_rotation(r, c);
}

/* Marks the layers of a one-based list. Entries behind the last layer are left from a deeper model and do no harm. */
static void mark_layers(prg_config_reader *r, const prg_config *c, const prg_json *list, const char *key, bool *mark) {
    if (list->kind != PRG_JSON_ARRAY) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "not a list");
        return;
    }
    for (const prg_json *item = list->first; item; item = item->next) {
        int64_t layer;
        if (!prg_json_int(item, &layer) || layer < 1 || layer > MOST_LAYERS) {
            prg_config_fail(r, PERIGEE_E_CONFIG, key, "an entry is no layer from 1 to %d", MOST_LAYERS);
            return;
        }
        if (layer > c->layers) {
            continue;
        }
        if (mark[layer - 1]) {
            prg_config_fail(r, PERIGEE_E_CONFIG, key, "layer %lld comes twice", (long long)layer);
            return;
        }
        mark[layer - 1] = true;
    }
}

/* A layer is in one of the two lists, where there are two. */
static void check_partition(prg_config_reader *r, const prg_config *c, prg_arena *arena, const prg_json *full) {
    bool *mark = prg_arena_alloc(arena, (size_t)c->layers, sizeof *mark);
    if (!mark) {
        r->status = prg_fail_memory(r->err);
        return;
    }
    mark_layers(r, c, full, "full_attn_layers", mark);
    for (int64_t i = 0; i < c->layers && r->status == PERIGEE_OK; i++) {
        if (mark[i] == c->is_kda[i]) {
            prg_config_fail(r, PERIGEE_E_CONFIG, "full_attn_layers", "layer %lld is in %s this list and kda_layers",
                            (long long)i + 1, mark[i] ? "both" : "neither");
        }
    }
}

static void read_delta_attention(prg_config_reader *r, prg_config *c, prg_arena *arena) {
    c->is_kda = prg_arena_alloc(arena, (size_t)c->layers, sizeof *c->is_kda);
    if (!c->is_kda) {
        r->status = prg_fail_memory(r->err);
        return;
    }
    const prg_json *linear = prg_config_get(r->text, "linear_attn_config");
    if (!linear) {
        return;
    }
    const prg_json *list = prg_config_get(linear, "kda_layers"), *full = prg_config_get(linear, "full_attn_layers");
    if (!list) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "kda_layers", "missing");
        return;
    }
    mark_layers(r, c, list, "kda_layers", c->is_kda);
    for (int64_t i = 0; i < c->layers; i++) {
        c->kda_layers += c->is_kda[i];
    }
    if (full) {
        check_partition(r, c, arena, full);
    }
    c->kda_heads = prg_config_int(r, linear, "num_heads", 1, MOST_HEADS, PRG_REQUIRED);
    c->kda_dim = prg_config_int(r, linear, "head_dim", 1, PRG_KDA_DIM_MOST, PRG_REQUIRED);
    c->taps = prg_config_int(r, linear, "short_conv_kernel_size", 1, PRG_CONV_TAPS_MOST, PRG_REQUIRED);
    c->full_rank_gate = prg_config_flag(r, linear, "use_full_rank_gate", false);
    c->has_lower_bound = prg_config_get(linear, "gate_lower_bound") != NULL;
    c->lower_bound = prg_config_real(r, linear, "gate_lower_bound", -1e6, 0, 0);
}

static void read_activation(prg_config_reader *r, prg_config *c) {
    static const char *const kinds[] = {"silu", "situ", NULL};
    if (prg_config_choice(r, r->text, "hidden_act", kinds, 0) == 0) {
        c->act = (prg_gate){PRG_SILU, 0, 0};
        return;
    }
    c->act.kind = PRG_SITU;
    c->act.beta = (float)prg_config_real(r, r->text, "activation_situ_beta", 0, 1e6, 1);
    c->act.linear_beta = (float)prg_config_real(r, r->text, "activation_situ_linear_beta", 0, 1e6, 0);
}

static void read_router(prg_config_reader *r, prg_config *c) {
    static const char *const scores[] = {"sigmoid", "softmax", NULL};
    static const char *const methods[] = {"noaux_tc", NULL};
    const prg_json *t = r->text;
    const prg_config_keys *keys = &c->arch->keys;
    const char *other =
        strcmp(keys->top_k, "num_experts_per_tok") == 0 ? "num_experts_per_token" : "num_experts_per_tok";
    c->top_k = prg_config_int(r, t, prg_config_get(t, keys->top_k) || !prg_config_get(t, other) ? keys->top_k : other,
                              1, c->experts, PRG_REQUIRED);
    c->expert_groups = prg_config_int(r, t, keys->groups, 1, c->experts, 1);
    c->top_groups = prg_config_int(r, t, "topk_group", 1, c->expert_groups, 1);
    if (c->experts % c->expert_groups != 0) {
        prg_config_fail(r, PERIGEE_E_CONFIG, keys->groups, "%lld experts can't be parted in %lld groups",
                        (long long)c->experts, (long long)c->expert_groups);
    } else if (c->top_k > c->experts / c->expert_groups * c->top_groups) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "topk_group", "%lld groups hold fewer than %lld experts",
                        (long long)c->top_groups, (long long)c->top_k);
    }
    c->renormalise = prg_config_flag(r, t, keys->renormalise, true);
    c->softmax_router = prg_config_choice(r, t, keys->scoring, scores, 0) == 1;
    prg_config_choice(r, t, "topk_method", methods, 0);
    c->routed_scale = prg_config_real(r, t, "routed_scaling_factor", 0, 1e6, 1);
}

static void read_feed_forward(prg_config_reader *r, prg_config *c) {
    const prg_json *t = r->text;
    const prg_config_keys *keys = &c->arch->keys;
    read_activation(r, c);
    c->first_dense = prg_config_int(r, t, "first_k_dense_replace", 0, MOST_LAYERS, 0);
    c->moe_every = prg_config_int(r, t, "moe_layer_freq", 1, MOST_LAYERS, 1);
    c->experts = prg_config_int(r, t, keys->experts, 1, MOST_EXPERTS, c->first_dense < c->layers ? PRG_REQUIRED : 0);
    int64_t mixtures = prg_moe_layers(c, -1);
    if (mixtures < c->layers) {
        c->intermediate = prg_config_int(r, t, "intermediate_size", 1, MOST_WIDTH, PRG_REQUIRED);
    }
    if (mixtures == 0) {
        c->experts = 0;
        return;
    }
    c->moe_intermediate = prg_config_int(r, t, "moe_intermediate_size", 1, MOST_WIDTH, PRG_REQUIRED);
    c->shared_experts = prg_config_int(r, t, keys->shared_experts, 0, MOST_EXPERTS, 0);
    c->expert_latent = prg_config_int(r, t, "routed_expert_hidden_size", 1, MOST_WIDTH, 0);
    c->latent_norm = c->expert_latent > 0 && prg_config_flag(r, t, "latent_moe_use_norm", false);
    read_router(r, c);
}

static void expect_int(prg_config_reader *r, const prg_json *object, const char *key, int64_t wanted) {
    const prg_json *value = prg_config_get(object, key);
    int64_t number;
    if (value && (!prg_json_int(value, &number) || number != wanted)) {
        prg_config_fail(r, PERIGEE_E_UNSUPPORTED, key, "only %lld is supported", (long long)wanted);
    }
}

static void read_packed_groups(prg_config_reader *r, const prg_json *quantization) {
    static const char *const strategies[] = {"group", NULL};
    const prg_json *groups = prg_config_get(quantization, "config_groups");
    for (const prg_json *group = groups ? groups->first : NULL; group; group = group->next) {
        const prg_json *weights = prg_config_get(group, "weights");
        expect_int(r, weights, "num_bits", 4);
        expect_int(r, weights, "group_size", 32);
        prg_config_choice(r, weights, "strategy", strategies, 0);
        if (!prg_config_flag(r, weights, "symmetric", true)) {
            prg_config_fail(r, PERIGEE_E_UNSUPPORTED, "symmetric", "zero points are not supported");
        }
    }
}

static void read_quantization(prg_config_reader *r, prg_config *c) {
    static const char *const methods[] = {"fp8", "compressed-tensors", NULL};
    static const char *const formats[] = {"mxfp4-pack-quantized", "pack-quantized", NULL};
    static const char *const kinds[] = {"e4m3", NULL};
    const prg_json *q = prg_config_get(r->text, "quantization_config");
    q = q ? q : prg_config_get(r->top, "quantization_config");
    c->quantization = PRG_QUANT_NONE;
    if (!q) {
        return;
    }
    int method = prg_config_choice(r, q, "quant_method", methods, -1);
    if (method == 0) {
        c->quantization = PRG_QUANT_FP8;
        prg_config_choice(r, q, "fmt", kinds, 0);
        const prg_json *block = prg_config_get(q, "weight_block_size");
        for (const prg_json *side = block ? block->first : NULL; side; side = side->next) {
            int64_t size;
            if (!prg_json_int(side, &size) || size != 128) {
                prg_config_fail(r, PERIGEE_E_UNSUPPORTED, "weight_block_size", "only 128 x 128 is supported");
            }
        }
    } else if (method == 1) {
        int format = prg_config_choice(r, q, "format", formats, -1);
        c->quantization = format == 0 ? PRG_QUANT_MXFP4 : PRG_QUANT_INT4;
        read_packed_groups(r, q);
        if (format < 0) {
            prg_config_fail(r, PERIGEE_E_CONFIG, "format", "missing");
        }
    } else {
        prg_config_fail(r, PERIGEE_E_CONFIG, "quant_method", "missing");
    }
}

static void add_end_id(prg_config_reader *r, prg_config *c, const prg_json *value) {
    int64_t id;
    if (!prg_json_int(value, &id) || id < 0 || id > INT32_MAX) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "eos_token_id", "not a token id");
        return;
    }
    for (size_t i = 0; i < c->end_count; i++) {
        if (c->end_ids[i] == id) {
            return;
        }
    }
    if (c->end_count == PRG_MAX_END_IDS) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "eos_token_id", "more than %d different ids", PRG_MAX_END_IDS);
        return;
    }
    c->end_ids[c->end_count++] = (int32_t)id;
}

static void add_end_ids(prg_config_reader *r, prg_config *c, const prg_json *object) {
    const prg_json *value = prg_config_get(object, "eos_token_id");
    if (value && value->kind == PRG_JSON_ARRAY) {
        for (const prg_json *item = value->first; item; item = item->next) {
            add_end_id(r, c, item);
        }
    } else if (value) {
        add_end_id(r, c, value);
    }
}

static void read_ids(prg_config_reader *r, prg_config *c) {
    const prg_json *from = prg_config_get(r->text, "bos_token_id") ? r->text : r->top;
    c->bos =
        prg_config_get(from, "bos_token_id") ? prg_config_int(r, from, "bos_token_id", 0, INT32_MAX, PRG_REQUIRED) : -1;
    add_end_ids(r, c, r->text);
    add_end_ids(r, c, r->top);
}

static void find_architecture(prg_config_reader *r, prg_config *c) {
    const prg_json *type = prg_config_get(r->top, "model_type");
    type = type ? type : prg_config_get(r->text, "model_type");
    if (!type || type->kind != PRG_JSON_STRING) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "model_type", "missing");
        return;
    }
    c->arch = prg_arch_find(type->text, &c->family);
    if (!c->arch) {
        prg_config_fail(r, PERIGEE_E_UNSUPPORTED, "model_type", "\"%.64s\" is not supported", type->text);
    }
}

static void read_all(prg_config_reader *r, prg_config *c, prg_arena *arena) {
    const prg_json *nested = prg_config_get(r->top, "text_config");
    r->text = nested ? nested : r->top;
    if (r->top->kind != PRG_JSON_OBJECT || r->text->kind != PRG_JSON_OBJECT) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "config", "not an object");
        return;
    }
    find_architecture(r, c);
    if (r->status == PERIGEE_OK) {
        read_shape(r, c);
    }
    if (r->status == PERIGEE_OK) {
        read_latent_attention(r, c);
        read_delta_attention(r, c, arena);
    }
    if (r->status == PERIGEE_OK) {
        read_feed_forward(r, c);
        read_quantization(r, c);
        read_ids(r, c);
    }
    int64_t total;
    if (r->status == PERIGEE_OK && (!prg_component_total(c, &total) || total > most_elements)) {
        prg_config_fail(r, PERIGEE_E_CONFIG, "sizes", "their product is absurd");
    }
}

perigee_status prg_config_parse(prg_arena *arena, const char *text, size_t length, const char *file, prg_config *out,
                                perigee_error **err) {
    prg_config_reader r = {.file = file, .err = err};
    prg_config c = {.bos = -1};
    perigee_status st = prg_json_parse(arena, text, length, DEPTH, file, &r.top, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    read_all(&r, &c, arena);
    if (r.status == PERIGEE_OK) {
        *out = c;
    }
    return r.status;
}

/* The end ids of generation_config.json, if there is one. */
static perigee_status read_generation(prg_arena *arena, const char *path, prg_config *c, perigee_error **err) {
    perigee_error *error = NULL;
    prg_config_reader r = {.file = path, .err = err};
    char *text;
    size_t length;
    perigee_status st = prg_file_load(arena, path, NULL, LARGEST_FILE, &text, &length, &error);
    if (st == PERIGEE_E_NOT_FOUND) {
        perigee_error_free(error);
        return PERIGEE_OK;
    }
    if (st != PERIGEE_OK) {
        if (err) {
            *err = error;
        } else {
            perigee_error_free(error);
        }
        return st;
    }
    st = prg_json_parse(arena, text, length, DEPTH, path, &r.top, err);
    if (st == PERIGEE_OK) {
        add_end_ids(&r, c, r.top);
        st = r.status;
    }
    return st;
}

perigee_status prg_config_read(prg_arena *arena, const char *path, prg_config *out, perigee_error **err) {
    bool folder = prg_os_is_folder(path);
    size_t room = strlen(path) + sizeof "/generation_config.json";
    char *file = prg_arena_alloc(arena, room, 1), *generation = prg_arena_alloc(arena, room, 1), *text;
    size_t length;
    if (!file || !generation) {
        return prg_fail_memory(err);
    }
    snprintf(file, room, folder ? "%s/config.json" : "%s", path);
    snprintf(generation, room, "%s/generation_config.json", path);
    prg_config c;
    perigee_status st = prg_file_load(arena, file, NULL, LARGEST_FILE, &text, &length, err);
    if (st == PERIGEE_OK) {
        st = prg_config_parse(arena, text, length, file, &c, err);
    }
    if (st == PERIGEE_OK && folder) {
        st = read_generation(arena, generation, &c, err);
    }
    if (st == PERIGEE_OK) {
        *out = c;
    }
    return st;
}
