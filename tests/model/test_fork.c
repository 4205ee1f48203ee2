/* Fork, rewind and feed: whatever way a session came to its position, it goes on with the same bits. */
#include "perigee/state.h"
#include "support/copy_case.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2");
}

static void teardown(void) {
    perigee_context_free(context);
}

/* Logits of the tokens from `from` on, one by one, against those of a session that took in the whole prompt. */
static void goes_on(perigee_session *session, const golden *g, const float *whole, size_t from, size_t n) {
    for (size_t i = from; i < from + n && i < g->tokens; i++) {
        const float *row = golden_step(session, g->ids + i, 1, PERIGEE_LOGITS_LAST);
        ck_assert_msg(memcmp(row, whole + i * g->vocabulary, g->vocabulary * sizeof *row) == 0, "other bits at %zu", i);
    }
}

static float *whole_prompt(perigee_model *model, const golden *g) {
    perigee_session *s = golden_session(model, NULL);
    const size_t bytes = g->tokens * g->vocabulary * sizeof(float);
    float *copy = malloc(bytes);
    memcpy(copy, golden_step(s, g->ids, g->tokens, PERIGEE_LOGITS_ALL), bytes);
    perigee_session_free(s);
    return copy;
}

/* Forks at a position inside a cache block and beyond it, both sides going on, in either order of freeing. */
START_TEST(forks_go_their_own_way) {
    static const char *const names[] = {"kimi_k3_long", "kimi_k2_long", "kimi_linear", "moonlight"};
    for (size_t c = 0; c < 4; c++) {
        golden g = golden_read(names[c]);
        perigee_model *model = golden_model(context, names[c], NULL);
        float *whole = whole_prompt(model, &g);
        const size_t at = g.tokens * 3 / 4;
        perigee_session *a = golden_session(model, NULL), *b = NULL, *d = NULL;
        golden_step(a, g.ids, at, PERIGEE_LOGITS_NONE);
        golden_ok(perigee_session_fork(a, &b, NULL), NULL);
        golden_ok(perigee_session_fork(b, &d, NULL), NULL);
        ck_assert_int_eq(perigee_session_position(b), (int64_t)at);
        const int32_t other = (g.ids[at] + 1) % (int32_t)g.vocabulary;
        golden_step(b, &other, 1, PERIGEE_LOGITS_LAST); /* must not show in a or d */
        golden_step(b, &other, 1, PERIGEE_LOGITS_LAST);
        goes_on(a, &g, whole, at, 4);
        if (c % 2) {
            perigee_session_free(a);
            perigee_session_free(b);
            goes_on(d, &g, whole, at, 10);
        } else {
            goes_on(d, &g, whole, at, 4);
            perigee_session_free(d);
            perigee_session_free(b);
            goes_on(a, &g, whole, at + 4, 6);
            perigee_session_free(a);
            d = NULL;
        }
        perigee_session_free(d);
        perigee_model_free(model);
        free(whole);
        free(g.file);
    }
}
END_TEST

/* A fork takes the recurrent state and little more, however long the session: the cache is shared. */
START_TEST(fork_shares_the_cache) {
    static host h;
    perigee_allocator allocator = host_allocator(&h);
    perigee_context *own = NULL;
    golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &own, NULL), NULL);
    golden g = golden_read("kimi_k2_long");
    perigee_model *model = golden_model(own, "kimi_k2_long", NULL);
    perigee_session *s = golden_session(model, "context=4096"), *f = NULL;
    long long cost[2];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++) {
            golden_step(s, g.ids, 128, PERIGEE_LOGITS_NONE);
        }
        const long long before = h.bytes;
        golden_ok(perigee_session_fork(s, &f, NULL), NULL);
        cost[round] = h.bytes - before;
        perigee_session_free(f);
        ck_assert_int_eq(h.bytes, before);
    }
    ck_assert_int_eq(cost[0], cost[1]);
    perigee_session_free(s);
    perigee_model_free(model);
    perigee_context_free(own);
    free(g.file);
}
END_TEST

/* A model without recurrent layers goes back to any position. */
START_TEST(rewind_of_latents_is_free) {
    golden g = golden_read("kimi_k2_long");
    perigee_model *model = golden_model(context, "kimi_k2_long", NULL);
    float *whole = whole_prompt(model, &g);
    perigee_session *s = golden_session(model, NULL);
    golden_step(s, g.ids, g.tokens, PERIGEE_LOGITS_NONE);
    static const size_t back[] = {199, 129, 128, 127, 60, 1, 0};
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
        int64_t nearest = -1;
        golden_ok(perigee_session_rewind(s, (int64_t)back[i], &nearest, NULL, NULL), NULL);
        ck_assert_int_eq(nearest, (int64_t)back[i]);
        perigee_session *f = NULL;
        golden_ok(perigee_session_fork(s, &f, NULL), NULL);
        goes_on(f, &g, whole, back[i], 3);
        perigee_session_free(f);
    }
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_session_rewind(s, 1, NULL, NULL, &err), PERIGEE_E_RANGE);
    perigee_error_free(err);
    perigee_session_free(s);
    perigee_model_free(model);
    free(whole);
    free(g.file);
}
END_TEST

