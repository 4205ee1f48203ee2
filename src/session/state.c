#include <string.h>

#include "base/error.h"
#include "os/os.h"
#include "session/session.h"

size_t prg_state_floats(const prg_recurrent *state) {
    return state->floats * state->layers;
}

void prg_state_commit(prg_recurrent *state) {
    const size_t square = prg_kda_square_floats(&state->sizes);
    for (size_t i = 0; i < state->layers; i++) {
        const size_t tail = i * state->floats + square;
        memcpy(state->copy[state->live] + tail, state->copy[!state->live] + tail,
               (state->floats - square) * sizeof(float));
    }
}

void prg_state_take_back(prg_recurrent *state, size_t moved) {
    for (size_t i = 0; i < moved; i++) {
        prg_kda_take_back(&state->sizes, state->copy[state->live] + i * state->floats);
    }
}

static perigee_status make_state(prg_recurrent *state, prg_allocator *allocator, const prg_session_plan *plan,
                                 perigee_error **err) {
    *state = (prg_recurrent){.floats = plan->kda_floats,
                             .layers = plan->kda_layers,
                             .sizes = {.heads = plan->kda_heads, .dim = plan->kda_dim}};
    if (state->layers == 0) {
        return PERIGEE_OK;
    }
    /* the second copy is written before it is read */
    const size_t bytes = prg_state_floats(state) * sizeof(float);
    state->copy[0] = prg_alloc(allocator, bytes);
    state->copy[1] = prg_alloc(allocator, bytes);
    if (!state->copy[0] || !state->copy[1]) {
        return prg_fail_memory(err);
    }
    prg_os_pages_prefer_huge(state->copy[0], bytes);
    prg_os_pages_prefer_huge(state->copy[1], bytes);
    memset(state->copy[0], 0, bytes);
    return PERIGEE_OK;
}

static perigee_status make_checkpoints(prg_checkpoints *checkpoints, prg_allocator *allocator,
                                       const prg_session_plan *plan, perigee_error **err) {
    const size_t bytes = plan->kda_floats * plan->kda_layers * sizeof(float);
    checkpoints->every = plan->checkpoint_every;
    checkpoints->limit = bytes > 0 ? (size_t)plan->checkpoints / bytes : 0;
    const size_t useful = plan->context / plan->checkpoint_every + 1;
    checkpoints->limit = checkpoints->limit < useful ? checkpoints->limit : useful;
    if (checkpoints->limit == 0) {
        return PERIGEE_OK;
    }
    checkpoints->list = prg_calloc(allocator, checkpoints->limit, sizeof *checkpoints->list);
    return checkpoints->list ? PERIGEE_OK : prg_fail_memory(err);
}

perigee_status prg_session_make(perigee_model *model, const prg_session_plan *plan, perigee_session **out,
                                perigee_error **err) {
    prg_allocator *allocator = model->context->allocator;
    perigee_session *s = prg_calloc(allocator, 1, sizeof *s);
    if (!s) {
        return prg_fail_memory(err);
    }
    s->model = prg_model_hold(model);
    s->plan = *plan;
    s->cache.allocator = allocator;
    s->tokens = prg_alloc(allocator, plan->context * sizeof *s->tokens);
    perigee_status st = s->tokens ? PERIGEE_OK : prg_fail_memory(err);
    if (st == PERIGEE_OK) {
        st = prg_cache_init(&s->cache, allocator, &model->config, plan, err);
    }
    if (st == PERIGEE_OK) {
        st = make_state(&s->state, allocator, plan, err);
    }
    if (st == PERIGEE_OK) {
        st = make_checkpoints(&s->checkpoints, allocator, plan, err);
    }
    if (st != PERIGEE_OK) {
        prg_session_free(s);
        return st;
    }
    *out = s;
    return PERIGEE_OK;
}

perigee_status prg_session_new(perigee_model *model, const perigee_options *options, perigee_session **out,
                               perigee_error **err) {
    const perigee_context *context = model->context;
    prg_session_plan plan;
    perigee_status st =
        prg_session_plan_make(&model->config, context->table, prg_pool_threads(context->pool), options, &plan, err);
    return st == PERIGEE_OK ? prg_session_make(model, &plan, out, err) : st;
}

void prg_session_free(perigee_session *session) {
    if (!session) {
        return;
    }
    perigee_model *model = session->model;
    prg_allocator *allocator = model->context->allocator;
    prg_session_set_trace(session, NULL, NULL, NULL);
    prg_checkpoints_trim(session, 0);
    prg_free(allocator, session->checkpoints.list);
    prg_cache_free(&session->cache);
    prg_free(allocator, session->state.copy[0]);
    prg_free(allocator, session->state.copy[1]);
    prg_free(allocator, session->tokens);
    prg_free(allocator, session->logits);
    prg_free(allocator, session);
    perigee_model_free(model);
}

void prg_session_reset(perigee_session *session) {
    session->position = 0;
    prg_checkpoints_trim(session, 0);
    if (session->state.layers > 0) {
        memset(session->state.copy[session->state.live], 0, prg_state_floats(&session->state) * sizeof(float));
    }
}

void prg_session_set_trace(perigee_session *session, perigee_trace_fn trace, void *user, perigee_release_fn release) {
    const perigee_release_fn old_release = session->trace_release;
    void *old_user = session->trace_user;
    session->trace = trace;
    session->trace_user = user;
    session->trace_release = release;
    if (!trace) {
        prg_free(session->model->context->allocator, session->trace_values);
        session->trace_values = NULL;
        session->trace_rows = 0;
    }
    if (old_release) {
        old_release(old_user);
    }
}

size_t prg_session_bytes(const perigee_session *session) {
    const prg_config *config = &session->model->config;
    return sizeof *session + session->plan.context * sizeof *session->tokens + prg_cache_bytes(&session->cache) +
           (2 + session->checkpoints.count) * prg_state_floats(&session->state) * sizeof(float) +
           session->checkpoints.limit * sizeof *session->checkpoints.list +
           session->logits_rows * (size_t)config->vocabulary * sizeof(float) +
           session->trace_rows * (size_t)(config->layers * config->hidden) * sizeof(float);
}
