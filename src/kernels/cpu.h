/* What this processor has, and the operating system saves. */
#ifndef PRG_KERNELS_CPU_H
#define PRG_KERNELS_CPU_H

#include <stdint.h>

/* Bits of perigee_cpu_feature. */
uint64_t prg_cpu_features(void);

#endif
