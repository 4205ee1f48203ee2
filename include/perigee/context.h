/** @file context.h The context: allocator, log, threads and kernel table that models share. */
#ifndef PERIGEE_CONTEXT_H
#define PERIGEE_CONTEXT_H

#include "perigee/options.h"
#include "perigee/sys/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Owns a thread pool and an immutable kernel table; everything else is made under a context. Counted: models hold it,
 * so handles may be freed in any order. Any thread may use it; steps of all its sessions take turns on its pool.
 */
typedef struct perigee_context perigee_context;
/** Kernel rows to merge into a context's table; see perigee/sys/kernel.h. */
typedef struct perigee_kernel_set perigee_kernel_set;

/** Receives a line of the log (UTF-8, no newline), on a thread that called in. `level` is 1 error … 4 all. */
typedef void (*perigee_log_fn)(int level, const char *message, void *user);
/** Called once when the last handle that holds `user` goes. */
typedef void (*perigee_release_fn)(void *user);

/** Where log lines go. */
typedef struct perigee_log {
    size_t struct_size;         /**< set by the caller to sizeof(perigee_log) */
    perigee_log_fn write;       /**< not NULL */
    void *user;                 /**< handed to write and release */
    perigee_release_fn release; /**< may be NULL */
} perigee_log;

/**
 * Make a context. Every pointer but `out` may be NULL: default options, malloc, no log, built-in kernels. The structs
 * are copied; their `release` is called when the context goes, or before a failed call returns. The threads of the pool
 * start with the first step. A process that is forked after that may free what it has copies of, but not step: with
 * more threads than one that returns PERIGEE_E_STATE; nor may it read traces and checks of kernels. Since 0.1.
 */
PERIGEE_API perigee_status perigee_context_new(const perigee_options *options, const perigee_allocator *allocator,
                                               const perigee_log *log, const perigee_kernel_set *kernels,
                                               perigee_context **out, perigee_error **err);
/** Drop the caller's reference. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_context_free(perigee_context *context);
/** Threads that a step uses, the calling one included. Since 0.1. */
PERIGEE_API size_t perigee_context_threads(const perigee_context *context);

/** One row of the kernel table in use. Strings are borrowed from the context. */
typedef struct perigee_kernel_info {
    size_t struct_size;    /**< set by the caller to sizeof(perigee_kernel_info) */
    const char *name;      /**< as "matmul_bf16_avx512" */
    const char *op;        /**< as "matmul" */
    const char *weight;    /**< stored form it computes from, as "bf16"; "" where there is none */
    const char *isa;       /**< as "avx512" */
    const char *origin;    /**< "built-in", or the path of a plugin */
    const char *numerics;  /**< rows of equal numerics give equal bits */
    const char *precision; /**< "exact", "balanced" or "fast" */
    double error_bound;    /**< of |y - exact| / sqrt(sum (w x)^2); 0 where it does not apply */
    int32_t deterministic; /**< 0 if bits may depend on threads or grouping */
    int32_t in_use;        /**< 1 if this row is the one that is called, 0 if another goes before it */
} perigee_kernel_info;

/** Rows of the table, those that are not called included. Since 0.1. */
PERIGEE_API size_t perigee_context_kernel_count(const perigee_context *context);
/** Describe row `index`. Since 0.1. */
PERIGEE_API perigee_status perigee_context_kernel(const perigee_context *context, size_t index,
                                                  perigee_kernel_info *out, perigee_error **err);

#ifdef __cplusplus
}
#endif

#endif
