#define PCRE2_CODE_UNIT_WIDTH 8
#include <check.h>
#include <pcre2.h>

#include "base/error.h"
#include "generate/constraint.h"
#include "support/suite.h"
#include "support/tokens.h"

static prg_allocator *allocator;
static tokens words;
static prg_token_trie *trie;
static uint64_t draws;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    words = tokens_make(700);
    prg_vocabulary v = tokens_vocabulary(&words);
    ck_assert_int_eq(prg_token_trie_new(allocator, &v, &trie, NULL), PERIGEE_OK);
}

static void teardown(void) {
    prg_token_trie_drop(trie);
    tokens_drop(&words);
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static perigee_constraint *compile(const char *pattern) {
    perigee_constraint *c = NULL;
    perigee_error *e = NULL;
    perigee_status st = prg_constraint_from_regex(allocator, trie, pattern, strlen(pattern), &c, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s: %s", pattern, perigee_error_message(e));
    return c;
}

static bool takes(const perigee_constraint *start, const char *text, size_t length) {
    perigee_constraint *c = NULL;
    ck_assert_int_eq(prg_constraint_clone(start, &c, NULL), PERIGEE_OK);
    bool good = prg_constraint_accept_bytes(c, (const unsigned char *)text, length, NULL) == PERIGEE_OK && c->complete;
    perigee_constraint_free(c);
    return good;
}

static bool oracle(const char *pattern, const char *text, size_t length) {
    int code;
    PCRE2_SIZE at;
    pcre2_code *p =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
    ck_assert_ptr_nonnull(p);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(p, NULL);
    bool good = pcre2_match(p, (PCRE2_SPTR)text, length, 0, 0, m, NULL) >= 0;
    pcre2_match_data_free(m);
    pcre2_code_free(p);
    return good;
}

static const char *const patterns[] = {"a",
                                       "abc",
                                       "a|b|cc",
                                       "(ab)*c",
                                       "a{2,4}b?",
                                       "a{3}",
                                       "a{2,}",
                                       "(a|b)*abb",
                                       "[abc]+",
                                       "[^a]b*",
                                       ".*c",
                                       "a.b",
                                       "(a?b?c?){1,3}",
                                       "((a|ab)(c|bcd))?",
                                       "",
                                       "a||b",
                                       "(?:ab|a)(?:bc|c)*",
                                       "\\w+",
                                       "\\d|\\D\\d",
                                       "\\s?a",
                                       "[a-c]{2}|[\\d]{3}",
                                       "a*?b",
                                       "(a*)*b",
                                       "(a|aa)+",
                                       "[\\w-]+",
                                       "[-a]b",
                                       "[\\]-a]",
                                       "^ab$",
                                       "^a|b$",
                                       "\\x61\\u0062c",
                                       "[^\\w]a",
                                       "c(?:|a|b)c"};

/* All texts of up to five characters of a small alphabet, against PCRE2. */
START_TEST(test_language) {
    static const char *const alphabet[] = {"a", "b", "c", "1", " "};
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        const char *own = patterns[k], *use = strcmp(own, "\\x61\\u0062c") == 0 ? "abc" : own;
        perigee_constraint *c = compile(own);
        int matched = 0;
        for (int n = 0; n <= 5; n++) {
            int total = 1;
            for (int i = 0; i < n; i++) {
                total *= 5;
            }
            for (int code = 0; code < total; code++) {
                char text[8];
                int rest = code;
                for (int i = 0; i < n; i++, rest /= 5) {
                    text[i] = alphabet[rest % 5][0];
                }
                bool expected = oracle(use, text, (size_t)n);
                ck_assert_msg(takes(c, text, (size_t)n) == expected, "%s on \"%.*s\"", own, n, text);
                matched += expected;
            }
        }
        ck_assert_int_gt(matched, 0);
        perigee_constraint_free(c);
    }
}
END_TEST

/* Every character of Unicode through classes with borders in each length of UTF-8. */
START_TEST(test_unicode_classes) {
    static const char *const sets[] = {
        "[a-é]", "[^a]", ".", "[߿-ࠀ]", "[퟿-]", "[￿-𐀀]", "[一-鿿]", "[😀-😎é]", "[\\u00e9-\\u{1F600}]"};
    static const uint32_t borders[] = {0x00,   0x0A,   0x61,    0x7F,   0x80,   0xE9,    0x7FF,   0x800,   0xD7FF,
                                       0xE000, 0xFFFF, 0x10000, 0x4E00, 0x9FFF, 0x1F600, 0x1F60E, 0x10FFFF};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        const char *other = k == 8 ? "[\\x{e9}-\\x{1F600}]" : sets[k];
        perigee_constraint *c = compile(sets[k]);
        for (size_t b = 0; b < sizeof borders / sizeof *borders; b++) {
            for (int64_t d = -1; d <= 1; d++) {
                int64_t p = (int64_t)borders[b] + d;
                if (p < 0 || p > 0x10FFFF || (p >= 0xD800 && p < 0xE000)) {
                    continue;
                }
                uint32_t u = (uint32_t)p;
                char text[4];
                size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
                for (size_t i = n - 1; i > 0; i--, u >>= 6) {
                    text[i] = (char)(0x80 | (u & 0x3F));
                }
                text[0] = (char)(u | (n == 1 ? 0u : n == 2 ? 0xC0u : n == 3 ? 0xE0u : 0xF0u));
                ck_assert_msg(takes(c, text, n) == oracle(other, text, n), "%s at U+%04x", sets[k], (unsigned)p);
            }
        }
        static const char *const invalid[] = {"\x80",         "\xC0\x80",         "\xE0\x80\x80",
                                              "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"};
        for (size_t i = 0; i < 6; i++) {
            ck_assert(!takes(c, invalid[i], strlen(invalid[i])));
        }
        perigee_constraint_free(c);
    }
}
END_TEST

