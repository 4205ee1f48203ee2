/* The pieces that binding is made of. */
#ifndef PRG_MODEL_BINDER_H
#define PRG_MODEL_BINDER_H

#include "model/bind.h"
#include "model/stored.h"

typedef struct prg_binder {
    prg_checkpoint *checkpoint;
    prg_arena *arena;
    prg_bound *out;
    bool read;
    prg_trunk trunk;
    int64_t layer;  /* at present */
    uint32_t group; /* at present */
    prg_file file;  /* the one read last, or closed */
    int64_t file_index;
    perigee_status status; /* the first fault stays; later calls do nothing */
    perigee_error **err;
} prg_binder;

void prg_binder_matrix(prg_binder *b, prg_component_id id, int64_t expert, prg_weight *out);
/* As float32 in the arena; NULL when nothing is read. */
void prg_binder_vector(prg_binder *b, prg_component_id id, float **out);

#endif
