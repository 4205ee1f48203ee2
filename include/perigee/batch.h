/** @file batch.h Many sessions in one pass over the weights. */
#ifndef PERIGEE_BATCH_H
#define PERIGEE_BATCH_H

#include "perigee/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One session of a batch: what goes in, and what came of it. */
typedef struct perigee_batch_item {
    size_t struct_size;       /**< set by the caller to sizeof(perigee_batch_item) */
    perigee_session *session; /**< in: one that comes once in the batch */
    const int32_t *tokens;    /**< in: `n` >= 1 token ids */
    size_t n;                 /**< in: number of tokens */
    perigee_logits which;     /**< in: positions that get logits */
    const float *logits;      /**< out: float32 [rows, vocabulary], borrowed until the next call on the session */
    size_t rows;              /**< out */
    perigee_status status;    /**< out */
    perigee_error *error;     /**< out: NULL or an error that the caller frees; overwritten, not freed, at the call */
} perigee_batch_item;

/**
 * Take tokens into `count` different sessions of one model together: weights that several need are read once. Each
 * session gets, bit for bit, what it would get alone; one that fails takes nobody along. Items lie struct_size bytes of
 * the first apart. Returns PERIGEE_OK if every item went well, else the status of the first that did not, whose message
 * stands in *err too. PERIGEE_E_ARGUMENT: a session twice, or sessions of different models; then nothing was done. The
 * caller's thread owns all the sessions during the call. Since 0.1.
 */
PERIGEE_API perigee_status perigee_decode_batch(perigee_batch_item *items, size_t count, perigee_cancel *cancel,
                                                perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
