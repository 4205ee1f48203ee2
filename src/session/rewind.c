/* Fork and rewind. */
#include <string.h>

#include "base/error.h"
#include "session/session.h"

perigee_status prg_session_fork(const perigee_session *session, perigee_session **out, perigee_error **err) {
    perigee_session *s = NULL;
    perigee_status st = prg_session_make(session->model, &session->plan, &s, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    s->position = session->position;
    memcpy(s->tokens, session->tokens, session->position * sizeof *s->tokens);
    prg_cache_share(&s->cache, &session->cache, session->position);
    if (s->state.layers > 0) {
        memcpy(s->state.copy[s->state.live], session->state.copy[session->state.live],
               prg_state_floats(&s->state) * sizeof(float));
    }
    *out = s;
    return PERIGEE_OK;
}

/* Where the recurrent state nearest below `position` stands: a checkpoint, or the empty state at 0. */
static size_t base_of(const perigee_session *session, size_t position, const float **state) {
    const prg_checkpoint *c = prg_checkpoints_find(session, position);
    *state = c ? c->state : NULL;
    return c ? c->position : 0;
}

/* Tokens may be taken in again from `base` on: few enough that a host that asked for a rewind gets one. */
static bool near_enough(const perigee_session *session, size_t base, size_t position) {
    return position - base <= session->checkpoints.every;
}

size_t prg_session_nearest(const perigee_session *session, size_t position) {
    if (session->state.layers == 0 || position == session->position) {
        return position;
    }
    const float *state;
    const size_t base = base_of(session, position, &state);
    return near_enough(session, base, position) ? position : base;
}

size_t prg_session_common(const perigee_session *session, const int32_t *tokens, size_t n) {
    size_t i = 0;
    while (i < n && i < session->position && session->tokens[i] == tokens[i]) {
        i++;
    }
    return i;
}

/* The state at `base` becomes the copy that is not live. */
static void lay_out(perigee_session *session, const float *state) {
    float *to = session->state.copy[!session->state.live];
    const size_t bytes = prg_state_floats(&session->state) * sizeof(float);
    if (state) {
        memcpy(to, state, bytes);
    } else {
        memset(to, 0, bytes);
    }
}

static void settle(perigee_session *session, size_t position) {
    session->position = position;
    prg_cache_trim(&session->cache, position);
    prg_checkpoints_trim(session, position);
}

perigee_status prg_session_rewind(perigee_session *session, size_t position, size_t *nearest, perigee_cancel *cancel,
                                  perigee_error **err) {
    *nearest = prg_session_nearest(session, position);
    if (*nearest != position) {
        return prg_fail(err, PERIGEE_E_STATE,
                        "position %zu can't be had again: the nearest below it is %zu, %zu tokens away", position,
                        *nearest, position - *nearest);
    }
    if (session->state.layers == 0 || position == session->position) {
        settle(session, position);
        return PERIGEE_OK;
    }
    const float *state;
    const size_t base = base_of(session, position, &state);
    lay_out(session, state);
    if (base == position) {
        session->state.live = !session->state.live;
        settle(session, position);
        return PERIGEE_OK;
    }
    prg_item item = {.session = session,
                     .tokens = session->tokens + base,
                     .n = position - base,
                     .which = PERIGEE_LOGITS_NONE,
                     .again = true,
                     .start = base};
    prg_decode(session->model, &item, 1, cancel);
    if (item.status == PERIGEE_OK || item.done > 0) {
        settle(session, session->position);
    }
    if (item.status != PERIGEE_OK) {
        if (err) {
            *err = item.error;
        } else {
            perigee_error_free(item.error);
        }
    }
    return item.status;
}
