#include <check.h>

#include "base/error.h"
#include "generate/constraint.h"
#include "support/json_validator.h"
#include "support/suite.h"
#include "support/tokens.h"

enum { VOCABULARY = 900 };

static prg_allocator *allocator;
static tokens words;
static prg_token_trie *trie;
static uint64_t draws;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    words = tokens_make(VOCABULARY);
    prg_vocabulary v = tokens_vocabulary(&words);
    ck_assert_int_eq(prg_token_trie_new(allocator, &v, &trie, NULL), PERIGEE_OK);
}

static void teardown(void) {
    prg_token_trie_drop(trie);
    tokens_drop(&words);
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static perigee_constraint *compile(const char *schema) {
    perigee_constraint *c = NULL;
    perigee_error *e = NULL;
    perigee_status st = prg_constraint_from_schema(allocator, trie, schema, strlen(schema), &c, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s: %s", schema, perigee_error_message(e));
    return c;
}

static bool takes(const perigee_constraint *start, const char *text) {
    perigee_constraint *c = NULL;
    ck_assert_int_eq(prg_constraint_clone(start, &c, NULL), PERIGEE_OK);
    bool good =
        prg_constraint_accept_bytes(c, (const unsigned char *)text, strlen(text), NULL) == PERIGEE_OK && c->complete;
    perigee_constraint_free(c);
    return good;
}

typedef struct example {
    const char *schema;
    const char *good[8], *bad[8];
} example;

static const example examples[] = {
    {"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\",\"minimum\":0,"
     "\"maximum\":150},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":3}},\"required\":["
     "\"name\",\"age\"],\"additionalProperties\":false}",
     {"{\"name\":\"x\",\"age\":0}", "{\"name\": \"\\u00e9\\n\", \"age\": 150, \"tags\": []}",
      "{\n  \"name\": \"x\",\n  \"age\": 7,\n  \"tags\": [\n\t\"a\", \"b\", \"c\"\n  ]\n}"},
     {"{}", "{\"age\":1,\"name\":\"x\"}", "{\"name\":\"x\",\"age\":151}", "{\"name\":\"x\",\"age\":01}",
      "{\"name\":\"x\",\"age\":1,\"tags\":[\"a\",\"b\",\"c\",\"d\"]}", "{\"name\":\"x\",\"age\":1,}",
      "{\"name\":\"x\",\"age\":1,\"z\":1}", "{\"name\":\"x\" ,\"age\":1}"}},
    {"true",
     {"1", "\"\"", "[]", "{}", "[[], {\"a\": [null]}]", "-0.5e-3"},
     {"", "[", "nul", "01", "+1", "1.", "\"\n\"", "\"\\x\""}},
    {"{\"title\":\"anything\",\"default\":3}", {"{\"a\":{\"b\":[1,2,{}]}}"}, {"{\"a\"}"}},
    {"{\"type\":\"string\"}",
     {"\"\"", "\"\\ud83d\\ude00\"", "\"\\u00e9\\/\"", "\"\x7f\xc3\xa9\"", "\"\\uFFFF\\ue000\""},
     {"\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"\\u0000\"", "\"\xff\"", "\"a", "\"\xed\xa0\x80\"",
      "\"\t\""}},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":4}",
     {"\"ab\"", "\"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\"", "\"\\n\\\"\"", "\"\\u001fa\""},
     {"\"a\"", "\"abcde\"", "\"\xe4\xb8\xad\"", "\"\\n\"", "\"\\u0041b\""}},
    {"{\"type\":\"string\",\"minLength\":3}", {"\"abc\"", "\"abcdefgh\""}, {"\"ab\"", "\"\""}},
    {"{\"type\":\"string\",\"pattern\":\"^[a-z]+-\\\\d{2}$\"}",
     {"\"ab-12\""},
     {"\"ab-1\"", "\"-12\"", "\"xab-12y\"", "\"Ab-12\""}},
    {"{\"type\":\"string\",\"pattern\":\"b.\\\"\"}", {"\"xxb\\\\\\\"yy\"", "\"bb\\\"\""}, {"\"b\\\"\"", "\"\""}},
    {"{\"type\":\"string\",\"pattern\":\"^a|b$\"}", {"\"a\"", "\"ax\"", "\"xb\""}, {"\"xa\"", "\"bx\""}},
    {"{\"type\":\"string\",\"format\":\"date\"}",
     {"\"2024-12-31\""},
     {"\"2024-13-01\"", "\"2024-02-31\"", "\"24-1-1\""}},
    {"{\"type\":\"string\",\"format\":\"date-time\"}",
     {"\"2024-12-31T23:59:59Z\"", "\"2024-12-31T00:00:00.25+02:00\""},
     {"\"2024-12-31\"", "\"2024-12-31T24:00:00Z\""}},
    {"{\"type\":\"string\",\"format\":\"ipv4\"}", {"\"0.10.199.255\""}, {"\"1.2.3\"", "\"256.1.1.1\"", "\"01.1.1.1\""}},
    {"{\"type\":\"integer\"}", {"0", "-1", "123456789012345678"}, {"-0", "1.0", "1e3", "00", "1234567890123456789"}},
    {"{\"type\":\"number\"}", {"0", "-0.0", "1e3", "1.5E-10"}, {".5", "1.", "1e", "1e999", "--1"}},
    {"{\"type\":\"integer\",\"minimum\":-12,\"maximum\":305}",
     {"-12", "-1", "0", "9", "99", "305", "-9"},
     {"-13", "306", "1000", "-0", "-100", "3050"}},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":99}", {"100", "101", "999999"}, {"99", "9", "-100", "0"}},
    {"{\"type\":\"integer\",\"exclusiveMaximum\":-7.5}", {"-8", "-10", "-123"}, {"-7", "7", "0", "-1"}},
    {"{\"type\":\"number\",\"minimum\":0.25,\"exclusiveMaximum\":10}",
     {"0.25", "0.250", "0.3", "9.999", "1", "9", "0.9", "0.2500001"},
     {"0.2", "0.249", "10", "10.0", "-1", "0", "0.2499999", "1e0"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":-1.5,\"maximum\":1.5e1}",
     {"-1.4", "-1", "0", "15", "15.0", "14.999", "-0.1", "-1.4999"},
     {"-1.5", "-1.50", "15.1", "-2", "15.01", "-0", "16"}},
    {"{\"type\":\"number\",\"maximum\":0}", {"0", "0.0", "-0.5", "-77"}, {"0.1", "1", "-0"}},
    {"{\"enum\":[\"a\\\"b\",1,null,[1,{\"k\":true}],\"\\u4e2d\\n\"]}",
     {"\"a\\\"b\"", "1", "null", "[1, {\"k\": true}]", "\"\xe4\xb8\xad\\n\""},
     {"2", "\"a\"", "[1]", "true"}},
    {"{\"const\":{\"x\":[]}}", {"{\"x\":[]}", "{ \"x\": [ ] }"}, {"{}", "{\"x\":[1]}"}},
    {"{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",3,null]}", {"\"a\"", "null"}, {"3"}},
    {"{\"type\":[\"integer\",\"null\",\"boolean\"],\"minimum\":5}",
     {"5", "null", "true", "false"},
     {"4", "\"5\"", "5.5"}},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":2}]}",
     {"5", "[1,2.5]", "[1, 2, 3]"},
     {"[]", "[1]", "2.5", "[1,\"a\"]"}},
    {"{\"oneOf\":[{\"const\":\"ab\"},{\"type\":\"string\",\"pattern\":\"^a\"}]}",
     {"\"ab\"", "\"a\"", "\"abc\""},
     {"\"b\""}},
    {"{\"allOf\":[{\"$ref\":\"#/$defs/a~1b%20c\"}],\"$defs\":{\"a/b c\":{\"type\":\"boolean\"}}}", {"true"}, {"null"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"ab\":{\"type\":\"null\"}},"
     "\"additionalProperties\":{\"type\":\"boolean\"}}",
     {"{}", "{\"a\":1}", "{\"ab\":null}", "{\"b\":true}", "{\"abc\":false, \"\":true}",
      "{\"a\":1,\"ab\":null,\"aa\":true,\"x\\n\":false}"},
     {"{\"a\":true}", "{\"ab\":true}", "{\"b\":1}", "{\"ab\":null,\"a\":1}", "{,}", "{\"\\u0061\":true}",
      "{\"b\":true,\"a\":1}"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":true},\"required\":[\"z\"]}",
     {"{\"z\":1}", "{\"a\":1,\"z\":[]}", "{\"z\":{},\"q\":0}"},
     {"{}", "{\"a\":1}", "{\"z\":1,\"z\":2}"}},
    {"{\"type\":\"object\",\"properties\":{\"\\u00e9\\u4e2d\":{\"type\":\"null\"},\"\\u00e9\":{\"type\":\"null\"}},"
     "\"additionalProperties\":{\"type\":\"integer\"}}",
     {"{\"\xc3\xa9\xe4\xb8\xad\":null}", "{\"\xc3\xa9\xe4\xb8\xae\":1}", "{\"\xc3\xa8\":1}", "{\"\xc3\xa9\":null}"},
     {"{\"\xc3\xa9\xe4\xb8\xad\":1}", "{\"\xc3\xa9\":1}"}},
    {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":{\"type\":\"null\"}"
     "}",
     {"[]", "[1]", "[1,\"a\"]", "[1, \"a\", null, null]"},
     {"[\"a\"]", "[1,2]", "[1,\"a\",1]"}},
    {"{\"type\":\"array\",\"prefixItems\":[true,true],\"items\":false,\"minItems\":1}",
     {"[1]", "[1,2]"},
     {"[]", "[1,2,3]"}},
    {"{\"type\":\"array\",\"items\":{\"enum\":[1]},\"minItems\":2,\"maxItems\":3}",
     {"[1,1]", "[1,1,1]"},
     {"[1]", "[1,1,1,1]"}},
    {"{\"type\":\"array\",\"maxItems\":0}", {"[]", "[ ]"}, {"[1]"}},
    {"{\"$ref\":\"#/definitions/"
     "node\",\"definitions\":{\"node\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{"
     "\"anyOf\":[{\"$ref\":\"#/definitions/"
     "node\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"],\"additionalProperties\":false}}}",
     {"{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3,\"next\":null}}}"},
     {"{\"v\":1}", "{\"v\":1,\"next\":{}}"}},
    {"{\"type\":\"object\",\"properties\":{\"children\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}},"
     "\"additionalProperties\":false}",
     {"{}", "{\"children\":[{},{\"children\":[]}]}"},
     {"{\"children\":[1]}", "{\"children\":[{},]}"}},
    {"{\"minLength\":2,\"minimum\":3,\"required\":[\"a\"]}",
     {"3", "null", "\"ab\"", "{\"a\":1}", "[]"},
     {"2", "\"a\"", "{}"}},
    {"{\"type\":\"object\",\"properties\":{\"never\":false,\"a\":{\"type\":\"integer\"}},\"additionalProperties\":"
     "false}",
     {"{}", "{\"a\":1}"},
     {"{\"never\":1}"}},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static const prg_json *parse(prg_arena *arena, const char *text, size_t length, const char *schema) {
    const prg_json *out = NULL;
    perigee_error *e = NULL;
    perigee_status st = prg_json_parse(arena, text, length, 250, NULL, &out, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s: \"%.*s\": %s", schema, (int)length, text, perigee_error_message(e));
    return out;
}

START_TEST(test_examples) {
    for (size_t k = 0; k < EXAMPLES; k++) {
        perigee_constraint *c = compile(examples[k].schema);
        prg_arena arena;
        prg_arena_init(&arena, allocator);
        const prg_json *schema = parse(&arena, examples[k].schema, strlen(examples[k].schema), "");
        for (size_t i = 0; i < 8; i++) {
            const char *good = examples[k].good[i], *bad = examples[k].bad[i];
            if (good) {
                ck_assert_msg(takes(c, good), "%s refused %s", examples[k].schema, good);
                ck_assert_msg(json_valid(schema, schema, parse(&arena, good, strlen(good), "")), "%s", good);
            }
            ck_assert_msg(!bad || !takes(c, bad), "%s took %s", examples[k].schema, bad);
        }
        prg_arena_free(&arena);
        perigee_constraint_free(c);
    }
}
END_TEST

static bool has(const uint64_t *allowed, int32_t id) {
    return allowed[id / 64] >> (id % 64) & 1;
}

/* One of the allowed tokens; when the text is long, one that helps to end it. */
static int32_t choose(const perigee_constraint *c, const uint64_t *allowed, size_t length) {
    int32_t ids[VOCABULARY];
    size_t n = 0;
    for (int32_t id = 0; id < VOCABULARY; id++) {
        if (has(allowed, id)) {
            ids[n++] = id;
        }
    }
    ck_assert_uint_gt(n, 0);
    uint64_t r = prg_random_bits(17, draws++);
    if (c->complete && (length > 60 || r % 4 == 0)) {
        return words.end_ids[0];
    }
    if (r % 4 == 1 || length > 150) {
        bool inside = has(allowed, '\\'); /* a string */
        if (inside && !has(allowed, '"') &&
            length > 150) { /* a pattern wants more: one of the examples b, any, quote */
            int32_t next = "b\\"[r >> 20 & 1];
            return has(allowed, next) ? next : ids[(r >> 8) % n];
        }
        for (const char *closer = inside ? "\"" : "]}-nt\"0"; *closer; closer++) {
            if (has(allowed, *closer)) {
                return *closer;
            }
        }
    }
    return ids[(r >> 8) % n];
}

static void compare_mask(const perigee_constraint *c, const uint64_t *allowed, const char *schema) {
    for (int32_t id = 0; id < VOCABULARY; id++) {
        perigee_constraint *d = NULL;
        ck_assert_int_eq(prg_constraint_clone(c, &d, NULL), PERIGEE_OK);
        bool bit = allowed[id / 64] >> (id % 64) & 1;
        ck_assert_msg(bit == (prg_constraint_accept(d, id, NULL) == PERIGEE_OK), "%s, token %d", schema, id);
        perigee_constraint_free(d);
    }
}

/* Whatever is chosen of the allowed tokens, there is a way on, and the text is valid in the end. */
START_TEST(test_walks) {
    static char text[1 << 16];
    for (size_t k = 0; k < EXAMPLES; k++) {
        perigee_constraint *start = compile(examples[k].schema);
        for (int round = 0; round < 30; round++) {
            perigee_constraint *c = NULL;
            size_t length = 0;
            ck_assert_int_eq(prg_constraint_clone(start, &c, NULL), PERIGEE_OK);
            while (!c->ended) {
                const uint64_t *allowed = NULL;
                ck_assert_int_eq(prg_constraint_allowed(c, &allowed, NULL), PERIGEE_OK);
                if (round == 0 && length < 80) {
                    compare_mask(c, allowed, examples[k].schema);
                }
                int32_t id = choose(c, allowed, length);
                ck_assert_int_eq(prg_constraint_accept(c, id, NULL), PERIGEE_OK);
                memcpy(text + length, words.bytes[id], words.lengths[id]);
                length += words.lengths[id];
                ck_assert_msg(length < 5000, "%s: %.*s ...", examples[k].schema, 300, text);
            }
            prg_arena arena;
            prg_arena_init(&arena, allocator);
            const prg_json *schema = parse(&arena, examples[k].schema, strlen(examples[k].schema), "");
            const prg_json *value = parse(&arena, text, length, examples[k].schema);
            ck_assert_msg(json_valid(schema, schema, value), "%s: \"%.*s\"", examples[k].schema, (int)length, text);
            prg_arena_free(&arena);
            perigee_constraint_free(c);
        }
        perigee_constraint_free(start);
    }
}
END_TEST

/* Bounds of integers against counting. */
START_TEST(test_integer_bounds) {
    static const int bounds[][2] = {{0, 0},     {-1, 1},  {7, 1234},      {-205, -19},
                                    {-99, 100}, {10, 10}, {-1000, -1000}, {95, 105}};
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        char schema[100], text[20];
        for (int strict = 0; strict < 2; strict++) {
            if (strict && bounds[k][1] - bounds[k][0] < 2) {
                continue;
            }
            snprintf(schema, sizeof schema, "{\"type\":\"%s\",\"%s\":%d,\"%s\":%d}", k % 2 ? "integer" : "number",
                     strict ? "exclusiveMinimum" : "minimum", bounds[k][0], strict ? "exclusiveMaximum" : "maximum",
                     bounds[k][1]);
            perigee_constraint *c = compile(schema);
            for (int i = -1300; i <= 1300; i++) {
                snprintf(text, sizeof text, "%d", i);
                bool inside = i >= bounds[k][0] + strict && i <= bounds[k][1] - strict;
                ck_assert_msg(takes(c, text) == inside, "%s: %s", schema, text);
            }
            perigee_constraint_free(c);
        }
    }
}
END_TEST

