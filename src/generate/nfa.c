#include "generate/nfa.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"

void prg_nfa_init(prg_nfa *nfa, prg_allocator *allocator) {
    memset(nfa, 0, sizeof *nfa);
    nfa->allocator = allocator;
}

void prg_nfa_free(prg_nfa *nfa) {
    prg_free(nfa->allocator, nfa->states);
    prg_free(nfa->allocator, nfa->edges);
    nfa->states = NULL;
    nfa->edges = NULL;
}

/* Room for one more of `size` bytes, or the sticky failure. */
static bool grow(prg_nfa *nfa, void **items, size_t count, size_t *capacity, size_t limit, size_t size) {
    if (nfa->no_memory || nfa->too_large) {
        return false;
    }
    if (count == limit) {
        nfa->too_large = true;
        return false;
    }
    if (count == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 64;
        void *wider = prg_realloc(nfa->allocator, *items, more * size);
        if (!wider) {
            nfa->no_memory = true;
            return false;
        }
        *items = wider;
        *capacity = more;
    }
    return true;
}

uint32_t prg_nfa_add_state(prg_nfa *nfa) {
    void *items = nfa->states;
    bool room = grow(nfa, &items, nfa->state_count, &nfa->state_capacity, PRG_NFA_STATES, sizeof *nfa->states);
    nfa->states = items;
    if (!room) {
        return 0;
    }
    nfa->states[nfa->state_count] = (prg_nfa_state){PRG_NFA_NONE, PRG_NFA_NONE, 0};
    return (uint32_t)nfa->state_count++;
}

static void add_edge(prg_nfa *nfa, uint32_t from, prg_nfa_edge edge) {
    void *items = nfa->edges;
    bool room = grow(nfa, &items, nfa->edge_count, &nfa->edge_capacity, PRG_NFA_EDGES, sizeof *nfa->edges);
    nfa->edges = items;
    if (room) {
        edge.next = nfa->states[from].first;
        nfa->edges[nfa->edge_count] = edge;
        nfa->states[from].first = (uint32_t)nfa->edge_count++;
    }
}

void prg_nfa_accept(prg_nfa *nfa, uint32_t state) {
    if (!nfa->no_memory && !nfa->too_large) {
        nfa->states[state].accepts = 1;
    }
}

void prg_nfa_bytes(prg_nfa *nfa, uint32_t from, unsigned low, unsigned high, uint32_t to) {
    add_edge(nfa, from, (prg_nfa_edge){0, to, 0, PRG_NFA_BYTES, (uint8_t)low, (uint8_t)high});
}

void prg_nfa_epsilon(prg_nfa *nfa, uint32_t from, uint32_t to) {
    add_edge(nfa, from, (prg_nfa_edge){0, to, 0, PRG_NFA_EPSILON, 0, 0});
}

void prg_nfa_call(prg_nfa *nfa, uint32_t from, uint32_t rule, uint32_t to) {
    add_edge(nfa, from, (prg_nfa_edge){0, to, rule, PRG_NFA_CALL, 0, 0});
}

uint32_t prg_nfa_literal(prg_nfa *nfa, uint32_t from, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        uint32_t to = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, from, (unsigned char)text[i], (unsigned char)text[i], to);
        from = to;
    }
    return from;
}

/* ---- characters ---- */

/* States before `to` that still want 1, 2 or 3 continuation bytes of any value; made when needed. */
typedef struct tails {
    uint32_t to;
    uint32_t state[4];
} tails;

static uint32_t tail(prg_nfa *nfa, tails *t, size_t wanted) {
    if (wanted == 0) {
        return t->to;
    }
    if (t->state[wanted] == PRG_NFA_NONE) {
        uint32_t after = tail(nfa, t, wanted - 1);
        t->state[wanted] = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, t->state[wanted], 0x80, 0xBF, after);
    }
    return t->state[wanted];
}

static size_t encode(uint32_t c, unsigned char *out) {
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (unsigned char)(lead[n] | c);
    return n;
}

