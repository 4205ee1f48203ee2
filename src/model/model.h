/* The context and the loaded model: config, bound layers and the store. The model is frozen after load. */
#ifndef PRG_MODEL_MODEL_H
#define PRG_MODEL_MODEL_H

#include <stdatomic.h>

#include "base/log.h"
#include "kernels/table.h"
#include "layers/weights.h"
#include "model/config.h"
#include "perigee/session.h"
#include "store/store.h"

struct perigee_context {
    atomic_size_t references;
    prg_allocator *allocator;
    prg_log log;
    perigee_release_fn log_release;
    prg_kernel_table *table;
    prg_pool *pool;
    /* Of a step: used and changed only with the pool entered. */
    prg_scratch scratch;
    atomic_size_t scratch_bytes; /* its capacity, for who has not entered */
};

struct perigee_model {
    atomic_size_t references;
    perigee_context *context;
    prg_arena arena; /* bound structs and vectors */
    prg_config config;
    prg_store *store;
    prg_layer *layers;
    uint32_t embed_group, head_group;
    prg_weight embed, head; /* [vocabulary, hidden]; the same parts when tied */
    const float *final_norm;
    const float *final_mix; /* attention residuals, else NULL */
    int64_t weight_bytes, token_bytes;
    uint64_t
        fingerprint[2]; /* XXH3-128 of config, names, shapes and dtypes of all tensors, and of small tensors' bytes */
    struct perigee_tokenizer *tokenizer; /* or NULL */
};

perigee_context *prg_context_hold(perigee_context *context);
perigee_model *prg_model_hold(perigee_model *model);
/* Enter the pool with a scratch of at least `bytes`; *spare is for prg_context_leave(). The host's allocator is called
 * before entering and after leaving only: it may wait for a thread that waits for the pool. */
perigee_status prg_context_enter(perigee_context *context, size_t bytes, void **spare, perigee_error **err);
void prg_context_leave(perigee_context *context, void *spare);

#endif
