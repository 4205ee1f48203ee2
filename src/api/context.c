#include "perigee/context.h"

#include "base/error.h"
#include "base/options.h"
#include "model/model.h"
#include "os/machine.h"

static perigee_status check(const perigee_options *options, const perigee_log *log, perigee_context **out,
                            perigee_error **err) {
    if (!out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
    }
    if (log && (log->struct_size < sizeof *log || !log->write)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "log: struct_size is too small or write is NULL");
    }
    return prg_options_check(options, 1u << PERIGEE_SCOPE_CONTEXT, err);
}

/* Table and pool of a context that has its allocator. */
static perigee_status fill(perigee_context *context, const perigee_options *options, const perigee_kernel_set *kernels,
                           perigee_error **err) {
    const int64_t asked = prg_options_int(options, PERIGEE_OPTION_THREADS);
    const size_t threads = asked > 0 ? (size_t)asked : prg_os_processors("");
    perigee_status st =
        prg_kernel_table_new(context->allocator, prg_options_string(options, PERIGEE_OPTION_KERNELS),
                             prg_options_string(options, PERIGEE_OPTION_PRECISION),
                             prg_options_string(options, PERIGEE_OPTION_PLUGINS), kernels, &context->table, err);
    const unsigned watch = (prg_options_int(options, PERIGEE_OPTION_TRACE_KERNELS) ? PRG_WATCH_TRACE : 0u) |
                           (prg_options_int(options, PERIGEE_OPTION_CHECK_KERNELS) ? PRG_WATCH_CHECK : 0u);
    if (st == PERIGEE_OK && watch) {
        st = prg_kernel_table_watch(context->table, watch, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    return prg_pool_new(context->allocator, threads, prg_options_string(options, PERIGEE_OPTION_CPUS), &context->pool,
                        err);
}

static void destroy(perigee_context *context) {
    prg_allocator *allocator = context->allocator;
    const perigee_release_fn release = context->log_release;
    void *user = context->log.user;
    prg_pool_free(context->pool);
    prg_kernel_table_free(context->table);
    prg_free(allocator, context->scratch.base);
    prg_free(allocator, context);
    prg_allocator_drop(allocator);
    if (release) {
        release(user);
    }
}

perigee_status perigee_context_new(const perigee_options *options, const perigee_allocator *allocator,
                                   const perigee_log *log, const perigee_kernel_set *kernels, perigee_context **out,
                                   perigee_error **err) {
    prg_clear(err);
    prg_allocator *own = NULL;
    perigee_context *context = NULL;
    perigee_status st = check(options, log, out, err);
    if (st == PERIGEE_OK) {
        st = prg_allocator_new(allocator, &own, err);
    }
    if (st == PERIGEE_OK) {
        context = prg_calloc(own, 1, sizeof *context);
        st = context ? PERIGEE_OK : prg_fail_memory(err);
    }
    if (!context) {
        /* what the caller handed over is released by a failed call too */
        if (own) {
            prg_allocator_drop(own);
        } else if (allocator && allocator->struct_size >= sizeof *allocator && allocator->release) {
            allocator->release(allocator->user);
        }
        if (log && log->struct_size >= sizeof *log && log->release) {
            log->release(log->user);
        }
        return st;
    }
    atomic_init(&context->references, 1);
    context->allocator = own;
    if (log) {
        context->log = (prg_log){(int)prg_options_int(options, PERIGEE_OPTION_LOG_LEVEL), log->write, log->user};
        context->log_release = log->release;
    }
    st = fill(context, options, kernels, err);
    if (st != PERIGEE_OK) {
        destroy(context);
        return st;
    }
    *out = context;
    return PERIGEE_OK;
}

void perigee_context_free(perigee_context *context) {
    if (context && atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) == 1) {
        destroy(context);
    }
}

size_t perigee_context_threads(const perigee_context *context) {
    return context ? prg_pool_threads(context->pool) : 0;
}

size_t perigee_context_kernel_count(const perigee_context *context) {
    return context ? prg_kernel_table_count(context->table) : 0;
}

perigee_status perigee_context_kernel(const perigee_context *context, size_t index, perigee_kernel_info *out,
                                      perigee_error **err) {
    prg_clear(err);
    if (!context || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL, or struct_size is too small");
    }
    if (index >= prg_kernel_table_count(context->table)) {
        return prg_fail(err, PERIGEE_E_RANGE, "kernel %zu of %zu", index, prg_kernel_table_count(context->table));
    }
    const size_t struct_size = out->struct_size;
    prg_kernel_table_info(context->table, index, out);
    out->struct_size = struct_size;
    return PERIGEE_OK;
}
