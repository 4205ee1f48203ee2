/* Rows of a host's own, counted: by the host and by each table that was made with them. */
#ifndef PRG_KERNELS_KERNEL_SET_H
#define PRG_KERNELS_KERNEL_SET_H

#include "kernels/signature.h"
#include "perigee/sys/kernel_set.h"

typedef struct prg_kernel_set_row {
    perigee_kernel_row row;
    perigee_release_fn release;
    struct prg_kernel_set_row *next; /* in the order in which they were added */
} prg_kernel_set_row;

/* One more reference, which perigee_kernel_set_free() drops; the set is closed from then on. NULL gives NULL. */
const perigee_kernel_set *prg_kernel_set_hold(const perigee_kernel_set *set);
const prg_kernel_set_row *prg_kernel_set_rows(const perigee_kernel_set *set);

/* Copy a row that may be of an older or newer version of the struct. False, and why it can't be taken. */
bool prg_kernel_row_take(const perigee_kernel_row *from, perigee_kernel_row *out, char reason[PRG_REASON_SIZE]);
/* "" for an op that has no name. */
const char *prg_kernel_op_name(uint32_t op);

#endif
