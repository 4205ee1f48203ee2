/* A context's own threads. Workers start with the first step, spin briefly between sections of a step, then sleep; a
 * pool that is idle burns no CPU. */
#ifndef PRG_BASE_THREAD_POOL_H
#define PRG_BASE_THREAD_POOL_H

#include "base/alloc.h"

typedef struct prg_pool prg_pool;

/* `threads` >= 1 counts the calling thread. `cpus`: list as "0,2-5" or "". No thread is started yet. */
perigee_status prg_pool_new(prg_allocator *allocator, size_t threads, const char *cpus, prg_pool **out,
                            perigee_error **err);
void prg_pool_free(prg_pool *pool);
size_t prg_pool_threads(const prg_pool *pool);

/* Take the pool for one step, first come first served; starts the threads. leave() from the same thread. */
perigee_status prg_pool_enter(prg_pool *pool, perigee_error **err);
void prg_pool_leave(prg_pool *pool);

/* Run fn(argument, index, count) on all threads, index 0 on the caller; returns when all have returned. Only between
 * enter and leave. fn calls nothing of the host. Floating-point mode of the workers is the library's. */
typedef void (*prg_pool_fn)(void *argument, size_t index, size_t count);
void prg_pool_run(prg_pool *pool, prg_pool_fn fn, void *argument);

#endif
