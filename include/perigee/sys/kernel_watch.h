/** @file kernel_watch.h What kernels do: calls and their times, a comparison with the scalar rows, benchmarks. */
#ifndef PERIGEE_SYS_KERNEL_WATCH_H
#define PERIGEE_SYS_KERNEL_WATCH_H

#include "perigee/context.h"
#include "perigee/sys/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Calls of one function of a row with one shape. Strings are borrowed from the context. */
typedef struct perigee_kernel_trace {
    size_t struct_size;   /**< set by the caller to sizeof(perigee_kernel_trace) */
    const char *kernel;   /**< name of the row */
    const char *function; /**< as "multiply": the member of the structs of perigee/sys/kernel.h */
    const char *op;       /**< as "matmul" */
    size_t rows;          /**< of weights; keys of a tile of attention; sources of a mix; 0 where there are none */
    size_t cols;          /**< values of a row of activations */
    size_t tokens;        /**< rows of activations, or of queries */
    int64_t calls;        /**< how often */
    double seconds;       /**< inside the function, of all threads together */
} perigee_kernel_trace;

/**
 * Functions and shapes that were called so far, where the context has the option trace_kernels; else 0. A function has
 * room for 63 shapes; what comes after them counts in one record, with 0 for its sizes. Any thread. Since 0.1.
 */
PERIGEE_API size_t perigee_context_trace_count(const perigee_context *context);
/** Record `index`. Numbers go on while a step runs; records keep their index then only if it brings no new shape.
 *  Any thread. Since 0.1. */
PERIGEE_API perigee_status perigee_context_trace(const perigee_context *context, size_t index,
                                                 perigee_kernel_trace *out, perigee_error **err);

/**
 * What came of running each call through a scalar row too. A value counts as different if its bits are not those of the
 * scalar row and either both rows say that they compute the same bits (`numerics`), or it is further off than the row's
 * error bound (and that of the scalar row) allows: products by |w x| as perigee_kernel_row.error_bound has it, other
 * ops by the largest value of the output, with 1e-4 where the row states no bound. Strings are borrowed from the
 * context.
 */
typedef struct perigee_kernel_check {
    size_t struct_size;    /**< set by the caller to sizeof(perigee_kernel_check) */
    int64_t calls;         /**< that were compared */
    int64_t skipped;       /**< for want of memory */
    int64_t different;     /**< calls with such a value */
    double largest;        /**< largest difference in parts of what is allowed, of values where a bound applies */
    const char *kernel;    /**< the first difference: name of the row; NULL: there is none, and the rest is 0 */
    const char *reference; /**< the scalar row */
    const char *op;        /**< as "matmul" */
    const char *function;  /**< as "multiply" */
    const char *output;    /**< which output, as "y" */
    size_t rows;           /**< sizes as in perigee_kernel_trace */
    size_t cols;           /**< likewise */
    size_t tokens;         /**< likewise */
    size_t index;          /**< of the value in the output, which is taken as [height, width] without gaps */
    size_t width;          /**< of the output */
    double value;          /**< what the row computed */
    double expected;       /**< what the scalar row did */
    double allowed;        /**< difference that the bound allows; 0: the bits were to be the same */
} perigee_kernel_check;

/** Outcome so far. PERIGEE_E_STATE: the context does not have the option check_kernels. Any thread. Since 0.1. */
PERIGEE_API perigee_status perigee_context_check(const perigee_context *context, perigee_kernel_check *out,
                                                 perigee_error **err);

/** How long a row takes for random data, on one thread. */
typedef struct perigee_kernel_timing {
    size_t struct_size;    /**< set by the caller to sizeof(perigee_kernel_timing) */
    size_t rows;           /**< of weights; 0 for ops without */
    size_t cols;           /**< values of a row of activations */
    size_t tokens;         /**< rows of activations */
    double seconds;        /**< of one call, packing included: the median of many */
    int64_t bytes;         /**< that it reads and writes at least once: weights, or inputs and outputs */
    int64_t multiply_adds; /**< of products; 0 for other ops */
} perigee_kernel_timing;

/**
 * Time row `index` of perigee_context_kernel() with `tokens` rows of activations (1 … 256); takes up to half a second
 * and 300 MB; weights come from memory. PERIGEE_E_UNSUPPORTED: HOST rows, which want a host's thread and time. Any
 * thread; nothing of a step runs meanwhile. Since 0.1.
 */
PERIGEE_API perigee_status perigee_context_time_kernel(perigee_context *context, size_t index, size_t tokens,
                                                       perigee_kernel_timing *out, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
