/* Logits, layer traces and greedy continuations of the golden cases, under each kernel table. */
#include "support/golden.h"
#include "support/suite.h"

/* Largest error of logits and traces, in parts of the largest value. */
static const double exact = 2e-5, balanced = 2e-3;

typedef struct traced {
    float *values; /* [layers, tokens, hidden] */
    size_t tokens, calls;
} traced;

static int keep(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values, void *user) {
    traced *t = user;
    memcpy(t->values + ((size_t)layer * t->tokens + (size_t)position) * hidden, values, rows * hidden * sizeof *values);
    t->calls++;
    return 0;
}

static void check_trace(const char *name, const golden *g, const traced *t, double bound) {
    for (size_t i = 0; i < g->layers; i++) {
        const size_t at = i * g->tokens * g->hidden;
        const double far = golden_distance(t->values + at, g->trace + at, g->tokens * g->hidden);
        ck_assert_msg(far < bound, "%s: layer %zu is off by %g of its largest value", name, i, far);
    }
}

static void check_greedy(const char *name, const golden *g, perigee_session *session, const float *last) {
    for (size_t i = 0; i < g->greedy_count; i++) {
        const int32_t id = golden_argmax(last, g->vocabulary);
        ck_assert_msg(id == g->greedy[i], "%s: greedy token %zu is %d, not %d", name, i, (int)id, (int)g->greedy[i]);
        last = golden_step(session, &id, 1, PERIGEE_LOGITS_LAST);
    }
}

static double check_case(perigee_context *context, const char *name, const char *options, double bound) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *session = golden_session(model, options);
    traced t = {calloc(g.layers * g.tokens * g.hidden, sizeof(float)), g.tokens, 0};
    perigee_session_set_trace(session, keep, &t, NULL);
    const float *logits = golden_step(session, g.ids, g.tokens, PERIGEE_LOGITS_ALL);
    ck_assert_uint_ge(t.calls, g.layers);
    check_trace(name, &g, &t, bound);
    const double far = golden_distance(logits, g.logits, g.tokens * g.vocabulary);
    ck_assert_msg(far < bound, "%s: logits are off by %g of the largest", name, far);
    perigee_session_set_trace(session, NULL, NULL, NULL);
    size_t position = g.tokens;
    if (bound <= exact) { /* random weights come close to a tie now and then, too close for less */
        check_greedy(name, &g, session, logits + (g.tokens - 1) * g.vocabulary);
        position += g.greedy_count;
    }
    ck_assert_int_eq(perigee_session_position(session), (int64_t)position);
    perigee_session_free(session);
    perigee_model_free(model);
    free(t.values);
    free(g.file);
    return far;
}

static void check_table(const char *kernels, const char *precision, double bound) {
    char options[96];
    snprintf(options, sizeof options, "kernels=%s precision=%s threads=2", kernels, precision);
    perigee_context *context = golden_context(options);
    if (!context) {
        printf("kernels=%s: this processor has none\n", kernels);
        return;
    }
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        const double far = check_case(context, golden_cases[i], NULL, bound);
        printf("kernels=%s %s, %s: logits within %.2g of the largest\n", kernels, precision, golden_cases[i], far);
    }
    perigee_context_free(context);
}

START_TEST(scalar) {
    check_table("scalar", "exact", exact);
}
END_TEST

START_TEST(avx2) {
    check_table("avx2", "exact", exact);
}
END_TEST

START_TEST(avx512) {
    check_table("avx512", "exact", exact);
}
END_TEST

START_TEST(amx) {
    check_table("amx", "exact", exact);
}
END_TEST

START_TEST(chosen) {
    check_table("auto", "exact", exact);
}
END_TEST

START_TEST(less_than_exact) {
    check_table("scalar", "balanced", balanced);
    check_table("auto", "balanced", balanced);
}
END_TEST

/* The trace of a prompt in chunks tells the positions of each. */
START_TEST(trace_in_chunks) {
    perigee_context *context = golden_context("threads=1 precision=exact");
    check_case(context, "kimi_k3", "chunk=7", exact);
    perigee_context_free(context);
}
END_TEST

PRG_SUITE("golden", NULL, NULL, scalar, avx2, avx512, amx, chosen, less_than_exact, trace_in_chunks)
