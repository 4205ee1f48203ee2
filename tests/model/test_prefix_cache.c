/* A cache of prefixes: what it gives goes on with the bits of a session that took in everything itself. */
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

static perigee_session *get(perigee_prefix_cache *cache, const int32_t *ids, size_t n, int64_t position) {
    perigee_session *s = NULL;
    golden_ok(perigee_prefix_cache_get(cache, ids, n, NULL, &s, NULL), NULL);
    ck_assert_int_eq(perigee_session_position(s), position);
    return s;
}

static void check_feed(perigee_session *s, const golden *g, size_t n) {
    const float *logits = NULL;
    golden_ok(perigee_session_feed(s, g->ids, n, PERIGEE_LOGITS_LAST, &logits, NULL, NULL, NULL, NULL), NULL);
    ck_assert_double_lt(golden_distance(logits, g->logits + (n - 1) * g->vocabulary, g->vocabulary), 2e-5);
    perigee_session_free(s);
}

START_TEST(longest_prefix) {
    static const char *const names[] = {"kimi_k2_long", "kimi_k3_long"};
    for (size_t c = 0; c < 2; c++) {
        golden g = golden_read(names[c]);
        perigee_model *model = golden_model(context, names[c], NULL);
        perigee_prefix_cache *cache = NULL;
        golden_ok(perigee_prefix_cache_new(model, 1 << 28, &cache, NULL), NULL);
        perigee_session_free(get(cache, g.ids, 50, 0));
        perigee_session *s = golden_session(model, "checkpoint_interval=1");
        golden_step(s, g.ids, 60, PERIGEE_LOGITS_NONE);
        golden_ok(perigee_prefix_cache_put(cache, s, NULL), NULL);
        golden_step(s, g.ids + 60, 60, PERIGEE_LOGITS_NONE);
        golden_ok(perigee_prefix_cache_put(cache, s, NULL), NULL);
        check_feed(get(cache, g.ids, 200, 120), &g, 200);
        /* latents go back to anywhere, recurrent state to where it was put in */
        check_feed(get(cache, g.ids, 100, c == 0 ? 99 : 60), &g, 100);
        int32_t other[100];
        memcpy(other, g.ids, sizeof other);
        other[0] = (other[0] + 1) % (int32_t)g.vocabulary;
        perigee_session_free(get(cache, other, 100, 0));
        perigee_session_free(s);
        perigee_prefix_cache_free(cache);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

/* The least recently used goes, the limit holds, and what is too large is not kept. */
START_TEST(under_a_limit) {
    golden g = golden_read("kimi_k2_long");
    perigee_model *model = golden_model(context, "kimi_k2_long", NULL);
    perigee_session *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = golden_session(model, NULL);
        golden_step(s[i], g.ids + i, 130, PERIGEE_LOGITS_NONE);
    }
    const int64_t one = (int64_t)prg_session_bytes(s[0]);
    perigee_prefix_cache *cache = NULL;
    golden_ok(perigee_prefix_cache_new(model, one * 2 + one / 2, &cache, NULL), NULL);
    golden_ok(perigee_prefix_cache_put(cache, s[0], NULL), NULL);
    golden_ok(perigee_prefix_cache_put(cache, s[1], NULL), NULL);
    perigee_session_free(get(cache, g.ids, 200, 130)); /* the first is used again: the second is the oldest */
    golden_ok(perigee_prefix_cache_put(cache, s[2], NULL), NULL);
    ck_assert_int_le(perigee_prefix_cache_bytes(cache), one * 2 + one / 2);
    perigee_session_free(get(cache, g.ids, 200, 130));
    perigee_session_free(get(cache, g.ids + 1, 190, 0));
    perigee_session_free(get(cache, g.ids + 2, 190, 130));
    perigee_prefix_cache_free(cache);
    golden_ok(perigee_prefix_cache_new(model, 100, &cache, NULL), NULL);
    golden_ok(perigee_prefix_cache_put(cache, s[0], NULL), NULL);
    ck_assert_int_eq(perigee_prefix_cache_bytes(cache), 0);
    for (int i = 0; i < 3; i++) {
        perigee_session_free(s[i]);
    }
    perigee_model_free(model); /* the cache holds it */
    perigee_prefix_cache_free(cache);
    free(g.file);
}
END_TEST

/* Tokens that a step would refuse are refused before the session goes back. */
START_TEST(refused_feed) {
    golden g = golden_read("kimi_linear");
    perigee_model *model = golden_model(context, "kimi_linear", NULL);
    perigee_session *s = golden_session(model, "context=12"), *t = golden_session(model, NULL);
    golden_step(s, g.ids, 9, PERIGEE_LOGITS_NONE);
    golden_step(t, g.ids, 9, PERIGEE_LOGITS_NONE);
    int32_t ids[13];
    memcpy(ids, g.ids, sizeof ids);
    ids[4] = (int32_t)g.vocabulary;
    perigee_error *err = NULL;
    size_t kept = 99;
    ck_assert_int_eq(perigee_session_feed(s, ids, 6, PERIGEE_LOGITS_NONE, NULL, NULL, &kept, NULL, &err),
                     PERIGEE_E_TOKEN);
    perigee_error_free(err);
    ck_assert_uint_eq(kept, 0);
    ck_assert_int_eq(perigee_session_feed(s, ids, 3, (perigee_logits)7, NULL, NULL, NULL, NULL, &err),
                     PERIGEE_E_ARGUMENT);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_feed(s, g.ids, 13, PERIGEE_LOGITS_NONE, NULL, NULL, NULL, NULL, &err),
                     PERIGEE_E_CONTEXT_FULL);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_session_position(s), 9);
    const float *x = golden_step(s, g.ids + 9, 1, PERIGEE_LOGITS_LAST);
    const float *y = golden_step(t, g.ids + 9, 1, PERIGEE_LOGITS_LAST);
    ck_assert(memcmp(x, y, g.vocabulary * sizeof *x) == 0);
    perigee_session_free(s);
    perigee_session_free(t);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

PRG_SUITE("prefix_cache", setup, teardown, longest_prefix, under_a_limit, refused_feed)
