/** @file session.h A session: position, latent cache and recurrent state over a model. */
#ifndef PERIGEE_SESSION_H
#define PERIGEE_SESSION_H

#include "perigee/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * State of one sequence over a model. Mutable: one thread at a time, any thread. It holds its model, so handles may be
 * freed in any order. Different sessions may be used from different threads at once; their steps take turns.
 */
typedef struct perigee_session perigee_session;

/** Which positions of a step get logits. */
typedef enum perigee_logits {
    PERIGEE_LOGITS_NONE = 0, /**< none: the head is not computed */
    PERIGEE_LOGITS_LAST = 1, /**< the last token's */
    PERIGEE_LOGITS_ALL = 2   /**< every token's */
} perigee_logits;

/** Make an empty session. `options` takes those of PERIGEE_SCOPE_SESSION; NULL: defaults. Any thread. Since 0.1. */
PERIGEE_API perigee_status perigee_session_new(perigee_model *model, const perigee_options *options,
                                               perigee_session **out, perigee_error **err);
/** Free a session. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_session_free(perigee_session *session);
/** Tokens taken in so far. Since 0.1. */
PERIGEE_API int64_t perigee_session_position(const perigee_session *session);
/** Tokens that the session can take in all. Since 0.1. */
PERIGEE_API int64_t perigee_session_context(const perigee_session *session);
/** Logits of one position: width of the rows that a step gives. Since 0.1. */
PERIGEE_API size_t perigee_session_vocabulary(const perigee_session *session);
/** Forget everything: position 0. Memory is kept for what comes. Since 0.1. */
PERIGEE_API void perigee_session_reset(perigee_session *session);

/**
 * Take in `n` >= 1 tokens, a prompt or one token. `logits` (may be NULL when `which` is none) receives float32
 * [*rows, vocabulary], borrowed until the next call on the session; `rows` may be NULL. `cancel` may be NULL.
 *
 * A failed step leaves the session at the position before it. A cancelled one leaves it after its last finished chunk,
 * as perigee_session_position() says. Errors: PERIGEE_E_TOKEN, PERIGEE_E_CONTEXT_FULL, PERIGEE_E_NOT_FINITE (names the
 * layer), PERIGEE_E_CANCELLED, PERIGEE_E_MEMORY, PERIGEE_E_IO. Since 0.1.
 */
PERIGEE_API perigee_status perigee_decode_step(perigee_session *session, const int32_t *tokens, size_t n,
                                               perigee_logits which, const float **logits, size_t *rows,
                                               perigee_cancel *cancel, perigee_error **err);

/** Counters of a session since it was made. */
typedef struct perigee_statistics {
    size_t struct_size;   /**< set by the caller to sizeof(perigee_statistics) */
    int64_t tokens;       /**< taken in */
    int64_t steps;        /**< chunks of a pass over the model */
    double seconds;       /**< in passes */
    int64_t weight_bytes; /**< bytes of weights read by passes (a pass that several sessions share counts for each) */
    int64_t expert_reads; /**< routed experts used */
    int64_t cache_hits;   /**< of these, already in memory */
    double wait_seconds;  /**< waiting for weights or for the pool */
    int64_t memory_bytes; /**< memory that the session holds now */
} perigee_statistics;

/** Fill in `out`. Since 0.1. */
PERIGEE_API perigee_status perigee_session_statistics(const perigee_session *session, perigee_statistics *out,
                                                      perigee_error **err);

/**
 * Receives the residual stream after a layer: float32 [rows, hidden], of `rows` tokens from `position` on, borrowed for
 * the call. Return 0 to go on; anything else fails the step with PERIGEE_E_CALLBACK. Runs on the calling thread, and
 * makes no call on the session.
 */
typedef int (*perigee_trace_fn)(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values,
                                void *user);
/** Set or, with NULL, remove a trace. `release` may be NULL. Since 0.1. */
PERIGEE_API void perigee_session_set_trace(perigee_session *session, perigee_trace_fn trace, void *user,
                                           perigee_release_fn release);

#ifdef __cplusplus
}
#endif

#endif
