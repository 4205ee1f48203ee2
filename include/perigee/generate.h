/** @file generate.h From logits to tokens to text: samplers, constraints, generations, scores. */
#ifndef PERIGEE_GENERATE_H
#define PERIGEE_GENERATE_H

#include "perigee/session.h"
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

/** Why a generation came to its end. */
typedef enum perigee_finish {
    PERIGEE_FINISH_NONE = 0,         /**< it goes on */
    PERIGEE_FINISH_STOP = 1,         /**< a stop id, or the end of a constrained text */
    PERIGEE_FINISH_STOP_STRING = 2,  /**< a stop string */
    PERIGEE_FINISH_LENGTH = 3,       /**< as many tokens as were asked for */
    PERIGEE_FINISH_CANCELLED = 4,    /**< the cancel handle */
    PERIGEE_FINISH_CONTEXT_FULL = 5, /**< no room for another token */
    PERIGEE_FINISH_CALLBACK = 6      /**< the callback of perigee_generate() */
} perigee_finish;

/** Name of a finish reason, as "stop", "length"; "" for NONE. Static. Any thread. Since 0.1. */
PERIGEE_API const char *perigee_finish_name(perigee_finish finish);

/** How to generate. Mutable, one thread at a time; a generation copies what it needs. */
typedef struct perigee_generation_options perigee_generation_options;

/** Make options: greedy, stop ids of the model, no limit but the context. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_new(perigee_context *context, perigee_generation_options **out,
                                                          perigee_error **err);
/** Free options. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_generation_options_free(perigee_generation_options *options);
/** Sample with a copy of `sampler` as it is now; NULL: greedy. The prompt goes into the copy's history. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_set_sampler(perigee_generation_options *options,
                                                                  const perigee_sampler *sampler, perigee_error **err);
/** Begin with a copy of `constraint` as it is now; NULL: none. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_set_constraint(perigee_generation_options *options,
                                                                     const perigee_constraint *constraint,
                                                                     perigee_error **err);
/** Stop behind `count` tokens (at least 1); -1: no limit. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_set_max_tokens(perigee_generation_options *options, int64_t count,
                                                                     perigee_error **err);
/** Stop at this id too. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_add_stop_id(perigee_generation_options *options, int32_t id,
                                                                  perigee_error **err);
/** 0: don't stop at the end ids of config, generation config and chat format; 1, the default: do. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_set_default_stops(perigee_generation_options *options,
                                                                        int enabled, perigee_error **err);
/**
 * Stop where this text (UTF-8 of 1 … 4096 bytes, SIZE_MAX: ends in NUL) comes up, across tokens too; it is not emitted.
 * At most 64 of them. Since 0.1.
 */
PERIGEE_API perigee_status perigee_generation_options_add_stop_string(perigee_generation_options *options,
                                                                      const char *text, size_t length,
                                                                      perigee_error **err);
/**
 * Log-probabilities with each token: -1 none, 0 of the token, n (at most 1,000) also of the n most probable. They are
 * those of the model: softmax of the logits as they come, before sampler and constraint. Since 0.1.
 */
PERIGEE_API perigee_status perigee_generation_options_set_log_probabilities(perigee_generation_options *options,
                                                                            int32_t top, perigee_error **err);
/** Hold `cancel` (NULL: none): a trigger stops within one token, in the prompt within one chunk. Since 0.1. */
PERIGEE_API perigee_status perigee_generation_options_set_cancel(perigee_generation_options *options,
                                                                 perigee_cancel *cancel, perigee_error **err);

/** One step of a generation. Pointers are borrowed from it until the next call on it. */
typedef struct perigee_generated {
    size_t struct_size;     /**< set by the caller to sizeof(perigee_generated) */
    perigee_finish finish;  /**< NONE, or the end: then no more tokens come */
    int32_t id;             /**< the token, a stop id included; -1 if the end came without one */
    const char *text;       /**< whole characters that became certain, UTF-8, NUL behind; special tokens give none */
    size_t text_length;     /**< in bytes */
    double log_probability; /**< of the token; NaN unless asked for */
    const int32_t *top_ids; /**< most probable first */
    const double *top_log_probabilities; /**< of the ids in `top_ids` */
    size_t top_count;                    /**< number of them; 0 unless asked for */
    double seconds;                      /**< that this step took, the first one with the prompt */
    int64_t prompt_tokens;               /**< tokens of the prompt taken in so far */
    int64_t tokens;                      /**< tokens generated so far, this one included */
} perigee_generated;

/**
 * A generation in the pull form. It works on its session, which must outlive it and takes no other call until it is
 * freed or at its end. One thread at a time, any thread. Every token but the newest has been taken in by the session:
 * to go on later, begin the next prompt with it.
 */
typedef struct perigee_generation perigee_generation;

/**
 * Make a generation that takes in `count` ids first. With none it goes on from the session's state: the last token is
 * taken in again, which takes a rewind by one (PERIGEE_E_STATE where the session can't). `options` may be NULL.
 * Nothing is computed yet. PERIGEE_E_CONTEXT_FULL: the prompt does not fit; PERIGEE_E_TOKEN; PERIGEE_E_UNSUPPORTED:
 * stop strings without a tokenizer; PERIGEE_E_STATE: no prompt and an empty session. Since 0.1.
 */
PERIGEE_API perigee_status perigee_generation_new(perigee_session *session, const int32_t *prompt, size_t count,
                                                  const perigee_generation_options *options, perigee_generation **out,
                                                  perigee_error **err);
/**
 * Generate the next token. Behind the end it gives the same finish reason with no token. A failed call may be repeated:
 * what was computed is kept, and the session is at a whole position. Errors as perigee_decode_step(), cancelling and a
 * full context apart, which are finish reasons; PERIGEE_E_NOT_FINITE; PERIGEE_E_STATE: the constraint allows no token.
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_generation_next(perigee_generation *generation, perigee_generated *out,
                                                   perigee_error **err);
/**
 * Copy the sampler as it is behind the tokens so far, to save it with the session (perigee/state.h) or to go on. Its
 * history ends with what the session has taken in, as a generation that goes on takes its prompt into the history: with
 * this sampler and the newest token as prompt the same tokens follow as without the break. PERIGEE_E_STATE: behind a
 * failed perigee_generation_next() that has drawn a token, until it is repeated. Freed with perigee_sampler_free().
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_generation_sampler(const perigee_generation *generation, perigee_sampler **out,
                                                      perigee_error **err);
/** Free a generation. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_generation_free(perigee_generation *generation);

/**
 * Receives each step of perigee_generate(), and during the prompt, chunk by chunk, steps without a token (id -1, no
 * finish). Return 0 to go on; anything else ends it with PERIGEE_FINISH_CALLBACK.
 */
typedef int (*perigee_generate_fn)(const perigee_generated *step, void *user);
/** The loop over a generation. `callback` and `finish` may be NULL. Since 0.1. */
PERIGEE_API perigee_status perigee_generate(perigee_session *session, const int32_t *prompt, size_t count,
                                            const perigee_generation_options *options, perigee_generate_fn callback,
                                            void *user, perigee_finish *finish, perigee_error **err);

/**
 * Take in `count` >= 2 ids and give the log-probabilities of all but the first, each under the model's distribution
 * behind those before it: `out` [count - 1]. Goes in pieces, so that memory stays small; a call that fails or is
 * cancelled leaves the session behind the last whole piece. `cancel` may be NULL. Since 0.1.
 */
PERIGEE_API perigee_status perigee_score(perigee_session *session, const int32_t *ids, size_t count, double *out,
                                         perigee_cancel *cancel, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
