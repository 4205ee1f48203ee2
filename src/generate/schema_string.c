#include <string.h>

#include "base/error.h"
#include "generate/regex.h"
#include "generate/schema.h"

static const prg_range anything[] = {{0, 0x10FFFF}};

uint32_t prg_schema_quoted(prg_schema *s, uint32_t from, const char *text, size_t length) {
    static const char digits[] = "0123456789abcdef";
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    uint32_t at = prg_nfa_literal(s->nfa, from, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *letter = c ? strchr(plain, c) : NULL;
        char spelled[6] = {'\\', 0, 0, 0, 0, 0};
        size_t n = 2;
        if (letter) {
            spelled[1] = letters[letter - plain];
        } else if (c < 0x20) {
            memcpy(spelled + 1, "u00", 3);
            spelled[4] = digits[c >> 4];
            spelled[5] = digits[c & 15];
            n = 6;
        } else {
            spelled[0] = (char)c;
            n = 1;
        }
        at = prg_nfa_literal(s->nfa, at, spelled, n);
    }
    return prg_nfa_literal(s->nfa, at, "\"", 1);
}

/* ---- strings without bounds ---- */

static void hex_edges(prg_nfa *n, uint32_t from, uint32_t low, uint32_t high, uint32_t to) {
    if (low <= 9) {
        prg_nfa_bytes(n, from, '0' + low, '0' + (high < 9 ? high : 9), to);
    }
    if (high >= 10) {
        low = low < 10 ? 10 : low;
        prg_nfa_bytes(n, from, 'a' + low - 10, 'a' + high - 10, to);
        prg_nfa_bytes(n, from, 'A' + low - 10, 'A' + high - 10, to);
    }
}

/* \uXXXX: no half of a surrogate pair alone, and not U+0000. */
static void unicode_escape(prg_nfa *n, uint32_t backslash, uint32_t to) {
    uint32_t u = prg_nfa_literal(n, backslash, "u", 1), left[4] = {to, 0, 0, 0}, zeros[4] = {u, 0, 0, 0};
    for (int i = 1; i < 4; i++) {
        left[i] = prg_nfa_add_state(n);
        hex_edges(n, left[i], 0, 15, left[i - 1]);
    }
    for (int i = 1; i < 4; i++) {
        zeros[i] = prg_nfa_add_state(n);
        prg_nfa_bytes(n, zeros[i - 1], '0', '0', zeros[i]);
    }
    hex_edges(n, u, 1, 12, left[3]);
    hex_edges(n, u, 14, 15, left[3]);
    for (int i = 1; i < 4; i++) {
        hex_edges(n, zeros[i], 1, 15, left[3 - i]);
    }
    uint32_t d = prg_nfa_add_state(n), first[3], second[4];
    hex_edges(n, u, 13, 13, d);
    hex_edges(n, d, 0, 7, left[2]);
    for (int i = 0; i < 3; i++) {
        first[i] = prg_nfa_add_state(n);
    }
    hex_edges(n, d, 8, 11, first[0]);
    hex_edges(n, first[0], 0, 15, first[1]);
    hex_edges(n, first[1], 0, 15, first[2]);
    second[0] = prg_nfa_literal(n, first[2], "\\u", 2);
    for (int i = 1; i < 4; i++) {
        second[i] = prg_nfa_add_state(n);
    }
    hex_edges(n, second[0], 13, 13, second[1]);
    hex_edges(n, second[1], 12, 15, second[2]);
    hex_edges(n, second[2], 0, 15, second[3]);
    hex_edges(n, second[3], 0, 15, to);
}

void prg_schema_free_string(prg_schema *s, uint32_t from, uint32_t to) {
    prg_nfa *n = s->nfa;
    if (s->string == PRG_NFA_NONE) {
        s->string = prg_nfa_add_state(n);
        uint32_t inside = prg_nfa_literal(n, s->string, "\"", 1);
        uint32_t backslash = prg_nfa_literal(n, inside, "\\", 1), end = prg_nfa_literal(n, inside, "\"", 1);
        prg_nfa_accept(n, end);
        prg_nfa_class(n, inside, anything, 1, PRG_SPELL_JSON, inside);
        prg_nfa_bytes(n, backslash, '/', '/', inside);
        unicode_escape(n, backslash, inside);
    }
    prg_nfa_call(n, from, s->string, to);
}

