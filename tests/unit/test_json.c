#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "support/suite.h"

static prg_allocator *allocator;
static prg_arena arena;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    prg_arena_init(&arena, allocator);
}

static void teardown(void) {
    prg_arena_free(&arena);
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static const prg_json *parse(const char *text) {
    const prg_json *out = NULL;
    perigee_error *e = NULL;
    perigee_status st = prg_json_parse(&arena, text, strlen(text), 64, "t.json", &out, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return out;
}

START_TEST(test_tree) {
    const prg_json *j =
        parse("{\"a\": [1, 2.5, -3e2, true, false, null, \"x\\u00e9\\n\"], \"b\": {}, \"a2\": 7, \"a2\": 8}");
    const prg_json *a = prg_json_get(j, "a");
    ck_assert_uint_eq(a->count, 7);
    int64_t i = 0;
    double d = 0;
    ck_assert(prg_json_int(a->first, &i) && i == 1);
    ck_assert(!prg_json_int(a->first->next, &i));
    ck_assert(prg_json_double(a->first->next, &d) && d == 2.5);
    ck_assert(prg_json_int(a->first->next->next, &i) && i == -300);
    ck_assert(prg_json_int(prg_json_get(j, "a2"), &i) && i == 8);
    ck_assert_ptr_null(prg_json_get(j, "none"));
    ck_assert_ptr_null(prg_json_get(a, "none"));
}
END_TEST

START_TEST(test_numbers_out_of_range) {
    int64_t i = 5;
    double d;
    ck_assert(!prg_json_int(parse("1e30"), &i));
    ck_assert(!prg_json_int(parse("99999999999999999999"), &i));
    ck_assert(!prg_json_double(parse("1e999"), &d));
    ck_assert_int_eq(i, 5);
}
END_TEST

START_TEST(test_broken) {
    static const char *const bad[] = {"",         "{",     "[1,]",  "{\"a\":}",  "{} x", "nul", "\"\\u12\"",
                                      "\"\xff\"", "[1 2]", "{1:2}", "{\"a\" 1}", "--1",  "'a'"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const prg_json *out = NULL;
        perigee_error *e = NULL;
        ck_assert_msg(prg_json_parse(&arena, bad[i], strlen(bad[i]), 64, "t.json", &out, &e) == PERIGEE_E_FORMAT, "%s",
                      bad[i]);
        ck_assert_str_eq(perigee_error_file(e), "t.json");
        perigee_error_free(e);
    }
}
END_TEST

START_TEST(test_deep) {
    enum { N = 10000 };
    char *text = malloc(N);
    memset(text, '[', N);
    const prg_json *out = NULL;
    perigee_error *e = NULL;
    ck_assert_int_eq(prg_json_parse(&arena, text, N, 64, NULL, &out, &e), PERIGEE_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(perigee_error_message(e), "deeper than 64"));
    perigee_error_free(e);
    free(text);
}
END_TEST

PRG_SUITE("json", setup, teardown, test_tree, test_numbers_out_of_range, test_broken, test_deep)
