/* The splitter against the published pattern run by PCRE2, and its classes against utf8proc and PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

#include "support/suite.h"
#include "support/text_fixtures.h"
#include "text/split.h"

static uint8_t classes[PRG_CODE_POINTS];
static pcre2_code *pattern;
static pcre2_match_data *match;

/* Han by Script, not by Script_Extensions. PCRE2 has no intersection of classes: look ahead at each character instead.
 */
#define UPPER "(?:(?!\\p{sc:Han})[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}])"
#define LOWER "(?:(?!\\p{sc:Han})[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}])"
#define SPACE                                                                                                          \
    "[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]"
#define NO_SPACE                                                                                                       \
    "[^\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define END "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char published[] = "\\G(?:\\p{sc:Han}+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" END
                                "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" END "|\\p{N}{1,3}| ?" NO_SPACE
                                "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NO_SPACE "])|" SPACE "+)";

static void setup(void) {
    int error;
    PCRE2_SIZE offset;
    prg_char_classes_fill(classes);
    pattern = pcre2_compile((PCRE2_SPTR)published, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, NULL);
    ck_assert_msg(pattern != NULL, "pattern at %zu", offset);
    match = pcre2_match_data_create(1, NULL);
}

static void teardown(void) {
    pcre2_match_data_free(match);
    pcre2_code_free(pattern);
}

static size_t expected(const char *text, size_t length, size_t at) {
    ck_assert_int_gt(pcre2_match(pattern, (PCRE2_SPTR)text, length, at, PCRE2_NO_UTF_CHECK, match, NULL), 0);
    return pcre2_get_ovector_pointer(match)[1];
}

static void check_text(const char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t end = prg_split_next(classes, (const unsigned char *)text, length, at),
               want = expected(text, length, at);
        ck_assert_msg(end == want, "at %zu: %zu, not %zu: \"%.*s\"", at, end, want, (int)(length - at), text + at);
        at = end;
    }
}

/* Characters that the alternatives tell apart, all known to older Unicode too. */
START_TEST(test_alternatives) {
    static const uint32_t alphabet[] = {
        'a',  'B',    's',  'T',   'r',   'e',     'l',    'v',   'd',    'm',    '\'',    ' ',    '\n',   '\r', '\t',
        '1',  '!',    '/',  0x301, 0x1C5, 0x2B0,   0x5D0,  0xAA,  0x4E2D, 0x3005, 0x3007,  0x2E80, 0x3042, 0xA0, 0x3000,
        0x85, 0x2028, 0x1C, 0x660, 0xBD,  0x1F600, 0x200D, 0x17F, 0xE9,   0xC9,   0x20000, 0x903,  0xAC00, 0};
    enum { KINDS = sizeof alphabet / sizeof *alphabet };
    uint64_t state = 1;
    char text[512];
    for (int round = 0; round < 20000; round++) {
        size_t length = 0, few = 2 + split_mix(&state) % (KINDS - 2), from = split_mix(&state) % KINDS;
        size_t count = 1 + split_mix(&state) % 24;
        for (size_t i = 0; i < count; i++) {
            length += put_code(text + length, alphabet[(from + split_mix(&state) % few) % KINDS]);
        }
        check_text(text, length);
    }
}
END_TEST

static unsigned class_by_library(uint32_t code) {
    static const utf8proc_category_t both[] = {UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO, UTF8PROC_CATEGORY_MN,
                                               UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ME};
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    unsigned class = 0;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        class |= c == both[i] ? PRG_C_UPPER | PRG_C_LOWER : 0u;
    }
    class |= c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LT ? PRG_C_UPPER : 0u;
    class |= c == UTF8PROC_CATEGORY_LL ? PRG_C_LOWER : 0u;
    class |= c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO ? PRG_C_LETTER : 0u;
    class |= c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO ? PRG_C_NUMBER : 0u;
    return class;
}