/* The bits against trying each token; then a random one of them, until the text ends. No walk gets stuck. */
START_TEST(test_walks) {
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
        perigee_constraint *start = compile(patterns[k]);
        for (int round = 0; round < 3; round++) {
            perigee_constraint *c = NULL;
            char text[2048];
            size_t length = 0;
            ck_assert_int_eq(prg_constraint_clone(start, &c, NULL), PERIGEE_OK);
            while (!c->ended) {
                const uint64_t *allowed = NULL;
                int32_t choices[700];
                size_t n = 0;
                ck_assert_int_eq(prg_constraint_allowed(c, &allowed, NULL), PERIGEE_OK);
                for (int32_t id = 0; id < 700; id++) {
                    perigee_constraint *d = NULL;
                    ck_assert_int_eq(prg_constraint_clone(c, &d, NULL), PERIGEE_OK);
                    bool bit = allowed[id / 64] >> (id % 64) & 1;
                    ck_assert_msg(bit == (prg_constraint_accept(d, id, NULL) == PERIGEE_OK), "%s, \"%.*s\", token %d",
                                  patterns[k], (int)length, text, id);
                    perigee_constraint_free(d);
                    if (bit) {
                        choices[n++] = id;
                    }
                }
                ck_assert_uint_gt(n, 0);
                ck_assert_int_eq(prg_constraint_finished(c), n == 2 && choices[0] == words.end_ids[0]);
                int32_t id = choices[prg_random_bits(3, draws++) % n];
                if (c->complete && (length > 30 || prg_random_bits(3, draws++) % 4 == 0)) {
                    id = words.end_ids[prg_random_bits(3, draws++) % 2];
                }
                ck_assert_int_eq(prg_constraint_accept(c, id, NULL), PERIGEE_OK);
                memcpy(text + length, words.bytes[id], words.lengths[id]);
                length += words.lengths[id];
                ck_assert_uint_lt(length, 2000);
            }
            const char *use = patterns[k];
            ck_assert_msg(oracle(strcmp(use, "\\x61\\u0062c") == 0 ? "abc" : use, text, length), "%s on \"%.*s\"", use,
                          (int)length, text);
            perigee_constraint_free(c);
        }
        perigee_constraint_free(start);
    }
}
END_TEST

