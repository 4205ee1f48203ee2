#include "base/error.h"
#include "model/model.h"

perigee_context *prg_context_hold(perigee_context *context) {
    atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
    return context;
}

perigee_status prg_context_reserve(perigee_context *context, size_t bytes, perigee_error **err) {
    prg_scratch *scratch = &context->scratch;
    if (scratch->capacity >= bytes) {
        return PERIGEE_OK;
    }
    /* nothing lies in it between passes: the old one need not outlive the new */
    prg_free(context->allocator, scratch->base);
    *scratch = (prg_scratch){0};
    scratch->base = prg_alloc(context->allocator, bytes);
    if (!scratch->base) {
        return prg_fail_memory(err);
    }
    scratch->capacity = bytes;
    return PERIGEE_OK;
}
