#include "base/error.h"
#include "model/model.h"
#include "os/os.h"

perigee_context *prg_context_hold(perigee_context *context) {
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

perigee_status prg_context_enter(perigee_context *context, size_t bytes, void **spare, perigee_error **err) {
    prg_scratch fresh = {0};
    if (atomic_load(&context->scratch_bytes) < bytes) {
        fresh = (prg_scratch){.base = prg_alloc(context->allocator, bytes), .capacity = bytes};
        if (!fresh.base) {
            return prg_fail_memory(err);
        }
        prg_os_pages_prefer_huge(fresh.base, bytes);
    }
    const perigee_status st = prg_pool_enter(context->pool, err);
    if (st != PERIGEE_OK) {
        prg_free(context->allocator, fresh.base);
        return st;
    }
    /* nothing lies in the old one between passes; another thread may have made a larger one meanwhile */
    if (context->scratch.capacity < bytes) {
        const prg_scratch old = context->scratch;
        context->scratch = fresh;
        atomic_store(&context->scratch_bytes, bytes);
        fresh = old;
    }
    *spare = fresh.base;
    return PERIGEE_OK;
}

void prg_context_leave(perigee_context *context, void *spare) {
    prg_pool_leave(context->pool);
    prg_free(context->allocator, spare);
}
