/* What a plan says of weights, against what a load takes. */
#include "base/error.h"
#include "model/model.h"
#include "perigee/perigee.h"
#include "support/copy_case.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static host counted;
static perigee_context *context;

static void setup(void) {
    memset(&counted, 0, sizeof counted);
    perigee_allocator allocator = host_allocator(&counted);
    perigee_options *options = golden_options("threads=2");
    ck_assert_int_eq(perigee_context_new(options, &allocator, NULL, NULL, &context, NULL), PERIGEE_OK);
    perigee_options_free(options);
}

static void teardown(void) {
    perigee_context_free(context);
    ck_assert_int_eq(atomic_load(&counted.bytes), 0);
}

static perigee_plan make(const char *name, const char *text) {
    char path[512];
    perigee_options *options = golden_options(text);
    perigee_error *err = NULL;
    perigee_plan p = {.struct_size = sizeof p};
    snprintf(path, sizeof path, PRG_FIXTURES "/golden/%s", name);
    golden_ok(perigee_model_plan(context, path, SIZE_MAX, options, &p, &err), err);
    perigee_options_free(options);
    return p;
}

START_TEST(a_load_takes_what_was_planned) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        perigee_plan p = make(golden_cases[i], "weights=resident"), q = make(golden_cases[i], "weights=mapped");
        long long before = atomic_load(&counted.bytes);
        perigee_model *model = golden_model(context, golden_cases[i], "weights=resident");
        long long taken = atomic_load(&counted.bytes) - before;
        perigee_model_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(perigee_model_get_info(model, &info, NULL), PERIGEE_OK);
        ck_assert_int_eq(p.disk_bytes, info.weight_bytes);
        ck_assert_int_eq(p.resident_bytes, info.resident_bytes);
        ck_assert_int_eq(p.token_bytes, info.token_bytes);
        ck_assert_int_eq(q.token_bytes, info.token_bytes);
        ck_assert_int_eq(q.resident_bytes, 0);
        ck_assert(p.mapped == 0 && q.mapped == 1 && p.fits == 1);
        /* an arena takes whole blocks of 64 KB */
        ck_assert_msg(llabs(taken - p.table_bytes) < 128 * 1024, "%s: %lld taken, %lld planned", golden_cases[i], taken,
                      (long long)p.table_bytes);
        perigee_model_free(model);
    }
}
END_TEST

START_TEST(a_config_alone) {
    static const char *const exact[] = {"kimi_k2", "kimi_k2_fp8", "kimi_k2_int4", "kimi_linear", "moonlight"};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        char config[64];
        snprintf(config, sizeof config, "%s/config.json", exact[i]);
        perigee_plan p = make(exact[i], NULL), q = make(config, NULL);
        ck_assert_int_eq(p.disk_bytes, q.disk_bytes);
        ck_assert_int_eq(p.token_bytes, q.token_bytes);
        ck_assert_int_eq(p.resident_bytes, q.resident_bytes);
        ck_assert_int_eq(p.session_token_bytes, q.session_token_bytes);
    }
    /* the published K3: all of its index but the vision tower and the padding of 69 A_log */
    perigee_plan p = make("configs/kimi_k3/config.json", NULL);
    ck_assert_int_eq(p.disk_bytes, INT64_C(1560860324864) - INT64_C(894717952) - 69 * 32 * 4);
    ck_assert(p.mapped == 1 && p.fits == 0);
    ck_assert_int_eq(p.session_token_bytes, 24 * 576 * 4);
    ck_assert_int_ge(p.session_fixed_bytes, INT64_C(2) * 69 * 96 * 128 * 128 * 4);
}
END_TEST

START_TEST(a_budget) {
    perigee_plan p = make("kimi_k2", "memory_budget=1000000");
    ck_assert_int_eq(p.available_bytes, 1000000);
    ck_assert(p.mapped == 1 && p.fits == 0);
    p = make("kimi_k2", "weights=resident memory_budget=1000000 context=64");
    ck_assert(p.mapped == 0 && p.fits == 0 && p.context == 64);
    p = make("kimi_k2", "memory_budget=2000000000 context=64 chunk=5");
    ck_assert(p.mapped == 0 && p.fits == 1 && p.chunk == 5);
}
END_TEST

START_TEST(one_look_gives_both) {
    perigee_plan p = {.struct_size = sizeof p};
    const char *path = PRG_FIXTURES "/golden/kimi_k3";
    perigee_description *both = NULL, *alone = NULL;
    perigee_totals a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    perigee_options *options = golden_options("context=64 trunk=q8_0");
    golden_ok(perigee_model_inspect(context, path, SIZE_MAX, options, &both, &p, NULL), NULL);
    const perigee_plan expected = make("kimi_k3", "context=64 trunk=q8_0");
    ck_assert(p.resident_bytes == expected.resident_bytes && p.relaid_bytes == expected.relaid_bytes &&
              p.scratch_bytes == expected.scratch_bytes && p.context == 64);
    golden_ok(perigee_model_describe(context, path, SIZE_MAX, &alone, NULL), NULL);
    golden_ok(perigee_description_totals(both, &a, NULL), NULL);
    golden_ok(perigee_description_totals(alone, &b, NULL), NULL);
    ck_assert(a.parameters == b.parameters && a.disk_bytes == b.disk_bytes);
    ck_assert_uint_eq(perigee_description_count(both), perigee_description_count(alone));
    perigee_description_free(both);
    perigee_description_free(alone);
    perigee_options_free(options);
    /* both or none */
    options = golden_options("context=2000000000");
    both = NULL;
    ck_assert_int_ne(perigee_model_inspect(context, path, SIZE_MAX, options, &both, &p, NULL), PERIGEE_OK);
    ck_assert_ptr_null(both);
    golden_ok(perigee_model_inspect(context, path, SIZE_MAX, NULL, NULL, NULL, NULL), NULL);
    perigee_options_free(options);
}
END_TEST

START_TEST(arguments) {
    perigee_plan p = {.struct_size = sizeof p}, small = {.struct_size = 8};
    const char *path = PRG_FIXTURES "/golden/kimi_k2";
    perigee_options *options = golden_options("threads=1");
    ck_assert_int_eq(perigee_model_plan(context, path, SIZE_MAX, options, &p, NULL), PERIGEE_E_SCOPE);
    ck_assert_int_eq(perigee_model_plan(context, path, SIZE_MAX, NULL, &small, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_model_plan(context, "/nowhere", SIZE_MAX, NULL, &p, NULL), PERIGEE_E_NOT_FOUND);
    perigee_options_free(options);
}
END_TEST

PRG_SUITE("plan", setup, teardown, a_load_takes_what_was_planned, a_config_alone, a_budget, one_look_gives_both,
          arguments)
