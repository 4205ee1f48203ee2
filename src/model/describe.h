/* The components of a model with exact counts, from its config, and from its tensors where they are at hand. */
#ifndef PRG_MODEL_DESCRIBE_H
#define PRG_MODEL_DESCRIBE_H

#include "model/checkpoint.h"
#include "perigee/model.h"

struct perigee_description {
    prg_arena arena; /* holds the allocator */
    perigee_component *components;
    size_t count;
    perigee_totals totals;
};

perigee_status prg_describe(prg_checkpoint *checkpoint, perigee_description **out, perigee_error **err);
void prg_description_free(perigee_description *description);

#endif
