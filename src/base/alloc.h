/* Memory through the host's allocator. Every block is aligned to 64 bytes and knows its size. */
#ifndef PRG_BASE_ALLOC_H
#define PRG_BASE_ALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "perigee/status.h"
#include "perigee/sys/alloc.h"

/* A host's allocator, counted by what holds it (context, models, sessions, generations …). */
typedef struct prg_allocator {
    perigee_allocator host;
    atomic_size_t references;
    atomic_size_t bytes; /* given out now, headers included */
} prg_allocator;

/* `host` NULL: malloc. The struct itself comes from the host too. References: 1. */
perigee_status prg_allocator_new(const perigee_allocator *host, prg_allocator **out, perigee_error **err);
prg_allocator *prg_allocator_hold(prg_allocator *allocator);
void prg_allocator_drop(prg_allocator *allocator);

/* NULL when there is none. Size 0 gives a block of no bytes. Contents undefined. */
void *prg_alloc(prg_allocator *allocator, size_t size);
/* count * size zero bytes; NULL on overflow too. */
void *prg_calloc(prg_allocator *allocator, size_t count, size_t size);
/* Contents kept up to the smaller size; the old block stays valid on failure. `pointer` may be NULL. */
void *prg_realloc(prg_allocator *allocator, void *pointer, size_t size);
void prg_free(prg_allocator *allocator, void *pointer);
/* A copy of `length` bytes with a NUL behind. */
char *prg_strndup(prg_allocator *allocator, const char *text, size_t length);

/* Many small things that go together. */
typedef struct prg_arena {
    prg_allocator *allocator;
    struct prg_arena_block *last;
    size_t bytes; /* taken from the allocator */
} prg_arena;

void prg_arena_init(prg_arena *arena, prg_allocator *allocator);
/* Zeroed, aligned to 16; NULL when there is no memory. */
void *prg_arena_alloc(prg_arena *arena, size_t count, size_t size);
char *prg_arena_strndup(prg_arena *arena, const char *text, size_t length);
void prg_arena_free(prg_arena *arena);

/* Stack-like scratch over one buffer that somebody else owns. */
typedef struct prg_scratch {
    unsigned char *base;
    size_t capacity;
    size_t used;
    size_t peak;
} prg_scratch;

/* Bytes that `count` items of `size` take there: rounded up to 64. */
size_t prg_scratch_bytes(size_t count, size_t size);
/* Aligned to 64; NULL if it does not fit (a fault of the plan, not of the caller). Contents undefined. */
void *prg_scratch_take(prg_scratch *scratch, size_t count, size_t size);

#endif
