#include <string.h>

#include "generate/regex.h"
#include "generate/schema.h"

/* So many digits before and behind the point are written, and understood in bounds. */
enum { DIGITS = 18 };

/* A bound of the magnitude, digit by digit. */
typedef struct decimal {
    bool negative, excluded, present;
    unsigned char whole[DIGITS], part[DIGITS]; /* 0 … 9; `whole` without leading zeros, at least one digit */
    uint32_t whole_count, part_count;          /* `part` without zeros at its end */
} decimal;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The number's text, its exponent applied. False if it takes too many digits. */
static bool parse(const prg_json *value, decimal *out) {
    enum { MOST = 2 * DIGITS + 2 };
    unsigned char digits[MOST];
    const char *t = value->text;
    int64_t count = 0, point = 0, exponent = 0;
    bool behind = false, minus = false, seen = false;
    out->negative = *t == '-';
    for (t += out->negative; is_digit(*t) || *t == '.'; t++) {
        if (*t == '.') {
            behind = true;
            continue;
        }
        seen = seen || *t != '0';
        if (!seen) { /* a leading zero: no digit, but behind the point it has a place */
            point -= behind;
            continue;
        }
        if (count == MOST) {
            if (*t != '0') {
                return false;
            }
            point += !behind;
            continue;
        }
        digits[count++] = (unsigned char)(*t - '0');
        point += !behind;
    }
    if (*t == 'e' || *t == 'E') {
        t++;
        minus = *t == '-';
        for (t += *t == '-' || *t == '+'; is_digit(*t); t++) {
            exponent = exponent < 10000 ? exponent * 10 + (*t - '0') : exponent;
        }
    }
    point += minus ? -exponent : exponent;
    while (count > 0 && digits[count - 1] == 0) {
        count--;
    }
    out->whole_count = out->part_count = 0;
    if (count == 0) {
        out->negative = false;
        point = 0;
    }
    if (point > DIGITS || count - point > DIGITS) {
        return false;
    }
    for (int64_t i = point < 0 ? point : 0; i < count || i < point; i++) {
        unsigned char d = i >= 0 && i < count ? digits[i] : 0;
        if (i < point) {
            out->whole[out->whole_count++] = d;
        } else {
            out->part[out->part_count++] = d;
        }
    }
    if (out->whole_count == 0) {
        out->whole[out->whole_count++] = 0;
    }
    out->present = true;
    return true;
}

/* -1, 0 or 1 as |a| is less than, equal to or greater than |b|. */
static int compare(const decimal *a, const decimal *b) {
    if (a->whole_count != b->whole_count) {
        return a->whole_count < b->whole_count ? -1 : 1;
    }
    int order = memcmp(a->whole, b->whole, a->whole_count);
    for (uint32_t i = 0; order == 0 && (i < a->part_count || i < b->part_count); i++) {
        order = (i < a->part_count ? a->part[i] : 0) - (i < b->part_count ? b->part[i] : 0);
    }
    return order < 0 ? -1 : order > 0;
}

/* Which bounds the digits so far lie right on. */
typedef struct tight {
    bool low, high;
} tight;

typedef struct span {
    prg_nfa *nfa;
    const decimal *low, *high; /* of the magnitude; not present: none */
    bool integer;
    uint32_t to;
    uint32_t free_whole[DIGITS + 1]; /* by digits still to write, when no bound matters any more */
    uint32_t free_part[DIGITS + 1];  /* by digits written behind the point */
} span;

static void digits(const span *p, uint32_t from, unsigned low, unsigned high, uint32_t to) {
    prg_nfa_bytes(p->nfa, from, '0' + low, '0' + high, to);
}

/* May the number end here, with zeros to follow? */
static bool may_end(const span *p, tight at, uint32_t written) {
    bool low = !at.low || (written >= p->low->part_count && !p->low->excluded);
    bool high = !at.high || written < p->high->part_count || !p->high->excluded;
    return low && high;
}

static uint32_t part_state(span *p, uint32_t written) {
    if (p->free_part[written] == PRG_NFA_NONE) {
        p->free_part[written] = prg_nfa_add_state(p->nfa);
        if (written > 0) {
            prg_nfa_epsilon(p->nfa, p->free_part[written], p->to);
        }
        if (written < DIGITS) {
            digits(p, p->free_part[written], 0, 9, part_state(p, written + 1));
        }
    }
    return p->free_part[written];
}

static void part(span *p, tight at, uint32_t written, uint32_t from) {
    if (written == DIGITS) {
        return;
    }
    for (unsigned d = 0; d <= 9; d++) {
        unsigned low = at.low && written < p->low->part_count ? p->low->part[written] : 0;
        unsigned high = at.high && written < p->high->part_count ? p->high->part[written] : 0;
        if ((at.low && d < low) || (at.high && d > high)) {
            continue;
        }
        tight next = {at.low && d == low, at.high && d == high};
        /* All digits of a bound that may be met are written: what follows can't fall below it. */
        next.low = next.low && !(written + 1 >= p->low->part_count && !p->low->excluded);
        if (!next.low && !next.high) {
            digits(p, from, d, d, part_state(p, written + 1));
            continue;
        }
        uint32_t state = prg_nfa_add_state(p->nfa);
        digits(p, from, d, d, state);
        if (may_end(p, next, written + 1)) {
            prg_nfa_epsilon(p->nfa, state, p->to);
        }
        part(p, next, written + 1, state);
    }
}