START_TEST(test_refused) {
    static const struct {
        const char *schema, *where;
    } bad[] = {
        {"{\"type\":\"strin\"}", "#/type:"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true}}}",
         "#/properties/a/uniqueItems:"},
        {"{\"properties\":{\"a/b\":{\"multipleOf\":2}}}", "#/properties/a~1b/multipleOf:"},
        {"{\"patternProperties\":{}}", "#/patternProperties:"},
        {"{\"not\":{}}", "#/not:"},
        {"{\"if\":{},\"then\":{}}", "#/if:"},
        {"{\"type\":\"object\",\"minProperties\":1}", "#/minProperties:"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"contains\":1}]}", "#/anyOf/1/contains:"},
        {"{\"anyOf\":[true],\"type\":\"string\"}", "#/type:"},
        {"{\"anyOf\":[]}", "#/anyOf:"},
        {"{\"allOf\":[true,true]}", "#/allOf:"},
        {"{\"$ref\":\"http://example.com/a\"}", "#/$ref:"},
        {"{\"$ref\":\"#/$defs/none\"}", "#/$ref:"},
        {"{\"$ref\":\"#\"}", "#:"},
        {"{\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"$ref\":\"#/$defs/a\"}},"
         "\"$ref\":\"#/$defs/a\"}",
         "#/$defs/"},
        {"{\"type\":\"string\",\"pattern\":\"a(?=b)\"}", "#/pattern: pattern, byte 1:"},
        {"{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":3}", "#/pattern:"},
        {"{\"type\":\"string\",\"format\":\"email\"}", "#/format:"},
        {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "#/minLength:"},
        {"{\"type\":\"string\",\"maxLength\":-1}", "#/maxLength:"},
        {"{\"type\":\"string\",\"maxLength\":200000}", "too large"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "#/minimum:"},
        {"{\"type\":\"integer\",\"minimum\":1e30}", "#/minimum:"},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":true}", "#/exclusiveMinimum:"},
        {"{\"type\":\"array\",\"items\":[{}]}", "#/items:"},
        {"{\"type\":\"array\",\"minItems\":3,\"maxItems\":1}", "#/minItems:"},
        {"{\"enum\":[]}", "#/enum:"},
        {"{\"type\":\"string\",\"enum\":[1]}", "#/enum:"},
        {"{\"type\":\"string\",\"const\":1}", "#/const:"},
        {"{\"properties\":{\"a\":3}}", "#/properties/a:"},
        {"{\"properties\":{\"a\":{},\"a\":{}}}", "#/properties:"},
        {"{\"required\":\"a\"}", "#/required:"},
        {"false", "nothing"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}", "nothing"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "nothing"},
        {"3", "#:"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        perigee_constraint *c = NULL;
        perigee_error *e = NULL;
        ck_assert_msg(prg_constraint_from_schema(allocator, trie, bad[i].schema, strlen(bad[i].schema), &c, &e) ==
                          PERIGEE_E_SCHEMA,
                      "%s", bad[i].schema);
        ck_assert_ptr_null(c);
        ck_assert_msg(strstr(perigee_error_message(e), bad[i].where), "%s: %s", bad[i].schema,
                      perigee_error_message(e));
        perigee_error_free(e);
    }
    perigee_error *e = NULL;
    perigee_constraint *c = NULL;
    ck_assert_int_eq(prg_constraint_from_schema(allocator, trie, "{\"type\" 1}", 10, &c, &e), PERIGEE_E_SCHEMA);
    ck_assert_int_ge(perigee_error_offset(e), 7);
    perigee_error_free(e);
}
END_TEST

