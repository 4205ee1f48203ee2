/** @file kernel_set.h Kernels of a host's own: rows to merge into the table of a context. */
#ifndef PERIGEE_SYS_KERNEL_SET_H
#define PERIGEE_SYS_KERNEL_SET_H

#include "perigee/context.h"
#include "perigee/sys/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Make an empty set. One thread at a time. Since 0.1. */
PERIGEE_API perigee_status perigee_kernel_set_new(perigee_kernel_set **out, perigee_error **err);
/**
 * Add a row; it and its strings are copied. `release` (may be NULL) gets row->user when the set and the last context
 * that was made with it are gone, and before a failed call returns. A set that a context was made with grows no more:
 * PERIGEE_E_STATE. Since 0.1.
 */
PERIGEE_API perigee_status perigee_kernel_set_add(perigee_kernel_set *set, const perigee_kernel_row *row,
                                                  perigee_release_fn release, perigee_error **err);
/** Drop the caller's reference. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_kernel_set_free(perigee_kernel_set *set);

#ifdef __cplusplus
}
#endif

#endif
