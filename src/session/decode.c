/* A step: tokens of one or many sessions go through the model in passes of bounded size. */
#include "session/session.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "os/machine.h"

enum { TRACE_BYTES = 64 << 20, FEW_RUNS = 32 };

static size_t hidden_of(const perigee_session *s) {
    return (size_t)s->model->config.hidden;
}

perigee_status prg_item_check(const prg_item *item, perigee_error **err) {
    const perigee_session *s = item->session;
    const int64_t vocabulary = s->model->config.vocabulary;
    if (!item->tokens || item->n == 0) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "no tokens");
    }
    if (item->which < PERIGEE_LOGITS_NONE || item->which > PERIGEE_LOGITS_ALL) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "unknown choice of logits: %d", (int)item->which);
    }
    for (size_t i = 0; i < item->n; i++) {
        if (item->tokens[i] < 0 || item->tokens[i] >= vocabulary) {
            return prg_fail(err, PERIGEE_E_TOKEN, "token %zu of the step is %d: the vocabulary has %lld", i,
                            (int)item->tokens[i], (long long)vocabulary);
        }
    }
    if (item->n > s->plan.context - item->start) {
        return prg_fail(err, PERIGEE_E_CONTEXT_FULL, "%zu tokens at position %zu: the context has room for %zu",
                        item->n, item->start, s->plan.context);
    }
    return PERIGEE_OK;
}

static perigee_status reserve_logits(const prg_item *item, perigee_error **err) {
    perigee_session *s = item->session;
    const size_t rows = item->which == PERIGEE_LOGITS_ALL ? item->n : item->which == PERIGEE_LOGITS_LAST;
    if (rows <= s->logits_rows) {
        return PERIGEE_OK;
    }
    prg_allocator *allocator = s->model->context->allocator;
    size_t bytes;
    float *fresh = NULL;
    if (prg_mul(rows, (size_t)s->model->config.vocabulary * sizeof(float), &bytes)) {
        fresh = prg_alloc(allocator, bytes);
    }
    if (!fresh) {
        return prg_fail_memory(err);
    }
    prg_free(allocator, s->logits);
    s->logits = fresh;
    s->logits_rows = rows;
    return PERIGEE_OK;
}

/* A traced session goes in chunks whose trace fits in a buffer: the callback is called when the pool is free again. */
static size_t chunk_of(const perigee_session *s) {
    if (!s->trace) {
        return s->plan.chunk;
    }
    const size_t row = (size_t)s->model->config.layers * hidden_of(s) * sizeof(float);
    const size_t rows = TRACE_BYTES / row;
    return rows < 1 ? 1 : rows < s->plan.chunk ? rows : s->plan.chunk;
}

static perigee_status reserve_trace(const prg_item *item, perigee_error **err) {
    perigee_session *s = item->session;
    const size_t chunk = chunk_of(s), rows = item->n < chunk ? item->n : chunk;
    if (!s->trace || rows <= s->trace_rows) {
        return PERIGEE_OK;
    }
    prg_allocator *allocator = s->model->context->allocator;
    float *fresh = prg_alloc(allocator, rows * (size_t)s->model->config.layers * hidden_of(s) * sizeof *fresh);
    if (!fresh) {
        return prg_fail_memory(err);
    }
    prg_free(allocator, s->trace_values);
    s->trace_values = fresh;
    s->trace_rows = rows;
    return PERIGEE_OK;
}

/* All that a step takes is had before it begins. */
static perigee_status prepare(prg_item *item, perigee_error **err) {
    perigee_session *s = item->session;
    if (!item->again) {
        item->start = s->position;
    }
    perigee_status st = prg_item_check(item, err);
    if (st == PERIGEE_OK) {
        st = reserve_logits(item, err);
    }
    if (st == PERIGEE_OK) {
        st = reserve_trace(item, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_cache_reserve(&s->cache, item->start, item->n, s->position, err);
    }
    return st;
}

static bool unfinished(const prg_item *item) {
    return item->status == PERIGEE_OK && item->done < item->n;
}

/* Share out a pass: a token for every session, then more in their order up to a chunk each while rows are left. Returns
 * the number of rows; *count runs. */
static size_t schedule(prg_item *items, size_t n, size_t *count) {
    size_t rows = 0, room = 0;
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        items[i].scheduled = unfinished(&items[i]);
        rows += items[i].scheduled;
        *count += items[i].scheduled;
        if (items[i].scheduled && chunk_of(items[i].session) > room) {
            room = chunk_of(items[i].session);
        }
    }
    room = room > rows ? room - rows : 0;
    for (size_t i = 0; room > 0 && i < n; i++) {
        if (items[i].scheduled) {
            const size_t left = items[i].n - items[i].done, chunk = chunk_of(items[i].session);
            size_t more = (left < chunk ? left : chunk) - 1;
            more = more < room ? more : room;
            items[i].scheduled += more;
            rows += more;
            room -= more;
        }
    }
    return rows;
}