static bool all(const unsigned char *bytes, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

/* Byte strings of one length between low and high: the edge at the first byte, split where the rest is not free. */
static void emit_span(prg_nfa *nfa, uint32_t from, const unsigned char *low, const unsigned char *high, size_t n,
                      tails *t) {
    static const unsigned char least[3] = {0x80, 0x80, 0x80}, greatest[3] = {0xBF, 0xBF, 0xBF};
    unsigned first = low[0], last = high[0];
    if (first == last && n > 1 && !(all(low + 1, n - 1, 0x80) && all(high + 1, n - 1, 0xBF))) {
        uint32_t s = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, from, first, first, s);
        emit_span(nfa, s, low + 1, high + 1, n - 1, t);
        return;
    }
    if (n > 1 && !all(low + 1, n - 1, 0x80)) {
        uint32_t s = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, from, first, first, s);
        emit_span(nfa, s, low + 1, greatest, n - 1, t);
        first++;
    }
    if (n > 1 && !all(high + 1, n - 1, 0xBF)) {
        uint32_t s = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, from, last, last, s);
        emit_span(nfa, s, least, high + 1, n - 1, t);
        last--;
    }
    if (first <= last) {
        prg_nfa_bytes(nfa, from, first, last, tail(nfa, t, n - 1));
    }
}

/* Surrogates are no characters; the lengths of UTF-8 divide the rest. */
static void emit_range(prg_nfa *nfa, uint32_t from, uint32_t low, uint32_t high, tails *t) {
    static const prg_range spans[] = {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        uint32_t a = low > spans[i].low ? low : spans[i].low, b = high < spans[i].high ? high : spans[i].high;
        if (a <= b) {
            unsigned char first[4], last[4];
            size_t n = encode(a, first);
            encode(b, last);
            emit_span(nfa, from, first, last, n, t);
        }
    }
}

typedef struct escapes {
    uint32_t backslash, hex[2]; /* behind \, and behind \u000 and \u001 */
} escapes;

static void emit_escape(prg_nfa *nfa, uint32_t from, uint32_t c, escapes *e, uint32_t to) {
    if (e->backslash == PRG_NFA_NONE) {
        e->backslash = prg_nfa_add_state(nfa);
        prg_nfa_bytes(nfa, from, '\\', '\\', e->backslash);
    }
    static const char letters[] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'};
    unsigned letter = (unsigned char)letters[c];
    if (letter) {
        prg_nfa_bytes(nfa, e->backslash, letter, letter, to);
        return;
    }
    uint32_t *hex = &e->hex[c >> 4];
    if (*hex == PRG_NFA_NONE) {
        *hex = prg_nfa_literal(nfa, e->backslash, c >> 4 ? "u001" : "u000", 4);
    }
    uint32_t digit = c & 15;
    unsigned lower = digit < 10 ? '0' + digit : 'a' + digit - 10;
    prg_nfa_bytes(nfa, *hex, lower, lower, to);
    if (digit >= 10) {
        prg_nfa_bytes(nfa, *hex, lower - 32, lower - 32, to);
    }
}

void prg_nfa_class(prg_nfa *nfa, uint32_t from, const prg_range *ranges, size_t count, prg_nfa_spelling spelling,
                   uint32_t to) {
    tails t = {to, {PRG_NFA_NONE, PRG_NFA_NONE, PRG_NFA_NONE, PRG_NFA_NONE}};
    escapes e = {PRG_NFA_NONE, {PRG_NFA_NONE, PRG_NFA_NONE}};
    static const prg_range plain[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x10FFFF}};
    for (size_t i = 0; i < count; i++) {
        prg_range r = ranges[i];
        if (spelling == PRG_SPELL_UTF8) {
            emit_range(nfa, from, r.low, r.high, &t);
            continue;
        }
        for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
            uint32_t a = r.low > plain[k].low ? r.low : plain[k].low;
            uint32_t b = r.high < plain[k].high ? r.high : plain[k].high;
            if (a <= b) {
                emit_range(nfa, from, a, b, &t);
            }
        }
        for (uint32_t c = r.low > 1 ? r.low : 1; c <= r.high && c <= '\\'; c++) {
            if (c < 0x20 || c == '"' || c == '\\') {
                emit_escape(nfa, from, c, &e, to);
            }
        }
    }
}

/* ---- what is worked out at the end ---- */

/* Heights in ascending order, as Dijkstra has it: an edge counts when all that it leads to is settled. */
typedef struct settling {
    uint32_t *from;            /* of each edge */
    uint32_t *first, *users;   /* [first[s], first[s + 1]): edges that lead to state s */
    uint32_t *states, *behind; /* entries of the lists, and the next one in each */
    uint32_t entry_count;
    uint32_t lists[PRG_NFA_DEPTH]; /* by height */
    bool *settled;
} settling;

static void propose(prg_nfa *nfa, settling *t, uint32_t state, uint32_t height) {
    if (height < PRG_NFA_DEPTH && height < nfa->states[state].height) {
        nfa->states[state].height = height;
        t->states[t->entry_count] = state;
        t->behind[t->entry_count] = t->lists[height];
        t->lists[height] = t->entry_count++;
    }
}

