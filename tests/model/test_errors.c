/* What a step refuses, and that a step that fails or is cancelled leaves a session that goes on as if nothing had been.
 */
#include <pthread.h>

#include "support/copy_case.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2");
}

static void teardown(void) {
    perigee_context_free(context);
}

static perigee_status step(perigee_session *session, const int32_t *ids, size_t n, perigee_cancel *cancel,
                           perigee_error **err) {
    const float *logits = (const float *)(const void *)&ids;
    size_t rows = 77;
    perigee_status st = perigee_decode_step(session, ids, n, PERIGEE_LOGITS_LAST, &logits, &rows, cancel, err);
    if (st != PERIGEE_OK) {
        ck_assert_ptr_null(logits);
        ck_assert_uint_eq(rows, 0);
    }
    return st;
}

static void refused(perigee_session *session, const int32_t *ids, size_t n, perigee_status expected) {
    const int64_t before = perigee_session_position(session);
    perigee_error *err = NULL;
    const perigee_status st = step(session, ids, n, NULL, &err);
    ck_assert_msg(st == expected, "%s, not %s", perigee_status_name(st), perigee_status_name(expected));
    ck_assert_int_eq(perigee_error_status(err), st);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(session), before);
}

START_TEST(arguments) {
    golden g = golden_read("moonlight");
    perigee_model *model = golden_model(context, "moonlight", NULL);
    perigee_session *session = golden_session(model, "context=10");
    ck_assert_int_eq(perigee_session_context(session), 10);
    perigee_error *err = NULL;
    const float *logits;
    ck_assert_int_eq(perigee_decode_step(NULL, g.ids, 1, PERIGEE_LOGITS_NONE, NULL, NULL, NULL, &err),
                     PERIGEE_E_ARGUMENT);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_decode_step(session, g.ids, 1, PERIGEE_LOGITS_LAST, NULL, NULL, NULL, NULL),
                     PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_decode_step(session, g.ids, 1, (perigee_logits)7, &logits, NULL, NULL, NULL),
                     PERIGEE_E_ARGUMENT);
    refused(session, NULL, 1, PERIGEE_E_ARGUMENT);
    refused(session, g.ids, 0, PERIGEE_E_ARGUMENT);
    refused(session, g.ids, 11, PERIGEE_E_CONTEXT_FULL);
    golden_step(session, g.ids, 10, PERIGEE_LOGITS_LAST);
    refused(session, g.ids, 1, PERIGEE_E_CONTEXT_FULL);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

START_TEST(tokens_outside_the_vocabulary) {
    golden g = golden_read("moonlight");
    perigee_model *model = golden_model(context, "moonlight", NULL);
    perigee_session *session = golden_session(model, NULL);
    const int32_t above[] = {1, 2, (int32_t)g.vocabulary}, below[] = {-1}, highest[] = {(int32_t)g.vocabulary - 1};
    refused(session, above, 3, PERIGEE_E_TOKEN);
    refused(session, below, 1, PERIGEE_E_TOKEN);
    golden_step(session, highest, 1, PERIGEE_LOGITS_LAST);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

START_TEST(options_of_a_session) {
    static const struct {
        const char *name, *value;
        perigee_status status;
    } cases[] = {{"context", "8193", PERIGEE_E_RANGE},
                 {"cache_type", "int3", PERIGEE_E_ARGUMENT},
                 {"threads", "2", PERIGEE_E_SCOPE}};
    perigee_model *model = golden_model(context, "moonlight", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_options *options = NULL;
        perigee_session *session = NULL;
        perigee_error *err = NULL;
        golden_ok(perigee_options_new(&options, NULL), NULL);
        golden_ok(perigee_options_set_text(options, cases[i].name, cases[i].value, &err), err);
        ck_assert_int_eq(perigee_session_new(model, options, &session, &err), cases[i].status);
        ck_assert_ptr_null(session);
        perigee_error_free(err);
        perigee_options_free(options);
    }
    perigee_model_free(model);
}
END_TEST

/* What happens to one step of a session, in the middle of its prompt. */
typedef struct stop {
    perigee_cancel *cancel; /* triggered, else the callback fails */
    int64_t layer, position;
    size_t calls;
} stop;

static int stop_there(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values, void *user) {
    stop *s = user;
    (void)rows;
    (void)hidden;
    (void)values;
    s->calls++;
    if (layer == s->layer && position >= s->position) {
        if (!s->cancel) {
            return 1;
        }
        perigee_cancel_trigger(s->cancel);
    }
    return 0;
}

/* Take `first` tokens, then let `happen` disturb the rest of the prompt, then check the position and go on with what is
 * left: the last logits must be those of an undisturbed session. */
static void disturbed(const char *name, size_t first, stop *happen, perigee_status expected, size_t position) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *calm = golden_session(model, NULL), *session = golden_session(model, "chunk=8");
    const float *base = golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST);
    golden_step(session, g.ids, first, PERIGEE_LOGITS_NONE);
    perigee_session_set_trace(session, stop_there, happen, NULL);
    perigee_error *err = NULL;
    const perigee_status st = step(session, g.ids + first, g.tokens - first, happen->cancel, &err);
    ck_assert_msg(st == expected, "%s: %s (%s)", name, perigee_status_name(st), perigee_error_message(err));
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(session), (int64_t)position);
    perigee_session_set_trace(session, NULL, NULL, NULL);
    const float *rest = golden_step(session, g.ids + position, g.tokens - position, PERIGEE_LOGITS_LAST);
    ck_assert_msg(memcmp(base, rest, g.vocabulary * sizeof *base) == 0, "%s: other bits afterwards", name);
    perigee_session_free(session);
    perigee_session_free(calm);
    perigee_model_free(model);
    free(g.file);
}

