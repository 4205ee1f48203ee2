#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"

enum { HEADER = 64, ARENA_BLOCK = 64 * 1024 };

typedef struct block_header {
    size_t size; /* of the payload */
} block_header;

static void *system_allocate(size_t size, size_t alignment, void *user) {
    (void)user;
    void *p = NULL;
    return posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) == 0 ? p : NULL;
}

static void system_deallocate(void *pointer, size_t size, void *user) {
    (void)size;
    (void)user;
    free(pointer);
}

perigee_status prg_allocator_new(const perigee_allocator *host, prg_allocator **out, perigee_error **err) {
    perigee_allocator use = {sizeof use, system_allocate, system_deallocate, NULL, NULL};
    if (host) {
        if (host->struct_size < sizeof *host || !host->allocate || !host->deallocate) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "allocator: struct_size is too small or a function is missing");
        }
        use = *host;
    }
    prg_allocator *a = use.allocate(sizeof *a, 64, use.user);
    if (!a) {
        return prg_fail_memory(err);
    }
    a->host = use;
    atomic_init(&a->references, 1);
    atomic_init(&a->bytes, 0);
    *out = a;
    return PERIGEE_OK;
}

prg_allocator *prg_allocator_hold(prg_allocator *allocator) {
    atomic_fetch_add_explicit(&allocator->references, 1, memory_order_relaxed);
    return allocator;
}

void prg_allocator_drop(prg_allocator *allocator) {
    if (!allocator || atomic_fetch_sub_explicit(&allocator->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    perigee_allocator host = allocator->host;
    host.deallocate(allocator, sizeof *allocator, host.user);
    if (host.release) {
        host.release(host.user);
    }
}

void *prg_alloc(prg_allocator *allocator, size_t size) {
    size_t whole;
    if (!prg_add(size, HEADER, &whole)) {
        return NULL;
    }
    unsigned char *p = allocator->host.allocate(whole, 64, allocator->host.user);
    if (!p) {
        return NULL;
    }
    ((block_header *)(void *)p)->size = size;
    atomic_fetch_add_explicit(&allocator->bytes, whole, memory_order_relaxed);
    return p + HEADER;
}

void *prg_calloc(prg_allocator *allocator, size_t count, size_t size) {
    size_t bytes;
    if (!prg_mul(count, size, &bytes)) {
        return NULL;
    }
    void *p = prg_alloc(allocator, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *prg_realloc(prg_allocator *allocator, void *pointer, size_t size) {
    void *p = prg_alloc(allocator, size);
    if (p && pointer) {
        const block_header *h = (const void *)((const unsigned char *)pointer - HEADER);
        memcpy(p, pointer, prg_min(h->size, size));
        prg_free(allocator, pointer);
    }
    return p;
}

void prg_free(prg_allocator *allocator, void *pointer) {
    if (pointer) {
        unsigned char *p = (unsigned char *)pointer - HEADER;
        size_t whole = ((block_header *)(void *)p)->size + HEADER;
        atomic_fetch_sub_explicit(&allocator->bytes, whole, memory_order_relaxed);
        allocator->host.deallocate(p, whole, allocator->host.user);
    }
}

char *prg_strndup(prg_allocator *allocator, const char *text, size_t length) {
    char *p = length < SIZE_MAX ? prg_alloc(allocator, length + 1) : NULL;
    if (p) {
        memcpy(p, text, length);
        p[length] = 0;
    }
    return p;
}

struct prg_arena_block {
    struct prg_arena_block *before;
    size_t capacity;
    size_t used;
    size_t pad; /* keeps `data` aligned to 16 */
    unsigned char data[];
};

void prg_arena_init(prg_arena *arena, prg_allocator *allocator) {
    *arena = (prg_arena){allocator, NULL, 0};
}

void *prg_arena_alloc(prg_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!prg_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = prg_round_up(bytes, 16);
    struct prg_arena_block *b = arena->last;
    if (!b || b->capacity - b->used < bytes) {
        size_t capacity = prg_max(bytes, ARENA_BLOCK);
        b = prg_alloc(arena->allocator, sizeof *b + capacity);
        if (!b) {
            return NULL;
        }
        b->capacity = capacity;
        b->used = 0;
        b->before = arena->last;
        arena->last = b;
        arena->bytes += sizeof *b + capacity;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return memset(p, 0, bytes);
}

char *prg_arena_strndup(prg_arena *arena, const char *text, size_t length) {
    char *p = length < SIZE_MAX ? prg_arena_alloc(arena, length + 1, 1) : NULL;
    if (p) {
        memcpy(p, text, length);
    }
    return p;
}

void prg_arena_free(prg_arena *arena) {
    for (struct prg_arena_block *b = arena->last; b;) {
        struct prg_arena_block *before = b->before;
        prg_free(arena->allocator, b);
        b = before;
    }
    arena->last = NULL;
    arena->bytes = 0;
}

size_t prg_scratch_bytes(size_t count, size_t size) {
    size_t bytes;
    if (!prg_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return SIZE_MAX / 2;
    }
    return prg_round_up(bytes, 64);
}

void *prg_scratch_take(prg_scratch *scratch, size_t count, size_t size) {
    size_t bytes = prg_scratch_bytes(count, size);
    if (bytes > scratch->capacity - scratch->used) {
        return NULL;
    }
    void *p = scratch->base + scratch->used;
    scratch->used += bytes;
    scratch->peak = prg_max(scratch->peak, scratch->used);
    return p;
}
