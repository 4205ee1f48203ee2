#include "store/store.h"

#include "base/error.h"
#include "dtype/dtype.h"
#include "store/backend.h"

perigee_status prg_store_new(prg_allocator *allocator, const prg_store_plan *plan, const prg_store_ops *ops, void *own,
                             prg_store **out, perigee_error **err) {
    prg_store *s = prg_calloc(allocator, 1, sizeof *s);
    if (!s || !(s->address = prg_calloc(allocator, plan->part_count, sizeof *s->address))) {
        prg_free(allocator, s);
        return prg_fail_memory(err);
    }
    s->allocator = prg_allocator_hold(allocator);
    s->ops = ops;
    s->own = own;
    s->part_count = plan->part_count;
    s->group_count = plan->group_count;
    *out = s;
    return PERIGEE_OK;
}

void prg_store_free(prg_store *store) {
    if (store) {
        prg_allocator *allocator = store->allocator;
        store->ops->close(store);
        prg_free(allocator, store->address);
        prg_free(allocator, store);
        prg_allocator_drop(allocator);
    }
}

perigee_status prg_store_want(prg_store *store, const uint32_t *groups, size_t n, perigee_error **err) {
    return store->ops->want ? store->ops->want(store, groups, n, err) : PERIGEE_OK;
}

perigee_status prg_store_pin(prg_store *store, uint32_t group, perigee_error **err) {
    if (group >= store->group_count) {
        return prg_fail(err, PERIGEE_E_INTERNAL, "no group %u of weights", (unsigned)group);
    }
    return store->ops->pin ? store->ops->pin(store, group, err) : PERIGEE_OK;
}

void prg_store_release(prg_store *store, uint32_t group) {
    if (store->ops->release) {
        store->ops->release(store, group);
    }
}

const void *prg_store_at(const prg_store *store, uint32_t part) {
    return part < store->part_count ? store->address[part] : NULL;
}

int64_t prg_store_bytes(const prg_store *store) {
    return store->bytes;
}

perigee_matrix prg_store_matrix(const prg_store *store, const prg_weight *weight) {
    const void *scales = weight->scales == UINT32_MAX ? NULL : prg_store_at(store, weight->scales);
    perigee_matrix m = prg_matrix_make(weight->dtype, (size_t)weight->rows, (size_t)weight->cols,
                                       prg_store_at(store, weight->codes), scales);
    m.scale_dtype = weight->scale_dtype;
    return m;
}
