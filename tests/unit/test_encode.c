/* Encoding and decoding against the ids of the tiktoken package (tests/fixtures/text, tools/text_oracle). */
#include <stdio.h>
#include <string.h>

#include "support/suite.h"
#include "support/text_fixtures.h"

static fixture f;

static void setup(void) {
    f = open_fixture("kimi_k25", 0, NULL);
}

static void teardown(void) {
    close_fixture(&f);
}

static uint64_t digest(const int32_t *ids, size_t count) {
    uint64_t value = 0xCBF29CE484222325u;
    for (size_t i = 0; i < count; i++) {
        value = (value ^ (uint64_t)ids[i]) * 0x100000001B3u;
    }
    return value;
}

static int32_t *encode(const char *text, size_t length, uint32_t flags, size_t *count) {
    int32_t *ids = malloc((3 * length + 1) * sizeof *ids);
    perigee_error *e = NULL;
    perigee_status st = perigee_encode_text(f.tokenizer, text, length, flags, ids, 3 * length + 1, count, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return ids;
}

static void check_round_trip(const char *text, size_t length, const int32_t *ids, size_t count) {
    char *back = malloc(length + 1);
    size_t size = 0;
    ck_assert_int_eq(perigee_decode(f.tokenizer, ids, count, 0, back, length + 1, &size, NULL), PERIGEE_OK);
    ck_assert_uint_eq(size, length);
    ck_assert(memcmp(back, text, length) == 0);
    free(back);
}

static void check_digest(const prg_json *want, const char *text, size_t length, uint32_t flags) {
    size_t count;
    int32_t *ids = encode(text, length, flags, &count);
    int64_t expected = -1;
    char hex[17];
    ck_assert(prg_json_int(prg_json_get(want, "count"), &expected));
    ck_assert_uint_eq(count, (size_t)expected);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)digest(ids, count));
    ck_assert_str_eq(hex, prg_json_get(want, "digest")->text);
    if (!flags) {
        check_round_trip(text, length, ids, count);
    }
    free(ids);
}

START_TEST(test_cases) {
    const prg_json *root = parse_fixture(&f, PRG_FIXTURES "/text/encode_cases.json");
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "cases")->first; c; c = c->next, seen++) {
        const prg_json *text = prg_json_get(c, "text"), *want = prg_json_get(c, "ids");
        const char *name = prg_json_get(c, "name")->text;
        size_t count, i = 0;
        int32_t *ids = encode(text->text, text->length, 0, &count);
        for (const prg_json *id = want->first; id; id = id->next, i++) {
            int64_t value = -1;
            ck_assert(prg_json_int(id, &value));
            ck_assert_msg(i < count && ids[i] == value, "%s: id %zu is %d, not %d", name, i, i < count ? ids[i] : -1,
                          (int)value);
        }
        ck_assert_msg(count == i, "%s: %zu ids, not %zu", name, count, i);
        check_round_trip(text->text, text->length, ids, count);
        free(ids);
    }
    ck_assert_uint_gt(seen, 40);
}
END_TEST

START_TEST(test_runs) {
    const prg_json *root = parse_fixture(&f, PRG_FIXTURES "/text/encode_cases.json");
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "runs")->first; c; c = c->next, seen++) {
        const prg_json *unit = prg_json_get(c, "text");
        int64_t times = 0;
        ck_assert(prg_json_int(prg_json_get(c, "times"), &times));
        size_t length = unit->length * (size_t)times;
        char *text = malloc(length);
        for (size_t i = 0; i < (size_t)times; i++) {
            memcpy(text + i * unit->length, unit->text, unit->length);
        }
        check_digest(c, text, length, 0);
        free(text);
    }
    ck_assert_uint_gt(seen, 10);
}
END_TEST

START_TEST(test_random) {
    const prg_json *root = parse_fixture(&f, PRG_FIXTURES "/text/encode_cases.json");
    static const uint32_t limits[] = {0x80, 0x250, 0x3000, 0x10000, 0x110000};
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "random")->first; c; c = c->next, seen++) {
        int64_t seed = 0, characters = 0;
        ck_assert(prg_json_int(prg_json_get(c, "seed"), &seed));
        ck_assert(prg_json_int(prg_json_get(c, "characters"), &characters));
        char *text = malloc((size_t)characters * 4);
        size_t length = 0;
        uint64_t state = (uint64_t)seed;
        for (int64_t i = 0; i < characters;) {
            uint64_t value = split_mix(&state);
            uint32_t code = (uint32_t)((value >> 8) % limits[value % 5]);
            if (code < 0xD800 || code > 0xDFFF) {
                length += put_code(text + length, code);
                i++;
            }
        }
        check_digest(c, text, length, 0);
        free(text);
    }
    ck_assert_uint_eq(seen, 20);
}
END_TEST

/* Random bytes, made valid by U+FFFD as Python's errors="replace" does it. */
START_TEST(test_random_bytes) {
    const prg_json *root = parse_fixture(&f, PRG_FIXTURES "/text/encode_cases.json");
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "bytes")->first; c; c = c->next, seen++) {
        int64_t seed = 0;
        char text[5000];
        ck_assert(prg_json_int(prg_json_get(c, "seed"), &seed));
        uint64_t state = (uint64_t)seed;
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = (char)(split_mix(&state) >> 8);
        }
        check_digest(c, text, sizeof text, PERIGEE_ENCODE_REPLACE);
    }
    ck_assert_uint_eq(seen, 10);
}
END_TEST