/* Recurrent layers go back to a checkpoint and take in the rest again, exactly; or say what can be had. */
static void rewind_recurrent(const char *name) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    float *whole = whole_prompt(model, &g);
    perigee_session *s = golden_session(model, "checkpoints=10000000 checkpoint_interval=16 chunk=8");
    golden_step(s, g.ids, g.tokens, PERIGEE_LOGITS_NONE);
    for (size_t back = g.tokens - 1; back > 0; back = back > 13 ? back - 13 : 0) {
        int64_t nearest = -1;
        perigee_error *err = NULL;
        golden_ok(perigee_session_rewind(s, (int64_t)back, &nearest, NULL, &err), err);
        ck_assert_int_eq(nearest, (int64_t)back);
        ck_assert_int_eq(perigee_session_position(s), (int64_t)back);
        perigee_session *f = NULL;
        golden_ok(perigee_session_fork(s, &f, NULL), NULL);
        goes_on(f, &g, whole, back, 3);
        perigee_session_free(f);
    }
    perigee_session_free(s);
    /* without checkpoints only the start is at hand, and what lies near it */
    s = golden_session(model, "checkpoint_interval=4");
    golden_step(s, g.ids, 30, PERIGEE_LOGITS_NONE);
    int64_t nearest = -1;
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_session_rewind(s, 20, &nearest, NULL, &err), PERIGEE_E_STATE);
    ck_assert_int_eq(nearest, 0);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(s), 30);
    goes_on(s, &g, whole, 30, 2);
    golden_ok(perigee_session_rewind(s, 3, NULL, NULL, NULL), NULL);
    goes_on(s, &g, whole, 3, 5);
    perigee_session_free(s);
    perigee_model_free(model);
    free(whole);
    free(g.file);
}

START_TEST(rewind_of_recurrent_layers) {
    rewind_recurrent("kimi_k3_long");
    rewind_recurrent("kimi_linear");
}
END_TEST

/* Under a byte limit old checkpoints thin out; none is ever wrong. */
START_TEST(checkpoints_under_a_limit) {
    golden g = golden_read("kimi_k3_long");
    perigee_model *model = golden_model(context, "kimi_k3_long", NULL);
    float *whole = whole_prompt(model, &g);
    perigee_session *s = golden_session(model, NULL);
    perigee_statistics st = {.struct_size = sizeof st};
    golden_ok(perigee_session_statistics(s, &st, NULL), NULL);
    perigee_session_free(s);
    char options[128];
    snprintf(options, sizeof options, "checkpoints=%lld checkpoint_interval=8 chunk=8", (long long)(st.memory_bytes));
    s = golden_session(model, options);
    golden_step(s, g.ids, g.tokens, PERIGEE_LOGITS_NONE);
    size_t had = 0;
    for (size_t back = g.tokens - 1; back > 4; back -= 3) {
        perigee_session *f = NULL;
        golden_ok(perigee_session_fork(s, &f, NULL), NULL);
        int64_t nearest = -1;
        perigee_error *err = NULL;
        perigee_status status = perigee_session_rewind(s, (int64_t)back, &nearest, NULL, &err);
        perigee_error_free(err);
        if (status == PERIGEE_E_STATE) {
            ck_assert_int_lt(nearest, (int64_t)back);
            golden_ok(perigee_session_rewind(s, nearest, NULL, NULL, NULL), NULL);
            back = (size_t)nearest;
        }
        had++;
        goes_on(s, &g, whole, back, 1);
        golden_ok(perigee_session_rewind(s, (int64_t)back, NULL, NULL, NULL), NULL);
        perigee_session_free(f);
        if (back < 8) {
            break;
        }
    }
    ck_assert_uint_gt(had, 3);
    perigee_session_free(s);
    perigee_model_free(model);
    free(whole);
    free(g.file);
}
END_TEST

