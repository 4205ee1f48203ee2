/* All tensors of a checkpoint in a compact form: names are kept as hashes, so that half a million of them take a few
 * tens of megabytes. */
#ifndef PRG_MODEL_TENSORS_H
#define PRG_MODEL_TENSORS_H

#include "container/safetensors.h"

enum { PRG_TENSOR_KEPT_RANK = 4 };

typedef struct prg_tensor {
    uint64_t name; /* hash of the name without the prefix of the text model */
    uint64_t offset, size;
    uint64_t shape[PRG_TENSOR_KEPT_RANK]; /* 1 behind the rank */
    uint32_t file;
    uint8_t type; /* prg_tensor_type */
    uint8_t rank;
    bool text;    /* may belong to the text model */
    bool indexed; /* the index names it */
    bool used;
} prg_tensor;

typedef struct prg_tensors {
    prg_allocator *allocator;
    prg_tensor *items;
    size_t count, capacity;
    uint64_t *table; /* upper half of a name's hash and index + 1, or 0 */
    size_t slots;
} prg_tensors;

void prg_tensors_init(prg_tensors *tensors, prg_allocator *allocator);
void prg_tensors_free(prg_tensors *tensors);
/* The hash of a name, `language_model.` left out. */
uint64_t prg_tensor_hash(const char *name, size_t length);
/* False for what belongs to the vision tower and for buffers that are computed anew. */
bool prg_tensor_is_text(const char *name, size_t length);
prg_tensor *prg_tensors_find(const prg_tensors *tensors, uint64_t name);
/* The name must be new: prg_tensors_find() says. */
perigee_status prg_tensors_add(prg_tensors *tensors, const prg_tensor_entry *entry, uint32_t file, perigee_error **err);
/* Elements of a tensor. */
uint64_t prg_tensor_elements(const prg_tensor *tensor);

#endif
