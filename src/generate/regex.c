#include "generate/regex.h"

#include <string.h>

#include "base/error.h"

enum { NESTING = 128, REPEAT_LIMIT = 100000 };

typedef enum node_kind {
    NODE_EMPTY,
    NODE_CLASS,
    NODE_SEQUENCE,
    NODE_CHOICE,
    NODE_REPEAT,
    NODE_START,
    NODE_END
} node_kind;

typedef struct node {
    node_kind kind;
    struct node *child, *last; /* of a sequence, a choice or a repeat */
    struct node *next;
    prg_range *ranges;
    size_t range_count;
    uint32_t least, most; /* of a repeat; most PRG_NFA_NONE: no limit */
} node;

typedef struct parser {
    const unsigned char *text;
    size_t length, at;
    prg_arena arena;
    int depth;
    perigee_error **err;
    perigee_status status;
} parser;

static node *fail(parser *p, size_t at, const char *what) {
    if (p->status == PERIGEE_OK) {
        p->status = prg_fail_at(p->err, PERIGEE_E_SCHEMA, (prg_where){NULL, NULL, (int64_t)at, -1},
                                "pattern, byte %zu: %s", at, what);
    }
    return NULL;
}

static node *new_node(parser *p, node_kind kind) {
    node *n = prg_arena_alloc(&p->arena, 1, sizeof *n);
    if (!n) {
        p->status = prg_fail_memory(p->err);
        return NULL;
    }
    n->kind = kind;
    return n;
}

static void append(node *parent, node *child) {
    if (parent->last) {
        parent->last->next = child;
    } else {
        parent->child = child;
    }
    parent->last = child;
}

/* ---- sets of characters ---- */

typedef struct set {
    prg_range *ranges;
    size_t count, capacity;
} set;

static bool add_range(parser *p, set *s, uint32_t low, uint32_t high) {
    if (s->count == s->capacity) {
        size_t more = s->capacity ? 2 * s->capacity : 8;
        prg_range *wider = prg_arena_alloc(&p->arena, more, sizeof *wider);
        if (!wider) {
            p->status = prg_fail_memory(p->err);
            return false;
        }
        if (s->count > 0) {
            memcpy(wider, s->ranges, s->count * sizeof *wider);
        }
        s->ranges = wider;
        s->capacity = more;
    }
    s->ranges[s->count++] = (prg_range){low, high};
    return true;
}

/* Ascending, without overlap. */
static void tidy(set *s) {
    for (size_t i = 1; i < s->count; i++) {
        prg_range r = s->ranges[i];
        size_t at = i;
        for (; at > 0 && s->ranges[at - 1].low > r.low; at--) {
            s->ranges[at] = s->ranges[at - 1];
        }
        s->ranges[at] = r;
    }
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        prg_range r = s->ranges[i];
        if (n > 0 && r.low <= s->ranges[n - 1].high + 1) {
            s->ranges[n - 1].high = r.high > s->ranges[n - 1].high ? r.high : s->ranges[n - 1].high;
        } else {
            s->ranges[n++] = r;
        }
    }
    s->count = n;
}

static bool invert(parser *p, set *s) {
    tidy(s);
    set out = {NULL, 0, 0};
    uint32_t from = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->ranges[i].low > from && !add_range(p, &out, from, s->ranges[i].low - 1)) {
            return false;
        }
        from = s->ranges[i].high + 1;
    }
    if (from <= 0x10FFFF && !add_range(p, &out, from, 0x10FFFF)) {
        return false;
    }
    *s = out;
    return true;
}

static bool add_named(parser *p, set *s, unsigned char name) {
    static const prg_range digits[] = {{'0', '9'}};
    static const prg_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const prg_range spaces[] = {{'\t', '\r'}, {' ', ' '}};
    unsigned char lower = name | 0x20;
    const prg_range *r = lower == 'd' ? digits : lower == 'w' ? words : spaces;
    size_t n = lower == 'd' ? 1 : lower == 'w' ? 4 : 2;
    set own = {NULL, 0, 0};
    for (size_t i = 0; i < n; i++) {
        if (!add_range(p, &own, r[i].low, r[i].high)) {
            return false;
        }
    }
    if (name != lower && !invert(p, &own)) {
        return false;
    }
    for (size_t i = 0; i < own.count; i++) {
        if (!add_range(p, s, own.ranges[i].low, own.ranges[i].high)) {
            return false;
        }
    }
    return true;
}

static bool is_named(unsigned char c) {
    return c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S';
}

/* ---- characters of the pattern ---- */

static bool more(const parser *p) {
    return p->at < p->length;
}

static unsigned char peek(const parser *p) {
    return more(p) ? p->text[p->at] : 0;
}

