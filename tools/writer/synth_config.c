/* config.json and generation_config.json of a family, with the keys of the published ones. */
#include <jansson.h>
#include <stdio.h>

#include "synth_family.h"

static void set_int(json_t *object, const char *key, int64_t value) {
    json_object_set_new(object, key, json_integer(value));
}

static void set_real(json_t *object, const char *key, double value) {
    json_object_set_new(object, key, json_real(value));
}

static void set_bool(json_t *object, const char *key, bool value) {
    json_object_set_new(object, key, json_boolean(value));
}

static void set_text(json_t *object, const char *key, const char *value) {
    json_object_set_new(object, key, json_string(value));
}

static json_t *quantization(const synth_family *f) {
    if (f->store == SYNTH_FP8) {
        return json_pack("{s:s,s:s,s:s,s:[i,i]}", "quant_method", "fp8", "fmt", "e4m3", "activation_scheme", "dynamic",
                         "weight_block_size", 128, 128);
    }
    bool fp4 = f->store == SYNTH_MXFP4;
    json_t *weights = json_pack("{s:i,s:s,s:i,s:s,s:b,s:b}", "num_bits", 4, "type", fp4 ? "float" : "int", "group_size",
                                32, "strategy", "group", "symmetric", 1, "dynamic", 0);
    json_t *ignore = json_pack("[s,s,s,s]", "lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                               "re:.*mlp\\.(gate|up|gate_up|down)_proj.*");
    const char *format = fp4 ? "mxfp4-pack-quantized" : "pack-quantized";
    return json_pack("{s:s,s:s,s:s,s:{s:{s:[s],s:o,s:n}},s:o}", "quant_method", "compressed-tensors", "format", format,
                     "quantization_status", "compressed", "config_groups", "group_0", "targets", "Linear", "weights",
                     weights, "input_activations", "ignore", ignore);
}

static json_t *linear_attention(const synth_family *f) {
    json_t *kda = json_array();
    json_t *full = json_array();
    for (int64_t i = 0; i < f->layers; i++) {
        json_array_append_new(synth_is_kda(f, i) ? kda : full, json_integer(i + 1));
    }
    json_t *linear = json_pack("{s:o,s:o}", "kda_layers", kda, "full_attn_layers", full);
    set_int(linear, "num_heads", f->kda_heads);
    set_int(linear, "head_dim", f->kda_dim);
    set_int(linear, "short_conv_kernel_size", f->taps);
    if (f->inner_full_rank) {
        set_bool(linear, "use_full_rank_gate", true);
        set_real(linear, "gate_lower_bound", -5.0);
    }
    return linear;
}

static void add_linear(json_t *c, const synth_family *f) {
    set_int(c, "num_experts", f->experts);
    set_int(c, "num_experts_per_token", f->top_k);
    set_int(c, "num_shared_experts", f->shared);
    set_int(c, "num_expert_group", 1);
    set_int(c, "topk_group", 1);
    set_bool(c, "use_grouped_topk", true);
    set_bool(c, "moe_renormalize", true);
    set_text(c, "moe_router_activation_func", "sigmoid");
    set_bool(c, "mla_use_nope", true);
    json_object_set_new(c, "linear_attn_config", linear_attention(f));
    if (f->head_dim) {
        set_int(c, "head_dim", f->head_dim);
    }
    if (f->inner_full_rank) {
        set_text(c, "topk_method", "noaux_tc");
        set_real(c, "activation_situ_beta", 4.0);
        set_real(c, "activation_situ_linear_beta", 25.0);
        set_bool(c, "mla_use_output_gate", true);
        set_int(c, "attn_res_block_size", f->residual_block);
        set_int(c, "routed_expert_hidden_size", f->latent);
        set_bool(c, "latent_moe_use_norm", true);
        set_int(c, "max_position_embeddings", f->context);
    } else {
        set_int(c, "model_max_length", f->context);
    }
}

static void add_deepseek(json_t *c, const synth_family *f) {
    set_int(c, "n_routed_experts", f->experts);
    set_int(c, "num_experts_per_tok", f->top_k);
    set_int(c, "n_shared_experts", f->shared);
    set_int(c, "n_group", 1);
    set_int(c, "topk_group", 1);
    set_bool(c, "norm_topk_prob", true);
    set_text(c, "scoring_func", "sigmoid");
    set_text(c, "topk_method", "noaux_tc");
    set_bool(c, "seq_aux", true);
    set_real(c, "aux_loss_alpha", 0.001);
    set_bool(c, "attention_bias", false);
    set_int(c, "max_position_embeddings", f->context);
    if (f->yarn_factor > 0) {
        json_object_set_new(c, "rope_scaling",
                            json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:i}", "type", "yarn", "factor", f->yarn_factor,
                                      "beta_fast", f->yarn_beta_fast, "beta_slow", 1.0, "mscale", 1.0, "mscale_all_dim",
                                      1.0, "original_max_position_embeddings", 4096));
    }
}

