/* Exponentials and their sums over a row of logits, the same bits on every machine: own polynomials, plain IEEE
 * operations, sums in a fixed order. */
#ifndef PRG_GENERATE_SOFTMAX_H
#define PRG_GENERATE_SOFTMAX_H

#include <stdbool.h>
#include <stddef.h>

/* The greatest of `n` >= 1 values; false, with *where its index, if one is not finite. Copies to `copy` (may be NULL)
 * with -0 as +0, so that equal values have equal bits. */
bool prg_softmax_maximum(const float *values, size_t n, float *copy, float *maximum, size_t *where);
/* weights[i] = exp(values[i] - maximum) in float, error within 2 units in the last place, 0 below -87. The buffer holds
 * `n` rounded up to 16 floats; what is behind `n` becomes 0. Returns the sum, to about float's precision. In place is
 * allowed. */
double prg_softmax_weights(const float *values, size_t n, float maximum, float *weights);
void prg_softmax_scale(float *values, size_t n, float factor);
/* Sum of weights, padded with zeros to 16, in the order of prg_softmax_weights(). */
double prg_softmax_sum(const float *weights, size_t n);
/* Weights below `floor` become 0; padded to 16. */
void prg_softmax_zero_below(float *weights, size_t n, float floor);
/* True if all of 16 weights are below `floor`. */
bool prg_softmax_all_below(const float *weights, float floor);
/* log(sum(exp(values))) in double, error about 1e-15 of the result. `maximum` is the greatest value. */
double prg_softmax_log_sum(const float *values, size_t n, float maximum);

double prg_softmax_exp(double x); /* for x in [-700, 0]; 0 below */
double prg_softmax_ln(double x);  /* for finite x > 0 that is not subnormal */

#endif
