#include "perigee/sys/kernel_watch.h"

#include "base/error.h"
#include "base/float_mode.h"
#include "model/model.h"
#include "ops/timing.h"

static prg_watch *watch_of(const perigee_context *context) {
    return context ? prg_kernel_table_watcher(context->table) : NULL;
}

size_t perigee_context_trace_count(const perigee_context *context) {
    prg_watch *watch = watch_of(context);
    return watch ? prg_watch_trace_count(watch) : 0;
}

perigee_status perigee_context_trace(const perigee_context *context, size_t index, perigee_kernel_trace *out,
                                     perigee_error **err) {
    prg_clear(err);
    if (!context || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL, or struct_size is too small");
    }
    prg_watch *watch = watch_of(context);
    if (!watch || !prg_watch_trace_at(watch, index, out)) {
        return prg_fail(err, PERIGEE_E_RANGE, "record %zu of %zu of the trace", index,
                        perigee_context_trace_count(context));
    }
    return PERIGEE_OK;
}

perigee_status perigee_context_check(const perigee_context *context, perigee_kernel_check *out, perigee_error **err) {
    prg_clear(err);
    if (!context || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL, or struct_size is too small");
    }
    prg_watch *watch = watch_of(context);
    if (!watch || !prg_watch_result(watch, out)) {
        return prg_fail(err, PERIGEE_E_STATE, "the context was made without check_kernels");
    }
    return PERIGEE_OK;
}

perigee_status perigee_context_time_kernel(perigee_context *context, size_t index, size_t tokens,
                                           perigee_kernel_timing *out, perigee_error **err) {
    prg_clear(err);
    if (!context || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL, or struct_size is too small");
    }
    if (index >= prg_kernel_table_count(context->table) || tokens < 1 || tokens > PRG_TIMING_TOKENS_MOST) {
        return prg_fail(err, PERIGEE_E_RANGE, "kernel %zu of %zu, %zu rows of activations of %d", index,
                        prg_kernel_table_count(context->table), tokens, PRG_TIMING_TOKENS_MOST);
    }
    perigee_status status = prg_pool_enter(context->pool, err);
    if (status != PERIGEE_OK) {
        return status;
    }
    fenv_t mode;
    prg_float_mode_enter(&mode);
    const size_t struct_size = out->struct_size;
    perigee_kernel_timing timing = {0};
    status = prg_time_kernel(prg_kernel_table_at(context->table, index), tokens, &timing, err);
    prg_float_mode_leave(&mode);
    prg_pool_leave(context->pool);
    if (status == PERIGEE_OK) {
        *out = timing;
        out->struct_size = struct_size;
    }
    return status;
}
