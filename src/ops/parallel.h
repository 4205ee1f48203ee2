/* Splitting an op over the threads of a step. */
#ifndef PRG_OPS_PARALLEL_H
#define PRG_OPS_PARALLEL_H

#include "ops/ops.h"

/* Work that takes less than a few microseconds runs on the calling thread: waking the others costs as much. The unit is
 * about a nanosecond. */
enum { PRG_SMALL_WORK = 8000 };

static inline void prg_parallel(const prg_exec *exec, size_t work, prg_pool_fn fn, void *argument) {
    if (work < PRG_SMALL_WORK) {
        fn(argument, 0, 1);
    } else {
        prg_pool_run(exec->pool, fn, argument);
    }
}

/* The part [first, end) of n that belongs to thread `index` of `count`. */
typedef struct prg_share {
    size_t first, end;
} prg_share;

static inline prg_share prg_share_of(size_t n, size_t index, size_t count) {
    size_t each = n / count, more = n % count;
    size_t first = index * each + (index < more ? index : more);
    return (prg_share){first, first + each + (index < more)};
}

static inline const perigee_kernel_row *prg_plain_row(const prg_exec *exec, perigee_op op) {
    return prg_kernel_table_row(exec->table, op, PERIGEE_DTYPE_NONE);
}

#endif
