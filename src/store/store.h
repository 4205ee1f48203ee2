/* Where weights are while a model lives. A store holds parts (byte ranges of files) in groups: what a layer needs at
 * once. A layer pins a group before it computes and releases it after, and learns nothing of where the bytes come from.
 */
#ifndef PRG_STORE_STORE_H
#define PRG_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "perigee/sys/kernel.h"

#define PRG_PART_MADE UINT32_MAX

/* A byte range of a file, or of no file: filled by a conversion. */
typedef struct prg_part {
    uint32_t file; /* or PRG_PART_MADE */
    uint32_t group;
    uint64_t offset;
    uint64_t size;
} prg_part;

/* A matrix of floats in a file that is held as Q8_0. */
typedef struct prg_conversion {
    uint32_t file;
    uint32_t dtype; /* in the file: F32, F16 or BF16 */
    uint64_t offset;
    uint64_t rows, cols;
    uint32_t codes, scales; /* parts */
} prg_conversion;

typedef struct prg_store prg_store;

/* What a store is made of; copied. */
typedef struct prg_store_plan {
    const char *const *files;
    size_t file_count;
    const prg_part *parts;
    size_t part_count;
    size_t group_count;
    const prg_io *io; /* NULL: the system; borrowed while the store lives */
    const prg_conversion *conversions;
    size_t conversion_count; /* 0 for a mapped store */
} prg_store_plan;

typedef struct prg_load_control {
    int (*progress)(int64_t done, int64_t total, void *user); /* on the calling thread; may be NULL */
    void *user;
    perigee_cancel *cancel;
} prg_load_control;

/* Resident: all parts are read once, by several threads, into aligned huge-page memory. What is converted passes
 * through a buffer of each thread. A weight that is not finite, or too large for Q8_0: PERIGEE_E_TENSOR. */
perigee_status prg_store_open_resident(prg_allocator *allocator, const prg_store_plan *plan, size_t threads,
                                       const prg_load_control *control, prg_store **out, perigee_error **err);
/* Bytes that a resident store of these parts takes. */
int64_t prg_store_resident_bytes(const prg_part *parts, size_t count);
/* Mapped: parts lie in read-only maps of the files. */
perigee_status prg_store_open_mapped(prg_allocator *allocator, const prg_store_plan *plan, prg_store **out,
                                     perigee_error **err);
void prg_store_free(prg_store *store);

/* Say that groups will be pinned soon, in this order; returns at once. */
perigee_status prg_store_want(prg_store *store, const uint32_t *groups, size_t n, perigee_error **err);
/* Make the bytes of a group stay until release; waits for them if need be. Pins are counted. */
perigee_status prg_store_pin(prg_store *store, uint32_t group, perigee_error **err);
void prg_store_release(prg_store *store, uint32_t group);
/* Start of a part whose group is pinned. */
const void *prg_store_at(const prg_store *store, uint32_t part);
/* Bytes of memory that the store holds for weights. */
int64_t prg_store_bytes(const prg_store *store);

/* A matrix as bound: which parts hold it. Names are gone. */
typedef struct prg_weight {
    uint32_t dtype;  /* perigee_dtype; PERIGEE_DTYPE_NONE: the model has no such matrix */
    uint32_t codes;  /* part */
    uint32_t scales; /* part, or UINT32_MAX */
    uint32_t scale_dtype;
    uint64_t rows, cols;
} prg_weight;

/* The matrix of a weight whose group is pinned. */
perigee_matrix prg_store_matrix(const prg_store *store, const prg_weight *weight);

#endif
