/** @file queue.h A scheduler: many generations over one model, stepped together from one thread. */
#ifndef PERIGEE_QUEUE_H
#define PERIGEE_QUEUE_H

#include "perigee/generate.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Requests that share passes over the weights. Each gets, bit for bit, what it would get alone. One thread at a time,
 * any thread; it holds its model. What stops a request from another thread is the cancel handle of its options.
 */
typedef struct perigee_queue perigee_queue;

/**
 * Receives what comes of a request, on the thread that called perigee_queue_step(): tokens as perigee_generation_next()
 * gives them, progress of the prompt (id -1, no finish), the end (a finish reason), or a failure (`error`, and no
 * step). Nothing follows an end or a failure. Return 0 to go on; anything else ends the request with
 * PERIGEE_FINISH_CALLBACK. It may submit and cancel, but neither step nor free the queue.
 */
typedef int (*perigee_queue_fn)(int64_t request, const perigee_generated *step, const perigee_error *error, void *user);

/**
 * Make a queue that works on at most `active` >= 1 requests at once, each in a session of its own with `options` (of
 * PERIGEE_SCOPE_SESSION; NULL: defaults); the others wait in their order. Since 0.1.
 */
PERIGEE_API perigee_status perigee_queue_new(perigee_model *model, const perigee_options *options, size_t active,
                                             perigee_queue **out, perigee_error **err);
/** Free a queue and drop its requests without a word but their release. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_queue_free(perigee_queue *queue);
/**
 * Aim at steps of at most this many seconds (0.1 at first) while some requests generate and others still take in their
 * prompts: prompts then go in pieces, in equal shares, one token each at least. Since 0.1.
 */
PERIGEE_API perigee_status perigee_queue_set_step_seconds(perigee_queue *queue, double seconds, perigee_error **err);
/**
 * Add a request: a prompt of `count` >= 1 ids and the options of a generation (NULL: defaults), both copied. `callback`
 * is told what comes of it; `release` (may be NULL) is called with `user` when the request is gone, or before a failed
 * call returns. *request (may be NULL) receives its number, from 1. Since 0.1.
 */
PERIGEE_API perigee_status perigee_queue_submit(perigee_queue *queue, const int32_t *prompt, size_t count,
                                                const perigee_generation_options *options, perigee_queue_fn callback,
                                                void *user, perigee_release_fn release, int64_t *request,
                                                perigee_error **err);
/** End a request with PERIGEE_FINISH_CANCELLED at the next step. PERIGEE_E_NOT_FOUND: no such request. Since 0.1. */
PERIGEE_API perigee_status perigee_queue_cancel(perigee_queue *queue, int64_t request, perigee_error **err);
/**
 * One pass: every generating request gets a token, prompts get on. *left (may be NULL) receives the number of requests
 * that are not at their end. A request that fails tells its callback and takes nobody along; the call itself fails for
 * lack of memory only, and may be repeated. Since 0.1.
 */
PERIGEE_API perigee_status perigee_queue_step(perigee_queue *queue, size_t *left, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
