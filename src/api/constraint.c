#include <string.h>

#include "base/error.h"
#include "generate/constraint.h"
#include "generate/sampler.h"
#include "text/tokenizer.h"

typedef perigee_status (*compiler)(prg_allocator *allocator, prg_token_trie *trie, const char *text, size_t length,
                                   perigee_constraint **out, perigee_error **err);

static perigee_status compile(compiler from, const perigee_tokenizer *tokenizer, const char *text, size_t length,
                              perigee_constraint **out, perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !text || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, text or out is NULL");
    }
    prg_token_trie *trie = NULL;
    perigee_status st = prg_token_trie_of(tokenizer, &trie, err);
    if (st == PERIGEE_OK) {
        st = from(tokenizer->allocator, trie, text, length == SIZE_MAX ? strlen(text) : length, out, err);
        prg_token_trie_drop(trie);
    }
    return st;
}

perigee_status perigee_constraint_from_schema(const perigee_tokenizer *tokenizer, const char *schema, size_t length,
                                              perigee_constraint **out, perigee_error **err) {
    return compile(prg_constraint_from_schema, tokenizer, schema, length, out, err);
}

perigee_status perigee_constraint_from_regex(const perigee_tokenizer *tokenizer, const char *pattern, size_t length,
                                             perigee_constraint **out, perigee_error **err) {
    return compile(prg_constraint_from_regex, tokenizer, pattern, length, out, err);
}

perigee_status perigee_constraint_clone(const perigee_constraint *constraint, perigee_constraint **out,
                                        perigee_error **err) {
    prg_clear(err);
    if (!constraint || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "constraint or out is NULL");
    }
    return prg_constraint_clone(constraint, out, err);
}

perigee_status perigee_constraint_allowed(perigee_constraint *constraint, const uint64_t **bits, size_t *count,
                                          perigee_error **err) {
    prg_clear(err);
    if (!constraint || !bits || !count) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "constraint, bits or count is NULL");
    }
    perigee_status st = prg_constraint_allowed(constraint, bits, err);
    if (st == PERIGEE_OK) {
        *count = prg_constraint_vocabulary(constraint);
    }
    return st;
}

perigee_status perigee_constraint_accept(perigee_constraint *constraint, int32_t id, perigee_error **err) {
    prg_clear(err);
    if (!constraint) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "constraint is NULL");
    }
    return prg_constraint_accept(constraint, id, err);
}

int perigee_constraint_complete(const perigee_constraint *constraint) {
    if (!constraint) {
        return 0;
    }
    return prg_constraint_finished(constraint) ? 2 : constraint->complete;
}

perigee_status perigee_sampler_sample_constrained(perigee_sampler *sampler, const float *logits, size_t count,
                                                  perigee_constraint *constraint, int32_t *id, perigee_error **err) {
    const uint64_t *bits = NULL;
    size_t bit_count = 0;
    prg_clear(err);
    if (!sampler || !logits || count == 0 || count > INT32_MAX || !id) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler, logits or id is NULL, or there are no logits");
    }
    perigee_status st = constraint ? perigee_constraint_allowed(constraint, &bits, &bit_count, err) : PERIGEE_OK;
    return st == PERIGEE_OK ? prg_sampler_sample(sampler, logits, count, bits, bit_count, id, err) : st;
}