static void settle(prg_nfa *nfa, settling *t, uint32_t state) {
    t->settled[state] = true;
    for (uint32_t k = t->first[state]; k < t->first[state + 1]; k++) {
        const prg_nfa_edge *e = &nfa->edges[t->users[k]];
        uint32_t height = nfa->states[e->target].height;
        if (e->kind == PRG_NFA_CALL) {
            uint32_t callee = nfa->states[e->rule].height + 1;
            if (!t->settled[e->target] || !t->settled[e->rule]) {
                continue;
            }
            height = callee > height ? callee : height;
        }
        propose(nfa, t, t->from[t->users[k]], height);
    }
}

static void list_users(const prg_nfa *nfa, settling *t) {
    for (uint32_t s = 0; s < nfa->state_count; s++) {
        for (uint32_t k = nfa->states[s].first; k != PRG_NFA_NONE; k = nfa->edges[k].next) {
            t->from[k] = s;
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* count, then fill in from the back */
        for (uint32_t k = 0; k < nfa->edge_count; k++) {
            const prg_nfa_edge *e = &nfa->edges[k];
            const uint32_t to[2] = {e->target, e->rule};
            for (int i = 0; i < 1 + (e->kind == PRG_NFA_CALL); i++) {
                if (pass == 0) {
                    t->first[to[i]]++;
                } else {
                    t->users[--t->first[to[i]]] = k;
                }
            }
        }
        for (size_t s = 0; pass == 0 && s < nfa->state_count; s++) {
            t->first[s + 1] += t->first[s];
        }
    }
}

static void find_heights(prg_nfa *nfa) {
    prg_arena arena;
    settling t = {.entry_count = 0};
    prg_arena_init(&arena, nfa->allocator);
    const size_t states = nfa->state_count, edges = nfa->edge_count;
    t.from = prg_arena_alloc(&arena, edges + 1, sizeof *t.from);
    t.first = prg_arena_alloc(&arena, states + 2, sizeof *t.first);
    t.users = prg_arena_alloc(&arena, 2 * edges + 1, sizeof *t.users);
    t.states = prg_arena_alloc(&arena, states + 2 * edges + 1, sizeof *t.states);
    t.behind = prg_arena_alloc(&arena, states + 2 * edges + 1, sizeof *t.behind);
    t.settled = prg_arena_alloc(&arena, states + 1, sizeof *t.settled);
    if (!t.from || !t.first || !t.users || !t.states || !t.behind || !t.settled) {
        nfa->no_memory = true;
        prg_arena_free(&arena);
        return;
    }
    list_users(nfa, &t);
    for (size_t h = 0; h < PRG_NFA_DEPTH; h++) {
        t.lists[h] = PRG_NFA_NONE;
    }
    for (uint32_t s = 0; s < states; s++) {
        if (nfa->states[s].accepts) {
            propose(nfa, &t, s, 0);
        }
    }
    for (uint32_t h = 0; h < PRG_NFA_DEPTH; h++) {
        while (t.lists[h] != PRG_NFA_NONE) {
            uint32_t entry = t.lists[h];
            t.lists[h] = t.behind[entry];
            if (!t.settled[t.states[entry]]) {
                settle(nfa, &t, t.states[entry]);
            }
        }
    }
    prg_arena_free(&arena);
}

static void find_classes(prg_nfa *nfa) {
    bool border[257] = {true};
    for (size_t i = 0; i < nfa->edge_count; i++) {
        if (nfa->edges[i].kind == PRG_NFA_BYTES) {
            border[nfa->edges[i].low] = true;
            border[nfa->edges[i].high + 1] = true;
        }
    }
    size_t count = 0;
    for (size_t b = 0; b < 256; b++) {
        count += border[b];
        nfa->classes[b] = (uint8_t)(count - 1);
    }
    nfa->class_count = count;
}

perigee_status prg_nfa_finish(prg_nfa *nfa, uint32_t start, perigee_error **err) {
    if (!nfa->no_memory && !nfa->too_large) {
        find_heights(nfa);
    }
    if (nfa->no_memory) {
        return prg_fail_memory(err);
    }
    if (nfa->too_large) {
        return prg_fail(err, PERIGEE_E_SCHEMA, "too large: more than %d states", PRG_NFA_STATES);
    }
    if (nfa->states[start].height >= PRG_NFA_DEPTH) {
        return prg_fail(err, PERIGEE_E_SCHEMA, "nothing of finite depth matches");
    }
    nfa->start = start;
    find_classes(nfa);
    return PERIGEE_OK;
}
