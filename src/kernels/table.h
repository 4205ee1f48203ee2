/* The kernel table of a context: which function computes which op on which stored form. Immutable once made. */
#ifndef PRG_KERNELS_TABLE_H
#define PRG_KERNELS_TABLE_H

#include "base/alloc.h"
#include "kernels/watch.h"
#include "perigee/context.h"
#include "perigee/sys/kernel.h"

typedef struct prg_kernel_table prg_kernel_table;

/* `kernels`: auto, scalar, avx2, avx512, amx, neon: rows of that set and of the ones it builds on. `precision`: exact,
 * balanced, fast. Rows for tiles of AMX are left out where the system refuses tiles. `plugins`: paths separated by
 * colons, or "". `set` may be NULL. A set that this processor can't run: PERIGEE_E_UNSUPPORTED. */
perigee_status prg_kernel_table_new(prg_allocator *allocator, const char *kernels, const char *precision,
                                    const char *plugins, const perigee_kernel_set *set, prg_kernel_table **out,
                                    perigee_error **err);
/* Let all rows count and time their calls, or compare them: PRG_WATCH_…; before the table is in use. */
perigee_status prg_kernel_table_watch(prg_kernel_table *table, unsigned what, perigee_error **err);
/* NULL where nothing is watched. */
prg_watch *prg_kernel_table_watcher(const prg_kernel_table *table);
void prg_kernel_table_free(prg_kernel_table *table);
size_t prg_kernel_table_count(const prg_kernel_table *table);
void prg_kernel_table_info(const prg_kernel_table *table, size_t index, perigee_kernel_info *out);

/* The row in use for an op on a stored form (PERIGEE_DTYPE_NONE for ops without weights). NULL: the form has none of
 * its own, and its rows are decoded to float32 for the row of PERIGEE_DTYPE_F32. */
const perigee_kernel_row *prg_kernel_table_row(const prg_kernel_table *table, uint32_t op, uint32_t dtype);
/* Row `index`, in use or not, as prg_kernel_table_info() counts: for tests and benchmarks. */
const perigee_kernel_row *prg_kernel_table_at(const prg_kernel_table *table, size_t index);

#endif
