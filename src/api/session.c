#include "session/session.h"

#include "base/cancel.h"
#include "base/error.h"

perigee_status perigee_session_new(perigee_model *model, const perigee_options *options, perigee_session **out,
                                   perigee_error **err) {
    prg_clear(err);
    if (!model || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "model or out is NULL");
    }
    perigee_status st = prg_options_check(options, 1u << PERIGEE_SCOPE_SESSION, err);
    return st == PERIGEE_OK ? prg_session_new(model, options, out, err) : st;
}

void perigee_session_free(perigee_session *session) {
    prg_session_free(session);
}

int64_t perigee_session_position(const perigee_session *session) {
    return session ? (int64_t)session->position : 0;
}

int64_t perigee_session_context(const perigee_session *session) {
    return session ? (int64_t)session->plan.context : 0;
}

size_t perigee_session_vocabulary(const perigee_session *session) {
    return session ? (size_t)session->model->config.vocabulary : 0;
}

void perigee_session_reset(perigee_session *session) {
    if (session) {
        prg_session_reset(session);
    }
}

perigee_status perigee_decode_step(perigee_session *session, const int32_t *tokens, size_t n, perigee_logits which,
                                   const float **logits, size_t *rows, perigee_cancel *cancel, perigee_error **err) {
    prg_clear(err);
    if (logits) {
        *logits = NULL;
    }
    if (rows) {
        *rows = 0;
    }
    if (!session || (!logits && which != PERIGEE_LOGITS_NONE)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or logits is NULL");
    }
    perigee_cancel *held = prg_cancel_hold(cancel);
    prg_item item = {.session = session, .tokens = tokens, .n = n, .which = which};
    prg_decode(session->model, &item, 1, held);
    perigee_cancel_free(held);
    if (item.status != PERIGEE_OK) {
        if (err) {
            *err = item.error;
        } else {
            perigee_error_free(item.error);
        }
        return item.status;
    }
    if (logits && which != PERIGEE_LOGITS_NONE) {
        *logits = session->logits;
    }
    if (rows) {
        *rows = item.rows;
    }
    return PERIGEE_OK;
}

perigee_status perigee_session_statistics(const perigee_session *session, perigee_statistics *out,
                                          perigee_error **err) {
    prg_clear(err);
    if (!session || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or out is NULL, or struct_size is too small");
    }
    const size_t struct_size = out->struct_size;
    *out = session->statistics;
    out->struct_size = struct_size;
    out->memory_bytes = (int64_t)prg_session_bytes(session);
    return PERIGEE_OK;
}

void perigee_session_set_trace(perigee_session *session, perigee_trace_fn trace, void *user,
                               perigee_release_fn release) {
    if (session) {
        prg_session_set_trace(session, trace, user, release);
    }
}
