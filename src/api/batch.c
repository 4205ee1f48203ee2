#include "perigee/batch.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "base/error.h"
#include "session/session.h"

enum { FEW = 32 };

static perigee_batch_item *item_at(perigee_batch_item *items, size_t index) {
    return (perigee_batch_item *)(void *)((unsigned char *)items + index * items->struct_size);
}

static int by_session(const void *a, const void *b) {
    const perigee_session *x = *(perigee_session *const *)a, *y = *(perigee_session *const *)b;
    return (x > y) - (x < y);
}

/* All is there, of one model, and no session twice. `order` has room for `count`. */
static perigee_status check(perigee_batch_item *items, size_t count, perigee_session **order, perigee_error **err) {
    for (size_t i = 0; i < count; i++) {
        order[i] = item_at(items, i)->session;
        if (!order[i]) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "item %zu has no session", i);
        }
        if (order[i]->model != order[0]->model) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "item %zu: a session of another model", i);
        }
    }
    qsort(order, count, sizeof *order, by_session);
    for (size_t i = 1; i < count; i++) {
        if (order[i] == order[i - 1]) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "a session stands in the batch twice");
        }
    }
    return PERIGEE_OK;
}

static void translate(perigee_batch_item *to, const prg_item *from) {
    to->status = from->status;
    to->error = from->error;
    to->rows = from->rows;
    to->logits = from->rows > 0 ? from->session->logits : NULL;
}

/* The first failure, for the caller's own error. */
static perigee_status first_failure(const prg_item *items, size_t count, perigee_error **err) {
    for (size_t i = 0; i < count; i++) {
        if (items[i].status != PERIGEE_OK) {
            const perigee_error *e = items[i].error;
            const prg_where where = {perigee_error_tensor(e), perigee_error_file(e), perigee_error_offset(e),
                                     perigee_error_layer(e)};
            return prg_fail_at(err, items[i].status, where, "item %zu: %s", i, perigee_error_message(e));
        }
    }
    return PERIGEE_OK;
}

perigee_status perigee_decode_batch(perigee_batch_item *items, size_t count, perigee_cancel *cancel,
                                    perigee_error **err) {
    prg_clear(err);
    if (!items || count == 0 || items->struct_size < sizeof *items || items->struct_size % sizeof(void *) != 0 ||
        !items->session) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "no items, no session, or struct_size is too small");
    }
    perigee_model *model = items->session->model;
    prg_allocator *allocator = model->context->allocator;
    prg_item few[FEW], *own = few;
    perigee_session *few_sessions[FEW], **order = few_sessions;
    perigee_status st = PERIGEE_OK;
    if (count > FEW) {
        own = prg_calloc(allocator, count, sizeof *own);
        order = prg_calloc(allocator, count, sizeof *order);
        st = own && order ? PERIGEE_OK : prg_fail_memory(err);
    }
    if (st == PERIGEE_OK) {
        st = check(items, count, order, err);
    }
    if (st == PERIGEE_OK) {
        for (size_t i = 0; i < count; i++) {
            const perigee_batch_item *in = item_at(items, i);
            own[i] = (prg_item){.session = in->session, .tokens = in->tokens, .n = in->n, .which = in->which};
        }
        perigee_cancel *held = prg_cancel_hold(cancel);
        prg_decode(model, own, count, held);
        perigee_cancel_free(held);
        for (size_t i = 0; i < count; i++) {
            translate(item_at(items, i), &own[i]);
        }
        st = first_failure(own, count, err);
    }
    if (count > FEW) {
        prg_free(allocator, own);
        prg_free(allocator, order);
    }
    return st;
}
