/* Bytes that grow. Lack of memory is remembered, so that a writer checks once, at its end. */
#ifndef PRG_BASE_BUFFER_H
#define PRG_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

typedef struct prg_buffer {
    prg_allocator *allocator;
    unsigned char *data; /* NULL while nothing was written */
    size_t length;
    size_t capacity;
    bool failed; /* a write was lost */
} prg_buffer;

void prg_buffer_init(prg_buffer *buffer, prg_allocator *allocator);
void prg_buffer_free(prg_buffer *buffer);
void prg_buffer_put(prg_buffer *buffer, const void *bytes, size_t length);
void prg_buffer_puts(prg_buffer *buffer, const char *text);
void prg_buffer_putc(prg_buffer *buffer, char byte);
void prg_buffer_put_int(prg_buffer *buffer, int64_t value);
/* The bytes with a NUL behind (not counted in `length`), valid until the next write; NULL when a write was lost. */
const char *prg_buffer_text(prg_buffer *buffer);

#endif
