/* Steps that are stopped in the middle of a pass, at each of its norms: what is left is the session before the step, or
 * behind the last finished chunk, bit for bit in all that follows. */
#include <math.h>
#include <stdbool.h>

#include "perigee/sys/kernel_set.h"
#include "support/golden.h"
#include "support/suite.h"

enum { PROMPT = 9, CHUNK = 8 };

static perigee_context *context;
static perigee_cancel *cancel;
/* The call of a norm that triggers `cancel`, or gives NaN; 0: none. */
static size_t calls, trigger_at, nan_at;

static void norm(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * x[i];
    }
    const float scale = (float)(1 / sqrt(sum / (double)n + eps));
    for (size_t i = 0; i < n; i++) {
        y[i] = gain[i] * x[i] * scale * (gate ? 1 / (1 + expf(-gate[i])) : 1);
    }
    calls++;
    if (calls == trigger_at) {
        perigee_cancel_trigger(cancel);
    }
    if (calls == nan_at) {
        y[0] = NAN;
    }
}

static void setup(void) {
    perigee_kernel_set *set = NULL;
    perigee_options *options = golden_options("threads=1");
    const perigee_kernel_row row = {.struct_size = sizeof row,
                                    .op = PERIGEE_OP_RMS_NORM,
                                    .dtype = PERIGEE_DTYPE_NONE,
                                    .priority = 1000,
                                    .name = "counted",
                                    .isa = "host",
                                    .numerics = "counted",
                                    .row_tile = 1,
                                    .token_tile = 1,
                                    .run.norm = {norm}};
    golden_ok(perigee_kernel_set_new(&set, NULL), NULL);
    perigee_error *err = NULL;
    golden_ok(perigee_kernel_set_add(set, &row, NULL, &err), err);
    golden_ok(perigee_context_new(options, NULL, NULL, set, &context, &err), err);
    perigee_kernel_set_free(set);
    perigee_options_free(options);
    golden_ok(perigee_cancel_new(&cancel, NULL), NULL);
}

static void teardown(void) {
    perigee_cancel_free(cancel);
    perigee_context_free(context);
}

static perigee_status disturbed_step(perigee_session *s, const int32_t *ids, size_t n) {
    perigee_error *err = NULL;
    const float *logits = NULL;
    perigee_cancel_reset(cancel);
    calls = 0;
    const perigee_status st = perigee_decode_step(s, ids, n, PERIGEE_LOGITS_LAST, &logits, NULL, cancel, &err);
    perigee_error_free(err);
    trigger_at = nan_at = 0;
    return st;
}

/* The rest of the tokens gives the logits of a calm session. */
static void goes_on(perigee_session *s, const golden *g, const float *expected, const char *what) {
    const size_t at = (size_t)perigee_session_position(s);
    const float *rest = NULL;
    for (size_t i = at; i < g->tokens; i++) {
        rest = golden_step(s, g->ids + i, 1, PERIGEE_LOGITS_LAST);
    }
    ck_assert_msg(memcmp(rest, expected, g->vocabulary * sizeof *rest) == 0, "other bits: %s", what);
}

static const char *const kinds[] = {"kimi_k3", "kimi_linear", "moonlight"};

/* A stopped step of one token; forks and saved states of what is left go on as it does. */
static void stop_decode(const char *name, bool nan) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *calm = golden_session(model, NULL);
    float *expected = malloc(g.vocabulary * sizeof *expected);
    memcpy(expected, golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST), g.vocabulary * sizeof *expected);
    perigee_session_reset(calm);
    golden_step(calm, g.ids, PROMPT, PERIGEE_LOGITS_NONE);
    size_t stopped = 0;
    for (size_t at = 1;; at++) {
        perigee_session *s = NULL, *fork = NULL;
        golden_ok(perigee_session_fork(calm, &s, NULL), NULL);
        golden_step(s, g.ids + PROMPT, 1, PERIGEE_LOGITS_NONE);
        *(nan ? &nan_at : &trigger_at) = at;
        const perigee_status st = disturbed_step(s, g.ids + PROMPT + 1, 1);
        if (calls < at) {
            ck_assert_int_eq(st, PERIGEE_OK);
            perigee_session_free(s);
            break;
        }
        if (st != PERIGEE_OK) {
            ck_assert_int_eq(st, nan ? PERIGEE_E_NOT_FINITE : PERIGEE_E_CANCELLED);
            ck_assert_int_eq(perigee_session_position(s), PROMPT + 1);
            stopped++;
            golden_ok(perigee_session_fork(s, &fork, NULL), NULL);
            goes_on(fork, &g, expected, "fork");
            perigee_session_free(fork);
            /* a second stop, where what is pending is nothing */
            *(nan ? &nan_at : &trigger_at) = at;
            ck_assert_int_eq(disturbed_step(s, g.ids + PROMPT + 1, 1), st);
        }
        goes_on(s, &g, expected, name);
        perigee_session_free(s);
    }
    ck_assert_uint_gt(stopped, 2);
    free(expected);
    perigee_session_free(calm);
    perigee_model_free(model);
    free(g.file);
}