START_TEST(test_classes) {
    int error;
    PCRE2_SIZE offset;
    pcre2_code *han =
        pcre2_compile((PCRE2_SPTR) "^\\p{sc:Han}", PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, NULL);
    pcre2_code *space = pcre2_compile((PCRE2_SPTR) "^" SPACE, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, NULL);
    pcre2_code *known = pcre2_compile((PCRE2_SPTR) "^\\P{Cn}", PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, NULL);
    ck_assert(han && space && known);
    size_t compared = 0, differ = 0;
    for (uint32_t code = 0; code < PRG_CODE_POINTS; code++) {
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
        if ((code >= 0xD800 && code < 0xE000) || category == UTF8PROC_CATEGORY_CN) {
            continue;
        }
        char text[4]; /* new characters are not known to an older library */
        size_t length = put_code(text, code);
        if (pcre2_match(known, (PCRE2_SPTR)text, length, 0, 0, match, NULL) < 1) {
            continue;
        }
        unsigned want = class_by_library(code);
        if (pcre2_match(han, (PCRE2_SPTR)text, length, 0, 0, match, NULL) > 0) {
            want = (want & ~(unsigned)(PRG_C_UPPER | PRG_C_LOWER)) | PRG_C_HAN;
        }
        want |= pcre2_match(space, (PCRE2_SPTR)text, length, 0, 0, match, NULL) > 0 ? PRG_C_SPACE : 0u;
        want |= code == '\r' || code == '\n' ? PRG_C_NEWLINE : 0u;
        compared++;
        differ += (classes[code] & ~(unsigned)PRG_C_STRSPACE) != want;
    }
    pcre2_code_free(han);
    pcre2_code_free(space);
    pcre2_code_free(known);
    ck_assert_uint_gt(compared, 280000);
    /* a handful of characters have changed their category or script from one version of Unicode to another */
    ck_assert_uint_le(differ, 16);
}
END_TEST

START_TEST(test_python_space) {
    static const uint32_t spaces[][2] = {{0x9, 0xD},       {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                         {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                         {0x205F, 0x205F}, {0x3000, 0x3000}};
    size_t count = 0;
    for (uint32_t code = 0; code < PRG_CODE_POINTS; code++) {
        count += (classes[code] & PRG_C_STRSPACE) != 0;
    }
    size_t want = 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        for (uint32_t code = spaces[i][0]; code <= spaces[i][1]; code++, want++) {
            ck_assert(classes[code] & PRG_C_STRSPACE);
        }
    }
    ck_assert_uint_eq(count, want);
}
END_TEST

static void check_cuts(const char *text, size_t length, const size_t *want, size_t count) {
    prg_cut cut = {0, 0, 0};
    size_t at = 0, i = 0;
    while (at < length) {
        at = prg_cut_next(&cut, classes, (const unsigned char *)text, length, at);
        ck_assert_msg(i < count && at == want[i], "cut %zu at %zu", i, at);
        i++;
    }
    ck_assert_uint_eq(i, count);
}

START_TEST(test_cuts) {
    enum { N = 900000 };
    char *text = malloc(N);
    memset(text, 'a', N);
    check_cuts(text, 25000, (size_t[]){25000}, 1);
    check_cuts(text, 25001, (size_t[]){25000, 25001}, 2);
    check_cuts(text, 75000, (size_t[]){25000, 50000, 75000}, 3);
    text[10] = ' '; /* the run begins behind it */
    check_cuts(text, 25012, (size_t[]){25011, 25012}, 2);
    for (size_t i = 0; i < N; i += 2) {
        text[i] = i % 4 == 0 ? ' ' : '\t';
    }
    check_cuts(text, N, (size_t[]){400000, 800000, N}, 3);
    for (size_t i = 0; i < 30000; i++) { /* two bytes a character: characters count */
        memcpy(text + 2 * i, "\xC3\xA9", 2);
    }
    check_cuts(text, 60000, (size_t[]){50000, 60000}, 2);
    memset(text, 'a', N); /* a new slice starts a new run */
    for (size_t i = 0; i < 390000; i += 2) {
        text[i] = ' ';
    }
    check_cuts(text, 426000, (size_t[]){400000, 425000, 426000}, 3);
    free(text);
}
END_TEST

PRG_SUITE("split", setup, teardown, test_alternatives, test_classes, test_python_space, test_cuts)
