/* The tokens of a vocabulary as a prefix tree over their bytes, laid out in preorder. */
#ifndef PRG_GENERATE_TOKEN_TRIE_H
#define PRG_GENERATE_TOKEN_TRIE_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "perigee/text.h"

/* Where tokens come from. Special and reserved tokens have no bytes: they never stand in constrained text. */
typedef struct prg_vocabulary {
    size_t count;
    const void *user;
    /* Bytes of token `id`, or NULL; valid during the call that takes the vocabulary. */
    const unsigned char *(*bytes_of)(const void *user, int32_t id, size_t *length);
    const int32_t *end_ids; /* tokens that end a text; copied */
    size_t end_count;
} prg_vocabulary;

enum { PRG_TRIE_LONGEST = 1024 }; /* tokens of more bytes are left out */
#define PRG_TRIE_NO_TOKEN UINT32_MAX

typedef struct prg_trie_node {
    uint32_t token; /* that ends here, or PRG_TRIE_NO_TOKEN */
    uint32_t skip;  /* first node behind the subtree */
    uint16_t depth; /* bytes from the root, 1 for its children */
    uint8_t byte;
} prg_trie_node;

/* Immutable, counted. */
typedef struct prg_token_trie {
    atomic_size_t references;
    prg_allocator *allocator;
    size_t vocabulary;
    prg_trie_node *nodes;
    size_t node_count, deepest;
    uint32_t *same;    /* per token the next one with the same bytes, or PRG_TRIE_NO_TOKEN */
    uint32_t *offsets; /* of each token's bytes, and behind the last */
    unsigned char *bytes;
    int32_t *end_ids;
    size_t end_count;
} prg_token_trie;

perigee_status prg_token_trie_new(prg_allocator *allocator, const prg_vocabulary *vocabulary, prg_token_trie **out,
                                  perigee_error **err);
prg_token_trie *prg_token_trie_hold(prg_token_trie *trie);
void prg_token_trie_drop(prg_token_trie *trie);
/* Of a tokenizer, made once and kept with it. Counted: one reference for the caller. */
perigee_status prg_token_trie_of(const perigee_tokenizer *tokenizer, prg_token_trie **out, perigee_error **err);

#endif
