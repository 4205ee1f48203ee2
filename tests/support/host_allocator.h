/* A host's allocator that counts, and fails when told to. */
#ifndef PRG_TESTS_HOST_ALLOCATOR_H
#define PRG_TESTS_HOST_ALLOCATOR_H

#include <stdatomic.h>
#include <stdlib.h>

#include "perigee/sys/alloc.h"

typedef struct host {
    atomic_llong bytes;   /* given out now */
    atomic_llong calls;   /* so far */
    atomic_llong fail_at; /* the call that fails; 0: none */
    atomic_int released;
} host;

static inline void *host_allocate(size_t size, size_t alignment, void *user) {
    host *h = user;
    if (atomic_fetch_add(&h->calls, 1) + 1 == atomic_load(&h->fail_at)) {
        return NULL;
    }
    void *p = NULL;
    if (posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) != 0) {
        return NULL;
    }
    atomic_fetch_add(&h->bytes, (long long)size);
    return p;
}

static inline void host_deallocate(void *pointer, size_t size, void *user) {
    host *h = user;
    atomic_fetch_sub(&h->bytes, (long long)size);
    free(pointer);
}

static inline void host_release(void *user) {
    atomic_fetch_add(&((host *)user)->released, 1);
}

static inline perigee_allocator host_allocator(host *h) {
    return (perigee_allocator){sizeof(perigee_allocator), host_allocate, host_deallocate, h, host_release};
}

#endif