/* ---- bounds ---- */

#define MONTH_DAY                                                                                                      \
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"

static const struct {
    const char *name, *pattern;
} formats[] = {{"date", "[0-9]{4}-" MONTH_DAY},
               {"time", TIME},
               {"date-time", "[0-9]{4}-" MONTH_DAY "T" TIME},
               {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
               {"ipv4", OCTET "\\." OCTET "\\." OCTET "\\." OCTET}};

static void by_pattern(prg_schema *s, const char *keyword, const char *pattern, size_t length, prg_regex_mode mode,
                       uint32_t from, uint32_t to) {
    perigee_error *why = NULL;
    perigee_status st = prg_regex_compile(s->nfa, pattern, length, mode, PRG_SPELL_JSON, from, to, &why);
    if (st == PERIGEE_E_SCHEMA) {
        prg_schema_refuse_at(s, keyword, perigee_error_message(why));
    } else if (st != PERIGEE_OK) {
        s->nfa->no_memory = true;
    }
    perigee_error_free(why);
}

static void by_format(prg_schema *s, const prg_json *format, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (format->kind == PRG_JSON_STRING && strcmp(format->text, formats[i].name) == 0) {
            by_pattern(s, "format", formats[i].pattern, strlen(formats[i].pattern), PRG_REGEX_WHOLE, from, to);
            return;
        }
    }
    prg_schema_refuse_at(s, "format", "this format is not supported");
}

static void by_length(prg_schema *s, uint32_t least, uint32_t most, uint32_t from, uint32_t to) {
    prg_nfa *n = s->nfa;
    for (uint32_t i = 0; prg_schema_fine(s) && (i < least || (most != PRG_NFA_NONE && i < most)); i++) {
        uint32_t next = prg_nfa_add_state(n);
        prg_nfa_class(n, from, anything, 1, PRG_SPELL_JSON, next);
        if (i >= least) {
            prg_nfa_epsilon(n, from, to);
        }
        from = next;
    }
    if (most == PRG_NFA_NONE) {
        prg_nfa_class(n, from, anything, 1, PRG_SPELL_JSON, from);
    }
    prg_nfa_epsilon(n, from, to);
}

void prg_schema_string(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to) {
    const prg_json *pattern = prg_json_get(schema, "pattern"), *format = prg_json_get(schema, "format");
    uint32_t least = prg_schema_count(s, schema, "minLength", 0);
    uint32_t most = prg_schema_count(s, schema, "maxLength", PRG_NFA_NONE);
    bool bounded = least > 0 || most != PRG_NFA_NONE;
    if (!pattern && !format && !bounded) {
        prg_schema_free_string(s, from, to);
        return;
    }
    if ((pattern != NULL) + (format != NULL) + bounded > 1) {
        prg_schema_refuse_at(s, pattern ? "pattern" : "format",
                             "not supported together with another keyword for strings");
    }
    if (least > most) {
        prg_schema_refuse_at(s, "minLength", "greater than maxLength");
    }
    if (pattern && pattern->kind != PRG_JSON_STRING) {
        prg_schema_refuse_at(s, "pattern", "not a string");
    }
    if (!prg_schema_fine(s)) {
        return;
    }
    uint32_t open = prg_nfa_literal(s->nfa, from, "\"", 1), close = prg_nfa_add_state(s->nfa);
    prg_nfa_bytes(s->nfa, close, '"', '"', to);
    if (pattern) {
        by_pattern(s, "pattern", pattern->text, pattern->length, PRG_REGEX_SEARCH, open, close);
    } else if (format) {
        by_format(s, format, open, close);
    } else {
        by_length(s, least, most, open, close);
    }
}
