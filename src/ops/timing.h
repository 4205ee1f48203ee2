/* How long a row of the table takes, on the calling thread. */
#ifndef PRG_OPS_TIMING_H
#define PRG_OPS_TIMING_H

#include "base/alloc.h"
#include "perigee/sys/kernel_watch.h"

enum { PRG_TIMING_TOKENS_MOST = 256 };

/* With the floating-point mode of the library. All but struct_size is filled in. */
perigee_status prg_time_kernel(const perigee_kernel_row *row, size_t tokens, perigee_kernel_timing *out,
                               perigee_error **err);

#endif
