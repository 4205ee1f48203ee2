/** @file alloc.h The interface of a host's allocator. */
#ifndef PERIGEE_SYS_ALLOC_H
#define PERIGEE_SYS_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Allocator of a host. It may be called from any thread that calls in, never from threads of the pool. Resident weights
 * come from the system in huge pages, not from here.
 */
typedef struct perigee_allocator {
    size_t struct_size; /**< set by the caller to sizeof(perigee_allocator) */
    /** `size` > 0 bytes aligned to `alignment` (a power of two of at most 4096), or NULL. */
    void *(*allocate)(size_t size, size_t alignment, void *user);
    /** Give back what allocate() returned, with the same size. Never called with NULL. */
    void (*deallocate)(void *pointer, size_t size, void *user);
    void *user;                  /**< handed to the functions */
    void (*release)(void *user); /**< called once when the last handle that holds `user` goes; may be NULL */
} perigee_allocator;

#ifdef __cplusplus
}
#endif

#endif
