/* The header of a safetensors file: syntax only, read as a stream of entries. */
#ifndef PRG_CONTAINER_SAFETENSORS_H
#define PRG_CONTAINER_SAFETENSORS_H

#include "base/file.h"

typedef enum prg_tensor_type {
    PRG_TENSOR_OTHER, /* a type that this library has no use for */
    PRG_TENSOR_F64,
    PRG_TENSOR_F32,
    PRG_TENSOR_F16,
    PRG_TENSOR_BF16,
    PRG_TENSOR_I64,
    PRG_TENSOR_I32,
    PRG_TENSOR_I16,
    PRG_TENSOR_I8,
    PRG_TENSOR_U8,
    PRG_TENSOR_BOOL,
    PRG_TENSOR_F8_E4M3,
    PRG_TENSOR_F8_E5M2,
    PRG_TENSOR_F8_E8M0
} prg_tensor_type;

enum { PRG_TENSOR_RANK = 8, PRG_TENSOR_NAME = 1024 };

typedef struct prg_tensor_entry {
    char name[PRG_TENSOR_NAME];
    size_t name_length; /* a NUL stands behind, none within */
    prg_tensor_type type;
    uint32_t rank;
    uint64_t shape[PRG_TENSOR_RANK];
    uint64_t offset, size; /* in the file */
} prg_tensor_entry;

/* Takes an entry; a status other than OK ends the read. */
typedef perigee_status (*prg_tensor_handler)(void *user, const prg_tensor_entry *entry, perigee_error **err);

/* As "BF16". */
const char *prg_tensor_type_name(prg_tensor_type type);
/* Bytes of an element; 0 for PRG_TENSOR_OTHER. */
size_t prg_tensor_type_bytes(prg_tensor_type type);

/* Hand out all entries of a file. Sizes agree with shapes, ranges lie in the file and don't overlap; that a name comes
 * twice is the handler's to see. */
perigee_status prg_safetensors_read(prg_allocator *allocator, const prg_file *file, prg_tensor_handler handler,
                                    void *user, perigee_error **err);

#endif
