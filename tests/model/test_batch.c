/* Many sessions in one pass: each gets what it would get alone; weights are read once; nobody takes others along. */
#include "perigee/batch.h"
#include "support/copy_case.h"
#include "support/suite.h"

enum { SESSIONS = 5 };

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2");
}

static void teardown(void) {
    perigee_context_free(context);
}

static perigee_batch_item item(perigee_session *session, const int32_t *tokens, size_t n, perigee_logits which) {
    return (perigee_batch_item){sizeof(perigee_batch_item), session, tokens, n, which, NULL, 99,
                                PERIGEE_E_INTERNAL,         NULL};
}

static void same_rows(const float *got, const float *expected, size_t floats, const char *name, size_t i) {
    ck_assert_ptr_nonnull(got);
    ck_assert_msg(memcmp(got, expected, floats * sizeof *got) == 0, "%s: session %zu has other bits", name, i);
}

/* Prompts and single tokens together, logits of all, the last and none. */
static void mixed(const char *name, const char *options) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *together[SESSIONS], *alone[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++) {
        together[i] = golden_session(model, options);
        alone[i] = golden_session(model, NULL);
    }
    static const size_t lengths[3][SESSIONS] = {{1, 7, 20, 1, 3}, {5, 1, 1, 11, 1}, {1, 1, 1, 1, 1}};
    size_t done[SESSIONS] = {0};
    for (size_t round = 0; round < 3; round++) {
        perigee_batch_item items[SESSIONS];
        for (size_t i = 0; i < SESSIONS; i++) {
            items[i] = item(together[i], g.ids + done[i] + i, lengths[round][i], (perigee_logits)((i + round) % 3));
        }
        perigee_error *err = NULL;
        golden_ok(perigee_decode_batch(items, SESSIONS, NULL, &err), err);
        for (size_t i = 0; i < SESSIONS; i++) {
            const size_t n = lengths[round][i];
            ck_assert_int_eq(items[i].status, PERIGEE_OK);
            ck_assert_ptr_null(items[i].error);
            const float *base = golden_step(alone[i], g.ids + done[i] + i, n, items[i].which);
            const size_t rows = items[i].which == PERIGEE_LOGITS_ALL ? n : items[i].which == PERIGEE_LOGITS_LAST;
            ck_assert_uint_eq(items[i].rows, rows);
            if (rows > 0) {
                same_rows(items[i].logits, base, rows * g.vocabulary, name, i);
            }
            done[i] += n;
            ck_assert_int_eq(perigee_session_position(together[i]), (int64_t)done[i]);
        }
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        perigee_session_free(together[i]);
        perigee_session_free(alone[i]);
    }
    perigee_model_free(model);
    free(g.file);
}

START_TEST(each_as_alone) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        mixed(golden_cases[i], NULL);
    }
    mixed("kimi_k3", "chunk=3");
    mixed("moonlight", "chunk=1");
}
END_TEST

