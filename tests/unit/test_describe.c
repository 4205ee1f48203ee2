#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "model/describe.h"
#include "support/suite.h"

static prg_allocator *allocator;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
}

static void teardown(void) {
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static perigee_description *describe(const char *name) {
    char path[512];
    prg_checkpoint checkpoint;
    perigee_description *d = NULL;
    perigee_error *error = NULL;
    snprintf(path, sizeof path, PRG_FIXTURES "/golden/%s", name);
    perigee_status st = prg_checkpoint_open(allocator, NULL, NULL, path, true, &checkpoint, &error);
    if (st == PERIGEE_OK) {
        st = prg_describe(&checkpoint, &d, &error);
    }
    prg_checkpoint_close(&checkpoint);
    ck_assert_msg(st == PERIGEE_OK, "%s: %s", name, perigee_error_message(error));
    return d;
}

/* The row of a name, or a failed test. */
static const perigee_component *row(const perigee_description *d, const char *name) {
    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->components[i].name, name) == 0) {
            return &d->components[i];
        }
    }
    ck_abort_msg("no component %s", name);
    return NULL;
}

START_TEST(test_totals_of_published_models) {
    static const struct {
        const char *name;
        int64_t parameters;
    } cases[] = {{"configs/kimi_k3", INT64_C(2779484476000)},
                 {"configs/kimi_k2_instruct", INT64_C(1026408232448)},
                 {"configs/kimi_k25", INT64_C(1026408232448)},
                 {"configs/kimi_linear_48b", INT64_C(49122681728)},
                 {"configs/moonlight_16b", INT64_C(15960110208)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_description *d = describe(cases[i].name);
        ck_assert_msg(d->totals.parameters == cases[i].parameters, "%s: %lld", cases[i].name,
                      (long long)d->totals.parameters);
        ck_assert_int_eq(d->totals.disk_parameters, -1);
        ck_assert_int_eq(d->totals.disk_bytes, -1);
        prg_description_free(d);
    }
}
END_TEST

START_TEST(test_rows_of_the_atlas) {
    perigee_description *d = describe("configs/kimi_k3");
    const perigee_component *norm = row(d, "mla.ffn_norm"), *latent = row(d, "kda.moe.routed_expert_norm");
    ck_assert_str_eq(norm->formula, "7,168 × 24 MLA layers = 172,032");
    ck_assert_str_eq(norm->shape, "[7168]");
    ck_assert_int_eq(norm->per_instance, 7168);
    ck_assert_int_eq(norm->instances, 24);
    ck_assert_str_eq(latent->formula, "3,584 × 68 KDA layers with MoE = 243,712");
    ck_assert_int_eq(latent->total, 243712);
    ck_assert_int_eq(d->totals.active, INT64_C(104189619808));
    ck_assert_int_eq(d->totals.kda_layers, 69);
    ck_assert_int_eq(d->totals.mla_layers, 24);
    ck_assert_int_eq(d->totals.moe_layers, 92);
    const perigee_component *experts = row(d, "moe.expert.down");
    ck_assert_str_eq(experts->formula, "3,584 × 3,072 × 896 experts × 92 MoE layers = 907,580,276,736");
    ck_assert_int_eq(experts->active, INT64_C(3584) * 3072 * 16 * 92);
    ck_assert_int_eq(row(d, "embed_tokens")->active, 7168);
    /* the order of the forward pass */
    ck_assert(row(d, "kda.attention_res_norm") < row(d, "kda.input_norm"));
    ck_assert(row(d, "kda.input_norm") < row(d, "kda.q_proj"));
    ck_assert(latent < row(d, "moe.routed_expert_up") && experts < latent);
    ck_assert_ptr_eq(&d->components[d->count - 1], row(d, "lm_head"));
    prg_description_free(d);
    d = describe("configs/kimi_k2_instruct");
    ck_assert_int_eq(row(d, "final_norm")->total, 7168);
    ck_assert_str_eq(row(d, "mla.ffn_norm")->formula, "7,168 × 61 MLA layers = 437,248");
    ck_assert_int_eq(d->totals.active, INT64_C(31687102976));
    prg_description_free(d);
}
END_TEST

START_TEST(test_disk_agrees) {
    static const char *const cases[] = {"kimi_k2",      "kimi_k25", "kimi_k2_fp8",  "kimi_k2_int4",
                                        "kimi_k2_long", "kimi_k3",  "kimi_k3_long", "kimi_k3_dense_experts",
                                        "kimi_linear",  "moonlight"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", cases[i]);
        perigee_description *d = describe(name);
        for (size_t k = 0; k < d->count; k++) {
            const perigee_component *c = &d->components[k];
            ck_assert_msg(c->disk_total == c->total, "%s: %s: %lld on disk, %lld by the config", name, c->name,
                          (long long)c->disk_total, (long long)c->total);
            ck_assert_int_gt(c->disk_bytes, 0);
        }
        ck_assert_int_eq(d->totals.parameters, d->totals.disk_parameters);
        prg_description_free(d);
    }
}
END_TEST

START_TEST(test_stored_forms) {
    static const struct {
        const char *name, *component, *stored;
    } cases[] = {{"kimi_k3", "moe.expert.gate", "MXFP4"},   {"kimi_k2_int4", "moe.expert.gate", "INT4"},
                 {"kimi_k2_fp8", "mla.kv_b_proj", "FP8"},   {"kimi_k2_fp8", "moe.router", "BF16"},
                 {"kimi_k3", "kda.q_conv", "F32"},          {"kimi_linear", "kda.q_conv", "BF16"},
                 {"configs/kimi_k3", "moe.expert.gate", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_description *d = describe(cases[i].name);
        ck_assert_str_eq(row(d, cases[i].component)->stored, cases[i].stored);
        prg_description_free(d);
    }
}
END_TEST

PRG_SUITE("describe", setup, teardown, test_totals_of_published_models, test_rows_of_the_atlas, test_disk_agrees,
          test_stored_forms)
