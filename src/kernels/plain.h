/* Products by a bare function, which takes activations as they are: what stands around it. */
#ifndef PRG_KERNELS_PLAIN_H
#define PRG_KERNELS_PLAIN_H

#include "perigee/sys/kernel.h"

/* Of a bare function: y[t * ldy + r] = sum over c of w[first + r, c] x[t * ldx + c]. */
typedef void (*prg_plain_fn)(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m,
                             float *y, size_t ldy);

/* Rows are packed by copying; multiply is NULL: prg_plain_multiply() does it. */
extern const perigee_matmul_functions prg_plain_functions;

void prg_plain_multiply(prg_plain_fn function, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                        const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch);

#endif