START_TEST(a_cancelled_token) {
    for (size_t i = 0; i < 3; i++) {
        stop_decode(kinds[i], false);
    }
}
END_TEST

START_TEST(a_token_that_fails) {
    for (size_t i = 0; i < 3; i++) {
        stop_decode(kinds[i], true);
    }
}
END_TEST

/* In a batch one token fails in the first layer: the others' go on, and its own is taken back from all layers. */
START_TEST(one_of_a_batch) {
    for (size_t c = 0; c < 2; c++) {
        golden g = golden_read(kinds[c]);
        perigee_model *model = golden_model(context, kinds[c], NULL);
        perigee_session *calm = golden_session(model, NULL), *s[2];
        float *expected = malloc(g.vocabulary * sizeof *expected);
        memcpy(expected, golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST), g.vocabulary * sizeof *expected);
        for (size_t i = 0; i < 2; i++) {
            s[i] = golden_session(model, NULL);
            golden_step(s[i], g.ids, PROMPT, PERIGEE_LOGITS_NONE);
        }
        perigee_batch_item items[2];
        for (size_t i = 0; i < 2; i++) {
            items[i] = (perigee_batch_item){.struct_size = sizeof *items,
                                            .session = s[i],
                                            .tokens = g.ids + PROMPT,
                                            .n = 1,
                                            .which = PERIGEE_LOGITS_LAST};
        }
        calls = 0;
        nan_at = 1; /* the first row's */
        perigee_error *err = NULL;
        (void)perigee_decode_batch(items, 2, NULL, &err);
        perigee_error_free(err);
        nan_at = 0;
        ck_assert_int_eq(items[0].status, PERIGEE_E_NOT_FINITE);
        ck_assert_int_eq(items[1].status, PERIGEE_OK);
        perigee_error_free(items[0].error);
        ck_assert_int_eq(perigee_session_position(s[0]), PROMPT);
        ck_assert_int_eq(perigee_session_position(s[1]), PROMPT + 1);
        for (size_t i = 0; i < 2; i++) {
            goes_on(s[i], &g, expected, kinds[c]);
            perigee_session_free(s[i]);
        }
        free(expected);
        perigee_session_free(calm);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

/* A prompt of three chunks is stopped before the next layer wherever it is, and keeps the chunks before. */
START_TEST(a_cancelled_chunk) {
    for (size_t c = 0; c < 3; c++) {
        golden g = golden_read(kinds[c]);
        perigee_model *model = golden_model(context, kinds[c], NULL);
        perigee_session *calm = golden_session(model, NULL), *s = golden_session(model, "chunk=8");
        float *expected = malloc(g.vocabulary * sizeof *expected);
        memcpy(expected, golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST), g.vocabulary * sizeof *expected);
        calls = 0;
        golden_step(s, g.ids, 3 * CHUNK, PERIGEE_LOGITS_NONE);
        const size_t of_chunk = calls / 3;
        size_t at_once = 0, stopped = 0;
        for (size_t at = 1; at < 3 * of_chunk; at += 7) {
            const size_t begin = (at - 1) / of_chunk * CHUNK;
            perigee_session_reset(s);
            trigger_at = at;
            const perigee_status st = disturbed_step(s, g.ids, 3 * CHUNK);
            const size_t position = (size_t)perigee_session_position(s);
            if (st != PERIGEE_OK) {
                ck_assert_int_eq(st, PERIGEE_E_CANCELLED);
                /* in the last layer of a chunk it comes too late for this chunk */
                ck_assert(position == begin || position == begin + CHUNK);
                stopped += begin > 0;
                at_once += begin > 0 && position == begin;
            }
            goes_on(s, &g, expected, kinds[c]);
        }
        ck_assert_uint_gt(2 * at_once, stopped);
        free(expected);
        perigee_session_free(s);
        perigee_session_free(calm);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

PRG_SUITE("stop", setup, teardown, a_cancelled_token, a_token_that_fails, one_of_a_batch, a_cancelled_chunk)