START_TEST(test_special_names_are_text) {
    perigee_tokenizer_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(perigee_tokenizer_get_info(f.tokenizer, &info, NULL), PERIGEE_OK);
    ck_assert_int_eq(info.vocabulary, info.base + 256);
    for (int32_t id = info.base; id < info.vocabulary; id++) {
        const char *name;
        size_t length, count;
        int32_t special = 0, ids[64], found = -1;
        ck_assert_int_eq(perigee_token_bytes(f.tokenizer, id, &name, &length, &special, NULL), PERIGEE_OK);
        ck_assert_int_eq(special, 1);
        ck_assert_int_eq(perigee_token_id(f.tokenizer, name, length, &found, NULL), PERIGEE_OK);
        ck_assert_int_eq(found, id);
        ck_assert_int_eq(perigee_encode_text(f.tokenizer, name, length, 0, ids, 64, &count, NULL), PERIGEE_OK);
        ck_assert_uint_gt(count, 1);
        for (size_t i = 0; i < count; i++) {
            ck_assert_int_lt(ids[i], info.base);
        }
        ck_assert_int_eq(perigee_encode_markup(f.tokenizer, name, length, 0, ids, 64, &count, NULL), PERIGEE_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(ids[0], id);
    }
}
END_TEST

START_TEST(test_markup_in_text) {
    static const char text[] = "a<|im_end|><<|im_end|>><|im_end<think></think>[BOS] b";
    int32_t ids[64], part[64];
    size_t count, n;
    ck_assert_int_eq(perigee_encode_markup(f.tokenizer, text, SIZE_MAX, 0, ids, 64, &count, NULL), PERIGEE_OK);
    static const char *const parts[] = {"a",        "*<|im_end|>", "<",      "*<|im_end|>", "><|im_end",
                                        "*<think>", "*</think>",   "*[BOS]", " b"};
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i][0] == '*') {
            ck_assert_int_eq(perigee_token_id(f.tokenizer, parts[i] + 1, SIZE_MAX, part, NULL), PERIGEE_OK);
            n = 1;
        } else {
            ck_assert_int_eq(perigee_encode_text(f.tokenizer, parts[i], SIZE_MAX, 0, part, 64, &n, NULL), PERIGEE_OK);
        }
        ck_assert(at + n <= count && memcmp(ids + at, part, n * sizeof *ids) == 0);
        at += n;
    }
    ck_assert_uint_eq(at, count);
}
END_TEST

START_TEST(test_room) {
    int32_t ids[4] = {-7, -7, -7, -7};
    size_t count = 99, full;
    ck_assert_int_eq(perigee_encode_text(f.tokenizer, "a b c d e", 9, 0, NULL, 0, &full, NULL), PERIGEE_OK);
    ck_assert_uint_eq(full, 5);
    perigee_error *e = NULL;
    ck_assert_int_eq(perigee_encode_text(f.tokenizer, "a b c d e", 9, 0, ids, 3, &count, &e), PERIGEE_E_BUFFER);
    ck_assert_uint_eq(count, full);
    ck_assert_int_eq(ids[3], -7);
    perigee_error_free(e);
    ck_assert_int_eq(perigee_encode_text(f.tokenizer, NULL, 0, 0, NULL, 0, &count, NULL), PERIGEE_OK);
    ck_assert_uint_eq(count, 0);
    char bytes[3] = {1, 1, 1};
    ck_assert_int_eq(perigee_decode(f.tokenizer, ids, 3, 0, bytes, 2, &count, NULL), PERIGEE_E_BUFFER);
    ck_assert_uint_eq(count, 5);
    ck_assert_int_eq(bytes[2], 1);
    int32_t bad = 1 << 20;
    ck_assert_int_eq(perigee_decode(f.tokenizer, &bad, 1, 0, NULL, 0, &count, NULL), PERIGEE_E_TOKEN);
    bad = -1;
    ck_assert_int_eq(perigee_decode(f.tokenizer, &bad, 1, 0, NULL, 0, &count, NULL), PERIGEE_E_TOKEN);
}
END_TEST

START_TEST(test_invalid) {
    static const struct {
        const char *text;
        size_t length;
        int64_t offset;
        const char *replaced;
    } cases[] = {
        {"abc\xff", 4, 3, "abc\xEF\xBF\xBD"},
        {"\xC0\x80", 2, 0, "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"x\xE2\x82", 3, 1, "x\xEF\xBF\xBD"},
        {"x\xE2\x82y", 4, 1, "x\xEF\xBF\xBDy"},
        {"\xED\xA0\x80", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"0123456789abcdef\xF4\x90\x80\x80", 20, 16,
         "0123456789abcdef\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF0\x9F\x98", 3, 0, "\xEF\xBF\xBD"},
        {"\xE0\x80\x80", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[128], want[128];
        size_t count, n;
        perigee_error *e = NULL;
        ck_assert_int_eq(perigee_encode_text(f.tokenizer, cases[i].text, cases[i].length, 0, ids, 128, &count, &e),
                         PERIGEE_E_TEXT);
        ck_assert_int_eq(perigee_error_offset(e), cases[i].offset);
        perigee_error_free(e);
        ck_assert_int_eq(perigee_encode_text(f.tokenizer, cases[i].text, cases[i].length, PERIGEE_ENCODE_REPLACE, ids,
                                             128, &count, NULL),
                         PERIGEE_OK);
        ck_assert_int_eq(perigee_encode_text(f.tokenizer, cases[i].replaced, SIZE_MAX, 0, want, 128, &n, NULL),
                         PERIGEE_OK);
        ck_assert_uint_eq(n, count);
        ck_assert(memcmp(ids, want, n * sizeof *ids) == 0);
    }
}
END_TEST

PRG_SUITE("encode", setup, teardown, test_cases, test_runs, test_random, test_random_bytes, test_special_names_are_text,
          test_markup_in_text, test_room, test_invalid)
