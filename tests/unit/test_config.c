#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/arch.h"
#include "model/rope.h"
#include "support/suite.h"

static prg_allocator *allocator;
static prg_arena arena;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    prg_arena_init(&arena, allocator);
}

static void teardown(void) {
    prg_arena_free(&arena);
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static prg_config read_case(const char *name) {
    char path[512];
    prg_config c;
    perigee_error *e = NULL;
    snprintf(path, sizeof path, PRG_FIXTURES "/golden/%s", name);
    perigee_status st = prg_config_read(&arena, path, &c, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s: %s", name, perigee_error_message(e));
    return c;
}

static const char small[] =
    "{\"model_type\": \"kimi_linear\", \"vocab_size\": 320, \"hidden_size\": 64, \"num_hidden_layers\": 4,"
    "\"num_attention_heads\": 4, \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8,"
    "\"v_head_dim\": 16, \"intermediate_size\": 96, \"rms_norm_eps\": 1e-5, \"first_k_dense_replace\": 1,"
    "\"num_experts\": 16, \"num_experts_per_token\": 4, \"moe_intermediate_size\": 32,"
    "\"linear_attn_config\": {\"kda_layers\": [1, 2, 3], \"full_attn_layers\": [4], \"num_heads\": 4,"
    "\"head_dim\": 32, \"short_conv_kernel_size\": 4}}";

/* The small config with one piece of its text replaced by another. */
static perigee_status parse_with(const char *old, const char *new, prg_config *out, perigee_error **err) {
    static char text[4096];
    const char *at = strstr(small, old);
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, new, at + strlen(old));
    return prg_config_parse(&arena, text, strlen(text), "config.json", out, err);
}

START_TEST(test_families) {
    prg_config c = read_case("configs/kimi_k3");
    ck_assert_str_eq(c.family, "kimi_k3");
    ck_assert_int_eq(c.layers, 93);
    ck_assert_int_eq(c.kda_layers, 69);
    /* one-based lists: the first MLA layer is the fourth, and the last two are both MLA */
    ck_assert(c.is_kda[0] && c.is_kda[2] && !c.is_kda[3] && c.is_kda[90] && !c.is_kda[91] && !c.is_kda[92]);
    ck_assert(!c.rotary && c.mla_gate && c.full_rank_gate && c.has_lower_bound && c.latent_norm);
    ck_assert_int_eq(c.act.kind, PRG_SITU);
    ck_assert_float_eq(c.act.linear_beta, 25);
    ck_assert_int_eq(c.expert_latent, 3584);
    ck_assert_int_eq(c.quantization, PRG_QUANT_MXFP4);
    ck_assert_int_eq(c.residual_block, 12);
    ck_assert(!prg_config_is_moe(&c, 0) && prg_config_is_moe(&c, 1));
    c = read_case("configs/kimi_k25");
    ck_assert_str_eq(c.family, "kimi_k25");
    ck_assert(c.rotary && c.yarn && c.yarn_beta_fast == 32 && c.yarn_factor == 64);
    ck_assert_int_eq(c.context, 262144);
    ck_assert_int_eq(c.quantization, PRG_QUANT_INT4);
    ck_assert_double_eq(c.eps, 1e-5);
    c = read_case("configs/kimi_linear_48b");
    ck_assert_int_eq(c.context, 1048576); /* by its other key */
    ck_assert(!c.has_lower_bound && !c.full_rank_gate && c.q_rank == 0 && !c.rotary);
    ck_assert_int_eq(c.top_k, 8);
    c = read_case("configs/moonlight_16b");
    ck_assert_str_eq(c.family, "deepseek_v3");
    ck_assert(c.rotary && !c.yarn && c.shared_experts == 2 && c.top_k == 6);
    c = read_case("configs/kimi_k2_instruct");
    ck_assert_int_eq(c.quantization, PRG_QUANT_FP8);
}
END_TEST

START_TEST(test_defaults) {
    prg_config c;
    ck_assert_int_eq(parse_with("320", "320", &c, NULL), PERIGEE_OK);
    ck_assert(c.rotary && c.renormalise && !c.softmax_router && !c.tied_head && !c.latent_norm);
    ck_assert_double_eq(c.rope_theta, 10000);
    ck_assert_double_eq(c.routed_scale, 1);
    ck_assert_int_eq(c.shared_experts, 0);
    ck_assert_int_eq(c.expert_groups, 1);
    ck_assert_int_eq(c.moe_every, 1);
    ck_assert_int_eq(c.bos, -1);
    ck_assert_uint_eq(c.end_count, 0);
    ck_assert_int_eq(c.act.kind, PRG_SILU);
    /* the other family's name of the key does as well; 4.0 is a whole number */
    ck_assert_int_eq(parse_with("num_experts_per_token\": 4", "num_experts_per_tok\": 3.0", &c, NULL), PERIGEE_OK);
    ck_assert_int_eq(c.top_k, 3);
    ck_assert_int_eq(parse_with("\"num_experts\": 16", "\"num_experts\": 16, \"hidden_act\": \"situ\"", &c, NULL),
                     PERIGEE_OK);
    ck_assert_float_eq(c.act.beta, 1);
    ck_assert_float_eq(c.act.linear_beta, 0);
    /* every second layer: zero-based indices that the period divides, the dense ones before apart */
    ck_assert_int_eq(parse_with("\"num_experts\": 16", "\"num_experts\": 16, \"moe_layer_freq\": 2", &c, NULL),
                     PERIGEE_OK);
    ck_assert(!prg_config_is_moe(&c, 0) && !prg_config_is_moe(&c, 1) && prg_config_is_moe(&c, 2));
}
END_TEST

START_TEST(test_end_ids_are_the_union) {
    prg_config c = read_case("kimi_k25");
    ck_assert_uint_eq(c.end_count, 1);
    ck_assert_int_eq(c.end_ids[0], 258);
    ck_assert_int_eq(parse_with("\"num_experts\": 16", "\"num_experts\": 16, \"eos_token_id\": [7, 8, 7]", &c, NULL),
                     PERIGEE_OK);
    ck_assert_uint_eq(c.end_count, 2);
    ck_assert_int_eq(c.end_ids[1], 8);
    ck_assert_int_eq(
        parse_with("\"num_experts\": 16", "\"num_experts\": 16, \"eos_token_id\": -7, \"bos_token_id\": 5", &c, NULL),
        PERIGEE_E_CONFIG);
}
END_TEST

START_TEST(test_bad_values) {
    static const struct {
        const char *old, *new, *key;
    } cases[] = {
        {"\"vocab_size\": 320, ", "", "vocab_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": 0", "hidden_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": -64", "hidden_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": 64.5", "hidden_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": \"64\"", "hidden_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": 1e300", "hidden_size"},
        {"\"hidden_size\": 64", "\"hidden_size\": null", "hidden_size"},
        {"\"num_experts\": 16", "\"num_experts\": 2147483648", "num_experts"},
        {"\"num_experts\": 16, ", "", "num_experts"},
        {"\"num_experts\": 16", "\"num_experts\": 0", "num_experts"},
        {"\"num_experts_per_token\": 4", "\"num_experts_per_token\": 17", "num_experts_per_token"},
        {"\"num_experts_per_token\": 4, ", "", "num_experts_per_token"},
        {"\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1000000", "num_hidden_layers"},
        {"\"rms_norm_eps\": 1e-5", "\"rms_norm_eps\": 0", "rms_norm_eps"},
        {"\"rms_norm_eps\": 1e-5, ", "", "rms_norm_eps"},
        {"\"qk_rope_head_dim\": 8", "\"qk_rope_head_dim\": 7", "qk_rope_head_dim"},
        {"[1, 2, 3]", "[1, 2, 2]", "kda_layers"},
        {"[1, 2, 3]", "[0, 1, 2]", "kda_layers"},
        {"[1, 2, 3]", "[1, 2]", "full_attn_layers"},
        {"[4]", "[3, 4]", "full_attn_layers"},
        {"[1, 2, 3]", "7", "kda_layers"},
        {"\"short_conv_kernel_size\": 4", "\"short_conv_kernel_size\": 0", "short_conv_kernel_size"},
        {"\"short_conv_kernel_size\": 4", "\"short_conv_kernel_size\": 17", "short_conv_kernel_size"},
        {"\"head_dim\": 32", "\"head_dim\": 1025", "head_dim"},
        {"\"num_hidden_layers\": ", "\"attn_res_block_size\": 1, \"num_hidden_layers\": 102", "attn_res_block_size"},
        {"\"num_heads\": 4", "\"num_heads\": 4, \"gate_lower_bound\": 5", "gate_lower_bound"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"num_expert_group\": 3", "num_expert_group"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"num_expert_group\": 8, \"topk_group\": 1", "topk_group"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"moe_renormalize\": 1", "moe_renormalize"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"rope_scaling\": {\"type\": \"yarn\"}", "factor"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"rope_scaling\": 3", "rope_scaling"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"rope_theta\": 1", "rope_theta"},
        {"\"model_type\": \"kimi_linear\", ", "", "model_type"},
        {"\"num_experts\": 16", "\"num_experts\": 16, \"quantization_config\": {}", "quant_method"},
        /* angles beyond any whole number; bytes beyond 63 bits */
        {"\"num_experts\": 16",
         "\"num_experts\": 16, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 1e-300,"
         "\"original_max_position_embeddings\": 4096}",
         "factor"},
        {"\"moe_intermediate_size\": 32",
         "\"moe_intermediate_size\": 1048576, \"num_experts\": 65536, \"hidden_size\": 1048576", "sizes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        prg_config c;
        perigee_error *e = NULL;
        perigee_status st = parse_with(cases[i].old, cases[i].new, &c, &e);
        ck_assert_msg(st == PERIGEE_E_CONFIG, "%s: status %d", cases[i].new, (int)st);
        ck_assert_msg(strstr(perigee_error_message(e), cases[i].key), "%s: %s", cases[i].new, perigee_error_message(e));
        ck_assert_str_eq(perigee_error_file(e), "config.json");
        perigee_error_free(e);
    }
}
END_TEST

START_TEST(test_unsupported) {
    static const char *const cases[] = {
        "\"hidden_act\": \"gelu\"",
        "\"attention_bias\": true",
        "\"moe_router_activation_func\": \"tanh\"",
        "\"topk_method\": \"greedy\"",
        "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
        "\"quantization_config\": {\"quant_method\": \"awq\"}",
        "\"quantization_config\": {\"quant_method\": \"fp8\", \"weight_block_size\": [64, 64]}",
        "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"int-quantized\"}",
        "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
        "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 8, \"group_size\": 32}}}}",
        "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
        "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, \"group_size\": 64}}}}",
        "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\","
        "\"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 4, \"symmetric\": false}}}}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char with[512];
        prg_config c;
        snprintf(with, sizeof with, "\"num_experts\": 16, %s", cases[i]);
        ck_assert_msg(parse_with("\"num_experts\": 16", with, &c, NULL) == PERIGEE_E_UNSUPPORTED, "%s", cases[i]);
    }
    prg_config c;
    ck_assert_int_eq(parse_with("kimi_linear", "llama", &c, NULL), PERIGEE_E_UNSUPPORTED);
}
END_TEST

START_TEST(test_broken_json) {
    static char deep[20000];
    prg_config c;
    memset(deep, '[', sizeof deep);
    ck_assert_int_eq(prg_config_parse(&arena, deep, sizeof deep, "c", &c, NULL), PERIGEE_E_FORMAT);
    ck_assert_int_eq(prg_config_parse(&arena, "{\"a\"", 4, "c", &c, NULL), PERIGEE_E_FORMAT);
    ck_assert_int_eq(prg_config_parse(&arena, "", 0, "c", &c, NULL), PERIGEE_E_FORMAT);
    ck_assert_int_eq(prg_config_parse(&arena, "[]", 2, "c", &c, NULL), PERIGEE_E_CONFIG);
    ck_assert_int_eq(prg_config_parse(&arena, "{\"text_config\": 1}", 18, "c", &c, NULL), PERIGEE_E_CONFIG);
    ck_assert_int_eq(prg_config_read(&arena, PRG_FIXTURES "/none", &c, NULL), PERIGEE_E_NOT_FOUND);
    ck_assert_int_eq(prg_config_read(&arena, PRG_FIXTURES, &c, NULL), PERIGEE_E_NOT_FOUND);
}
END_TEST

/* Figures of the published K2: with both betas 1, pair 19 is as it was and pair 20 wholly stretched. */
START_TEST(test_yarn) {
    prg_config c = read_case("configs/kimi_k2_instruct");
    prg_rope rope;
    double growth;
    ck_assert_int_eq(prg_rope_make(&arena, &c, &rope, &growth, NULL), PERIGEE_OK);
    ck_assert_uint_eq(rope.pairs, 32);
    ck_assert_double_eq_tol(rope.frequency[0], 1, 1e-15);
    ck_assert_double_eq_tol(rope.frequency[19] / 0.00162175991, 1, 1e-8);
    ck_assert_double_eq_tol(rope.frequency[20] / (0.00115649497 / 32), 1, 1e-8);
    ck_assert_double_eq_tol(growth, 1.8132604340, 1e-9);
    ck_assert_float_eq(rope.factor, 1);
    c = read_case("configs/kimi_k25");
    ck_assert_int_eq(prg_rope_make(&arena, &c, &rope, &growth, NULL), PERIGEE_OK);
    ck_assert_double_eq_tol(growth, 2.0047397017, 1e-9);
    /* low 8, high 20: pair 14 is half way */
    double plain = 0.00879428677, half = plain * 0.5 + plain / 64 * 0.5;
    ck_assert_double_eq_tol(rope.frequency[14] / half, 1, 1e-8);
}
END_TEST

PRG_SUITE("config", setup, teardown, test_families, test_defaults, test_end_ids_are_the_union, test_bad_values,
          test_unsupported, test_broken_json, test_yarn)
