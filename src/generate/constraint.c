#include "generate/constraint.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "generate/regex.h"
#include "generate/schema.h"
#include "generate/select.h"

enum { CACHE_BYTES = 64 << 20 };

static void grammar_drop(prg_grammar *g) {
    if (!g || atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    prg_allocator *a = g->allocator;
    prg_mask_clear(g);
    prg_free(a, g->masks);
    prg_free(a, g->scratch);
    if (g->automaton.allocator) {
        prg_automaton_free(&g->automaton);
    }
    prg_nfa_free(&g->nfa);
    prg_token_trie_drop(g->trie);
    pthread_mutex_destroy(&g->lock);
    prg_free(a, g);
    prg_allocator_drop(a);
}

static size_t words_of(const prg_grammar *g) {
    return (g->trie->vocabulary + 63) / 64;
}

static perigee_status place_new(prg_grammar *g, perigee_constraint **out, perigee_error **err) {
    perigee_constraint *c = prg_calloc(g->allocator, 1, sizeof *c);
    uint64_t *allowed = prg_calloc(g->allocator, words_of(g), sizeof *allowed);
    if (!c || !allowed) {
        prg_free(g->allocator, c);
        prg_free(g->allocator, allowed);
        return prg_fail_memory(err);
    }
    c->allowed = allowed;
    c->grammar = g;
    atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
    pthread_mutex_lock(&g->lock);
    c->next = g->places;
    if (c->next) {
        c->next->before = c;
    }
    g->places = c;
    pthread_mutex_unlock(&g->lock);
    *out = c;
    return PERIGEE_OK;
}

void perigee_constraint_free(perigee_constraint *constraint) {
    if (!constraint) {
        return;
    }
    perigee_constraint *c = constraint;
    prg_grammar *g = c->grammar;
    pthread_mutex_lock(&g->lock);
    if (c->next) {
        c->next->before = c->before;
    }
    if (c->before) {
        c->before->next = c->next;
    } else {
        g->places = c->next;
    }
    pthread_mutex_unlock(&g->lock);
    prg_free(g->allocator, c->allowed);
    prg_free(g->allocator, c);
    grammar_drop(g);
}

/* ---- places; all with the lock held ---- */

/* The states that a place may be in, while it moves. */
typedef struct positions {
    prg_pair pairs[PRG_PAIRS];
    size_t count;
    bool complete, overflow;
} positions;

static void add_position(positions *p, prg_pair pair) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->pairs[i].state == pair.state && p->pairs[i].floor == pair.floor) {
            return;
        }
    }
    if (p->count == PRG_PAIRS) {
        p->overflow = true;
        return;
    }
    p->pairs[p->count++] = pair;
}

static void follow(prg_automaton *a, positions *p, uint32_t floor, uint32_t number) {
    while (number != 1) {
        const prg_step step = a->steps[number];
        if (step.state != PRG_AUTOMATON_NONE && a->cells[floor].depth + step.need <= PRG_NFA_DEPTH) {
            add_position(p, (prg_pair){step.state, prg_automaton_stack(a, floor, step.pushed)});
        }
        if (!step.exits) {
            return;
        }
        if (floor == 0) {
            p->complete = true;
            return;
        }
        number = prg_automaton_enter(a, a->cells[floor].above);
        floor = a->cells[floor].parent;
    }
}

static perigee_status trouble(prg_grammar *g, const positions *p, perigee_error **err) {
    if (g->automaton.no_memory) {
        return prg_fail_memory(err);
    }
    if (g->automaton.too_large || (p && p->overflow)) {
        return prg_fail(err, PERIGEE_E_SCHEMA, "the schema or pattern leaves too many ways open at once");
    }
    return PERIGEE_OK;
}

static perigee_status start(prg_grammar *g, positions *p, perigee_error **err) {
    *p = (positions){.count = 0};
    follow(&g->automaton, p, 0, prg_automaton_enter(&g->automaton, g->nfa.start));
    return trouble(g, p, err);
}

/* ---- clearing the cache ---- */

typedef struct tape {
    prg_allocator *allocator;
    uint32_t *items;
    size_t count, capacity, at;
    bool failed;
} tape;

static void record(tape *t, uint32_t value) {
    if (t->count == t->capacity && !t->failed) {
        size_t more = 2 * t->capacity + 256;
        uint32_t *wider = prg_realloc(t->allocator, t->items, more * sizeof *wider);
        if (wider) {
            t->items = wider;
            t->capacity = more;
        } else {
            t->failed = true;
        }
    }
    if (!t->failed) {
        t->items[t->count++] = value;
    }
}

static void record_stack(tape *t, const prg_automaton *a, uint32_t cell) {
    record(t, a->cells[cell].depth);
    for (; cell != 0; cell = a->cells[cell].parent) {
        record(t, a->cells[cell].above);
    }
}

static uint32_t replay_stack(tape *t, prg_automaton *a) {
    uint32_t depth = t->items[t->at++], cell = 0;
    for (uint32_t i = depth; i-- > 0;) {
        cell = prg_automaton_cell(a, t->items[t->at + i], cell);
    }
    t->at += depth;
    return cell;
}

