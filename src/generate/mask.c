#include <string.h>

#include "base/checked_math.h"
#include "generate/constraint.h"

enum { VISIT_LIMIT = 32 << 20 };

typedef struct walker {
    prg_grammar *grammar;
    uint64_t *bits;
    bool open; /* the bottom stands for a floor that is not known */
    bool failed;
    uint32_t *border;
    size_t border_count, border_capacity;
    size_t visits;
    uint32_t reach;                        /* greatest depth that a step needed */
    prg_pair frames[PRG_TRIE_LONGEST + 1]; /* by depth, along the present path */
} walker;

static void add_border(walker *w, uint32_t node) {
    if (w->border_count == w->border_capacity) {
        size_t more = 2 * w->border_capacity + 64;
        uint32_t *wider = prg_realloc(w->grammar->allocator, w->border, more * sizeof *wider);
        if (!wider) {
            w->grammar->automaton.no_memory = true;
            w->failed = true;
            return;
        }
        w->border = wider;
        w->border_capacity = more;
    }
    w->border[w->border_count++] = node;
}

static void walk(walker *w, prg_pair from, uint32_t begin, uint32_t end, size_t depth);

static bool fits(walker *w, uint32_t floor, const prg_step *step) {
    uint32_t depth = w->grammar->automaton.cells[floor].depth + step->need;
    w->reach = depth > w->reach ? depth : w->reach;
    return depth <= PRG_NFA_DEPTH;
}

/* Below a node at which the return of `cell` may be taken. */
static void walk_returns(walker *w, uint32_t cell, uint32_t node) {
    prg_automaton *a = &w->grammar->automaton;
    const prg_trie_node n = w->grammar->trie->nodes[node];
    if (n.skip == node + 1) {
        return;
    }
    for (; cell != 0; cell = a->cells[cell].parent) {
        uint32_t number = prg_automaton_enter(a, a->cells[cell].above);
        if (number == 1) {
            return;
        }
        const prg_step step = a->steps[number];
        uint32_t floor = a->cells[cell].parent;
        if (step.state != PRG_AUTOMATON_NONE && fits(w, floor, &step)) {
            prg_pair to = {step.state, prg_automaton_stack(a, floor, step.pushed)};
            walk(w, to, node + 1, n.skip, n.depth);
        }
        if (!step.exits) {
            return;
        }
    }
    if (w->open) {
        add_border(w, node);
    }
}

/* Nodes `begin` … `end` - 1 lie below one of depth `depth` (the root: 0) at which the pair is reached. */
static void walk(walker *w, prg_pair from, uint32_t begin, uint32_t end, size_t depth) {
    prg_automaton *a = &w->grammar->automaton;
    const prg_trie_node *nodes = w->grammar->trie->nodes;
    const uint32_t *same = w->grammar->trie->same;
    const uint8_t *classes = a->nfa->classes;
    const size_t width = a->nfa->class_count;
    w->frames[depth] = from;
    for (uint32_t i = begin; i < end && !w->failed;) {
        const prg_trie_node n = nodes[i];
        const prg_pair at = w->frames[n.depth - 1];
        uint32_t number = a->rows[at.state * width + classes[n.byte]];
        if (number == 0) {
            number = prg_automaton_next(a, at.state, classes[n.byte]);
            w->failed = a->no_memory || a->too_large;
        }
        if (number == 1) {
            i = n.skip;
            continue;
        }
        if (++w->visits > VISIT_LIMIT) {
            a->too_large = true;
            w->failed = true;
        }
        const prg_step step = a->steps[number];
        bool inside = step.state != PRG_AUTOMATON_NONE && fits(w, at.floor, &step);
        if (step.exits) {
            walk_returns(w, at.floor, i);
        }
        for (uint32_t t = inside || step.exits ? n.token : PRG_TRIE_NO_TOKEN; t != PRG_TRIE_NO_TOKEN; t = same[t]) {
            w->bits[t / 64] |= UINT64_C(1) << (t % 64);
        }
        if (!inside) {
            i = n.skip;
            continue;
        }
        w->frames[n.depth] =
            (prg_pair){step.state, step.pushed ? prg_automaton_stack(a, at.floor, step.pushed) : at.floor};
        i++;
    }
}

