/* Which tensors a family has: names, dtypes, shapes and values, in the order of the files. */
#ifndef PERIGEE_WRITER_SYNTH_TENSORS_H
#define PERIGEE_WRITER_SYNTH_TENSORS_H

#include "synth_family.h"
#include "synth_values.h"

typedef struct synth_tensor {
    char name[256];
    const char *dtype;
    size_t rank;
    uint64_t shape[WRITER_MAX_RANK];
    synth_values values;
} synth_tensor;

/* Takes a tensor; false stops the walk. */
typedef bool (*synth_visit)(void *user, const synth_tensor *tensor);

size_t synth_file_count(const synth_family *family);
/* Walk over the tensors of a file (from 0). */
bool synth_walk_file(const synth_family *family, size_t file, synth_visit visit, void *user);

#endif
