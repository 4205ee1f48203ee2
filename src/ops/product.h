/* Products inside a section: one thread, one range of rows, no look at the pool. What matmul.c is made of, and what an
 * op that multiplies in passing (attention) calls. */
#ifndef PRG_OPS_PRODUCT_H
#define PRG_OPS_PRODUCT_H

#include <stdbool.h>

#include "dtype/dtype.h"
#include "kernels/table.h"

/* How a stored form is multiplied: by a row of its own, or decoded to float32 for the row of F32. */
typedef struct prg_form {
    const perigee_kernel_row *row;
    bool decode;
} prg_form;

prg_form prg_form_of(const prg_kernel_table *table, uint32_t dtype);
/* The same with a row as exact as float32, whatever the precision of the table. */
prg_form prg_form_exact(const prg_kernel_table *table, uint32_t dtype);

/* Scratch of prg_form_run() for m rows of k activations; a multiple of 64. */
size_t prg_form_scratch(prg_form form, size_t m, size_t k);
/* As perigee_matmul_functions.multiply. */
void prg_form_run(prg_form form, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                  const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch);

/* Scratch of the two below, whatever the stored form: `count` rows of a matrix of `cols` columns, m rows of
 * activations; a multiple of 64. */
size_t prg_product_scratch(const prg_kernel_table *table, size_t count, size_t cols, size_t m);
/* y[t * ldy + r - first] = sum over c of w[r, c] x[t * ldx + c]; a row of the library where the table has a HOST's.
 */
void prg_product(const prg_kernel_table *table, const perigee_matrix *w, size_t first, size_t count, const float *x,
                 size_t ldx, size_t m, float *y, size_t ldy, void *scratch);
/* y[t * ldy + c] = sum over the rows r of x[t * ldx + r - first] w[r, c]. */
void prg_product_transposed(const prg_kernel_table *table, const perigee_matrix *w, size_t first, size_t count,
                            const float *x, size_t ldx, size_t m, float *y, size_t ldy, void *scratch);

#endif