static bool is_in_place(const prg_item *item) {
    return item->n == 1 && !item->again;
}

static prg_run run_of(const prg_item *item) {
    perigee_session *s = item->session;
    const size_t m = item->scheduled, vocabulary = (size_t)s->model->config.vocabulary;
    prg_run run = {.session = s,
                   .tokens = item->tokens + item->done,
                   .m = m,
                   .first = item->start + item->done,
                   .way = is_in_place(item)               ? PRG_STATE_IN_PLACE
                          : item->again || item->done > 0 ? PRG_STATE_ONWARD
                                                          : PRG_STATE_ACROSS,
                   .keep = item->done > 0,
                   .logits_row = m,
                   .logits = s->logits,
                   .trace = s->trace ? s->trace_values : NULL};
    if (item->which == PERIGEE_LOGITS_ALL) {
        run.logits_row = 0;
        run.logits = s->logits + item->done * vocabulary;
    } else if (item->which == PERIGEE_LOGITS_LAST && item->done + m == item->n) {
        run.logits_row = m - 1;
    }
    return run;
}

/* With the pool free. */
static perigee_status hand_out_trace(const prg_run *run, perigee_error **err) {
    const perigee_session *s = run->session;
    for (size_t i = 0; run->trace && i < run->traced; i++) {
        const float *values = run->trace + i * run->m * hidden_of(s);
        if (s->trace((int64_t)i, (int64_t)run->first, run->m, hidden_of(s), values, s->trace_user) != 0) {
            const prg_where where = {NULL, NULL, -1, (int64_t)i};
            return prg_fail_at(err, PERIGEE_E_CALLBACK, where, "stopped by the trace of layer %zu", i);
        }
    }
    return PERIGEE_OK;
}

