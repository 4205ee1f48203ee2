/* Comparison with the scalar rows. */
#ifndef PRG_KERNELS_REFERENCE_H
#define PRG_KERNELS_REFERENCE_H

#include "kernels/watched.h"

/* Do the row and its reference promise the same bits? */
bool prg_same_bits(const prg_watched *f);
/* One value of an output; the first that is off is kept. `allowed` 0: the bits are to be the same. */
void prg_compare_value(prg_comparison *c, float value, float expected, double allowed, const char *output, size_t index,
                       size_t width);
/* Functions of products, packing included. A packed row is followed by the row as it was, so that the comparison finds
 * it: to the row itself, its packed rows are then some places apart. */
void prg_reference_product(prg_watched *f, void *result, void **arguments);
/* Functions of attention that walks over keys. */
void prg_reference_walk(prg_watched *f, void *result, void **arguments);

#endif
