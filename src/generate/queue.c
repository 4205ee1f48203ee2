#include "generate/queue.h"

#include <math.h>
#include <string.h>

#include "base/cancel.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "os/machine.h"

/* ---- requests ---- */

static void free_request(perigee_queue *queue, prg_request *r) {
    perigee_generation_free(r->generation);
    prg_session_free(r->session);
    perigee_generation_options_free(r->options);
    prg_free(queue->allocator, r->prompt);
    if (r->release) {
        r->release(r->user);
    }
    prg_free(queue->allocator, r);
}

void prg_queue_remove(perigee_queue *queue, prg_request *request) {
    prg_request **at = &queue->first;
    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    if (request->session) {
        queue->active--;
    } else {
        queue->waiting--;
    }
    free_request(queue, request);
}

perigee_status prg_queue_submit(perigee_queue *queue, const int32_t *prompt, size_t count,
                                const perigee_generation_options *options, prg_request **out, perigee_error **err) {
    size_t bytes;
    prg_request *r = prg_calloc(queue->allocator, 1, sizeof *r);
    if (r && prg_mul(count, sizeof *prompt, &bytes)) {
        r->prompt = prg_alloc(queue->allocator, bytes);
    }
    if (!r || !r->prompt) {
        prg_free(queue->allocator, r);
        return prg_fail_memory(err);
    }
    memcpy(r->prompt, prompt, bytes);
    r->count = count;
    perigee_status st = prg_generation_options_copy(queue->allocator, options, &r->options, err);
    if (st != PERIGEE_OK) {
        free_request(queue, r);
        return st;
    }
    r->number = ++queue->numbers;
    prg_request **at = &queue->first;
    while (*at) {
        at = &(*at)->next;
    }
    *at = r;
    queue->waiting++;
    *out = r;
    return PERIGEE_OK;
}

/* ---- what a generation runs on here: logits are there before it asks ---- */

static perigee_status no_step(void *user, const int32_t *tokens, size_t n, perigee_logits which, const float **logits,
                              perigee_cancel *cancel, perigee_error **err) {
    (void)user;
    (void)tokens;
    (void)n;
    (void)which;
    (void)logits;
    (void)cancel;
    return prg_fail(err, PERIGEE_E_INTERNAL, "a queued generation asked for a step");
}

