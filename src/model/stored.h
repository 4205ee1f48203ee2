/* Which tensors of a checkpoint hold a component, and in which stored form. */
#ifndef PRG_MODEL_STORED_H
#define PRG_MODEL_STORED_H

#include "model/checkpoint.h"

enum { PRG_STORED_NAME = 256 };

typedef struct prg_stored {
    prg_component_id id;
    prg_component part;
    char name[PRG_STORED_NAME]; /* as prg_arch_tensor_name() gives it */
    uint32_t dtype;             /* perigee_dtype; NONE: not found, or of no known form */
    prg_tensor *codes;          /* NULL: not found */
    prg_tensor *scales;
    prg_tensor *shape; /* INT4: what the checkpoint says of rows and columns */
} prg_stored;

/* Look up one instance; nothing is checked. */
void prg_stored_find(const prg_checkpoint *checkpoint, prg_component_id id, int64_t layer, int64_t expert,
                     prg_stored *out);
/* Fails unless it is there, with the shape of its component, in a form that the library has. */
perigee_status prg_stored_check(const prg_checkpoint *checkpoint, const prg_stored *stored, perigee_error **err);
/* Logical weights found; padding that the component does not have apart. */
int64_t prg_stored_elements(const prg_stored *stored);
int64_t prg_stored_bytes(const prg_stored *stored);

#endif