/* Forty sessions, more than one has room for on the stack, and weights are read once for all of them. */
START_TEST(weights_are_read_once) {
    enum { MANY = 40 };
    golden g = golden_read("moonlight");
    perigee_model *model = golden_model(context, "moonlight", NULL);
    perigee_session *sessions[MANY], *alone = golden_session(model, NULL);
    perigee_batch_item items[MANY];
    for (size_t i = 0; i < MANY; i++) {
        sessions[i] = golden_session(model, NULL);
        items[i] = item(sessions[i], g.ids, 1, PERIGEE_LOGITS_LAST);
    }
    const float *base = golden_step(alone, g.ids, 1, PERIGEE_LOGITS_LAST);
    golden_ok(perigee_decode_batch(items, MANY, NULL, NULL), NULL);
    perigee_statistics one = {.struct_size = sizeof one}, all = one;
    golden_ok(perigee_session_statistics(alone, &one, NULL), NULL);
    golden_ok(perigee_session_statistics(sessions[0], &all, NULL), NULL);
    ck_assert_int_gt(one.weight_bytes, 0);
    ck_assert_int_eq(all.weight_bytes, one.weight_bytes);
    ck_assert_int_eq(all.expert_reads, one.expert_reads);
    ck_assert_int_eq(all.steps, 1);
    for (size_t i = 0; i < MANY; i++) {
        same_rows(items[i].logits, base, g.vocabulary, "moonlight", i);
        perigee_session_free(sessions[i]);
    }
    perigee_session_free(alone);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

START_TEST(what_is_refused) {
    golden g = golden_read("moonlight");
    perigee_model *model = golden_model(context, "moonlight", NULL), *other = golden_model(context, "moonlight", NULL);
    perigee_session *a = golden_session(model, NULL), *b = golden_session(model, NULL),
                    *c = golden_session(other, NULL);
    perigee_batch_item twice[] = {item(a, g.ids, 1, 0), item(b, g.ids, 1, 0), item(a, g.ids, 1, 0)};
    perigee_batch_item mix[] = {item(a, g.ids, 1, 0), item(c, g.ids, 1, 0)};
    perigee_batch_item none[] = {item(NULL, g.ids, 1, 0)};
    ck_assert_int_eq(perigee_decode_batch(twice, 3, NULL, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_decode_batch(mix, 2, NULL, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_decode_batch(none, 1, NULL, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_decode_batch(mix, 0, NULL, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_session_position(a), 0);
    ck_assert_int_eq(perigee_session_position(b), 0);
    perigee_session_free(a);
    perigee_session_free(b);
    perigee_session_free(c);
    perigee_model_free(model);
    perigee_model_free(other);
    free(g.file);
}
END_TEST

/* A bad token, a full context and values that are not finite, beside sessions that are well. */
START_TEST(one_that_fails_takes_nobody_along) {
    static const uint16_t infinite = 0x7f80;
    enum { BAD = 77 };
    golden g = golden_read("kimi_linear");
    char folder[512];
    copy_case("kimi_linear", folder, sizeof folder);
    damage(folder, "model.embed_tokens.weight", (BAD * g.hidden + 5) * sizeof infinite, &infinite, sizeof infinite);
    perigee_model *model = load_folder(context, folder);
    static const int32_t fine[] = {1, 2, 3, 4, 5, 6}, outside[] = {1, 320}, bad[] = {1, 2, BAD, 4};
    perigee_session *calm = golden_session(model, NULL), *s[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++) {
        s[i] = golden_session(model, i == 2 ? "context=3" : NULL);
    }
    perigee_batch_item items[] = {
        item(s[0], fine, 6, PERIGEE_LOGITS_LAST), item(s[1], outside, 2, PERIGEE_LOGITS_LAST),
        item(s[2], fine, 6, PERIGEE_LOGITS_LAST), item(s[3], bad, 4, PERIGEE_LOGITS_ALL),
        item(s[4], fine, 6, PERIGEE_LOGITS_LAST),
    };
    static const perigee_status expected[] = {PERIGEE_OK, PERIGEE_E_TOKEN, PERIGEE_E_CONTEXT_FULL, PERIGEE_E_NOT_FINITE,
                                              PERIGEE_OK};
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_decode_batch(items, SESSIONS, NULL, &err), PERIGEE_E_TOKEN);
    ck_assert_ptr_nonnull(strstr(perigee_error_message(err), perigee_error_message(items[1].error)));
    perigee_error_free(err);
    const float *base = golden_step(calm, fine, 6, PERIGEE_LOGITS_LAST);
    for (size_t i = 0; i < SESSIONS; i++) {
        ck_assert_int_eq(items[i].status, expected[i]);
        ck_assert_int_eq(perigee_error_status(items[i].error), expected[i]);
        ck_assert_int_eq(perigee_session_position(s[i]), expected[i] == PERIGEE_OK ? 6 : 0);
        if (expected[i] == PERIGEE_OK) {
            same_rows(items[i].logits, base, g.vocabulary, "kimi_linear", i);
        } else {
            ck_assert_ptr_null(items[i].logits);
            ck_assert_uint_eq(items[i].rows, 0);
        }
        perigee_error_free(items[i].error);
    }
    /* the one that failed goes on */
    same_rows(golden_step(s[3], fine, 6, PERIGEE_LOGITS_LAST), base, g.vocabulary, "kimi_linear", 3);
    for (size_t i = 0; i < SESSIONS; i++) {
        perigee_session_free(s[i]);
    }
    perigee_session_free(calm);
    perigee_model_free(model);
    remove_case(folder);
    free(g.file);
}
END_TEST

/* A pass takes what one session wants and a part of the next's, whose rest comes in a pass of its own. */
START_TEST(a_step_cut_by_its_company) {
    static const char *const names[] = {"kimi_k3", "kimi_linear", "moonlight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        golden g = golden_read(names[i]);
        perigee_model *model = golden_model(context, names[i], NULL);
        perigee_session *a = golden_session(model, "context=2 chunk=2"),
                        *b = golden_session(model, "context=2 chunk=2");
        perigee_session *alone = golden_session(model, NULL);
        perigee_batch_item items[] = {item(a, g.ids, 1, PERIGEE_LOGITS_LAST), item(b, g.ids, 2, PERIGEE_LOGITS_LAST)};
        perigee_error *err = NULL;
        golden_ok(perigee_decode_batch(items, 2, NULL, &err), err);
        ck_assert_int_eq(items[1].status, PERIGEE_OK);
        const float *base = golden_step(alone, g.ids, 2, PERIGEE_LOGITS_LAST);
        same_rows(items[1].logits, base, g.vocabulary, names[i], 1);
        perigee_session_free(a);
        perigee_session_free(b);
        perigee_session_free(alone);
        perigee_model_free(model);
        free(g.file);
    }
}
END_TEST

PRG_SUITE("batch", setup, teardown, each_as_alone, a_step_cut_by_its_company, weights_are_read_once, what_is_refused,
          one_that_fails_takes_nobody_along)