static void record_place(tape *t, const prg_automaton *a, const perigee_constraint *c) {
    for (size_t i = 0; i < c->pair_count; i++) {
        const prg_automaton_state *s = &a->states[c->pairs[i].state];
        record(t, s->count);
        for (uint32_t k = 0; k < s->count; k++) {
            uint64_t configuration = a->configurations[s->first + k];
            record(t, (uint32_t)(configuration >> 32));
            record_stack(t, a, (uint32_t)configuration);
        }
        record_stack(t, a, c->pairs[i].floor);
    }
}

static void replay_place(tape *t, prg_automaton *a, perigee_constraint *c, uint64_t *configurations) {
    for (size_t i = 0; i < c->pair_count; i++) {
        uint32_t n = t->items[t->at++];
        for (uint32_t k = 0; k < n; k++) {
            uint64_t state = t->items[t->at++];
            configurations[k] = state << 32 | replay_stack(t, a);
        }
        prg_select_sort(configurations, n);
        c->pairs[i].state = prg_automaton_intern(a, configurations, n);
        c->pairs[i].floor = replay_stack(t, a);
    }
}

/* Forget what was learned, when it has grown past its limit, but not where the places are. */
static perigee_status tidy(prg_grammar *g, perigee_error **err) {
    prg_automaton *a = &g->automaton;
    bool sick = a->no_memory || a->too_large;
    if (!sick && prg_automaton_bytes(a) + g->mask_bytes <= g->byte_limit) {
        return PERIGEE_OK;
    }
    tape t = {g->allocator, NULL, 0, 0, 0, false};
    size_t most = 1;
    for (perigee_constraint *c = g->places; c; c = c->next) {
        record_place(&t, a, c);
        for (size_t i = 0; i < c->pair_count; i++) {
            most = prg_max(most, a->states[c->pairs[i].state].count);
        }
    }
    uint64_t *configurations = prg_calloc(g->allocator, most, sizeof *configurations);
    if (t.failed || !configurations) {
        prg_free(g->allocator, t.items);
        prg_free(g->allocator, configurations);
        return prg_fail_memory(err);
    }
    prg_mask_clear(g);
    prg_automaton_clear(a);
    for (perigee_constraint *c = g->places; c; c = c->next) {
        replay_place(&t, a, c, configurations);
    }
    prg_free(g->allocator, t.items);
    prg_free(g->allocator, configurations);
    if (a->no_memory || a->too_large) { /* the places are lost: none can go on */
        for (perigee_constraint *c = g->places; c; c = c->next) {
            c->pair_count = 0;
        }
    }
    return trouble(g, NULL, err);
}

/* ---- what is offered ---- */

perigee_status prg_constraint_new(prg_allocator *allocator, prg_token_trie *trie, prg_nfa *nfa,
                                  perigee_constraint **out, perigee_error **err) {
    prg_grammar *g = prg_calloc(allocator, 1, sizeof *g);
    if (!g) {
        prg_nfa_free(nfa);
        return prg_fail_memory(err);
    }
    atomic_init(&g->references, 1);
    g->allocator = prg_allocator_hold(allocator);
    g->nfa = *nfa;
    g->trie = prg_token_trie_hold(trie);
    g->byte_limit = CACHE_BYTES;
    pthread_mutex_init(&g->lock, NULL);
    perigee_constraint *c = NULL;
    positions p = {.count = 0};
    perigee_status st = prg_automaton_init(&g->automaton, g->allocator, &g->nfa, err);
    if (st == PERIGEE_OK && !(g->scratch = prg_calloc(g->allocator, words_of(g), sizeof *g->scratch))) {
        st = prg_fail_memory(err);
    }
    if (st == PERIGEE_OK) {
        st = start(g, &p, err);
    }
    if (st == PERIGEE_OK) {
        st = place_new(g, &c, err);
    }
    if (st == PERIGEE_OK) {
        memcpy(c->pairs, p.pairs, sizeof c->pairs);
        c->pair_count = p.count;
        c->complete = p.complete;
        *out = c;
    }
    grammar_drop(g);
    return st;
}

perigee_status prg_constraint_from_regex(prg_allocator *allocator, prg_token_trie *trie, const char *pattern,
                                         size_t length, perigee_constraint **out, perigee_error **err) {
    prg_nfa nfa;
    prg_nfa_init(&nfa, allocator);
    uint32_t from = prg_nfa_add_state(&nfa), to = prg_nfa_add_state(&nfa);
    prg_nfa_accept(&nfa, to);
    perigee_status st = prg_regex_compile(&nfa, pattern, length, PRG_REGEX_WHOLE, PRG_SPELL_UTF8, from, to, err);
    if (st == PERIGEE_OK) {
        st = prg_nfa_finish(&nfa, from, err);
    }
    if (st != PERIGEE_OK) {
        prg_nfa_free(&nfa);
        return st;
    }
    return prg_constraint_new(allocator, trie, &nfa, out, err);
}

