/** @file generate.h From logits to tokens: samplers, constraints, log-probabilities. */
#ifndef PERIGEE_GENERATE_H
#define PERIGEE_GENERATE_H

#include "perigee/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Index of the greatest of `count` >= 1 logits, the lowest one of equals. PERIGEE_E_NOT_FINITE if one is not finite.
 * Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_argmax(const float *logits, size_t count, int32_t *id, perigee_error **err);
/**
 * The `k` greatest of `count` logits (k <= count), greatest first, of equals the lower index first, into `ids` [k] and
 * `values` [k] (may be NULL). PERIGEE_E_NOT_FINITE if one is not finite. Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_top_k(perigee_context *context, const float *logits, size_t count, size_t k,
                                         int32_t *ids, float *values, perigee_error **err);
/**
 * Natural logarithms of the probabilities of `n` tokens under softmax(logits), in double, into `out` [n]. Any thread.
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_log_probabilities(const float *logits, size_t count, const int32_t *ids, size_t n,
                                                     double *out, perigee_error **err);

/**
 * A chain of stages that turns a row of logits into a token id. Stages work in the order in which they are added. An
 * empty chain takes the greatest logit; any other draws from what its stages leave, with softmax as probabilities.
 * Equal logits count in the order of their ids. The same chain, seed, history and logits give the same ids on every
 * machine. Mutable: one thread at a time, any thread. It holds the allocator of its context and nothing else of it.
 */
typedef struct perigee_sampler perigee_sampler;

/** Make an empty chain with seed 0. Freed with perigee_sampler_free(). Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_new(perigee_context *context, perigee_sampler **out, perigee_error **err);
/** Copy chain, seed, place in the random stream, and history. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_clone(const perigee_sampler *sampler, perigee_sampler **out,
                                                 perigee_error **err);
/** Free a sampler. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_sampler_free(perigee_sampler *sampler);

/**
 * Divide the positive logits of tokens among the last `window` (1 … 1,048,576) of the history by `penalty` (> 0, 1:
 * nothing) and multiply the others of them by it. Errors of all of these: PERIGEE_E_ARGUMENT, PERIGEE_E_RANGE,
 * PERIGEE_E_MEMORY. A chain has at most 32 stages. Since 0.1.
 */
PERIGEE_API perigee_status perigee_sampler_add_repetition(perigee_sampler *sampler, double penalty, size_t window,
                                                          perigee_error **err);
/** Take `penalty` (-1000 … 1000) off the logits of tokens among the last `window` of the history. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_presence(perigee_sampler *sampler, double penalty, size_t window,
                                                        perigee_error **err);
/** As perigee_sampler_add_presence(), times the number of occurrences in the window. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_frequency(perigee_sampler *sampler, double penalty, size_t window,
                                                         perigee_error **err);
/** Add biases[i] (finite, copied) to the logit of ids[i]; ids beyond the vocabulary do nothing. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_bias(perigee_sampler *sampler, const int32_t *ids, const float *biases,
                                                    size_t count, perigee_error **err);
/** Divide logits by `temperature` (0.001 … 1000); 0 does as perigee_sampler_add_greedy(). Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_temperature(perigee_sampler *sampler, double temperature,
                                                           perigee_error **err);
/** Keep the `k` >= 1 greatest. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_top_k(perigee_sampler *sampler, size_t k, perigee_error **err);
/** Keep the fewest of the greatest whose probabilities sum to at least `p` (0 … 1), one at least. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_top_p(perigee_sampler *sampler, double p, perigee_error **err);
/** Keep those of at least `p` (0 … 1) times the probability of the greatest. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_min_p(perigee_sampler *sampler, double p, perigee_error **err);
/** Keep the greatest alone. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_add_greedy(perigee_sampler *sampler, perigee_error **err);
/** Set the seed and go to the start of its random stream. Since 0.1. */
PERIGEE_API void perigee_sampler_set_seed(perigee_sampler *sampler, uint64_t seed);

/**
 * Choose a token from `count` >= 1 logits. The history is left alone; each choice takes one place in the random stream.
 * PERIGEE_E_NOT_FINITE: a logit is not finite. Since 0.1.
 */
PERIGEE_API perigee_status perigee_sampler_sample(perigee_sampler *sampler, const float *logits, size_t count,
                                                  int32_t *id, perigee_error **err);
/** Append tokens, of the prompt or chosen, to the history that penalties look at. Since 0.1. */
PERIGEE_API perigee_status perigee_sampler_accept(perigee_sampler *sampler, const int32_t *ids, size_t count,
                                                  perigee_error **err);
/** Forget the history and go to the start of the random stream. Since 0.1. */
PERIGEE_API void perigee_sampler_reset(perigee_sampler *sampler);

/**
 * A place in a text that a JSON schema or a regular expression describes: it says which tokens can go on. Copies share
 * what is learned of the description. Mutable: one thread at a time, any thread; copies may be used from different
 * threads at once. It holds nothing of the tokenizer that it was made with. docs/generate.md says what is covered.
 */
typedef struct perigee_constraint perigee_constraint;

/**
 * Make the start of a JSON text that is valid under `schema` (JSON of `length` bytes, SIZE_MAX: ends in NUL). The first
 * constraint of a tokenizer sorts its vocabulary and leaves that with it. PERIGEE_E_SCHEMA: not JSON, with the offset;
 * a keyword or value that is not covered, with its JSON pointer; or nothing is valid. Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_constraint_from_schema(const perigee_tokenizer *tokenizer, const char *schema,
                                                          size_t length, perigee_constraint **out, perigee_error **err);
/**
 * Make the start of a text that `pattern` (UTF-8 of `length` bytes, SIZE_MAX: ends in NUL) matches as a whole.
 * PERIGEE_E_SCHEMA: what is not covered, with the offset. Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_constraint_from_regex(const perigee_tokenizer *tokenizer, const char *pattern,
                                                         size_t length, perigee_constraint **out, perigee_error **err);
/** A place of its own at the same point. Since 0.1. */
PERIGEE_API perigee_status perigee_constraint_clone(const perigee_constraint *constraint, perigee_constraint **out,
                                                    perigee_error **err);
/** Free a place. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_constraint_free(perigee_constraint *constraint);
/**
 * The tokens that can go on: bit id % 64 of word id / 64, of *count bits (the tokenizer's vocabulary; others can't).
 * Tokens that end a reply are among them just when the text is complete; other special tokens never. Borrowed until the
 * next call on the constraint. PERIGEE_E_MEMORY, PERIGEE_E_SCHEMA (too many ways open at once). Since 0.1.
 */
PERIGEE_API perigee_status perigee_constraint_allowed(perigee_constraint *constraint, const uint64_t **bits,
                                                      size_t *count, perigee_error **err);
/** Move over a token. PERIGEE_E_STATE: it can't go on here; the place is as before. Since 0.1. */
PERIGEE_API perigee_status perigee_constraint_accept(perigee_constraint *constraint, int32_t id, perigee_error **err);
/** 1 if the text may end here, 2 if nothing else can follow, else 0. Since 0.1. */
PERIGEE_API int perigee_constraint_complete(const perigee_constraint *constraint);

/**
 * As perigee_sampler_sample(), among the tokens that can go on in `constraint` (NULL: all). Moves neither the history
 * nor the constraint. PERIGEE_E_STATE: none can. Since 0.1.
 */
PERIGEE_API perigee_status perigee_sampler_sample_constrained(perigee_sampler *sampler, const float *logits,
                                                              size_t count, perigee_constraint *constraint, int32_t *id,
                                                              perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
