/* Inside of the watch: what a closure is given, and what the comparison takes of it. */
#ifndef PRG_KERNELS_WATCHED_H
#define PRG_KERNELS_WATCHED_H

#include <pthread.h>

#include "kernels/signature.h"
#include "kernels/watch.h"

enum { PRG_SHAPES = 64, PRG_FUNCTIONS = 5 };

typedef struct prg_shape {
    size_t rows, cols, tokens;
    int64_t calls;
    double seconds;
} prg_shape;

/* One function of one row. */
typedef struct prg_watched {
    prg_watch *watch;
    const perigee_kernel_row *row; /* the original */
    const char *name;
    bool bare;
    size_t slot;
    perigee_kernel_fn function;
    const perigee_kernel_row *reference; /* scalar row that calls are compared with, or NULL */
    prg_call_type type;
    ffi_closure *closure;
    prg_shape shapes[PRG_SHAPES];
    size_t shape_count;
} prg_watched;

/* Call the function itself, and record the call under the sizes of these arguments. */
void prg_watched_forward(prg_watched *f, void *result, void **arguments);
prg_shape prg_watched_shape(const prg_watched *f, void *const *arguments);

/* Memory for a comparison, at a multiple of 64 bytes; NULL if there is none. Any thread; given back by the same size.
 */
typedef struct prg_watch_buffer {
    struct prg_watch_buffer *next;
    size_t size; /* with this head */
} prg_watch_buffer;
void *prg_watch_take(prg_watch *watch, size_t bytes);
void prg_watch_give(prg_watch *watch, void *memory);

/* What one call came to. */
typedef struct prg_comparison {
    bool skipped, different;
    double largest;
    const char *output;
    size_t index, width;
    double value, expected, allowed;
} prg_comparison;
void prg_watch_report(prg_watched *f, prg_shape shape, const prg_comparison *comparison);

/* The scalar row that stands for an op on a stored form; NULL if the op has none. One of another dtype (F32) takes
 * decoded weights. */
const perigee_kernel_row *prg_reference_of(const perigee_kernel_row *row);
/* In place of forward. */
void prg_reference_call(prg_watched *f, void *result, void **arguments);

#endif