perigee_status prg_constraint_clone(const perigee_constraint *constraint, perigee_constraint **out,
                                    perigee_error **err) {
    perigee_constraint *c = NULL;
    prg_grammar *g = constraint->grammar;
    perigee_status st = place_new(g, &c, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    pthread_mutex_lock(&g->lock); /* the cache may be cleared from the place of another thread */
    memcpy(c->pairs, constraint->pairs, sizeof c->pairs);
    c->pair_count = constraint->pair_count;
    pthread_mutex_unlock(&g->lock);
    c->complete = constraint->complete;
    c->ended = constraint->ended;
    *out = c;
    return PERIGEE_OK;
}

void prg_constraint_set_ends(perigee_constraint *constraint, const int32_t *ids, size_t count) {
    constraint->more_ends = ids;
    constraint->more_end_count = count;
    constraint->known = false;
}

size_t prg_constraint_vocabulary(const perigee_constraint *constraint) {
    return constraint->grammar->trie->vocabulary;
}

static void allow(perigee_constraint *c, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)ids[i];
        if (id < c->grammar->trie->vocabulary) {
            c->allowed[id / 64] |= UINT64_C(1) << (id % 64);
        }
    }
}

static bool among(const int32_t *ids, size_t count, int32_t id) {
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

perigee_status prg_constraint_allowed(perigee_constraint *constraint, const uint64_t **allowed, perigee_error **err) {
    perigee_constraint *c = constraint;
    prg_grammar *g = c->grammar;
    if (!c->known) {
        pthread_mutex_lock(&g->lock);
        perigee_status st = tidy(g, err);
        memset(c->allowed, 0, words_of(g) * sizeof *c->allowed);
        for (size_t i = 0; st == PERIGEE_OK && i < c->pair_count; i++) {
            if (!prg_mask_add(g, c->pairs[i], c->allowed)) {
                st = trouble(g, NULL, err);
            }
        }
        pthread_mutex_unlock(&g->lock);
        if (st != PERIGEE_OK) {
            return st;
        }
        if (c->complete && !c->ended) {
            allow(c, g->trie->end_ids, g->trie->end_count);
            allow(c, c->more_ends, c->more_end_count);
        }
        c->known = true;
    }
    *allowed = c->allowed;
    return PERIGEE_OK;
}

perigee_status prg_constraint_accept_bytes(perigee_constraint *constraint, const unsigned char *bytes, size_t length,
                                           perigee_error **err) {
    perigee_constraint *c = constraint;
    prg_grammar *g = c->grammar;
    pthread_mutex_lock(&g->lock);
    perigee_status st = tidy(g, err);
    positions now = {.count = c->pair_count, .complete = c->complete};
    memcpy(now.pairs, c->pairs, sizeof now.pairs);
    for (size_t k = 0; st == PERIGEE_OK && k < length; k++) {
        positions next = {.count = 0};
        for (size_t i = 0; i < now.count; i++) {
            uint32_t number = prg_automaton_next(&g->automaton, now.pairs[i].state, g->nfa.classes[bytes[k]]);
            follow(&g->automaton, &next, now.pairs[i].floor, number);
        }
        now = next;
        st = trouble(g, &now, err);
        if (st == PERIGEE_OK && now.count == 0 && !now.complete) {
            st = prg_fail(err, PERIGEE_E_STATE, "byte %zu can't go on here", k);
        }
    }
    if (st == PERIGEE_OK) {
        memcpy(c->pairs, now.pairs, sizeof c->pairs);
        c->pair_count = now.count;
        c->complete = now.complete;
        c->known = c->known && length == 0;
    }
    pthread_mutex_unlock(&g->lock);
    return st;
}

perigee_status prg_constraint_accept(perigee_constraint *constraint, int32_t token, perigee_error **err) {
    perigee_constraint *c = constraint;
    const prg_token_trie *t = c->grammar->trie;
    if (token < 0 || (size_t)token >= t->vocabulary) {
        return prg_fail(err, PERIGEE_E_TOKEN, "token %d is outside the vocabulary of %zu", (int)token, t->vocabulary);
    }
    size_t length = t->offsets[token + 1] - t->offsets[token];
    bool end = c->complete && (among(t->end_ids, t->end_count, token) || among(c->more_ends, c->more_end_count, token));
    if (c->ended || (!end && length == 0)) {
        return prg_fail(err, PERIGEE_E_STATE, "token %d can't go on here", (int)token);
    }
    if (end) {
        c->ended = true;
        c->pair_count = 0;
        c->known = false;
        return PERIGEE_OK;
    }
    return prg_constraint_accept_bytes(c, t->bytes + t->offsets[token], length, err);
}

bool prg_constraint_finished(const perigee_constraint *constraint) {
    return constraint->ended || (constraint->complete && constraint->pair_count == 0);
}

perigee_status prg_constraint_from_schema(prg_allocator *allocator, prg_token_trie *trie, const char *schema,
                                          size_t length, perigee_constraint **out, perigee_error **err) {
    prg_nfa nfa;
    prg_nfa_init(&nfa, allocator);
    perigee_status st = prg_schema_compile(&nfa, schema, length, err);
    if (st != PERIGEE_OK) {
        prg_nfa_free(&nfa);
        return st;
    }
    return prg_constraint_new(allocator, trie, &nfa, out, err);
}
