/* The rows that are built in: one line of kernel.def each, defined in the file of the kernel. */
#ifndef PRG_KERNELS_ROWS_H
#define PRG_KERNELS_ROWS_H

#include "perigee/sys/kernel.h"

#define PRG_KERNEL(name) extern const perigee_kernel_row prg_##name;
#include "kernels/kernel.def"
#undef PRG_KERNEL

#endif