static const char *const kinds[] = {"kimi_k3", "kimi_linear", "moonlight"};

START_TEST(a_callback_fails_the_step) {
    for (size_t i = 0; i < 3; i++) {
        stop early = {NULL, 1, 0, 0}, late = {NULL, 2, 21, 0};
        disturbed(kinds[i], 5, &early, PERIGEE_E_CALLBACK, 5);
        ck_assert_uint_eq(early.calls, 2);
        /* two chunks had gone well: the step falls back behind them all */
        disturbed(kinds[i], 5, &late, PERIGEE_E_CALLBACK, 5);
    }
}
END_TEST

START_TEST(a_cancelled_step_keeps_its_finished_chunks) {
    for (size_t i = 0; i < 3; i++) {
        stop early = {NULL, 0, 0, 0}, late = {NULL, 0, 13, 0};
        golden_ok(perigee_cancel_new(&early.cancel, NULL), NULL);
        golden_ok(perigee_cancel_new(&late.cancel, NULL), NULL);
        disturbed(kinds[i], 5, &early, PERIGEE_E_CANCELLED, 13);
        disturbed(kinds[i], 5, &late, PERIGEE_E_CANCELLED, 21);
        perigee_cancel_free(early.cancel);
        perigee_cancel_free(late.cancel);
    }
}
END_TEST

START_TEST(a_trigger_before_the_step_counts) {
    golden g = golden_read("kimi_k3");
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *session = golden_session(model, NULL);
    perigee_cancel *cancel = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_cancel_new(&cancel, NULL), NULL);
    perigee_cancel_trigger(cancel);
    ck_assert_int_eq(step(session, g.ids, 4, cancel, &err), PERIGEE_E_CANCELLED);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(session), 0);
    perigee_cancel_reset(cancel);
    golden_ok(step(session, g.ids, 4, cancel, &err), err);
    ck_assert_int_eq(perigee_session_position(session), 4);
    perigee_cancel_free(cancel);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

typedef struct trigger {
    perigee_cancel *cancel;
    useconds_t after;
} trigger;

static void *trigger_later(void *argument) {
    trigger *t = argument;
    usleep(t->after);
    perigee_cancel_trigger(t->cancel);
    return NULL;
}