static perigee_status admit(perigee_queue *queue, prg_request *r, perigee_error **err) {
    perigee_model *m = queue->model;
    perigee_session *session = NULL;
    perigee_status st = prg_session_make(m, &queue->plan, &session, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    const prg_logit_source source = prg_logit_source_of(session, no_step);
    st = prg_generation_new(queue->allocator, &source, r->prompt, r->count, r->options, &r->generation, err);
    if (st != PERIGEE_OK) {
        prg_session_free(session);
        return st;
    }
    r->session = session;
    queue->active++;
    queue->waiting--;
    return PERIGEE_OK;
}

/* ---- telling ---- */

static perigee_generated empty_step(perigee_finish finish) {
    return (perigee_generated){
        .struct_size = sizeof(perigee_generated), .finish = finish, .id = -1, .text = "", .log_probability = NAN};
}

/* True if the request goes on. */
static bool tell(prg_request *r, const perigee_generated *step, const perigee_error *error) {
    const bool stopped = r->callback && r->callback(r->number, step, error, r->user) != 0;
    if (error || step->finish != PERIGEE_FINISH_NONE) {
        return false;
    }
    if (stopped) {
        const perigee_generated end = empty_step(PERIGEE_FINISH_CALLBACK);
        r->callback(r->number, &end, NULL, r->user);
    }
    return !stopped;
}

static void fail(perigee_queue *queue, prg_request *r, perigee_error *error) {
    tell(r, NULL, error);
    perigee_error_free(error);
    prg_queue_remove(queue, r);
}

/* A token, or the end; logits are there or none are needed. */
static void go_on(perigee_queue *queue, prg_request *r) {
    perigee_generated out = {.struct_size = sizeof out};
    perigee_error *error = NULL;
    const perigee_status st = prg_generation_next(r->generation, false, &out, &error);
    if (st != PERIGEE_OK) {
        fail(queue, r, error);
    } else if (!tell(r, &out, NULL)) {
        prg_queue_remove(queue, r);
    }
    perigee_error_free(st == PERIGEE_OK ? error : NULL);
}

/* ---- a step ---- */

/* An end that needs no pass: cancelled, or no room for what is pending. */
static bool is_over(perigee_queue *queue, prg_request *r) {
    perigee_generation *g = r->generation;
    if (r->cancelled) {
        perigee_cancel *held = prg_cancel_hold(queue->triggered);
        perigee_cancel_free(g->options->cancel);
        g->options->cancel = held;
    }
    return perigee_cancel_triggered(g->options->cancel) ||
           g->pending_count - g->pending_done > r->session->plan.context - r->session->position;
}

/* Waiting requests that were cancelled end, and as many as there is room for become active. */
static void admit_waiting(perigee_queue *queue) {
    for (prg_request *r = queue->first, *next; r; r = next) {
        next = r->next;
        if (r->session) {
            continue;
        }
        perigee_error *error = NULL;
        if (r->cancelled || perigee_cancel_triggered(r->options->cancel)) {
            const perigee_generated end = empty_step(PERIGEE_FINISH_CANCELLED);
            tell(r, &end, NULL);
            next = r->next;
            prg_queue_remove(queue, r);
        } else if (queue->active < queue->active_limit && admit(queue, r, &error) != PERIGEE_OK) {
            tell(r, NULL, error);
            next = r->next;
            perigee_error_free(error);
            prg_queue_remove(queue, r);
        }
    }
}

static void end_those_that_are_over(perigee_queue *queue) {
    for (prg_request *r = queue->first, *next; r; r = next) {
        next = r->next;
        if (r->session && is_over(queue, r)) {
            go_on(queue, r);
            next = queue->first; /* the callback may have changed what follows; an ended one is not met again */
        }
    }
}

static bool in_prompt(const prg_request *r) {
    return r->generation->tokens == 0;
}

/* Rows that prompts may have in this pass, all together. */
static size_t prompt_rows(const perigee_queue *queue, size_t generating) {
    const size_t chunk = queue->plan.chunk;
    if (generating == 0) {
        return chunk;
    }
    if (queue->row_seconds <= 0) {
        return 1;
    }
    const double rows = queue->step_seconds / queue->row_seconds - (double)generating;
    return rows < 1 ? 1 : rows > (double)chunk ? chunk : (size_t)rows;
}

/* Fill in the items of a pass; their number. */
static size_t schedule(perigee_queue *queue) {
    size_t generating = 0, prompting = 0, n = 0;
    for (prg_request *r = queue->first; r; r = r->next) {
        generating += r->session && !in_prompt(r);
        prompting += r->session && in_prompt(r);
    }
    const size_t share = prompting > 0 ? prg_max(prompt_rows(queue, generating) / prompting, 1) : 0;
    for (prg_request *r = queue->first; r; r = r->next) {
        if (!r->session) {
            continue;
        }
        const perigee_generation *g = r->generation;
        const size_t left = g->pending_count - g->pending_done;
        r->taken = in_prompt(r) ? prg_min(left, share) : left;
        queue->items[n++] = (prg_item){.session = r->session,
                                       .tokens = g->pending + g->pending_done,
                                       .n = r->taken,
                                       .which = r->taken == left ? PERIGEE_LOGITS_LAST : PERIGEE_LOGITS_NONE};
    }
    return n;
}

static void measure(perigee_queue *queue, double seconds, size_t n) {
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        rows += queue->items[i].n;
    }
    const double each = seconds / (double)rows;
    queue->row_seconds = queue->row_seconds > 0 ? 0.75 * queue->row_seconds + 0.25 * each : each;
}

/* What an item brought its request. */
static void settle(perigee_queue *queue, prg_request *r, const prg_item *item) {
    perigee_generation *g = r->generation;
    if (item->status != PERIGEE_OK) {
        fail(queue, r, item->error);
        return;
    }
    g->pending_done += r->taken;
    g->prompt_tokens += in_prompt(r) ? (int64_t)r->taken : 0;
    if (g->pending_done == g->pending_count) {
        g->logits = r->session->logits;
        go_on(queue, r);
        return;
    }
    perigee_generated progress = empty_step(PERIGEE_FINISH_NONE);
    progress.prompt_tokens = g->prompt_tokens;
    if (!tell(r, &progress, NULL)) {
        prg_queue_remove(queue, r);
    }
}

perigee_status prg_queue_step(perigee_queue *queue, perigee_error **err) {
    if (queue->stepping) {
        return prg_fail(err, PERIGEE_E_STATE, "a step within a step");
    }
    queue->stepping = true;
    admit_waiting(queue);
    end_those_that_are_over(queue);
    const size_t n = schedule(queue);
    if (n > 0) {
        const double began = prg_os_clock();
        prg_decode(queue->model, queue->items, n, NULL);
        measure(queue, prg_os_clock() - began, n);
    }
    /* the requests of the pass stand first and keep their order, whatever callbacks submit behind them */
    prg_request *r = queue->first;
    for (size_t i = 0; i < n; i++) {
        while (r->session != queue->items[i].session) {
            r = r->next;
        }
        prg_request *next = r->next;
        settle(queue, r, &queue->items[i]);
        r = next ? next : queue->first;
    }
    queue->stepping = false;
    return PERIGEE_OK;
}
