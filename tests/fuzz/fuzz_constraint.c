/* The schema and pattern compilers, and short walks through what they make. The first byte chooses the compiler, the
 * second seeds the walk. What comes out of a walk over a schema must be JSON. */
#include <stdlib.h>

#include "base/json.h"
#include "generate/constraint.h"
#include "support/tokens.h"

static void walk(prg_allocator *allocator, perigee_constraint *c, const tokens *words, uint64_t seed, int is_json) {
    static char text[4096];
    size_t length = 0;
    for (uint64_t step = 0; step < 60 && !c->ended; step++) {
        const uint64_t *allowed = NULL;
        int32_t ids[600];
        size_t n = 0;
        if (prg_constraint_allowed(c, &allowed, NULL) != PERIGEE_OK) {
            return;
        }
        for (int32_t id = 0; id < 600; id++) {
            if (allowed[id / 64] >> (id % 64) & 1) {
                ids[n++] = id;
            }
        }
        if (n == 0) {
            abort(); /* stuck */
        }
        int32_t id = c->complete ? words->end_ids[0] : ids[prg_random_bits(seed, step) % n];
        if (prg_constraint_accept(c, id, NULL) != PERIGEE_OK) {
            if (c->grammar->automaton.too_large) {
                return;
            }
            abort(); /* offered and refused */
        }
        memcpy(text + length, words->bytes[id], words->lengths[id]);
        length += words->lengths[id];
    }
    if (c->ended && is_json) {
        prg_arena arena;
        const prg_json *value = NULL;
        prg_arena_init(&arena, allocator);
        if (prg_json_parse(&arena, text, length, 250, NULL, &value, NULL) != PERIGEE_OK) {
            abort();
        }
        prg_arena_free(&arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 4096) {
        return 0;
    }
    prg_allocator *allocator = NULL;
    prg_token_trie *trie = NULL;
    perigee_constraint *c = NULL;
    perigee_error *error = NULL;
    tokens words = tokens_make(600);
    const prg_vocabulary v = tokens_vocabulary(&words);
    if (prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK ||
        prg_token_trie_new(allocator, &v, &trie, NULL) != PERIGEE_OK) {
        abort();
    }
    int schema = data[0] != 'r';
    perigee_status st = (schema ? prg_constraint_from_schema : prg_constraint_from_regex)(
        allocator, trie, (const char *)data + 2, size - 2, &c, &error);
    if ((st == PERIGEE_OK) != (error == NULL)) {
        abort();
    }
    if (st == PERIGEE_OK) {
        walk(allocator, c, &words, data[1], schema);
    }
    perigee_error_free(error);
    perigee_constraint_free(c);
    prg_token_trie_drop(trie);
    if (allocator->bytes != 0) {
        abort();
    }
    prg_allocator_drop(allocator);
    tokens_drop(&words);
    return 0;
}
