/* Arbitrary bytes as a safetensors file: an error, or entries that lie in the file and are as large as they say. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "container/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static int64_t read_bytes(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    const bytes *b = user;
    (void)fd;
    if (offset >= b->size) {
        return 0;
    }
    size = size < b->size - (size_t)offset ? size : b->size - (size_t)offset;
    memcpy(buffer, b->data + offset, size);
    return (int64_t)size;
}

static perigee_status check_entry(void *user, const prg_tensor_entry *entry, perigee_error **err) {
    const bytes *b = user;
    (void)err;
    if (entry->offset > b->size || entry->size > b->size - entry->offset || entry->rank > PRG_TENSOR_RANK ||
        entry->name_length >= PRG_TENSOR_NAME || entry->name[entry->name_length] != '\0' ||
        memchr(entry->name, '\0', entry->name_length)) {
        abort();
    }
    unsigned __int128 expected = prg_tensor_type_bytes(entry->type);
    for (uint32_t i = 0; i < entry->rank && expected > 0 && expected <= UINT64_MAX; i++) {
        expected *= entry->shape[i];
    }
    if (prg_tensor_type_bytes(entry->type) > 0 && expected != entry->size) {
        abort();
    }
    return PERIGEE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    prg_allocator *allocator = NULL;
    perigee_error *error = NULL;
    if (prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK) {
        return 0;
    }
    bytes b = {data, size};
    prg_io io = {read_bytes, &b};
    prg_file file = {.path = "fuzz.safetensors", .fd = -1, .size = size, .io = &io};
    perigee_status status = prg_safetensors_read(allocator, &file, check_entry, &b, &error);
    if ((status == PERIGEE_OK) != (error == NULL) || perigee_error_status(error) != status) {
        abort();
    }
    perigee_error_free(error);
    if (allocator->bytes != 0) {
        abort();
    }
    prg_allocator_drop(allocator);
    return 0;
}
