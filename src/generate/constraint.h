/* Which tokens can go on: a grammar shared by any number of places in it. */
#ifndef PRG_GENERATE_CONSTRAINT_H
#define PRG_GENERATE_CONSTRAINT_H

#include <pthread.h>

#include "generate/automaton.h"
#include "generate/token_trie.h"
#include "perigee/generate.h"

/* What is known of a state's tokens, with the floor's return left open. */
typedef struct prg_mask {
    uint64_t *bits;   /* of the vocabulary, or NULL: then ids */
    uint32_t *tokens; /* [token_count] */
    uint32_t *border; /* [border_count] nodes of the trie at which the floor's return may be taken */
    size_t token_count, border_count;
    uint32_t reach; /* depth above the floor that finding it took */
} prg_mask;

/* Counted. The nfa is frozen; what is learned of it grows under the lock. */
typedef struct prg_grammar {
    atomic_size_t references;
    prg_allocator *allocator;
    prg_nfa nfa;
    prg_token_trie *trie;
    pthread_mutex_t lock;
    prg_automaton automaton;
    prg_mask *masks;
    size_t mask_count, mask_capacity, mask_bytes, byte_limit;
    uint64_t *scratch;                 /* a row of bits */
    struct perigee_constraint *places; /* all places, to carry them over when the cache is cleared */
} prg_grammar;

typedef struct prg_pair {
    uint32_t state, floor;
} prg_pair;

enum { PRG_PAIRS = 64 };

/* A place in a grammar: what has been taken, as the states that it may be in. */
struct perigee_constraint {
    prg_grammar *grammar;
    struct perigee_constraint *before, *next;
    prg_pair pairs[PRG_PAIRS];
    size_t pair_count;
    bool complete;            /* the text may end here */
    bool ended;               /* an end token was taken */
    bool known;               /* `allowed` is of this place */
    const int32_t *more_ends; /* tokens that end a text beside the trie's; borrowed */
    size_t more_end_count;
    uint64_t *allowed;
};

/* Takes over the nfa, also on failure. */
perigee_status prg_constraint_new(prg_allocator *allocator, prg_token_trie *trie, prg_nfa *nfa,
                                  perigee_constraint **out, perigee_error **err);
perigee_status prg_constraint_from_regex(prg_allocator *allocator, prg_token_trie *trie, const char *pattern,
                                         size_t length, perigee_constraint **out, perigee_error **err);
perigee_status prg_constraint_from_schema(prg_allocator *allocator, prg_token_trie *trie, const char *schema,
                                          size_t length, perigee_constraint **out, perigee_error **err);
perigee_status prg_constraint_clone(const perigee_constraint *constraint, perigee_constraint **out,
                                    perigee_error **err);
/* Bits of the tokens that can go on; borrowed until the place moves. */
perigee_status prg_constraint_allowed(perigee_constraint *constraint, const uint64_t **allowed, perigee_error **err);
/* Further tokens that end a text here; they must outlive the place. */
void prg_constraint_set_ends(perigee_constraint *constraint, const int32_t *ids, size_t count);
size_t prg_constraint_vocabulary(const perigee_constraint *constraint);
/* Move over a token; PERIGEE_E_STATE if it can't go on here, and nothing moves. */
perigee_status prg_constraint_accept(perigee_constraint *constraint, int32_t token, perigee_error **err);
/* As prg_constraint_accept() with bytes. */
perigee_status prg_constraint_accept_bytes(perigee_constraint *constraint, const unsigned char *bytes, size_t length,
                                           perigee_error **err);
/* True if nothing but an end can follow. */
bool prg_constraint_finished(const perigee_constraint *constraint);

/* The walk over the trie, in mask.c; with the lock held. Adds the tokens of a pair to `bits`. */
bool prg_mask_add(prg_grammar *grammar, prg_pair pair, uint64_t *bits);
void prg_mask_clear(prg_grammar *grammar);

#endif