START_TEST(test_refused) {
    static const struct {
        const char *pattern;
        int offset;
        const char *word;
    } bad[] = {{"ab(?=c)", 2, "look-around"},
               {"(?!a)", 0, "look-around"},
               {"a(?<=b)", 1, "look-around"},
               {"(a)\\1", 3, "back-ref"},
               {"a\\b", 1, "boundaries"},
               {"\\p{L}", 0, "properties"},
               {"ab)", 2, "parenthesis"},
               {"(ab", 0, "parenthesis"},
               {"[ab", 0, "bracket"},
               {"*a", 0, "repeat"},
               {"a**", 2, "repeat"},
               {"a{3,2}", 1, "repetition"},
               {"a{2", 1, "repetition"},
               {"[b-a]", 1, "range"},
               {"a\\", 1, "backslash"},
               {"a*+", 2, "possessive"},
               {"\\xZZ", 0, "hexadecimal"},
               {"\\ud800", 0, "hexadecimal"},
               {"a^b", 0, "ends"},
               {"(a$)b", 0, "ends"},
               {"(?i)a", 0, "group"},
               {"a{999999}", 2, "too many"},
               {"\\q", 0, "escape"},
               {"a\xff", 1, "UTF-8"},
               {"[[:alpha:]]", 1, "POSIX"},
               {"^*", 0, "anchor"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        perigee_constraint *c = NULL;
        perigee_error *e = NULL;
        ck_assert_msg(prg_constraint_from_regex(allocator, trie, bad[i].pattern, strlen(bad[i].pattern), &c, &e) ==
                          PERIGEE_E_SCHEMA,
                      "%s", bad[i].pattern);
        ck_assert_ptr_null(c);
        ck_assert_msg(strstr(perigee_error_message(e), bad[i].word), "%s: %s", bad[i].pattern,
                      perigee_error_message(e));
        ck_assert_msg(perigee_error_offset(e) == bad[i].offset, "%s: %d", bad[i].pattern, (int)perigee_error_offset(e));
        perigee_error_free(e);
    }
    perigee_error *e = NULL;
    perigee_constraint *c = NULL;
    ck_assert_int_eq(prg_constraint_from_regex(allocator, trie, "[^\\d\\D]", 8, &c, &e), PERIGEE_E_SCHEMA);
    perigee_error_free(e);
    char deep[1000];
    memset(deep, '(', sizeof deep);
    ck_assert_int_eq(prg_constraint_from_regex(allocator, trie, deep, sizeof deep, &c, NULL), PERIGEE_E_SCHEMA);
    ck_assert_int_eq(prg_constraint_from_regex(allocator, trie, "((a{1000}){1000}){1000}", 23, &c, NULL),
                     PERIGEE_E_SCHEMA);
}
END_TEST

/* A pattern whose deterministic form has 2^20 states is walked without making them all, and the cache is cleared under
 * the feet of its places. */
START_TEST(test_bounded_memory) {
    perigee_constraint *c = compile("(a|b)*a(a|b){20}c"), *other = NULL;
    c->grammar->byte_limit = 200000;
    size_t most = 0;
    char text[8] = "ab";
    ck_assert_int_eq(prg_constraint_clone(c, &other, NULL), PERIGEE_OK);
    for (int i = 0; i < 3000; i++) {
        perigee_constraint *turn = i % 3 ? c : other;
        const uint64_t *allowed = NULL;
        ck_assert_int_eq(prg_constraint_allowed(turn, &allowed, NULL), PERIGEE_OK);
        ck_assert(allowed[1] >> ('a' - 64) & allowed[1] >> ('b' - 64) & 1);
        unsigned char byte = (unsigned char)text[prg_random_bits(11, (uint64_t)i) & 1];
        ck_assert_int_eq(prg_constraint_accept_bytes(turn, &byte, 1, NULL), PERIGEE_OK);
        most = most > allocator->bytes ? most : allocator->bytes;
    }
    ck_assert_uint_lt(most, 3000000);
    ck_assert_int_eq(prg_constraint_accept_bytes(c, (const unsigned char *)"abbbbbbbbbbbbbbbbbbbbc", 22, NULL),
                     PERIGEE_OK);
    ck_assert_int_eq(prg_constraint_accept_bytes(other, (const unsigned char *)"bbbbbbbbbbbbbbbbbbbbbbc", 23, NULL),
                     PERIGEE_E_STATE);
    ck_assert_int_eq(prg_constraint_accept_bytes(other, (const unsigned char *)"abbbbbbbbbbbbbbbbbbbbc", 22, NULL),
                     PERIGEE_OK);
    ck_assert(prg_constraint_finished(c) && prg_constraint_finished(other));
    perigee_constraint_free(c);
    perigee_constraint_free(other);
}
END_TEST

START_TEST(test_accept) {
    perigee_constraint *c = compile("ab?");
    ck_assert_int_eq(prg_constraint_accept(c, words.end_ids[0], NULL), PERIGEE_E_STATE);
    ck_assert_int_eq(prg_constraint_accept(c, 'b', NULL), PERIGEE_E_STATE);
    ck_assert_int_eq(prg_constraint_accept(c, 699, NULL), PERIGEE_E_STATE); /* special, ends nothing */
    ck_assert_int_eq(prg_constraint_accept(c, 700, NULL), PERIGEE_E_TOKEN);
    ck_assert_int_eq(prg_constraint_accept(c, -1, NULL), PERIGEE_E_TOKEN);
    ck_assert_int_eq(prg_constraint_accept(c, 'a', NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_constraint_accept(c, words.end_ids[1], NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_constraint_accept(c, words.end_ids[1], NULL), PERIGEE_E_STATE);
    perigee_constraint_free(c);
    perigee_constraint_free(NULL);
}
END_TEST

PRG_SUITE("constraint_regex", setup, teardown, test_language, test_unicode_classes, test_walks, test_refused,
          test_bounded_memory, test_accept)
