/** @file state.h Fork, rewind, prefix reuse, save and restore of sessions. */
#ifndef PERIGEE_STATE_H
#define PERIGEE_STATE_H

#include "perigee/generate.h"
#include "perigee/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Token ids taken in so far: *tokens is borrowed until the next call on the session; returns their number. Since 0.1.
 */
PERIGEE_API size_t perigee_session_tokens(const perigee_session *session, const int32_t **tokens);

/**
 * Make a second session at the same position. The latent cache is shared in blocks until one side writes to a block;
 * the recurrent state is copied. Both may be freed in any order and used from different threads. Since 0.1.
 */
PERIGEE_API perigee_status perigee_session_fork(perigee_session *session, perigee_session **out, perigee_error **err);

/**
 * Go back to `position` (0 … the present one), exactly. Models with recurrent layers restore the nearest checkpoint
 * (option `checkpoints`) and take the tokens in between again. PERIGEE_E_STATE if that can't be done: *nearest (may be
 * NULL) receives the greatest position not above it that can, and the session is unchanged. A cancel leaves it at a
 * whole position between. Since 0.1.
 */
PERIGEE_API perigee_status perigee_session_rewind(perigee_session *session, int64_t position, int64_t *nearest,
                                                  perigee_cancel *cancel, perigee_error **err);

/**
 * Make the session hold exactly `tokens`: keep the longest common prefix that can be kept, rewind to it, take in the
 * rest; at least the last token is taken in again, so that there are logits. `kept` (may be NULL) receives the length
 * of the prefix that was kept. Otherwise as perigee_decode_step(): tokens that it refuses leave the session unchanged;
 * another failure leaves it at the end of the prefix that was kept. Since 0.1.
 */
PERIGEE_API perigee_status perigee_session_feed(perigee_session *session, const int32_t *tokens, size_t n,
                                                perigee_logits which, const float **logits, size_t *rows, size_t *kept,
                                                perigee_cancel *cancel, perigee_error **err);

/** Forks of sessions under a byte limit, found again by the longest common prefix. One thread at a time. */
typedef struct perigee_prefix_cache perigee_prefix_cache;

/** Make a cache over a model that holds at most `bytes`. Freed with perigee_prefix_cache_free(). Since 0.1. */
PERIGEE_API perigee_status perigee_prefix_cache_new(perigee_model *model, int64_t bytes, perigee_prefix_cache **out,
                                                    perigee_error **err);
/** Free a cache. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_prefix_cache_free(perigee_prefix_cache *cache);
/** Keep a fork of the session as it is; the least recently used ones go to make room. A session larger than the limit
 * is not kept, which is no error. Since 0.1. */
PERIGEE_API perigee_status perigee_prefix_cache_put(perigee_prefix_cache *cache, perigee_session *session,
                                                    perigee_error **err);
/**
 * A session that holds the longest prefix of `tokens` that can be had, at most n - 1 of them, with the options of the
 * one that was put in; an empty one with `options` if nothing fits. The caller owns it and feeds the rest
 * (perigee_session_feed()). Since 0.1.
 */
PERIGEE_API perigee_status perigee_prefix_cache_get(perigee_prefix_cache *cache, const int32_t *tokens, size_t n,
                                                    const perigee_options *options, perigee_session **out,
                                                    perigee_error **err);
/** Bytes held now. Since 0.1. */
PERIGEE_API int64_t perigee_prefix_cache_bytes(const perigee_prefix_cache *cache);

/** Takes `size` bytes; returns 0, or anything else to fail the save with PERIGEE_E_CALLBACK. On the calling thread. */
typedef int (*perigee_write_fn)(const void *data, size_t size, void *user);
/** Gives at most `size` > 0 bytes: the number given, 0 at the end, negative to fail the load with PERIGEE_E_CALLBACK.
 */
typedef int64_t (*perigee_read_fn)(void *data, size_t size, void *user);

/** Bytes that a save takes now, with a sampler (NULL: without). Since 0.1. */
PERIGEE_API perigee_status perigee_state_size(const perigee_session *session, const perigee_sampler *sampler,
                                              size_t *size, perigee_error **err);
/**
 * Save position, tokens, cache, states and, unless NULL, a sampler (docs/state-format.md) to a buffer of `capacity`
 * bytes. *written receives the bytes used, or needed with PERIGEE_E_BUFFER. Nothing of session and sampler changes.
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_state_save(const perigee_session *session, const perigee_sampler *sampler,
                                              void *buffer, size_t capacity, size_t *written, perigee_error **err);
/** Save through a callback. Since 0.1. */
PERIGEE_API perigee_status perigee_state_save_to(const perigee_session *session, const perigee_sampler *sampler,
                                                 perigee_write_fn write, void *user, perigee_error **err);
/** Save to a file, atomically: written aside in the same folder, synced, renamed; `path` (`length` bytes, SIZE_MAX:
 * ends in NUL) holds the old state or the new one. An old file's permissions stay, and so does a link to it. Since 0.1.
 */
PERIGEE_API perigee_status perigee_state_save_file(const perigee_session *session, const perigee_sampler *sampler,
                                                   const char *path, size_t length, perigee_error **err);
/**
 * Load what a save of the same model wrote, under any kernel table, and into `sampler` (unless NULL) the sampler that
 * was saved with it. Transactional: on failure session and sampler are unchanged. PERIGEE_E_FORMAT, _TRUNCATED,
 * _CHECKSUM, _VERSION, _MISMATCH (another model or cache type), _NOT_FOUND (no sampler in it), _CONTEXT_FULL, _MEMORY,
 * _IO. Since 0.1.
 */
PERIGEE_API perigee_status perigee_state_load(perigee_session *session, perigee_sampler *sampler, const void *buffer,
                                              size_t size, perigee_error **err);
/** Load through a callback. Since 0.1. */
PERIGEE_API perigee_status perigee_state_load_from(perigee_session *session, perigee_sampler *sampler,
                                                   perigee_read_fn read, void *user, perigee_error **err);
/** Load from a file. Since 0.1. */
PERIGEE_API perigee_status perigee_state_load_file(perigee_session *session, perigee_sampler *sampler, const char *path,
                                                   size_t length, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