/* Keep what was found in the smaller of two forms. */
static bool store(walker *w, uint32_t state) {
    prg_grammar *g = w->grammar;
    size_t words = (g->trie->vocabulary + 63) / 64, count = 0;
    if (g->mask_count == g->mask_capacity) {
        size_t more = 2 * g->mask_capacity + 16;
        prg_mask *wider = prg_realloc(g->allocator, g->masks, more * sizeof *wider);
        if (!wider) {
            return false;
        }
        g->masks = wider;
        g->mask_capacity = more;
    }
    for (size_t i = 0; i < words; i++) {
        count += (size_t)__builtin_popcountll(w->bits[i]);
    }
    prg_mask m = {NULL, NULL, w->border, count, w->border_count, w->reach};
    if (count * sizeof *m.tokens < words * sizeof *m.bits / 2) {
        m.tokens = prg_alloc(g->allocator, count * sizeof *m.tokens);
        if (!m.tokens) {
            return false;
        }
        size_t n = 0;
        for (size_t i = 0; i < words; i++) {
            for (uint64_t b = w->bits[i]; b != 0; b &= b - 1) {
                m.tokens[n++] = (uint32_t)(i * 64 + (size_t)__builtin_ctzll(b));
            }
        }
        g->mask_bytes += count * sizeof *m.tokens;
    } else {
        m.bits = prg_alloc(g->allocator, words * sizeof *m.bits);
        if (!m.bits) {
            return false;
        }
        memcpy(m.bits, w->bits, words * sizeof *m.bits);
        g->mask_bytes += words * sizeof *m.bits;
    }
    g->mask_bytes += w->border_capacity * sizeof *m.border + sizeof m;
    g->automaton.states[state].mask = (uint32_t)g->mask_count;
    g->masks[g->mask_count++] = m;
    w->border = NULL;
    return true;
}

static bool learn(walker *w, uint32_t state) {
    prg_grammar *g = w->grammar;
    uint64_t *target = w->bits;
    w->bits = g->scratch;
    w->open = true;
    w->reach = 0;
    memset(w->bits, 0, (g->trie->vocabulary + 63) / 64 * sizeof *w->bits);
    walk(w, (prg_pair){state, 0}, 0, (uint32_t)g->trie->node_count, 0);
    bool good = !w->failed;
    if (good && !store(w, state)) {
        g->automaton.no_memory = true;
        good = false;
    }
    prg_free(g->allocator, w->border);
    w->border = NULL;
    w->border_count = w->border_capacity = 0;
    w->bits = target;
    w->open = false;
    return good;
}

/* The tokens that pass the border and go on with what lies below the floor. */
static void cross_border(walker *w, const prg_mask *m, uint32_t floor) {
    prg_automaton *a = &w->grammar->automaton;
    const prg_trie_node *nodes = w->grammar->trie->nodes;
    for (uint32_t cell = floor; cell != 0 && !w->failed; cell = a->cells[cell].parent) {
        uint32_t number = prg_automaton_enter(a, a->cells[cell].above);
        if (number == 1) {
            break;
        }
        const prg_step step = a->steps[number];
        uint32_t parent = a->cells[cell].parent;
        if (step.state != PRG_AUTOMATON_NONE && fits(w, parent, &step)) {
            prg_pair to = {step.state, prg_automaton_stack(a, parent, step.pushed)};
            for (size_t i = 0; i < m->border_count; i++) {
                uint32_t node = m->border[i];
                walk(w, to, node + 1, nodes[node].skip, nodes[node].depth);
            }
        }
        if (!step.exits) {
            break;
        }
    }
}

bool prg_mask_add(prg_grammar *grammar, prg_pair pair, uint64_t *bits) {
    prg_grammar *g = grammar;
    prg_automaton *a = &g->automaton;
    walker *w = prg_calloc(g->allocator, 1, sizeof *w);
    if (!w) {
        a->no_memory = true;
        return false;
    }
    w->grammar = g;
    w->bits = bits;
    if (a->states[pair.state].mask != PRG_AUTOMATON_NONE || learn(w, pair.state)) {
        const prg_mask m = g->masks[a->states[pair.state].mask];
        if (a->cells[pair.floor].depth + m.reach > PRG_NFA_DEPTH) { /* here it matters how deep the floor lies */
            walk(w, pair, 0, (uint32_t)g->trie->node_count, 0);
        } else {
            for (size_t i = 0; m.bits && i < (g->trie->vocabulary + 63) / 64; i++) {
                bits[i] |= m.bits[i];
            }
            for (size_t i = 0; m.tokens && i < m.token_count; i++) {
                bits[m.tokens[i] / 64] |= UINT64_C(1) << (m.tokens[i] % 64);
            }
            cross_border(w, &m, pair.floor);
        }
    }
    bool good = !w->failed && !a->no_memory && !a->too_large;
    prg_free(g->allocator, w);
    return good;
}

void prg_mask_clear(prg_grammar *grammar) {
    for (size_t i = 0; i < grammar->mask_count; i++) {
        prg_free(grammar->allocator, grammar->masks[i].bits);
        prg_free(grammar->allocator, grammar->masks[i].tokens);
        prg_free(grammar->allocator, grammar->masks[i].border);
    }
    grammar->mask_count = 0;
    grammar->mask_bytes = 0;
}
