/* Generations and scores over real sessions of the golden cases. */
#include "generate/generation.h"
#include "perigee/state.h"
#include "session/session.h"
#include "support/golden.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2 precision=exact");
}

static void teardown(void) {
    perigee_context_free(context);
}

static perigee_generation_options *without_stops(int64_t most) {
    perigee_generation_options *o = NULL;
    golden_ok(perigee_generation_options_new(context, &o, NULL), NULL);
    golden_ok(perigee_generation_options_set_default_stops(o, 0, NULL), NULL);
    golden_ok(perigee_generation_options_set_max_tokens(o, most, NULL), NULL);
    return o;
}

/* Greedy ids of every architecture, pulled, and with a chunk that the prompt does not fit in. */
START_TEST(test_greedy) {
    for (size_t k = 0; k < GOLDEN_CASES; k++) {
        golden g = golden_read(golden_cases[k]);
        perigee_model *model = golden_model(context, golden_cases[k], NULL);
        perigee_session *session = golden_session(model, "chunk=5");
        perigee_generation_options *o = without_stops((int64_t)g.greedy_count);
        perigee_generation *generation = NULL;
        perigee_error *err = NULL;
        golden_ok(perigee_generation_new(session, g.ids, g.tokens, o, &generation, &err), err);
        for (size_t i = 0; i < g.greedy_count; i++) {
            perigee_generated out = {.struct_size = sizeof out};
            golden_ok(perigee_generation_next(generation, &out, &err), err);
            ck_assert_msg(out.id == g.greedy[i], "%s: token %zu", golden_cases[k], i);
            ck_assert_int_eq(out.finish, i + 1 == g.greedy_count ? PERIGEE_FINISH_LENGTH : PERIGEE_FINISH_NONE);
            ck_assert_int_eq(perigee_session_position(session), (int64_t)(g.tokens + i));
            ck_assert(out.seconds > 0);
        }
        perigee_generation_free(generation);
        perigee_generation_options_free(o);
        perigee_session_free(session);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

typedef struct seen {
    int32_t ids[64];
    size_t count, chunks, stop_after;
} seen;

static int see(const perigee_generated *step, void *user) {
    seen *s = user;
    if (step->id < 0) {
        s->chunks += step->finish == PERIGEE_FINISH_NONE;
        return 0;
    }
    s->ids[s->count++] = step->id;
    return s->count == s->stop_after;
}

START_TEST(test_callback) {
    golden g = golden_read("kimi_linear");
    perigee_model *model = golden_model(context, "kimi_linear", NULL);
    for (size_t stop = 0; stop < 4; stop += 3) {
        perigee_session *session = golden_session(model, "chunk=4");
        perigee_generation_options *o = without_stops((int64_t)g.greedy_count);
        perigee_finish finish = PERIGEE_FINISH_NONE;
        perigee_error *err = NULL;
        seen s = {.stop_after = stop};
        golden_ok(perigee_generate(session, g.ids, g.tokens, o, see, &s, &finish, &err), err);
        ck_assert_int_eq(finish, stop ? PERIGEE_FINISH_CALLBACK : PERIGEE_FINISH_LENGTH);
        ck_assert_str_eq(perigee_finish_name(finish), stop ? "callback" : "length");
        ck_assert_uint_eq(s.count, stop ? stop : g.greedy_count);
        ck_assert_uint_eq(s.chunks, (g.tokens + 3) / 4 - 1);
        ck_assert_int_eq(memcmp(s.ids, g.greedy, s.count * sizeof *s.ids), 0);
        perigee_generation_options_free(o);
        perigee_session_free(session);
    }
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* Sampling with penalties gives the same ids again, also when the session is taken up again in the middle. */
START_TEST(test_sampled) {
    golden g = golden_read("kimi_k2");
    perigee_model *model = golden_model(context, "kimi_k2", NULL);
    perigee_sampler *sampler = NULL;
    golden_ok(perigee_sampler_new(context, &sampler, NULL), NULL);
    golden_ok(perigee_sampler_add_repetition(sampler, 1.2, 32, NULL), NULL);
    golden_ok(perigee_sampler_add_temperature(sampler, 1.5, NULL), NULL);
    golden_ok(perigee_sampler_add_top_p(sampler, 0.9, NULL), NULL);
    perigee_sampler_set_seed(sampler, 5);
    seen all[2] = {{.count = 0}};
    for (int k = 0; k < 2; k++) {
        perigee_session *session = golden_session(model, k ? "chunk=3" : NULL);
        perigee_generation_options *o = without_stops(12);
        golden_ok(perigee_generation_options_set_sampler(o, sampler, NULL), NULL);
        golden_ok(perigee_generate(session, g.ids, g.tokens, o, see, &all[k], NULL, NULL), NULL);
        perigee_generation_options_free(o);
        perigee_session_free(session);
    }
    ck_assert_uint_eq(all[0].count, 12);
    ck_assert_int_eq(memcmp(all[0].ids, all[1].ids, 12 * sizeof(int32_t)), 0);
    perigee_sampler_free(sampler);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* A generation that is broken off and taken up by another process goes on as if nothing had been: draws and penalties,
 * with windows shorter and longer than the text. */
static void take_up_again(perigee_model *model, const golden *g, size_t window, size_t at) {
    enum { TOKENS = 14 };
    perigee_sampler *sampler = NULL, *left = NULL, *loaded = NULL;
    perigee_generation *generation = NULL;
    perigee_session *session = golden_session(model, NULL), *other = golden_session(model, NULL);
    seen whole = {.count = 0}, rest = {.count = 0};
    golden_ok(perigee_sampler_new(context, &sampler, NULL), NULL);
    golden_ok(perigee_sampler_add_frequency(sampler, 0.7, window, NULL), NULL);
    golden_ok(perigee_sampler_add_temperature(sampler, 1.5, NULL), NULL);
    perigee_sampler_set_seed(sampler, 9);
    perigee_generation_options *o = without_stops(TOKENS);
    golden_ok(perigee_generation_options_set_sampler(o, sampler, NULL), NULL);
    golden_ok(perigee_generate(session, g->ids, g->tokens, o, see, &whole, NULL, NULL), NULL);
    perigee_session_reset(session);
    golden_ok(perigee_generation_new(session, g->ids, g->tokens, o, &generation, NULL), NULL);
    for (size_t i = 0; i < at; i++) {
        perigee_generated step = {.struct_size = sizeof step};
        golden_ok(perigee_generation_next(generation, &step, NULL), NULL);
        ck_assert_int_eq(step.id, whole.ids[i]);
    }
    golden_ok(perigee_generation_sampler(generation, &left, NULL), NULL);
    size_t size = 0;
    golden_ok(perigee_state_size(session, left, &size, NULL), NULL);
    void *state = malloc(size);
    golden_ok(perigee_state_save(session, left, state, size, &size, NULL), NULL);
    golden_ok(perigee_sampler_new(context, &loaded, NULL), NULL);
    golden_ok(perigee_state_load(other, loaded, state, size, NULL), NULL);
    free(state);
    perigee_generation_options_free(o);
    o = without_stops((int64_t)(TOKENS - at));
    golden_ok(perigee_generation_options_set_sampler(o, loaded, NULL), NULL);
    golden_ok(perigee_generate(other, at ? &whole.ids[at - 1] : g->ids, at ? 1 : g->tokens, o, see, &rest, NULL, NULL),
              NULL);
    ck_assert_uint_eq(rest.count, TOKENS - at);
    ck_assert_msg(memcmp(rest.ids, whole.ids + at, rest.count * sizeof *rest.ids) == 0, "window %zu, broken at %zu",
                  window, at);
    perigee_generation_free(generation);
    perigee_generation_options_free(o);
    perigee_sampler_free(sampler);
    perigee_sampler_free(left);
    perigee_sampler_free(loaded);
    perigee_session_free(session);
    perigee_session_free(other);
}

START_TEST(test_taken_up_with_its_sampler) {
    golden g = golden_read("kimi_k3");
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    const size_t windows[] = {1, 3, 5, 1000}, breaks[] = {0, 1, 7, 13};
    for (size_t i = 0; i < 16; i++) {
        take_up_again(model, &g, windows[i / 4], breaks[i % 4]);
    }
    perigee_sampler *sampler = NULL;
    ck_assert_int_eq(perigee_generation_sampler(NULL, &sampler, NULL), PERIGEE_E_ARGUMENT);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* No prompt: on from where the session stands. */
START_TEST(test_going_on) {
    golden g = golden_read("kimi_k2");
    perigee_model *model = golden_model(context, "kimi_k2", NULL);
    perigee_session *session = golden_session(model, NULL);
    perigee_generation_options *o = without_stops((int64_t)g.greedy_count);
    perigee_generation *generation = NULL;
    seen s = {.count = 0};
    ck_assert_int_eq(perigee_generation_new(session, NULL, 0, o, &generation, NULL), PERIGEE_E_STATE);
    (void)golden_step(session, g.ids, g.tokens, PERIGEE_LOGITS_NONE);
    golden_ok(perigee_generate(session, NULL, 0, o, see, &s, NULL, NULL), NULL);
    ck_assert_int_eq(memcmp(s.ids, g.greedy, g.greedy_count * sizeof *s.ids), 0);
    perigee_generation_options_free(o);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

START_TEST(test_cancelled) {
    golden g = golden_read("kimi_k3");
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *session = golden_session(model, "chunk=4");
    perigee_generation_options *o = without_stops(8);
    perigee_cancel *cancel = NULL;
    perigee_finish finish = PERIGEE_FINISH_NONE;
    golden_ok(perigee_cancel_new(&cancel, NULL), NULL);
    golden_ok(perigee_generation_options_set_cancel(o, cancel, NULL), NULL);
    perigee_cancel_trigger(cancel);
    golden_ok(perigee_generate(session, g.ids, g.tokens, o, NULL, NULL, &finish, NULL), NULL);
    ck_assert_int_eq(finish, PERIGEE_FINISH_CANCELLED);
    ck_assert_int_eq(perigee_session_position(session), 0);
    perigee_cancel_reset(cancel);
    seen s = {.count = 0};
    golden_ok(perigee_generate(session, g.ids, g.tokens, o, see, &s, &finish, NULL), NULL);
    ck_assert_int_eq(memcmp(s.ids, g.greedy, s.count * sizeof *s.ids), 0);
    perigee_cancel_free(cancel);
    perigee_generation_options_free(o);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* Scores against the golden logits in double. */
START_TEST(test_score) {
    golden g = golden_read("kimi_linear");
    perigee_model *model = golden_model(context, "kimi_linear", NULL);
    perigee_session *session = golden_session(model, "chunk=7");
    double *scores = calloc(g.tokens, sizeof *scores);
    perigee_error *err = NULL;
    golden_ok(perigee_score(session, g.ids, g.tokens, scores, NULL, &err), err);
    for (size_t i = 0; i + 1 < g.tokens; i++) {
        const float *row = g.logits + i * g.vocabulary;
        double sum = 0;
        for (size_t k = 0; k < g.vocabulary; k++) {
            sum += exp((double)row[k]);
        }
        ck_assert_double_eq_tol(scores[i], (double)row[g.ids[i + 1]] - log(sum), 1e-3);
    }
    ck_assert_int_eq(perigee_session_position(session), (int64_t)g.tokens);
    ck_assert_int_eq(perigee_score(session, g.ids, 1, scores, NULL, NULL), PERIGEE_E_ARGUMENT);
    const int32_t outside[] = {0, (int32_t)g.vocabulary};
    ck_assert_int_eq(perigee_score(session, outside, 2, scores, NULL, NULL), PERIGEE_E_TOKEN);
    ck_assert_int_eq(perigee_session_position(session), (int64_t)g.tokens);
    free(scores);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

PRG_SUITE("generate", setup, teardown, test_greedy, test_callback, test_sampled, test_taken_up_with_its_sampler,
          test_going_on, test_cancelled, test_score)
