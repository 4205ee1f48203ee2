#include "base/error.h"
#include "generate/token_trie.h"
#include "text/tokenizer.h"

typedef struct derived_trie {
    prg_derived base;
    prg_allocator *allocator;
    prg_token_trie *trie;
} derived_trie;

static void drop(prg_derived *derived) {
    derived_trie *d = (derived_trie *)derived;
    prg_allocator *a = d->allocator;
    prg_token_trie_drop(d->trie);
    prg_free(a, d);
    prg_allocator_drop(a);
}

static const unsigned char *bytes_of(const void *user, int32_t id, size_t *length) {
    const perigee_tokenizer *t = user;
    return prg_tokenizer_is_special(t, id) ? NULL : prg_tokenizer_bytes(t, id, length);
}

perigee_status prg_token_trie_of(const perigee_tokenizer *tokenizer, prg_token_trie **out, perigee_error **err) {
    perigee_tokenizer *t = (perigee_tokenizer *)(uintptr_t)tokenizer; /* as a whole it is shared and frozen */
    prg_derived *known = atomic_load_explicit(&t->derived, memory_order_acquire);
    if (!known) {
        derived_trie *d = prg_calloc(t->allocator, 1, sizeof *d);
        if (!d) {
            return prg_fail_memory(err);
        }
        *d = (derived_trie){{drop}, prg_allocator_hold(t->allocator), NULL};
        const prg_vocabulary v = {(size_t)prg_tokenizer_vocabulary(t), t, bytes_of, t->end_ids, t->end_count};
        perigee_status st = prg_token_trie_new(t->allocator, &v, &d->trie, err);
        if (st != PERIGEE_OK) {
            drop(&d->base);
            return st;
        }
        if (atomic_compare_exchange_strong(&t->derived, &known, &d->base)) {
            known = &d->base;
        } else { /* another thread was first */
            drop(&d->base);
        }
    }
    *out = prg_token_trie_hold(((derived_trie *)known)->trie);
    return PERIGEE_OK;
}
