/* What a session and its passes take, worked out from the config alone: the same numbers for perigee_model_plan(), for
 * perigee_session_new() and for the scratch of a pass. */
#ifndef PRG_SESSION_PLAN_H
#define PRG_SESSION_PLAN_H

#include "base/options.h"
#include "kernels/table.h"
#include "model/config.h"

enum { PRG_CACHE_BLOCK = 128 /* tokens */ };

typedef struct prg_session_plan {
    size_t context, chunk;
    bool bf16;
    size_t mla_layers, kda_layers;
    size_t latent_bytes; /* of one token and layer */
    size_t kda_floats;   /* of one layer: recurrence and convolution */
    size_t kda_heads, kda_dim;
    int64_t checkpoints;     /* bytes */
    size_t checkpoint_every; /* tokens */
    size_t fixed_bytes;      /* state twice, tables, one row of logits */
    size_t token_bytes;      /* cache, all layers */
    size_t scratch_bytes;    /* of a pass of `chunk` rows, and of a copy of the state behind the chunk before */
} prg_session_plan;

/* Reads the options of PERIGEE_SCOPE_SESSION; others are not looked at. PERIGEE_E_RANGE: a context longer than the
 * model's; PERIGEE_E_ARGUMENT: an unknown cache type. */
perigee_status prg_session_plan_make(const prg_config *config, const prg_kernel_table *table, size_t threads,
                                     const perigee_options *options, prg_session_plan *out, perigee_error **err);

/* Scratch of a pass of at most `rows` rows in `segments` segments. */
size_t prg_pass_scratch(const prg_config *config, const prg_kernel_table *table, size_t threads, size_t rows,
                        size_t segments);

/* Columns of the head that are computed at once where several sessions want logits. */
size_t prg_head_tile(size_t rows, size_t vocabulary);

#endif
