/* From names to bound layers: the only place where tensors are looked up. */
#ifndef PRG_MODEL_BIND_H
#define PRG_MODEL_BIND_H

#include "layers/weights.h"
#include "model/checkpoint.h"
#include "model/trunk.h"

typedef struct prg_bound {
    prg_layer *layers; /* this and all below it in the arena */
    prg_weight embed, head;
    uint32_t embed_group, head_group;
    const float *final_norm, *final_mix;
    prg_part *parts; /* of the allocator; freed with prg_bound_free() */
    size_t part_count, part_capacity, group_count;
    prg_conversion *conversions; /* likewise */
    size_t conversion_count, conversion_capacity;
    int64_t vector_bytes; /* of small vectors as float32 */
    int64_t weight_bytes; /* on disk */
    int64_t token_bytes;  /* in memory, read by a step of one token */
    int64_t relaid_bytes; /* in memory, of what is converted */
} prg_bound;

/* Bind all layers, with the trunk in the form that is asked for. With `read`, small vectors are read into the arena;
 * without, they are counted and stay NULL. */
perigee_status prg_bind(prg_checkpoint *checkpoint, prg_arena *arena, double inner_eps, prg_trunk trunk, bool read,
                        prg_bound *out, perigee_error **err);
void prg_bound_free(prg_allocator *allocator, prg_bound *bound);

#endif
