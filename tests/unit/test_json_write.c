/* JSON as Python writes it. Expected texts are those of Python 3.11's json and repr. */
#include <locale.h>
#include <string.h>

#include "support/suite.h"
#include "text/json_write.h"

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

static void check(const char *text, unsigned style, const char *want) {
    const prg_json *value = NULL;
    ck_assert_int_eq(prg_json_parse(&arena, text, strlen(text), 64, NULL, &value, NULL), PERIGEE_OK);
    prg_buffer out;
    prg_buffer_init(&out, allocator);
    prg_json_write(&out, value, style);
    ck_assert_str_eq(prg_buffer_text(&out), want);
    prg_buffer_free(&out);
}

START_TEST(test_numbers) {
    static const char *const cases[][2] = {{"0", "0"},
                                           {"-0", "0"},
                                           {"-0.0", "-0.0"},
                                           {"12345678901234567890123", "12345678901234567890123"},
                                           {"1.50", "1.5"},
                                           {"1e5", "100000.0"},
                                           {"1E+2", "100.0"},
                                           {"0.1", "0.1"},
                                           {"1e15", "1000000000000000.0"},
                                           {"1e16", "1e+16"},
                                           {"123456789012345678.0", "1.2345678901234568e+17"},
                                           {"0.0001", "0.0001"},
                                           {"0.00001", "1e-05"},
                                           {"1.5e-7", "1.5e-07"},
                                           {"5e-324", "5e-324"},
                                           {"1.7976931348623157e308", "1.7976931348623157e+308"},
                                           {"0.30000000000000004", "0.30000000000000004"},
                                           {"100.0", "100.0"},
                                           {"1e400", "Infinity"},
                                           {"-1e400", "-Infinity"},
                                           {"3.14159265358979", "3.14159265358979"},
                                           {"9007199254740993.0", "9007199254740992.0"},
                                           {"2.5e-10", "2.5e-10"},
                                           {"1e22", "1e+22"},
                                           {"1e23", "1e+23"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(cases[i][0], PRG_JSON_SPACED, cases[i][1]);
    }
}
END_TEST

START_TEST(test_locale) {
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        check("[1.5, 1e-7]", PRG_JSON_SPACED, "[1.5, 1e-07]");
        setlocale(LC_NUMERIC, "C");
    }
}
END_TEST

START_TEST(test_strings) {
    check("\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\\/é\\u2028\\u007f\"", PRG_JSON_SPACED,
          "\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/é\xE2\x80\xA8\x7f\"");
}
END_TEST

START_TEST(test_objects) {
    static const char text[] = "{\"b\":1,\"a\":[true,false,null,{}],\"b\":2,\"é\":{\"z\":[],\"y\":\"\"},\"B\":3}";
    check(text, PRG_JSON_SPACED,
          "{\"b\": 2, \"a\": [true, false, null, {}], \"é\": {\"z\": [], \"y\": \"\"}, \"B\": 3}");
    check(text, PRG_JSON_COMPACT, "{\"b\":2,\"a\":[true,false,null,{}],\"é\":{\"z\":[],\"y\":\"\"},\"B\":3}");
    check(text, PRG_JSON_COMPACT | PRG_JSON_SORTED,
          "{\"B\":3,\"a\":[true,false,null,{}],\"b\":2,\"é\":{\"y\":\"\",\"z\":[]}}");
    check("{\"ab\":1,\"a\":2,\"\":3}", PRG_JSON_SORTED, "{\"\": 3, \"a\": 2, \"ab\": 1}");
}
END_TEST

PRG_SUITE("json_write", setup, teardown, test_numbers, test_locale, test_strings, test_objects)