static perigee_status pass(perigee_model *model, prg_run *runs, size_t n, size_t rows, perigee_cancel *cancel,
                           perigee_error **err) {
    perigee_context *context = model->context;
    prg_pass_statistics counts = {0};
    void *spare = NULL;
    /* a lone session always asks for its whole chunk, so that the scratch is made once */
    const size_t bytes =
        n == 1 ? runs->session->plan.scratch_bytes
               : prg_pass_scratch(&model->config, context->table, prg_pool_threads(context->pool), rows, n);
    const double asked = prg_os_clock();
    perigee_status st = prg_context_enter(context, bytes, &spare, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    const double began = prg_os_clock();
    st = prg_forward(model, runs, n, cancel, &counts, err);
    prg_context_leave(context, spare);
    const double ended = prg_os_clock();
    for (size_t i = 0; i < n; i++) {
        perigee_statistics *total = &runs[i].session->statistics;
        total->steps++;
        total->seconds += ended - began;
        total->wait_seconds += began - asked;
        total->weight_bytes += counts.weight_bytes;
        total->expert_reads += counts.expert_reads;
        total->cache_hits += counts.expert_reads;
    }
    return st;
}

/* The same failure for another item. */
static perigee_error *copy_error(const perigee_error *error) {
    perigee_error *copy = NULL;
    const prg_where where = {perigee_error_tensor(error), perigee_error_file(error), perigee_error_offset(error),
                             perigee_error_layer(error)};
    prg_fail_at(&copy, perigee_error_status(error), where, "%s", perigee_error_message(error));
    return copy;
}

static void fail(prg_item *item, perigee_status status, perigee_error *error) {
    item->status = status;
    item->error = error;
}

/* The run of an item whose tokens are not taken in. */
static void fail_run(prg_item *item, const prg_run *run, perigee_status status, perigee_error *error) {
    if (run->way == PRG_STATE_IN_PLACE) {
        prg_state_take_back(&item->session->state, run->moved);
    }
    fail(item, status, error);
}

static void succeed(prg_item *item, const prg_run *run) {
    prg_recurrent *state = &item->session->state;
    item->done += item->scheduled;
    if (run->way == PRG_STATE_IN_PLACE) {
        prg_state_commit(state);
    }
    const int at = run->way == PRG_STATE_IN_PLACE ? state->live : !state->live;
    prg_checkpoints_note(item->session, item->start + item->done, state->copy[at]);
}

/* One pass over what is scheduled; items learn of it. */
static void run_pass(perigee_model *model, prg_item *items, size_t n, prg_run *runs, size_t count, size_t rows,
                     perigee_cancel *cancel) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].scheduled > 0) {
            runs[used++] = run_of(&items[i]);
        }
    }
    perigee_error *error = NULL;
    perigee_status st = pass(model, runs, count, rows, cancel, &error);
    used = 0;
    for (size_t i = 0; i < n; i++) {
        prg_item *item = &items[i];
        if (item->scheduled == 0) {
            continue;
        }
        prg_run *run = &runs[used++];
        if (st != PERIGEE_OK) {
            perigee_error_free(run->error);
            fail_run(item, run, st, copy_error(error));
            continue;
        }
        perigee_error *stopped = NULL;
        const perigee_status traced = hand_out_trace(run, &stopped);
        if (run->status != PERIGEE_OK || traced != PERIGEE_OK) {
            const bool own = run->status != PERIGEE_OK;
            perigee_error_free(own ? stopped : run->error);
            fail_run(item, run, own ? run->status : traced, own ? run->error : stopped);
            continue;
        }
        succeed(item, run);
    }
    perigee_error_free(error);
}

/* What was taken in becomes the session's: all of a step, or of a cancelled one the passes that were finished. */
static void finish(prg_item *item) {
    perigee_session *s = item->session;
    const bool cancelled = item->status == PERIGEE_E_CANCELLED;
    if (item->done > 0 && (item->status == PERIGEE_OK || cancelled)) {
        memmove(s->tokens + item->start, item->tokens, item->done * sizeof *s->tokens);
        s->position = item->start + item->done;
        s->statistics.tokens += (int64_t)item->done;
        if (s->state.layers > 0 && !is_in_place(item)) {
            s->state.live = !s->state.live;
        }
    }
    if (item->status != PERIGEE_OK) {
        prg_cache_trim(&s->cache, s->position);
        prg_checkpoints_trim(s, s->position);
    } else if (item->which != PERIGEE_LOGITS_NONE) {
        item->rows = item->which == PERIGEE_LOGITS_ALL ? item->n : 1;
    }
}

static void cancel_all(prg_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (unfinished(&items[i])) {
            perigee_error *error = NULL;
            perigee_status st =
                prg_fail(&error, PERIGEE_E_CANCELLED, "cancelled after %zu of %zu tokens", items[i].done, items[i].n);
            fail(&items[i], st, error);
        }
    }
}

void prg_decode(perigee_model *model, prg_item *items, size_t n, perigee_cancel *cancel) {
    prg_run few[FEW_RUNS], *runs = few;
    prg_allocator *allocator = model->context->allocator;
    if (n > FEW_RUNS) {
        runs = prg_calloc(allocator, n, sizeof *runs);
    }
    for (size_t i = 0; i < n; i++) {
        items[i].rows = items[i].done = items[i].scheduled = 0;
        items[i].error = NULL;
        items[i].status = runs ? prepare(&items[i], &items[i].error) : prg_fail_memory(&items[i].error);
    }
    size_t count = 0;
    for (size_t rows; (rows = schedule(items, n, &count)) > 0;) {
        if (perigee_cancel_triggered(cancel)) {
            cancel_all(items, n);
            break;
        }
        run_pass(model, items, n, runs, count, rows, cancel);
    }
    for (size_t i = 0; i < n; i++) {
        finish(&items[i]);
    }
    if (runs != few) {
        prg_free(allocator, runs);
    }
}
