/* What sessions and passes take: from the host's allocator, by arithmetic for the published sizes, and that steady
 * steps take no more. */
#include "model/config.h"
#include "model/model.h"
#include "session/plan.h"
#include "support/golden.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static void near(const char *what, const char *name, double got, double planned) {
    ck_assert_msg(fabs(got - planned) <= 0.02 * planned, "%s: %s takes %.0f bytes, planned %.0f", name, what, got,
                  planned);
}

static long long held(const host *h) {
    return atomic_load(&((host *)(uintptr_t)h)->bytes);
}

/* Plan, then measure a load, a session, its cache as it grows, and the scratch. */
static void measure(const char *name, const char *session_options) {
    host h = {0};
    perigee_allocator allocator = host_allocator(&h);
    perigee_context *context = NULL;
    perigee_options *threads = golden_options("threads=2");
    golden_ok(perigee_context_new(threads, &allocator, NULL, NULL, &context, NULL), NULL);
    perigee_options_free(threads);

    char path[512];
    perigee_options *options = golden_options(session_options);
    perigee_plan plan = {.struct_size = sizeof plan};
    perigee_error *err = NULL;
    golden_ok(perigee_model_plan(context, golden_path(name, path, sizeof path), SIZE_MAX, options, &plan, &err), err);
    ck_assert_int_eq(plan.fits, 1);

    perigee_model *model = golden_model(context, name, NULL);
    perigee_model_info info = {.struct_size = sizeof info};
    golden_ok(perigee_model_get_info(model, &info, NULL), NULL);
    near("weights", name, (double)info.resident_bytes, (double)plan.resident_bytes);

    golden g = golden_read(name);
    const long long before = held(&h);
    perigee_session *session = NULL;
    golden_ok(perigee_session_new(model, options, &session, &err), err);
    golden_step(session, g.ids, g.tokens, PERIGEE_LOGITS_LAST);
    const long long scratch = (long long)context->scratch.capacity;
    ck_assert_uint_le(context->scratch.peak, context->scratch.capacity);
    near("scratch", name, (double)scratch, (double)plan.scratch_bytes);
    const long long blocks = ((long long)g.tokens + plan.cache_block_tokens - 1) / plan.cache_block_tokens;
    const long long planned = plan.session_fixed_bytes + blocks * plan.cache_block_tokens * plan.session_token_bytes;
    near("session", name, (double)(held(&h) - before - scratch), (double)planned);

    perigee_statistics statistics = {.struct_size = sizeof statistics};
    golden_ok(perigee_session_statistics(session, &statistics, NULL), NULL);
    near("session, as it says", name, (double)statistics.memory_bytes, (double)planned);

    perigee_session_free(session);
    perigee_model_free(model);
    perigee_options_free(options);
    perigee_context_free(context);
    ck_assert_int_eq(held(&h), 0);
    free(g.file);
}

START_TEST(as_planned) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        measure(golden_cases[i], "context=256");
        measure(golden_cases[i], "context=256 chunk=16 cache_type=bfloat16");
    }
}
END_TEST

/* A steady step takes no memory, and no pass takes more scratch than was planned, whatever its shape. */
START_TEST(steady_steps_allocate_nothing) {
    for (size_t c = 0; c < GOLDEN_CASES; c++) {
        host h = {0};
        perigee_allocator allocator = host_allocator(&h);
        perigee_context *context = NULL;
        golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &context, NULL), NULL);
        perigee_model *model = golden_model(context, golden_cases[c], NULL);
        golden g = golden_read(golden_cases[c]);
        for (size_t chunk = 1; chunk <= 33; chunk += 8) {
            char text[32];
            snprintf(text, sizeof text, "chunk=%zu context=128", chunk);
            perigee_session *session = golden_session(model, text);
            golden_step(session, g.ids, chunk, PERIGEE_LOGITS_LAST);
            const long long calls = atomic_load(&h.calls);
            for (int i = 0; i < 20; i++) {
                golden_step(session, &g.ids[i], 1, PERIGEE_LOGITS_LAST);
            }
            ck_assert_int_eq(atomic_load(&h.calls), calls);
            perigee_session_free(session);
        }
        perigee_model_free(model);
        perigee_context_free(context);
        free(g.file);
    }
}
END_TEST

/* The Moonlight slice that the README speaks of: 8 layers, 64 experts. */
START_TEST(published_sizes) {
    static const struct {
        const char *name;
        int64_t layers; /* 0: as published */
        double most;    /* MB of scratch and session beside the cache, 4,096 tokens */
    } cases[] = {{"moonlight_16b", 8, 64}, {"moonlight_16b", 0, 64}, {"kimi_linear_48b", 0, 208}, {"kimi_k3", 0, 2048}};
    perigee_context *context = golden_context("threads=2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/golden/configs/%s", PRG_FIXTURES, cases[i].name);
        prg_arena arena;
        prg_arena_init(&arena, context->allocator);
        prg_config config;
        prg_session_plan plan;
        perigee_error *err = NULL;
        golden_ok(prg_config_read(&arena, path, &config, &err), err);
        config.layers = cases[i].layers > 0 ? cases[i].layers : config.layers;
        perigee_options *options = golden_options("context=4096");
        golden_ok(prg_session_plan_make(&config, context->table, 2, options, &plan, &err), err);
        const double megabytes = (double)(plan.fixed_bytes + plan.scratch_bytes) / (1 << 20);
        printf("%s, %lld layers: chunk %zu, %.1f MB of scratch, %.1f MB of session beside the cache\n", cases[i].name,
               (long long)config.layers, plan.chunk, (double)plan.scratch_bytes / (1 << 20),
               (double)plan.fixed_bytes / (1 << 20));
        ck_assert_msg(megabytes <= cases[i].most, "%s: %.1f MB", cases[i].name, megabytes);
        ck_assert_uint_ge(plan.chunk, 256);
        perigee_options_free(options);
        prg_arena_free(&arena);
    }
    perigee_context_free(context);
}
END_TEST

PRG_SUITE("session_plan", NULL, NULL, as_planned, steady_steps_allocate_nothing, published_sizes)
