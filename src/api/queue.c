#include "perigee/queue.h"

#include <math.h>

#include "base/error.h"
#include "base/options.h"
#include "generate/queue.h"

perigee_status perigee_queue_new(perigee_model *model, const perigee_options *options, size_t active,
                                 perigee_queue **out, perigee_error **err) {
    prg_clear(err);
    if (!model || !out || active < 1 || active > 65536) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "model or out is NULL, or active is not of 1 … 65536");
    }
    perigee_status st = prg_options_check(options, 1u << PERIGEE_SCOPE_SESSION, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    prg_allocator *allocator = model->context->allocator;
    perigee_queue *q = prg_calloc(allocator, 1, sizeof *q);
    if (!q) {
        return prg_fail_memory(err);
    }
    q->model = prg_model_hold(model);
    q->allocator = allocator;
    q->active_limit = active;
    q->step_seconds = 0.1;
    q->items = prg_calloc(allocator, active, sizeof *q->items);
    const perigee_context *context = model->context;
    st = q->items ? prg_session_plan_make(&model->config, context->table, prg_pool_threads(context->pool), options,
                                          &q->plan, err)
                  : prg_fail_memory(err);
    if (st == PERIGEE_OK) {
        st = perigee_cancel_new(&q->triggered, err);
    }
    if (st != PERIGEE_OK) {
        perigee_queue_free(q);
        return st;
    }
    perigee_cancel_trigger(q->triggered);
    *out = q;
    return PERIGEE_OK;
}

void perigee_queue_free(perigee_queue *queue) {
    if (!queue) {
        return;
    }
    while (queue->first) {
        prg_queue_remove(queue, queue->first);
    }
    perigee_model *model = queue->model;
    perigee_cancel_free(queue->triggered);
    prg_free(queue->allocator, queue->items);
    prg_free(queue->allocator, queue);
    perigee_model_free(model);
}

perigee_status perigee_queue_set_step_seconds(perigee_queue *queue, double seconds, perigee_error **err) {
    prg_clear(err);
    if (!queue || !(seconds > 0) || !isfinite(seconds)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "queue is NULL, or seconds is not above 0");
    }
    queue->step_seconds = seconds;
    return PERIGEE_OK;
}

perigee_status perigee_queue_submit(perigee_queue *queue, const int32_t *prompt, size_t count,
                                    const perigee_generation_options *options, perigee_queue_fn callback, void *user,
                                    perigee_release_fn release, int64_t *request, perigee_error **err) {
    prg_clear(err);
    prg_request *made = NULL;
    perigee_status st = !queue || !prompt || count == 0
                            ? prg_fail(err, PERIGEE_E_ARGUMENT, "queue or prompt is NULL, or the prompt is empty")
                            : prg_queue_submit(queue, prompt, count, options, &made, err);
    if (st != PERIGEE_OK) {
        if (release) {
            release(user);
        }
        return st;
    }
    made->callback = callback;
    made->user = user;
    made->release = release;
    if (request) {
        *request = made->number;
    }
    return PERIGEE_OK;
}

perigee_status perigee_queue_cancel(perigee_queue *queue, int64_t request, perigee_error **err) {
    prg_clear(err);
    if (!queue) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "queue is NULL");
    }
    for (prg_request *r = queue->first; r; r = r->next) {
        if (r->number == request) {
            r->cancelled = true;
            return PERIGEE_OK;
        }
    }
    return prg_fail(err, PERIGEE_E_NOT_FOUND, "no request %lld", (long long)request);
}

perigee_status perigee_queue_step(perigee_queue *queue, size_t *left, perigee_error **err) {
    prg_clear(err);
    if (!queue) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "queue is NULL");
    }
    const perigee_status st = prg_queue_step(queue, err);
    if (left) {
        *left = queue->active + queue->waiting;
    }
    return st;
}