/* One character of UTF-8. */
static bool read_character(parser *p, uint32_t *out) {
    size_t at = p->at;
    unsigned char lead = p->text[p->at++];
    unsigned n = lead < 0x80 ? 0 : lead >= 0xC2 && lead < 0xE0 ? 1 : lead >= 0xE0 && lead < 0xF0 ? 2 : 3;
    uint32_t c = n == 0 ? lead : lead & (0x3Fu >> n);
    bool good = lead < 0x80 || (lead >= 0xC2 && lead < 0xF5);
    for (unsigned i = 0; good && i < n; i++) {
        good = more(p) && (p->text[p->at] & 0xC0) == 0x80;
        c = good ? c << 6 | (p->text[p->at++] & 0x3F) : c;
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (!good || c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        (void)fail(p, at, "not valid UTF-8");
        return false;
    }
    *out = c;
    return true;
}

static int hex_value(unsigned char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool read_hex(parser *p, size_t start, unsigned digits, uint32_t *out) {
    bool braces = digits == 4 && peek(p) == '{';
    uint32_t c = 0;
    unsigned n = 0, most = braces ? 6 : digits;
    p->at += braces;
    while (n < most && hex_value(peek(p)) >= 0) {
        c = c << 4 | (uint32_t)hex_value(p->text[p->at++]);
        n++;
    }
    bool good = braces ? n > 0 && peek(p) == '}' : n == digits;
    p->at += good && braces;
    if (!good || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        (void)fail(p, start, "bad hexadecimal escape");
        return false;
    }
    *out = c;
    return true;
}

/* Behind a backslash, classes apart. */
static bool read_escape(parser *p, uint32_t *out) {
    size_t start = p->at - 1;
    if (!more(p)) {
        (void)fail(p, start, "nothing behind the backslash");
        return false;
    }
    unsigned char c = p->text[p->at];
    static const char names[] = "nrtfv0", values[] = "\n\r\t\f\v";
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        p->at++;
        *out = (unsigned char)values[name - names];
        return true;
    }
    if (c == 'x' || c == 'u') {
        p->at++;
        return read_hex(p, start, c == 'x' ? 2 : 4, out);
    }
    if (c >= '1' && c <= '9') {
        (void)fail(p, start, "back-references are not supported");
        return false;
    }
    if (c == 'b' || c == 'B') {
        (void)fail(p, start, "word boundaries are not supported");
        return false;
    }
    if ((c | 0x20) == 'p') {
        (void)fail(p, start, "Unicode properties are not supported");
        return false;
    }
    if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80) {
        (void)fail(p, start, "unknown escape");
        return false;
    }
    p->at++;
    *out = c;
    return true;
}

/* A single character or a named class inside brackets. */
static bool read_member(parser *p, set *s, uint32_t *out, bool *is_class) {
    *is_class = false;
    if (peek(p) != '\\') {
        return read_character(p, out);
    }
    p->at++;
    if (more(p) && is_named(peek(p))) {
        *is_class = true;
        return add_named(p, s, p->text[p->at++]);
    }
    if (peek(p) == 'b') {
        p->at++;
        *out = '\b';
        return true;
    }
    return read_escape(p, out);
}

static node *class_node(parser *p, set *s) {
    tidy(s);
    node *n = new_node(p, NODE_CLASS);
    if (n) {
        n->ranges = s->ranges;
        n->range_count = s->count;
    }
    return n;
}

static node *parse_brackets(parser *p) {
    size_t start = p->at++;
    bool negative = peek(p) == '^';
    set s = {NULL, 0, 0};
    p->at += negative;
    while (more(p) && peek(p) != ']') {
        uint32_t low, high;
        bool is_class, second = false;
        size_t at = p->at;
        if (peek(p) == '[' && p->at + 1 < p->length && p->text[p->at + 1] == ':') {
            return fail(p, at, "POSIX classes are not supported");
        }
        if (!read_member(p, &s, &low, &is_class)) {
            return NULL;
        }
        if (is_class) {
            continue;
        }
        high = low;
        if (peek(p) == '-' && p->at + 1 < p->length && p->text[p->at + 1] != ']') {
            p->at++;
            if (!read_member(p, &s, &high, &second)) {
                return NULL;
            }
        }
        if (second || high < low) {
            return fail(p, at, "bad range");
        }
        if (!add_range(p, &s, low, high)) {
            return NULL;
        }
    }
    if (!more(p)) {
        return fail(p, start, "no closing bracket");
    }
    p->at++;
    if (negative && !invert(p, &s)) {
        return NULL;
    }
    return class_node(p, &s);
}

static node *single(parser *p, uint32_t c) {
    set s = {NULL, 0, 0};
    return add_range(p, &s, c, c) ? class_node(p, &s) : NULL;
}

static node *parse_choice(parser *p);