/* Whenever the trigger comes, also between the layers of a pass, what is left is a whole position. */
START_TEST(a_trigger_at_any_moment) {
    static const char *const names[] = {"kimi_k3_long", "kimi_k2_long"};
    for (size_t c = 0; c < 2; c++) {
        golden g = golden_read(names[c]);
        perigee_model *model = golden_model(context, names[c], NULL);
        perigee_session *calm = golden_session(model, NULL), *session = golden_session(model, "chunk=32");
        const float *base = golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST);
        size_t cancelled = 0;
        for (useconds_t i = 0; i < 40; i++) {
            perigee_session_reset(session);
            trigger t = {NULL, 200 + i * 600};
            pthread_t thread;
            golden_ok(perigee_cancel_new(&t.cancel, NULL), NULL);
            ck_assert_int_eq(pthread_create(&thread, NULL, trigger_later, &t), 0);
            perigee_status st = step(session, g.ids, g.tokens, t.cancel, NULL);
            size_t at = (size_t)perigee_session_position(session);
            pthread_join(thread, NULL);
            perigee_cancel_free(t.cancel);
            ck_assert(st == PERIGEE_OK || (st == PERIGEE_E_CANCELLED && at % 32 == 0));
            if (st == PERIGEE_E_CANCELLED) {
                const float *rest = golden_step(session, g.ids + at, g.tokens - at, PERIGEE_LOGITS_LAST);
                ck_assert(memcmp(base, rest, g.vocabulary * sizeof *base) == 0);
                cancelled++;
            }
        }
        ck_assert_uint_gt(cancelled, 0);
        perigee_session_free(session);
        perigee_session_free(calm);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

/* A NaN at `skip` bytes of a tensor: the step fails, and the error blames `layer`. */
static void not_finite(const char *tensor, size_t skip, int64_t layer) {
    static const uint16_t nan = 0x7fc0;
    char folder[512];
    copy_case("moonlight", folder, sizeof folder);
    damage(folder, tensor, skip, &nan, sizeof nan);
    perigee_model *model = load_folder(context, folder);
    perigee_session *session = golden_session(model, NULL);
    const int32_t ids[] = {1, 2, 3};
    perigee_error *err = NULL;
    ck_assert_int_eq(step(session, ids, 3, NULL, &err), PERIGEE_E_NOT_FINITE);
    ck_assert_int_eq(perigee_error_layer(err), layer);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(session), 0);
    perigee_session_free(session);
    perigee_model_free(model);
    remove_case(folder);
}

START_TEST(a_layer_that_is_not_finite) {
    not_finite("model.layers.2.post_attention_layernorm.weight", 6, 2);
}
END_TEST

/* No layer is to blame, and there are no logits of NaN. */
START_TEST(logits_that_are_not_finite) {
    not_finite("lm_head.weight", 640, -1);
}
END_TEST

/* One token that is infinite: the step that has it fails, wherever it comes, and the session goes on without it. */
START_TEST(a_token_that_is_not_finite) {
    static const uint16_t infinite = 0x7f80;
    enum { BAD = 77 };
    static const char *const prefix[] = {"language_model.", "", ""};
    for (size_t c = 0; c < 3; c++) {
        golden g = golden_read(kinds[c]);
        char folder[512], name[128];
        copy_case(kinds[c], folder, sizeof folder);
        snprintf(name, sizeof name, "%smodel.embed_tokens.weight", prefix[c]);
        damage(folder, name, (BAD * g.hidden + 5) * sizeof infinite, &infinite, sizeof infinite);
        perigee_model *model = load_folder(context, folder);
        perigee_session *calm = golden_session(model, "chunk=4"), *session = golden_session(model, "chunk=4");
        int32_t good[12], bad[12];
        for (size_t i = 0; i < 12; i++) {
            good[i] = bad[i] = (int32_t)i;
        }
        bad[9] = BAD;
        golden_step(calm, good, 12, PERIGEE_LOGITS_NONE);
        golden_step(session, good, 12, PERIGEE_LOGITS_NONE);
        perigee_error *err = NULL;
        ck_assert_int_eq(step(session, bad, 12, NULL, &err), PERIGEE_E_NOT_FINITE);
        ck_assert_int_eq(perigee_error_layer(err), 0);
        perigee_error_free(err);
        ck_assert_int_eq(perigee_session_position(session), 12);
        const float *base = golden_step(calm, good, 5, PERIGEE_LOGITS_LAST);
        const float *rest = golden_step(session, good, 5, PERIGEE_LOGITS_LAST);
        ck_assert_msg(memcmp(base, rest, g.vocabulary * sizeof *base) == 0, "%s: other bits afterwards", kinds[c]);
        perigee_session_free(session);
        perigee_session_free(calm);
        perigee_model_free(model);
        remove_case(folder);
        free(g.file);
    }
}
END_TEST

PRG_SUITE("errors", setup, teardown, arguments, tokens_outside_the_vocabulary, options_of_a_session,
          a_callback_fails_the_step, a_cancelled_step_keeps_its_finished_chunks, a_trigger_before_the_step_counts,
          a_trigger_at_any_moment, a_layer_that_is_not_finite, logits_that_are_not_finite, a_token_that_is_not_finite)