static void whole_end(span *p, tight at, uint32_t from) {
    if (may_end(p, at, 0)) {
        prg_nfa_epsilon(p->nfa, from, p->to);
    }
    if (p->integer) {
        return;
    }
    uint32_t point = prg_nfa_literal(p->nfa, from, ".", 1);
    at.low = at.low && !(p->low->part_count == 0 && !p->low->excluded);
    if (!at.low && !at.high) {
        prg_nfa_epsilon(p->nfa, point, part_state(p, 0));
    } else {
        part(p, at, 0, point);
    }
}

static uint32_t whole_state(span *p, uint32_t left) {
    if (p->free_whole[left] == PRG_NFA_NONE) {
        p->free_whole[left] = prg_nfa_add_state(p->nfa);
        if (left == 0) {
            whole_end(p, (tight){false, false}, p->free_whole[0]);
        } else {
            digits(p, p->free_whole[left], 0, 9, whole_state(p, left - 1));
        }
    }
    return p->free_whole[left];
}

/* `length` digits, of which `written` are. */
static void whole(span *p, tight at, uint32_t length, uint32_t written, uint32_t from) {
    if (written == length) {
        whole_end(p, at, from);
        return;
    }
    for (unsigned d = written == 0 && length > 1; d <= 9; d++) {
        if ((at.low && d < p->low->whole[written]) || (at.high && d > p->high->whole[written])) {
            continue;
        }
        tight next = {at.low && d == p->low->whole[written], at.high && d == p->high->whole[written]};
        if (!next.low && !next.high) {
            digits(p, from, d, d, whole_state(p, length - written - 1));
            continue;
        }
        uint32_t state = prg_nfa_add_state(p->nfa);
        digits(p, from, d, d, state);
        whole(p, next, length, written + 1, state);
    }
}

/* Numbers without a sign between the two bounds. */
static void magnitudes(prg_nfa *nfa, const decimal *low, const decimal *high, bool integer, uint32_t from,
                       uint32_t to) {
    span p = {nfa, low, high, integer, to, {0}, {0}};
    for (int i = 0; i <= DIGITS; i++) {
        p.free_whole[i] = p.free_part[i] = PRG_NFA_NONE;
    }
    for (uint32_t length = 1; length <= DIGITS; length++) {
        if ((low->present && length < low->whole_count) || (high->present && length > high->whole_count)) {
            continue;
        }
        tight at = {low->present && length == low->whole_count, high->present && length == high->whole_count};
        whole(&p, at, length, 0, from);
    }
}

void prg_schema_free_number(prg_schema *s, bool integer, uint32_t from, uint32_t to) {
    static const char whole_pattern[] = "0|-?[1-9][0-9]{0,17}";
    static const char pattern[] = "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?";
    uint32_t *rule = integer ? &s->integer : &s->number;
    if (*rule == PRG_NFA_NONE) {
        *rule = prg_nfa_add_state(s->nfa);
        uint32_t end = prg_nfa_add_state(s->nfa);
        prg_nfa_accept(s->nfa, end);
        const char *use = integer ? whole_pattern : pattern;
        if (prg_regex_compile(s->nfa, use, strlen(use), PRG_REGEX_WHOLE, PRG_SPELL_UTF8, *rule, end, NULL) !=
            PERIGEE_OK) {
            s->nfa->no_memory = true;
        }
    }
    prg_nfa_call(s->nfa, from, *rule, to);
}

static void read_bound(prg_schema *s, const prg_json *schema, const char *keyword, const char *strict, decimal *out) {
    const prg_json *loose = prg_json_get(schema, keyword), *tighter = prg_json_get(schema, strict);
    if (loose && tighter) {
        prg_schema_refuse_at(s, strict, "not supported beside the bound that may be met");
    }
    const prg_json *bound = loose ? loose : tighter;
    if (!bound || !prg_schema_fine(s)) {
        return;
    }
    if (bound->kind != PRG_JSON_NUMBER) {
        prg_schema_refuse_at(s, loose ? keyword : strict, "not a number");
    } else if (!parse(bound, out)) {
        prg_schema_refuse_at(s, loose ? keyword : strict, "more than 18 digits before or behind the point");
    }
    out->excluded = !loose;
}

void prg_schema_number(prg_schema *s, const prg_json *schema, bool integer, uint32_t from, uint32_t to) {
    decimal low = {.present = false}, high = {.present = false};
    read_bound(s, schema, "minimum", "exclusiveMinimum", &low);
    read_bound(s, schema, "maximum", "exclusiveMaximum", &high);
    if (!prg_schema_fine(s)) {
        return;
    }
    if (!low.present && !high.present) {
        prg_schema_free_number(s, integer, from, to);
        return;
    }
    if (low.present && high.present) {
        int order =
            low.negative != high.negative ? (low.negative ? -1 : 1) : compare(&low, &high) * (low.negative ? -1 : 1);
        if (order > 0 || (order == 0 && (low.excluded || high.excluded))) {
            prg_schema_refuse_at(s, low.excluded ? "exclusiveMinimum" : "minimum", "no number is left");
            return;
        }
    }
    const decimal none = {.present = false};
    if (!high.negative) { /* 0 and more */
        magnitudes(s->nfa, low.present && !low.negative ? &low : &none, high.present ? &high : &none, integer, from,
                   to);
    }
    if (!low.present || low.negative) { /* less than 0, by the magnitude: the bounds change places */
        decimal zero = {.excluded = true, .present = true, .whole_count = 1};
        decimal least = high.present && high.negative ? high : zero;
        uint32_t minus = prg_nfa_literal(s->nfa, from, "-", 1);
        magnitudes(s->nfa, &least, low.present ? &low : &none, integer, minus, to);
    }
}
