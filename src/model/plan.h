/* What weights take, without reading any. */
#ifndef PRG_MODEL_PLAN_H
#define PRG_MODEL_PLAN_H

#include "model/checkpoint.h"
#include "model/trunk.h"

typedef struct prg_weight_plan {
    int64_t disk_bytes;
    int64_t token_bytes;    /* in memory, read by a step of one token */
    int64_t resident_bytes; /* were they resident */
    int64_t relaid_bytes;   /* of these, in another form than on disk */
    int64_t vector_bytes;   /* small vectors as float32 */
    int64_t table_bytes;    /* these, and all else that a model takes beside weights */
} prg_weight_plan;

/* From the tensors where there are shards, else from the stored forms that the config's family is published in. */
perigee_status prg_plan_weights(prg_checkpoint *checkpoint, prg_trunk trunk, prg_weight_plan *out, perigee_error **err);

#endif
