#include <stdatomic.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/error.h"

struct perigee_cancel {
    atomic_size_t references;
    atomic_int triggered;
};

perigee_status perigee_cancel_new(perigee_cancel **out, perigee_error **err) {
    prg_clear(err);
    if (!out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
    }
    struct perigee_cancel *c = malloc(sizeof *c);
    if (!c) {
        return prg_fail_memory(err);
    }
    atomic_init(&c->references, 1);
    atomic_init(&c->triggered, 0);
    *out = c;
    return PERIGEE_OK;
}

void perigee_cancel_trigger(perigee_cancel *cancel) {
    if (cancel) {
        atomic_store(&cancel->triggered, 1);
    }
}

void perigee_cancel_reset(perigee_cancel *cancel) {
    if (cancel) {
        atomic_store(&cancel->triggered, 0);
    }
}

int perigee_cancel_triggered(const perigee_cancel *cancel) {
    return cancel ? atomic_load(&((perigee_cancel *)(uintptr_t)cancel)->triggered) : 0;
}

perigee_cancel *prg_cancel_hold(perigee_cancel *cancel) {
    if (cancel) {
        atomic_fetch_add(&cancel->references, 1);
    }
    return cancel;
}

void perigee_cancel_free(perigee_cancel *cancel) {
    if (cancel && atomic_fetch_sub(&cancel->references, 1) == 1) {
        free(cancel);
    }
}