static node *parse_group(parser *p) {
    size_t start = p->at++;
    if (peek(p) == '?') {
        p->at++;
        unsigned char c = peek(p), d = p->at + 1 < p->length ? p->text[p->at + 1] : 0;
        if (c == ':') {
            p->at++;
        } else if (c == '=' || c == '!' || (c == '<' && (d == '=' || d == '!'))) {
            return fail(p, start, "look-around is not supported");
        } else {
            return fail(p, start, "this kind of group is not supported");
        }
    }
    if (++p->depth > NESTING) {
        return fail(p, start, "groups nested too deep");
    }
    node *n = parse_choice(p);
    p->depth--;
    if (n && peek(p) != ')') {
        return fail(p, start, "no closing parenthesis");
    }
    p->at++;
    return n;
}

static node *parse_atom(parser *p) {
    unsigned char c = peek(p);
    uint32_t character;
    set s = {NULL, 0, 0};
    switch (c) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_brackets(p);
    case '.':
        p->at++;
        return add_range(p, &s, '\n', '\n') && invert(p, &s) ? class_node(p, &s) : NULL;
    case '^':
        p->at++;
        return new_node(p, NODE_START);
    case '$':
        p->at++;
        return new_node(p, NODE_END);
    case '*':
    case '+':
    case '?':
    case '{':
        return fail(p, p->at, "nothing to repeat");
    case '\\':
        p->at++;
        if (more(p) && is_named(peek(p))) {
            return add_named(p, &s, p->text[p->at++]) ? class_node(p, &s) : NULL;
        }
        return read_escape(p, &character) ? single(p, character) : NULL;
    default:
        return read_character(p, &character) ? single(p, character) : NULL;
    }
}

static bool read_number(parser *p, uint32_t *out) {
    uint32_t n = 0;
    size_t start = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') {
        n = n * 10 + (uint32_t)(p->text[p->at++] - '0');
        if (n > REPEAT_LIMIT) {
            (void)fail(p, start, "too many repetitions");
            return false;
        }
    }
    *out = n;
    return p->at > start;
}

/* True with p->at behind a quantifier if there is one. */
static bool read_quantifier(parser *p, uint32_t *least, uint32_t *most) {
    unsigned char c = peek(p);
    size_t start = p->at;
    if (c == '*' || c == '+' || c == '?') {
        p->at++;
        *least = c == '+';
        *most = c == '?' ? 1 : PRG_NFA_NONE;
    } else if (c == '{') {
        p->at++;
        bool good = read_number(p, least);
        *most = *least;
        if (good && peek(p) == ',') {
            p->at++;
            if (!read_number(p, most)) {
                *most = PRG_NFA_NONE;
            }
        }
        if (!good || peek(p) != '}' || *most < *least) {
            (void)fail(p, start, "bad repetition");
            return false;
        }
        p->at++;
    } else {
        return false;
    }
    if (peek(p) == '?') { /* lazy: the same texts match */
        p->at++;
    } else if (peek(p) == '+') {
        (void)fail(p, p->at, "possessive quantifiers are not supported");
        return false;
    }
    return p->status == PERIGEE_OK;
}

static node *parse_sequence(parser *p) {
    node *sequence = new_node(p, NODE_SEQUENCE);
    while (sequence && more(p) && peek(p) != '|' && peek(p) != ')') {
        size_t start = p->at;
        node *n = parse_atom(p);
        if (!n) {
            return NULL;
        }
        uint32_t least, most;
        if (read_quantifier(p, &least, &most)) {
            if (n->kind == NODE_START || n->kind == NODE_END) {
                return fail(p, start, "an anchor can't be repeated");
            }
            node *repeat = new_node(p, NODE_REPEAT);
            if (!repeat) {
                return NULL;
            }
            repeat->least = least;
            repeat->most = most;
            repeat->child = n;
            n = repeat;
            if (peek(p) == '*' || peek(p) == '+' || peek(p) == '?' || peek(p) == '{') {
                return fail(p, p->at, "nothing to repeat");
            }
        }
        if (p->status != PERIGEE_OK) {
            return NULL;
        }
        append(sequence, n);
    }
    return sequence;
}

static node *parse_choice(parser *p) {
    node *choice = new_node(p, NODE_CHOICE);
    while (choice) {
        node *n = parse_sequence(p);
        if (!n) {
            return NULL;
        }
        append(choice, n);
        if (peek(p) != '|' || !more(p)) {
            return choice;
        }
        p->at++;
    }
    return NULL;
}

/* ---- states ---- */

typedef struct emitter {
    prg_nfa *nfa;
    prg_nfa_spelling spelling;
} emitter;

static void emit(const emitter *e, const node *n, uint32_t from, uint32_t to);