/* A chain of references, each to a definition that comes earlier: linear work, and those too deep are left out. */
START_TEST(test_long_chain) {
    enum { LINKS = 2000 };
    size_t size = LINKS * 120, at = 0;
    char *text = malloc(size);
    at += (size_t)snprintf(text, size, "{\"$ref\":\"#/$defs/top\",\"$defs\":{\"d0\":{\"type\":\"null\"}");
    for (int i = 1; i < LINKS; i++) {
        at += (size_t)snprintf(text + at, size - at,
                               ",\"d%d\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/d%d\"},\"minItems\":1}", i,
                               i - 1);
    }
    at += (size_t)snprintf(text + at, size - at, ",\"top\":{\"anyOf\":[");
    for (int i = 0; i < LINKS; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s{\"$ref\":\"#/$defs/d%d\"}", i ? "," : "", i);
    }
    snprintf(text + at, size - at, "]}}}");
    perigee_constraint *c = compile(text);
    ck_assert(takes(c, "null") && takes(c, "[[[null], [null]]]") && !takes(c, "[]") && !takes(c, "[[null],null]"));
    perigee_constraint_free(c);
    free(text);
}
END_TEST

/* Nesting ends before its limit, with all that is open closed again. */
START_TEST(test_depth) {
    perigee_constraint *c = compile("{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}");
    size_t depth = 0;
    while (prg_constraint_accept_bytes(c, (const unsigned char *)"[", 1, NULL) == PERIGEE_OK) {
        const uint64_t *allowed = NULL;
        ck_assert_int_eq(prg_constraint_allowed(c, &allowed, NULL), PERIGEE_OK);
        perigee_constraint *d = NULL;
        ck_assert_int_eq(prg_constraint_clone(c, &d, NULL), PERIGEE_OK);
        ck_assert_int_eq(allowed['[' / 64] >> ('[' % 64) & 1,
                         prg_constraint_accept_bytes(d, (const unsigned char *)"[", 1, NULL) == PERIGEE_OK);
        perigee_constraint_free(d);
        depth++;
        ck_assert_uint_lt(depth, 5000);
    }
    ck_assert_uint_ge(depth, 500);
    for (; depth > 0; depth--) {
        ck_assert_int_eq(prg_constraint_accept_bytes(c, (const unsigned char *)"]", 1, NULL), PERIGEE_OK);
    }
    ck_assert(prg_constraint_finished(c));
    perigee_constraint_free(c);
}
END_TEST

