/* The greatest of many values without sorting them. Order everywhere: greater value first, then lower index. */
#ifndef PRG_GENERATE_SELECT_H
#define PRG_GENERATE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* A value (no NaN, no -0) and its index in one number: greater keys come first in the order above. */
uint64_t prg_select_key(float value, uint32_t index);
uint32_t prg_select_index(uint64_t key);
float prg_select_value(uint64_t key);

/* Keys of the `k` first of `n` values (k <= n), in no order. `keys` holds 2 * k. Linear time. -0 counts as +0. */
void prg_select_top(const float *values, size_t n, size_t k, uint64_t *keys);
void prg_select_sort(uint64_t *keys, size_t n); /* first in order at index 0 */

/* Memory of prg_select_mass(). */
typedef struct prg_mass_buckets {
    double mass[4096];
} prg_mass_buckets;

/* `scratch` holds `n` floats. Of `n` weights >= 0 the fewest first ones whose sum is at least `target`: sets *floor to
 * the least weight among them and returns how many of those equal to it belong (lowest index first; SIZE_MAX: all).
 * Greater weights all belong. If the sum never gets there, all do: floor 0 and SIZE_MAX. */
size_t prg_select_mass(const float *weights, size_t n, double target, prg_mass_buckets *buckets, float *scratch,
                       float *floor);

#endif