static json_t *text_config(const synth_family *f) {
    json_t *c = json_pack("{s:[s],s:s}", "architectures", f->architecture, "model_type", f->model_type);
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"vocab_size", f->vocabulary},
                 {"hidden_size", f->hidden},
                 {"intermediate_size", f->intermediate},
                 {"moe_intermediate_size", f->moe_intermediate},
                 {"num_hidden_layers", f->layers},
                 {"num_attention_heads", f->heads},
                 {"num_key_value_heads", f->heads},
                 {"kv_lora_rank", f->kv_rank},
                 {"qk_nope_head_dim", f->nope},
                 {"qk_rope_head_dim", f->rope},
                 {"v_head_dim", f->value},
                 {"first_k_dense_replace", 1},
                 {"moe_layer_freq", 1},
                 {"num_nextn_predict_layers", 0},
                 {"bos_token_id", f->vocabulary > 256 ? f->vocabulary - 256 : 0},
                 {"eos_token_id", f->eos}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        set_int(c, sizes[i].key, sizes[i].value);
    }
    json_object_set_new(c, "q_lora_rank", f->q_rank ? json_integer(f->q_rank) : json_null());
    set_text(c, "hidden_act", f->inner_full_rank ? "situ" : "silu");
    set_real(c, "initializer_range", 0.02);
    set_real(c, "rms_norm_eps", f->eps);
    set_real(c, "routed_scaling_factor", f->routed_scale);
    set_bool(c, "tie_word_embeddings", false);
    set_bool(c, "use_cache", true);
    set_text(c, "torch_dtype", "bfloat16");
    if (f->rope_theta > 0) {
        set_real(c, "rope_theta", f->rope_theta);
        json_object_set_new(c, "rope_scaling", json_null());
    }
    (f->linear ? add_linear : add_deepseek)(c, f);
    if (f->store != SYNTH_BF16) {
        json_object_set_new(c, "quantization_config", quantization(f));
    }
    return c;
}

static bool write_json(json_t *document, const char *folder, const char *name) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    bool good =
        length > 0 && (size_t)length < sizeof path && document && json_dump_file(document, path, JSON_INDENT(2)) == 0;
    json_decref(document);
    return good;
}

bool synth_write_configs(const synth_family *f, const char *folder) {
    json_t *config = text_config(f);
    if (f->wrapper) {
        config = json_pack("{s:[s],s:s,s:b,s:o,s:{s:i}}", "architectures", f->wrapper, "model_type", f->wrapper_type,
                           "tie_word_embeddings", 0, "text_config", config, "vision_config", "hidden_size", 1024);
    }
    /* the chat models end a turn with the id after the one that ends a text */
    int64_t end = f->store == SYNTH_FP8 || f->wrapper_type ? f->vocabulary - (163840 - 163586) : f->eos;
    json_t *generation = json_pack("{s:I,s:I}", "max_length", (json_int_t)f->context, "eos_token_id",
                                   (json_int_t)(end >= 0 ? end : f->eos));
    bool good = write_json(config, folder, "config.json");
    return write_json(generation, folder, "generation_config.json") && good;
}