/* The cache is cleared while places are inside nested rules. */
START_TEST(test_clearing) {
    static const char text[] = "{\"a\":[{\"b\":[1,2,{\"c\":\"x y z\"}]},[[[\"deep\"]]]],\"d\":{\"e\":{\"f\":-1.5e7}}}";
    perigee_constraint *plain = compile("true"), *cleared = compile("true");
    cleared->grammar->byte_limit = 1;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        const uint64_t *a = NULL, *b = NULL;
        ck_assert_int_eq(prg_constraint_allowed(plain, &a, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_constraint_allowed(cleared, &b, NULL), PERIGEE_OK);
        ck_assert_msg(memcmp(a, b, (VOCABULARY + 63) / 64 * 8) == 0, "at byte %zu", i);
        ck_assert_int_eq(prg_constraint_accept_bytes(plain, (const unsigned char *)text + i, 1, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_constraint_accept_bytes(cleared, (const unsigned char *)text + i, 1, NULL), PERIGEE_OK);
    }
    ck_assert(prg_constraint_finished(plain) && prg_constraint_finished(cleared));
    perigee_constraint_free(plain);
    perigee_constraint_free(cleared);
}
END_TEST

PRG_SUITE("constraint_schema", setup, teardown, test_examples, test_walks, test_integer_bounds, test_refused,
          test_long_chain, test_depth, test_clearing)
