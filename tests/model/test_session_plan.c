/* What sessions and passes take, by arithmetic for the published sizes, and that steady steps take no more. */
#include "model/config.h"
#include "model/model.h"
#include "session/plan.h"
#include "support/golden.h"
#include "support/host_allocator.h"
#include "support/suite.h"

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
    } cases[] = {{"moonlight_16b", 8, 64}, {"moonlight_16b", 0, 64}, {"kimi_linear_48b", 0, 192}, {"kimi_k3", 0, 2048}};
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

PRG_SUITE("session_plan", NULL, NULL, steady_steps_allocate_nothing, published_sizes)