/* A cancelled replay leaves a whole position. */
START_TEST(cancelled_rewind) {
    golden g = golden_read("kimi_linear");
    perigee_model *model = golden_model(context, "kimi_linear", NULL);
    float *whole = whole_prompt(model, &g);
    perigee_session *s = golden_session(model, "chunk=2");
    golden_step(s, g.ids, g.tokens, PERIGEE_LOGITS_NONE);
    perigee_cancel *cancel = NULL;
    golden_ok(perigee_cancel_new(&cancel, NULL), NULL);
    perigee_cancel_trigger(cancel);
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_session_rewind(s, 20, NULL, cancel, &err), PERIGEE_E_CANCELLED);
    perigee_error_free(err);
    const size_t at = (size_t)perigee_session_position(s);
    ck_assert_uint_eq(at, g.tokens);
    golden_ok(perigee_session_rewind(s, 20, NULL, NULL, NULL), NULL);
    goes_on(s, &g, whole, 20, 4);
    perigee_cancel_free(cancel);
    perigee_session_free(s);
    perigee_model_free(model);
    free(whole);
    free(g.file);
}
END_TEST

/* Turns of a chat, one an edit of the one before: equal to one long prompt. */
START_TEST(feed_keeps_the_prefix) {
    static const char *const names[] = {"kimi_k3_long", "kimi_k2_long"};
    for (size_t c = 0; c < 2; c++) {
        golden g = golden_read(names[c]);
        perigee_model *model = golden_model(context, names[c], NULL);
        float *whole = whole_prompt(model, &g);
        perigee_session *s = golden_session(model, "checkpoints=10000000 checkpoint_interval=16 chunk=16");
        int32_t edited[200];
        memcpy(edited, g.ids, sizeof edited);
        edited[150] = (edited[150] + 1) % (int32_t)g.vocabulary;
        const float *logits = NULL;
        size_t kept = 99, rows = 0;
        golden_ok(perigee_session_feed(s, edited, 180, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL), NULL);
        ck_assert_uint_eq(kept, 0);
        golden_ok(perigee_session_feed(s, g.ids, 190, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL), NULL);
        ck_assert_uint_eq(kept, 150);
        ck_assert(memcmp(logits, whole + 189 * g.vocabulary, g.vocabulary * sizeof *logits) == 0);
        golden_ok(perigee_session_feed(s, g.ids, 190, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL), NULL);
        ck_assert_uint_eq(kept, 189);
        ck_assert(memcmp(logits, whole + 189 * g.vocabulary, g.vocabulary * sizeof *logits) == 0);
        const int32_t *tokens = NULL;
        ck_assert_uint_eq(perigee_session_tokens(s, &tokens), 190);
        ck_assert(memcmp(tokens, g.ids, 190 * sizeof *tokens) == 0);
        perigee_session_free(s);
        perigee_model_free(model);
        free(whole);
        free(g.file);
    }
}
END_TEST

/* What can be refused is refused before the rewind. */
START_TEST(a_refused_feed_changes_nothing) {
    golden g = golden_read("kimi_k3_long");
    perigee_model *model = golden_model(context, "kimi_k3_long", NULL);
    perigee_session *s = golden_session(model, "context=64");
    const float *logits = NULL;
    size_t rows = 9, kept = 9;
    golden_ok(perigee_session_feed(s, g.ids, 40, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL), NULL);
    int32_t other[65];
    memcpy(other, g.ids, sizeof other);
    other[30] = (other[30] + 1) % (int32_t)g.vocabulary;
    ck_assert_int_eq(perigee_session_feed(s, other, 65, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL),
                     PERIGEE_E_CONTEXT_FULL);
    ck_assert_int_eq(perigee_session_feed(s, other, 40, PERIGEE_LOGITS_LAST, NULL, &rows, &kept, NULL, NULL),
                     PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_session_feed(s, other, 40, (perigee_logits)7, &logits, &rows, &kept, NULL, NULL),
                     PERIGEE_E_ARGUMENT);
    other[39] = (int32_t)g.vocabulary;
    ck_assert_int_eq(perigee_session_feed(s, other, 40, PERIGEE_LOGITS_LAST, &logits, &rows, &kept, NULL, NULL),
                     PERIGEE_E_TOKEN);
    ck_assert_uint_eq(kept, 0);
    ck_assert_uint_eq(rows, 0);
    ck_assert_ptr_null(logits);
    ck_assert_int_eq(perigee_session_position(s), 40);
    perigee_session_free(s);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

PRG_SUITE("fork", setup, teardown, forks_go_their_own_way, fork_shares_the_cache, rewind_of_latents_is_free,
          rewind_of_recurrent_layers, checkpoints_under_a_limit, cancelled_rewind, feed_keeps_the_prefix,
          a_refused_feed_changes_nothing)
