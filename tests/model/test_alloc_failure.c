/* Every allocation fails once, from the context to the last step: an error comes back, nothing is lost, and a session
 * whose step failed goes on as if nothing had been. */
#include "support/golden.h"
#include "support/host_allocator.h"
#include "support/suite.h"

enum { FIRST = 20, EVERY = 300, STRIDE = 37 };

typedef struct expected {
    const golden *g;
    const float *last; /* logits after all tokens */
    size_t failed_steps;
} expected;

/* The step again, without a failure, where it failed. */
static perigee_status step(host *h, perigee_session *session, const int32_t *ids, size_t n, perigee_logits which,
                           const float **logits, expected *e) {
    const int64_t before = perigee_session_position(session);
    perigee_statistics held = {.struct_size = sizeof held}, left = held;
    golden_ok(perigee_session_statistics(session, &held, NULL), NULL);
    perigee_error *err = NULL;
    perigee_status st = perigee_decode_step(session, ids, n, which, logits, NULL, NULL, &err);
    if (st == PERIGEE_OK) {
        return st;
    }
    ck_assert_msg(st == PERIGEE_E_MEMORY, "%s: %s", perigee_status_name(st), perigee_error_message(err));
    ck_assert_int_eq(perigee_error_status(err), st);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(session), before);
    golden_ok(perigee_session_statistics(session, &left, NULL), NULL);
    ck_assert_int_eq(left.tokens, held.tokens);
    atomic_store(&h->fail_at, 0);
    golden_ok(perigee_decode_step(session, ids, n, which, logits, NULL, NULL, NULL), NULL);
    e->failed_steps++;
    return PERIGEE_E_MEMORY;
}

static perigee_status run_session(host *h, perigee_model *model, expected *e) {
    const golden *g = e->g;
    perigee_session *session = NULL;
    perigee_error *err = NULL;
    perigee_status st = perigee_session_new(model, NULL, &session, &err);
    if (st != PERIGEE_OK) {
        ck_assert_ptr_null(session);
        ck_assert_int_eq(st, PERIGEE_E_MEMORY);
        perigee_error_free(err);
        return st;
    }
    const float *logits = NULL;
    perigee_status first = step(h, session, g->ids, FIRST, PERIGEE_LOGITS_ALL, &logits, e);
    perigee_status second = step(h, session, g->ids + FIRST, g->tokens - FIRST, PERIGEE_LOGITS_LAST, &logits, e);
    ck_assert(memcmp(logits, e->last, g->vocabulary * sizeof *logits) == 0);
    perigee_session_free(session);
    return first != PERIGEE_OK ? first : second;
}

/* PERIGEE_OK if nothing failed. */
static perigee_status run(host *h, const char *name, expected *e) {
    perigee_allocator allocator = host_allocator(h);
    perigee_options *options = golden_options("threads=2");
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    char path[512];
    perigee_status st = perigee_context_new(options, &allocator, NULL, NULL, &context, &err);
    perigee_options_free(options);
    if (st == PERIGEE_OK) {
        st = perigee_model_load(context, golden_path(name, path, sizeof path), SIZE_MAX, NULL, NULL, NULL, NULL, &model,
                                &err);
    }
    if (st != PERIGEE_OK) {
        ck_assert_msg(st == PERIGEE_E_MEMORY, "%s: %s", perigee_status_name(st), perigee_error_message(err));
        ck_assert_ptr_null(model);
        perigee_error_free(err);
    } else {
        st = run_session(h, model, e);
    }
    perigee_model_free(model);
    perigee_context_free(context);
    ck_assert_int_eq(atomic_load(&h->bytes), 0);
    ck_assert_int_eq(atomic_load(&h->released), 1);
    return st;
}

static void sweep(const char *name) {
    golden g = golden_read(name);
    perigee_context *context = golden_context("threads=1");
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *session = golden_session(model, NULL);
    expected e = {&g, golden_step(session, g.ids, g.tokens, PERIGEE_LOGITS_LAST), 0};
    long long n = 1, failures = 0;
    for (;; n += n < EVERY ? 1 : STRIDE) {
        host h = {0};
        atomic_store(&h.fail_at, n);
        if (run(&h, name, &e) == PERIGEE_OK) {
            ck_assert_int_lt(atomic_load(&h.calls), n);
            break;
        }
        failures++;
    }
    printf("%s: %lld failures over %lld allocations, %zu of them in steps\n", name, failures, n, e.failed_steps);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    free(g.file);
}

START_TEST(plain) {
    sweep("moonlight");
}
END_TEST

START_TEST(recurrent) {
    sweep("kimi_linear");
}
END_TEST

/* Of steps, every allocation, however many a load takes. */
START_TEST(steps) {
    golden g = golden_read("kimi_k3");
    host h = {0};
    perigee_allocator allocator = host_allocator(&h);
    perigee_context *context = NULL;
    golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &context, NULL), NULL);
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *calm = golden_session(model, NULL);
    expected e = {&g, golden_step(calm, g.ids, g.tokens, PERIGEE_LOGITS_LAST), 0};
    for (long long n = 1;; n++) {
        atomic_store(&h.fail_at, atomic_load(&h.calls) + n);
        if (run_session(&h, model, &e) == PERIGEE_OK) {
            break;
        }
    }
    ck_assert_uint_ge(e.failed_steps, 2);
    perigee_session_free(calm);
    perigee_model_free(model);
    perigee_context_free(context);
    ck_assert_int_eq(atomic_load(&h.bytes), 0);
    free(g.file);
}
END_TEST

PRG_SUITE("alloc_failure", NULL, NULL, plain, recurrent, steps)
