/* A checkpoint folder: its config, its shards' headers, and whether they agree with the index. */
#ifndef PRG_MODEL_CHECKPOINT_H
#define PRG_MODEL_CHECKPOINT_H

#include "base/log.h"
#include "model/arch.h"
#include "model/tensors.h"

typedef struct prg_checkpoint {
    prg_allocator *allocator;
    const prg_log *log; /* may be NULL */
    const prg_io *io;   /* NULL: the system */
    prg_arena arena;    /* of paths, and of the config */
    prg_config config;
    const char *folder;
    const char **paths, **names; /* [file_count], sorted; empty from a config alone */
    size_t file_count;
    prg_tensors tensors;
} prg_checkpoint;

/* Read config and headers. `path`: a folder. With `config_alone`, a config file or a folder without shards do as well.
 * Close it after a failure too. */
perigee_status prg_checkpoint_open(prg_allocator *allocator, const prg_log *log, const prg_io *io, const char *path,
                                   bool config_alone, prg_checkpoint *out, perigee_error **err);
void prg_checkpoint_close(prg_checkpoint *checkpoint);
/* The names in the folder's model.safetensors.index.json, if there is one, against the tensors in the shards. */
perigee_status prg_checkpoint_check_index(prg_checkpoint *checkpoint, perigee_error **err);
/* The name of a tensor, by reading the header of its file again; "?" if that fails. `name` has PRG_TENSOR_NAME bytes.
 */
void prg_checkpoint_name_of(const prg_checkpoint *checkpoint, const prg_tensor *tensor, char *name);

#endif