static void emit_repeat(const emitter *e, const node *n, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < n->least && !e->nfa->too_large && !e->nfa->no_memory; i++) {
        uint32_t next = prg_nfa_add_state(e->nfa);
        emit(e, n->child, from, next);
        from = next;
    }
    if (n->most == PRG_NFA_NONE) {
        uint32_t loop = prg_nfa_add_state(e->nfa);
        prg_nfa_epsilon(e->nfa, from, loop);
        emit(e, n->child, loop, loop);
        prg_nfa_epsilon(e->nfa, loop, to);
        return;
    }
    for (uint32_t i = n->least; i < n->most && !e->nfa->too_large && !e->nfa->no_memory; i++) {
        uint32_t next = prg_nfa_add_state(e->nfa);
        prg_nfa_epsilon(e->nfa, from, to);
        emit(e, n->child, from, next);
        from = next;
    }
    prg_nfa_epsilon(e->nfa, from, to);
}

static void emit(const emitter *e, const node *n, uint32_t from, uint32_t to) {
    uint32_t at = from;
    switch (n->kind) {
    case NODE_CLASS:
        prg_nfa_class(e->nfa, from, n->ranges, n->range_count, e->spelling, to);
        return;
    case NODE_SEQUENCE:
        for (const node *c = n->child; c; c = c->next) {
            uint32_t next = c->next ? prg_nfa_add_state(e->nfa) : to;
            emit(e, c, at, next);
            at = next;
        }
        if (!n->child) {
            prg_nfa_epsilon(e->nfa, from, to);
        }
        return;
    case NODE_CHOICE:
        for (const node *c = n->child; c; c = c->next) {
            uint32_t begin = prg_nfa_add_state(e->nfa);
            prg_nfa_epsilon(e->nfa, from, begin);
            emit(e, c, begin, to);
        }
        return;
    case NODE_REPEAT:
        emit_repeat(e, n, from, to);
        return;
    case NODE_EMPTY:
    case NODE_START:
    case NODE_END:
        prg_nfa_epsilon(e->nfa, from, to);
        return;
    }
}

/* Anchors mean something at the two ends of an alternative of the whole pattern and nowhere else. */
static bool has_stray_anchor(const node *n, bool top) {
    for (const node *c = n->child; c; c = c->next) {
        bool anchor = c->kind == NODE_START || c->kind == NODE_END;
        bool fits = top && n->kind == NODE_SEQUENCE &&
                    ((c->kind == NODE_START && c == n->child) || (c->kind == NODE_END && !c->next));
        if ((anchor && !fits) || has_stray_anchor(c, top && n->kind == NODE_CHOICE)) {
            return true;
        }
    }
    return false;
}

static uint32_t emit_anything(const emitter *e, uint32_t from) {
    static const prg_range any[] = {{0, 0x10FFFF}};
    uint32_t loop = prg_nfa_add_state(e->nfa);
    prg_nfa_epsilon(e->nfa, from, loop);
    prg_nfa_class(e->nfa, loop, any, 1, e->spelling, loop);
    return loop;
}

perigee_status prg_regex_compile(prg_nfa *nfa, const char *pattern, size_t length, prg_regex_mode mode,
                                 prg_nfa_spelling spelling, uint32_t from, uint32_t to, perigee_error **err) {
    parser p = {(const unsigned char *)pattern, length, 0, {NULL, NULL, 0}, 0, err, PERIGEE_OK};
    prg_arena_init(&p.arena, nfa->allocator);
    node *whole = parse_choice(&p);
    if (whole && more(&p)) {
        (void)fail(&p, p.at, "no opening parenthesis");
    }
    if (p.status == PERIGEE_OK && whole && has_stray_anchor(whole, true)) {
        (void)fail(&p, 0, "^ and $ are supported at the ends of the pattern and of its alternatives only");
    }
    emitter e = {nfa, spelling};
    for (const node *c = p.status == PERIGEE_OK && whole ? whole->child : NULL; c; c = c->next) {
        bool tied = c->child && c->child->kind == NODE_START, ends = c->last && c->last->kind == NODE_END;
        uint32_t begin = prg_nfa_add_state(nfa);
        prg_nfa_epsilon(nfa, from, begin);
        if (mode == PRG_REGEX_SEARCH && !tied) {
            begin = emit_anything(&e, begin);
        }
        if (mode == PRG_REGEX_SEARCH && !ends) {
            uint32_t behind = prg_nfa_add_state(nfa);
            emit(&e, c, begin, behind);
            prg_nfa_epsilon(nfa, emit_anything(&e, behind), to);
        } else {
            emit(&e, c, begin, to);
        }
    }
    if (p.status == PERIGEE_OK && nfa->no_memory) {
        p.status = prg_fail_memory(err);
    } else if (p.status == PERIGEE_OK && nfa->too_large) {
        p.status = prg_fail(err, PERIGEE_E_SCHEMA, "the pattern is too large: more than %d states", PRG_NFA_STATES);
    }
    prg_arena_free(&p.arena);
    return p.status;
}
