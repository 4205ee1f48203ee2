/* The queue: requests that share passes get what they would get alone, and none holds up or takes along another. */
#include <stdbool.h>

#include "support/golden.h"
#include "support/suite.h"

enum { MOST = 64 };

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2");
}

static void teardown(void) {
    perigee_context_free(context);
}

/* What came of a request. */
typedef struct outcome {
    int32_t ids[MOST];
    size_t count, progress, steps_until_first, released;
    perigee_finish finish;
    perigee_status failed;
    int stop_at; /* tokens behind which the callback says stop; 0: never */
    int64_t prompt_tokens;
    bool ended;
} outcome;

static int told(int64_t request, const perigee_generated *step, const perigee_error *error, void *user) {
    outcome *o = user;
    ck_assert_int_gt(request, 0);
    ck_assert(!o->ended);
    if (error) {
        o->failed = perigee_error_status(error);
        o->ended = true;
        return 0;
    }
    o->prompt_tokens = step->prompt_tokens > 0 ? step->prompt_tokens : o->prompt_tokens;
    if (step->id >= 0) {
        ck_assert_uint_lt(o->count, MOST);
        o->ids[o->count++] = step->id;
    } else {
        o->progress++;
    }
    if (step->finish != PERIGEE_FINISH_NONE) {
        o->finish = step->finish;
        o->ended = true;
    }
    return o->stop_at > 0 && o->count >= (size_t)o->stop_at;
}

static void released(void *user) {
    ((outcome *)user)->released++;
}

static perigee_generation_options *options_of(int64_t count, double temperature, uint64_t seed) {
    perigee_generation_options *o = NULL;
    golden_ok(perigee_generation_options_new(context, &o, NULL), NULL);
    golden_ok(perigee_generation_options_set_max_tokens(o, count, NULL), NULL);
    golden_ok(perigee_generation_options_set_default_stops(o, 0, NULL), NULL);
    if (temperature > 0) {
        perigee_sampler *s = NULL;
        golden_ok(perigee_sampler_new(context, &s, NULL), NULL);
        golden_ok(perigee_sampler_add_temperature(s, temperature, NULL), NULL);
        perigee_sampler_set_seed(s, seed);
        golden_ok(perigee_generation_options_set_sampler(o, s, NULL), NULL);
        perigee_sampler_free(s);
    }
    return o;
}

static perigee_queue *queue_of(perigee_model *model, size_t active, const char *text) {
    perigee_options *options = golden_options(text);
    perigee_queue *queue = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_queue_new(model, options, active, &queue, &err), err);
    perigee_options_free(options);
    return queue;
}

static int64_t submit(perigee_queue *queue, const int32_t *ids, size_t n, const perigee_generation_options *options,
                      outcome *to) {
    int64_t request = 0;
    perigee_error *err = NULL;
    golden_ok(perigee_queue_submit(queue, ids, n, options, told, to, released, &request, &err), err);
    return request;
}

static size_t run(perigee_queue *queue, size_t most) {
    size_t left = 1, steps = 0;
    while (left > 0 && steps < most) {
        golden_ok(perigee_queue_step(queue, &left, NULL), NULL);
        steps++;
    }
    return steps;
}

static int collect(const perigee_generated *step, void *user) {
    outcome *o = user;
    if (step->id >= 0) {
        o->ids[o->count++] = step->id;
    }
    o->finish = step->finish;
    return 0;
}

static void alone(perigee_model *model, const int32_t *ids, size_t n, const perigee_generation_options *options,
                  outcome *to) {
    perigee_session *s = golden_session(model, NULL);
    golden_ok(perigee_generate(s, ids, n, options, collect, to, NULL, NULL), NULL);
    perigee_session_free(s);
}

/* Seven requests, three at once, greedy and sampled, prompts of all lengths. */
START_TEST(each_as_alone) {
    enum { REQUESTS = 7 };
    static const char *const names[] = {"kimi_k3", "moonlight"};
    for (size_t c = 0; c < 2; c++) {
        golden g = golden_read(names[c]);
        perigee_model *model = golden_model(context, names[c], NULL);
        perigee_queue *queue = queue_of(model, 3, "chunk=8");
        outcome got[REQUESTS] = {0}, expected[REQUESTS] = {0};
        for (size_t i = 0; i < REQUESTS; i++) {
            perigee_generation_options *o = options_of(3 + (int64_t)i * 2, i % 2 ? 0.8 : 0, i);
            submit(queue, g.ids + i, 1 + i * 5, o, &got[i]);
            alone(model, g.ids + i, 1 + i * 5, o, &expected[i]);
            perigee_generation_options_free(o);
        }
        ck_assert_uint_lt(run(queue, 1000), 1000);
        for (size_t i = 0; i < REQUESTS; i++) {
            ck_assert_uint_eq(got[i].count, 3 + i * 2);
            ck_assert_int_eq(got[i].finish, PERIGEE_FINISH_LENGTH);
            ck_assert_int_eq(got[i].prompt_tokens, (int64_t)(1 + i * 5));
            ck_assert_msg(memcmp(got[i].ids, expected[i].ids, got[i].count * sizeof(int32_t)) == 0, "request %zu", i);
            ck_assert_uint_eq(got[i].released, 1);
        }
        perigee_model_free(model);
        perigee_queue_free(queue);
        free(g.file);
    }
}
END_TEST

