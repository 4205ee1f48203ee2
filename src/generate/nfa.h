/* A grammar over bytes: states with edges that take a byte, take nothing, or call another start state and go on when
 * that one accepts. Without calls it is a finite automaton; with calls, rules may nest and recurse. */
#ifndef PRG_GENERATE_NFA_H
#define PRG_GENERATE_NFA_H

#include "base/alloc.h"

enum { PRG_NFA_STATES = 1 << 18, PRG_NFA_EDGES = 1 << 21, PRG_NFA_DEPTH = 1024 };
#define PRG_NFA_NONE UINT32_MAX

typedef enum prg_nfa_edge_kind { PRG_NFA_BYTES, PRG_NFA_EPSILON, PRG_NFA_CALL } prg_nfa_edge_kind;

typedef struct prg_nfa_edge {
    uint32_t next; /* edge of the same state, or PRG_NFA_NONE */
    uint32_t target;
    uint32_t rule; /* start state that a call goes to; `target` is where it returns to */
    uint8_t kind, low, high;
} prg_nfa_edge;

typedef struct prg_nfa_state {
    uint32_t first;
    uint32_t height; /* deepest stack of calls on the shallowest way to an end, PRG_NFA_NONE if there is no way */
    uint32_t accepts;
} prg_nfa_state;

typedef struct prg_nfa {
    prg_allocator *allocator;
    prg_nfa_state *states;
    prg_nfa_edge *edges;
    size_t state_count, state_capacity, edge_count, edge_capacity;
    uint32_t start;
    bool no_memory, too_large; /* sticky: builders go on with state 0, prg_nfa_finish() tells */
    uint8_t classes[256];      /* after finish: bytes that no edge tells apart */
    size_t class_count;
} prg_nfa;

void prg_nfa_init(prg_nfa *nfa, prg_allocator *allocator);
void prg_nfa_free(prg_nfa *nfa);
uint32_t prg_nfa_add_state(prg_nfa *nfa);
void prg_nfa_accept(prg_nfa *nfa, uint32_t state);
void prg_nfa_bytes(prg_nfa *nfa, uint32_t from, unsigned low, unsigned high, uint32_t to);
void prg_nfa_epsilon(prg_nfa *nfa, uint32_t from, uint32_t to);
void prg_nfa_call(prg_nfa *nfa, uint32_t from, uint32_t rule, uint32_t to);
/* The bytes of a text one after the other; returns the state behind it. */
uint32_t prg_nfa_literal(prg_nfa *nfa, uint32_t from, const char *text, size_t length);

/* A set of code points: disjoint ascending ranges. */
typedef struct prg_range {
    uint32_t low, high;
} prg_range;

/* How characters stand in the text: as UTF-8, or as inside a JSON string: quote, backslash and control characters by
 * their escapes, all others as themselves, U+0000 not at all. */
typedef enum prg_nfa_spelling { PRG_SPELL_UTF8, PRG_SPELL_JSON } prg_nfa_spelling;

/* One character of the set. */
void prg_nfa_class(prg_nfa *nfa, uint32_t from, const prg_range *ranges, size_t count, prg_nfa_spelling spelling,
                   uint32_t to);

/* Heights and byte classes. PERIGEE_E_SCHEMA if it is too large or nothing matches. */
perigee_status prg_nfa_finish(prg_nfa *nfa, uint32_t start, perigee_error **err);

#endif
