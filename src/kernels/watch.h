/* Rows that count, time and compare their calls: copies of rows whose functions are closures around the functions of
 * the originals. */
#ifndef PRG_KERNELS_WATCH_H
#define PRG_KERNELS_WATCH_H

#include "base/alloc.h"
#include "perigee/sys/kernel_watch.h"

typedef struct prg_watch prg_watch;

enum { PRG_WATCH_TRACE = 1, PRG_WATCH_CHECK = 2 };

/* Room for `rows` rows. `what`: PRG_WATCH_… */
perigee_status prg_watch_new(prg_allocator *allocator, unsigned what, size_t rows, prg_watch **out,
                             perigee_error **err);
void prg_watch_free(prg_watch *watch);
/* The copy of a row, which must outlive the watch. */
perigee_status prg_watch_row(prg_watch *watch, const perigee_kernel_row *row, const perigee_kernel_row **out,
                             perigee_error **err);

size_t prg_watch_trace_count(prg_watch *watch);
/* False: there is no such record. All but struct_size is filled in. */
bool prg_watch_trace_at(prg_watch *watch, size_t index, perigee_kernel_trace *out);
/* False: the watch does not compare. */
bool prg_watch_result(prg_watch *watch, perigee_kernel_check *out);

#endif
