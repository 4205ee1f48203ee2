/* The same bits whatever the threads, chunks, company and place of the weights. */
#include <pthread.h>

#include "support/golden.h"
#include "support/suite.h"

/* Logits of all positions of the prompt, then of four more tokens one by one. */
enum { MORE = 4 };

static size_t floats_of(const golden *g) {
    return (g->tokens + MORE) * g->vocabulary;
}

static void run(perigee_session *session, const golden *g, float *out) {
    const size_t row = g->vocabulary;
    memcpy(out, golden_step(session, g->ids, g->tokens, PERIGEE_LOGITS_ALL), g->tokens * row * sizeof *out);
    for (size_t i = 0; i < MORE; i++) {
        memcpy(out + (g->tokens + i) * row, golden_step(session, &g->greedy[i], 1, PERIGEE_LOGITS_LAST),
               row * sizeof *out);
    }
}

static float *logits_with(const golden *g, const char *name, const char *context_options, const char *model_options,
                          const char *session_options) {
    perigee_context *context = golden_context(context_options);
    perigee_model *model = golden_model(context, name, model_options);
    perigee_session *session = golden_session(model, session_options);
    float *out = malloc(floats_of(g) * sizeof *out);
    run(session, g, out);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    return out;
}

static void same(const golden *g, const float *expected, float *got, const char *name, const char *how) {
    for (size_t i = 0; i < floats_of(g); i++) {
        ck_assert_msg(memcmp(&expected[i], &got[i], sizeof *got) == 0, "%s, %s: position %zu, logit %zu: %a, not %a",
                      name, how, i / g->vocabulary, i % g->vocabulary, (double)got[i], (double)expected[i]);
    }
    free(got);
}

static void check_bits(const char *name, const char *kernels) {
    char one[64], two[64], five[64];
    snprintf(one, sizeof one, "kernels=%s threads=1", kernels);
    snprintf(two, sizeof two, "kernels=%s threads=2", kernels);
    snprintf(five, sizeof five, "kernels=%s threads=5", kernels);
    golden g = golden_read(name);
    float *base = logits_with(&g, name, one, "weights=resident", NULL);
    same(&g, base, logits_with(&g, name, two, NULL, NULL), name, "two threads");
    same(&g, base, logits_with(&g, name, five, NULL, NULL), name, "five threads");
    same(&g, base, logits_with(&g, name, one, "weights=mapped", NULL), name, "mapped weights");
    same(&g, base, logits_with(&g, name, one, NULL, "chunk=1"), name, "chunks of 1");
    same(&g, base, logits_with(&g, name, two, NULL, "chunk=3"), name, "chunks of 3");
    same(&g, base, logits_with(&g, name, five, NULL, "chunk=7"), name, "chunks of 7");
    same(&g, base, logits_with(&g, name, two, NULL, "chunk=64"), name, "chunks of 64");
    free(base);
    free(g.file);
}

static void check_all(const char *kernels) {
    char options[64];
    snprintf(options, sizeof options, "kernels=%s", kernels);
    perigee_context *context = golden_context(options);
    for (size_t i = 0; context && i < GOLDEN_CASES; i++) {
        check_bits(golden_cases[i], kernels);
    }
    perigee_context_free(context);
}

START_TEST(scalar) {
    check_all("scalar");
}
END_TEST

START_TEST(avx2) {
    check_all("avx2");
}
END_TEST

START_TEST(chosen) {
    check_all("auto");
}
END_TEST

typedef struct worker {
    perigee_session *session;
    const golden *g;
    float *out;
    int rounds;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    for (int i = 0; i < w->rounds; i++) {
        perigee_session_reset(w->session);
        run(w->session, w->g, w->out);
    }
    return NULL;
}

/* Four sessions of one model from four threads at once, each with a chunk of its own. */
START_TEST(among_four) {
    static const char *const names[] = {"kimi_k3", "kimi_linear", "moonlight"};
    static const char *const chunks[] = {"chunk=1", "chunk=5", "chunk=16", ""};
    for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
        golden g = golden_read(names[c]);
        perigee_context *context = golden_context("threads=2");
        perigee_model *model = golden_model(context, names[c], NULL);
        perigee_session *alone = golden_session(model, NULL);
        float *base = malloc(floats_of(&g) * sizeof *base);
        run(alone, &g, base);
        worker workers[4];
        pthread_t threads[4];
        for (size_t i = 0; i < 4; i++) {
            workers[i] = (worker){golden_session(model, chunks[i]), &g, malloc(floats_of(&g) * sizeof(float)), 3};
            ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        /* the sessions hold what they need */
        perigee_model_free(model);
        perigee_context_free(context);
        for (size_t i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            same(&g, base, workers[i].out, names[c], "among four");
            perigee_session_free(workers[i].session);
        }
        perigee_session_free(alone);
        free(base);
        free(g.file);
    }
}
END_TEST

/* The trace of one layer. */
typedef struct one_layer {
    int64_t layer;
    float *values; /* [tokens + MORE, hidden] */
} one_layer;

static int keep_layer(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values, void *user) {
    one_layer *l = user;
    if (layer == l->layer) {
        memcpy(l->values + (size_t)position * hidden, values, rows * hidden * sizeof *values);
    }
    return 0;
}

/* A cache of bfloat16 is near after the first layer that has one (later ones route some tokens to other experts), and
 * the same bits in chunks too. */
START_TEST(cache_of_bfloat16) {
    static const struct {
        const char *name;
        int64_t layer;
    } cases[] = {{"kimi_k2_long", 0}, {"kimi_linear", 3}, {"moonlight", 0}};
    perigee_context *context = golden_context("threads=2");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const char *name = cases[c].name;
        golden g = golden_read(name);
        perigee_model *model = golden_model(context, name, NULL);
        perigee_session *session = golden_session(model, "cache_type=bfloat16");
        const size_t floats = g.tokens * g.hidden;
        one_layer l = {cases[c].layer, malloc((floats + MORE * g.hidden) * sizeof(float))};
        perigee_session_set_trace(session, keep_layer, &l, NULL);
        float *base = malloc(floats_of(&g) * sizeof *base);
        run(session, &g, base);
        const double far = golden_distance(l.values, g.trace + (size_t)l.layer * floats, floats);
        ck_assert_msg(far > 1e-5 && far < 4e-3, "%s: %g", name, far);
        same(&g, base, logits_with(&g, name, "threads=1", NULL, "cache_type=bfloat16 chunk=7"), name,
             "bfloat16 in chunks of 7");
        perigee_session_free(session);
        perigee_model_free(model);
        free(l.values);
        free(base);
        free(g.file);
    }
    perigee_context_free(context);
}
END_TEST

/* A session that is reset is a new one. */
START_TEST(reset) {
    golden g = golden_read("kimi_k3");
    perigee_context *context = golden_context("threads=1");
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *session = golden_session(model, NULL);
    float *first = malloc(floats_of(&g) * sizeof *first), *second = malloc(floats_of(&g) * sizeof *second);
    run(session, &g, first);
    golden_step(session, g.ids + 3, 9, PERIGEE_LOGITS_NONE);
    perigee_session_reset(session);
    ck_assert_int_eq(perigee_session_position(session), 0);
    run(session, &g, second);
    same(&g, first, second, "kimi_k3", "after a reset");
    free(first);
    free(g.file);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
}
END_TEST

PRG_SUITE("determinism", NULL, NULL, scalar, avx2, chosen, among_four, cache_of_bfloat16, reset)