/* A long prompt beside a request that generates: it goes in pieces, and the other gets a token with every step. */
START_TEST(prompts_hold_nobody_up) {
    golden g = golden_read("kimi_k2_long");
    perigee_model *model = golden_model(context, "kimi_k2_long", NULL);
    perigee_queue *queue = queue_of(model, 4, NULL);
    golden_ok(perigee_queue_set_step_seconds(queue, 1e-9, NULL), NULL);
    outcome first = {0}, second = {0};
    perigee_generation_options *o = options_of(30, 0, 0);
    submit(queue, g.ids, 4, o, &first);
    size_t left = 0;
    golden_ok(perigee_queue_step(queue, &left, NULL), NULL);
    ck_assert_uint_eq(first.count, 1); /* nobody generates yet: the whole prompt at once */
    submit(queue, g.ids, 100, o, &second);
    for (size_t i = 2; i <= 30; i++) {
        golden_ok(perigee_queue_step(queue, &left, NULL), NULL);
        ck_assert_uint_eq(first.count, i);
        ck_assert_uint_eq(second.progress, i - 1);
    }
    ck_assert_int_eq(second.prompt_tokens, 29);
    ck_assert_uint_eq(left, 1);
    golden_ok(perigee_queue_step(queue, &left, NULL), NULL);
    ck_assert_uint_eq(second.count, 1); /* alone now: the rest at once */
    perigee_generation_options_free(o);
    perigee_queue_free(queue); /* with a request in it */
    ck_assert_uint_eq(first.released + second.released, 2);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* Cancelled by number, by handle, by its callback; failing for its own reasons: the rest goes on. */
START_TEST(ends_of_one_are_no_ends_of_others) {
    enum { REQUESTS = 7 };
    golden g = golden_read("kimi_linear");
    perigee_model *model = golden_model(context, "kimi_linear", NULL);
    perigee_queue *queue = queue_of(model, 5, "context=45");
    outcome got[REQUESTS] = {0}, expected = {0};
    perigee_generation_options *o = options_of(12, 0, 0), *held = options_of(12, 0, 0), *endless = options_of(-1, 0, 0);
    perigee_cancel *cancel = NULL;
    golden_ok(perigee_cancel_new(&cancel, NULL), NULL);
    golden_ok(perigee_generation_options_set_cancel(held, cancel, NULL), NULL);
    int32_t foreign[3] = {1, 2, 1 << 20}, long_prompt[60] = {0};
    got[3].stop_at = 2;
    const int64_t number = submit(queue, g.ids, 5, o, &got[0]);
    submit(queue, g.ids, 5, held, &got[1]);
    submit(queue, g.ids, 5, o, &got[2]); /* the one that is left alone */
    submit(queue, g.ids, 5, o, &got[3]);
    submit(queue, foreign, 3, o, &got[4]);
    submit(queue, long_prompt, 60, o, &got[5]);
    submit(queue, g.ids, 40, endless, &got[6]);
    run(queue, 4);
    golden_ok(perigee_queue_cancel(queue, number, NULL), NULL);
    perigee_cancel_trigger(cancel);
    run(queue, 100);
    alone(model, g.ids, 5, o, &expected);
    ck_assert_int_eq(got[0].finish, PERIGEE_FINISH_CANCELLED);
    ck_assert_int_eq(got[1].finish, PERIGEE_FINISH_CANCELLED);
    ck_assert_uint_eq(got[0].count, 4);
    ck_assert_int_eq(got[2].finish, PERIGEE_FINISH_LENGTH);
    ck_assert(memcmp(got[2].ids, expected.ids, 12 * sizeof(int32_t)) == 0);
    ck_assert_int_eq(got[3].finish, PERIGEE_FINISH_CALLBACK);
    ck_assert_uint_eq(got[3].count, 2);
    ck_assert_int_eq(got[4].failed, PERIGEE_E_TOKEN);
    ck_assert_int_eq(got[5].failed, PERIGEE_E_CONTEXT_FULL);
    ck_assert_int_eq(got[6].finish, PERIGEE_FINISH_CONTEXT_FULL);
    ck_assert_uint_eq(got[6].count, 6);
    for (size_t i = 0; i < REQUESTS; i++) {
        ck_assert(got[i].ended);
        ck_assert_uint_eq(got[i].released, 1);
    }
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_queue_cancel(queue, number, &err), PERIGEE_E_NOT_FOUND);
    perigee_error_free(err);
    perigee_generation_options_free(o);
    perigee_generation_options_free(held);
    perigee_generation_options_free(endless);
    perigee_cancel_free(cancel);
    perigee_queue_free(queue);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* They begin in their order, as places come free. */
START_TEST(in_their_order) {
    golden g = golden_read("moonlight");
    perigee_model *model = golden_model(context, "moonlight", NULL);
    perigee_queue *queue = queue_of(model, 1, NULL);
    outcome got[3] = {0};
    perigee_generation_options *o = options_of(2, 0, 0);
    for (size_t i = 0; i < 3; i++) {
        submit(queue, g.ids, 3, o, &got[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(got[i].count, 0);
        run(queue, 2);
        ck_assert_uint_eq(got[i].count, 2);
    }
    size_t left = 9;
    golden_ok(perigee_queue_step(queue, &left, NULL), NULL);
    ck_assert_uint_eq(left, 0);
    perigee_generation_options_free(o);
    perigee_queue_free(queue);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

PRG_SUITE("queue", setup, teardown, each_as_alone, prompts_hold_nobody_up, ends_of_one_are_no_ends_of_others,
          in_their_order)
