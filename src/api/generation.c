#include <math.h>
#include <string.h>

#include "base/cancel.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/utf8.h"
#include "generate/generation.h"
#include "generate/softmax.h"
#include "perigee/state.h"
#include "session/session.h"

const char *perigee_finish_name(perigee_finish finish) {
    static const char *const names[] = {"", "stop", "stop_string", "length", "cancelled", "context_full", "callback"};
    return finish >= 0 && (size_t)finish < sizeof names / sizeof *names ? names[finish] : "";
}

/* ---- options ---- */

static perigee_status no_options(perigee_error **err) {
    return prg_fail(err, PERIGEE_E_ARGUMENT, "options is NULL");
}

perigee_status perigee_generation_options_new(perigee_context *context, perigee_generation_options **out,
                                              perigee_error **err) {
    prg_clear(err);
    if (!context || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL");
    }
    return prg_generation_options_new(context->allocator, out, err);
}

perigee_status perigee_generation_options_set_sampler(perigee_generation_options *options,
                                                      const perigee_sampler *sampler, perigee_error **err) {
    perigee_sampler *copy = NULL;
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    perigee_status st = sampler ? prg_sampler_clone(sampler, &copy, err) : PERIGEE_OK;
    if (st == PERIGEE_OK) {
        perigee_sampler_free(options->sampler);
        options->sampler = copy;
    }
    return st;
}

perigee_status perigee_generation_options_set_constraint(perigee_generation_options *options,
                                                         const perigee_constraint *constraint, perigee_error **err) {
    perigee_constraint *copy = NULL;
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    perigee_status st = constraint ? prg_constraint_clone(constraint, &copy, err) : PERIGEE_OK;
    if (st == PERIGEE_OK) {
        perigee_constraint_free(options->constraint);
        options->constraint = copy;
    }
    return st;
}

perigee_status perigee_generation_options_set_max_tokens(perigee_generation_options *options, int64_t count,
                                                         perigee_error **err) {
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    if (count < 1 && count != -1) {
        return prg_fail(err, PERIGEE_E_RANGE, "%lld tokens", (long long)count);
    }
    options->max_tokens = count;
    return PERIGEE_OK;
}

perigee_status perigee_generation_options_add_stop_id(perigee_generation_options *options, int32_t id,
                                                      perigee_error **err) {
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    if (id < 0) {
        return prg_fail(err, PERIGEE_E_TOKEN, "stop id %d is negative", (int)id);
    }
    return prg_generation_options_add_id(options, id, err);
}

perigee_status perigee_generation_options_set_default_stops(perigee_generation_options *options, int enabled,
                                                            perigee_error **err) {
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    options->default_stops = enabled != 0;
    return PERIGEE_OK;
}

perigee_status perigee_generation_options_add_stop_string(perigee_generation_options *options, const char *text,
                                                          size_t length, perigee_error **err) {
    prg_clear(err);
    if (!options || !text) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "options or text is NULL");
    }
    length = length == SIZE_MAX ? strlen(text) : length;
    if (length < 1 || length > PRG_STOP_LENGTH) {
        return prg_fail(err, PERIGEE_E_RANGE, "a stop string of %zu bytes is not of 1 … %d", length, PRG_STOP_LENGTH);
    }
    size_t bad = prg_utf8_check((const unsigned char *)text, length);
    if (bad < length) {
        return prg_fail_at(err, PERIGEE_E_TEXT, (prg_where){NULL, NULL, (int64_t)bad, -1},
                           "a stop string is not valid UTF-8 at byte %zu", bad);
    }
    return prg_generation_options_add_string(options, text, length, err);
}

perigee_status perigee_generation_options_set_log_probabilities(perigee_generation_options *options, int32_t top,
                                                                perigee_error **err) {
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    if (top < -1 || top > PRG_TOP_LIMIT) {
        return prg_fail(err, PERIGEE_E_RANGE, "%d is not in -1 … %d", (int)top, PRG_TOP_LIMIT);
    }
    options->top = top;
    return PERIGEE_OK;
}

perigee_status perigee_generation_options_set_cancel(perigee_generation_options *options, perigee_cancel *cancel,
                                                     perigee_error **err) {
    prg_clear(err);
    if (!options) {
        return no_options(err);
    }
    perigee_cancel *held = prg_cancel_hold(cancel);
    perigee_cancel_free(options->cancel);
    options->cancel = held;
    return PERIGEE_OK;
}

/* ---- generations over a session ---- */

static perigee_status step(void *user, const int32_t *tokens, size_t n, perigee_logits which, const float **logits,
                           perigee_cancel *cancel, perigee_error **err) {
    size_t rows;
    return perigee_decode_step(user, tokens, n, which, logits, &rows, cancel, err);
}

perigee_status perigee_generation_new(perigee_session *session, const int32_t *prompt, size_t count,
                                      const perigee_generation_options *options, perigee_generation **out,
                                      perigee_error **err) {
    prg_clear(err);
    if (!session || !out || (count > 0 && !prompt)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session, prompt or out is NULL");
    }
    const perigee_model *m = session->model;
    const prg_logit_source source = prg_logit_source_of(session, step);
    const int64_t at = perigee_session_position(session);
    if (count > 0) {
        return prg_generation_new(m->context->allocator, &source, prompt, count, options, out, err);
    }
    if (at == 0) {
        return prg_fail(err, PERIGEE_E_STATE, "no prompt and an empty session");
    }
    perigee_generation *g = NULL;
    perigee_status st =
        prg_generation_new(m->context->allocator, &source, &session->tokens[at - 1], 1, options, &g, err);
    if (st == PERIGEE_OK) {
        st = perigee_session_rewind(session, at - 1, NULL, NULL, err);
    }
    if (st != PERIGEE_OK) {
        perigee_generation_free(g);
        return st;
    }
    *out = g;
    return PERIGEE_OK;
}

perigee_status perigee_generation_next(perigee_generation *generation, perigee_generated *out, perigee_error **err) {
    prg_clear(err);
    if (!generation || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "generation or out is NULL, or struct_size is too small");
    }
    return prg_generation_next(generation, false, out, err);
}

perigee_status perigee_generation_sampler(const perigee_generation *generation, perigee_sampler **out,
                                          perigee_error **err) {
    prg_clear(err);
    if (!generation || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "generation or out is NULL");
    }
    return prg_generation_sampler(generation, out, err);
}

perigee_status perigee_generate(perigee_session *session, const int32_t *prompt, size_t count,
                                const perigee_generation_options *options, perigee_generate_fn callback, void *user,
                                perigee_finish *finish, perigee_error **err) {
    perigee_generation *g = NULL;
    perigee_finish end = PERIGEE_FINISH_NONE;
    perigee_status st = perigee_generation_new(session, prompt, count, options, &g, err);
    while (st == PERIGEE_OK && end == PERIGEE_FINISH_NONE) {
        perigee_generated out = {.struct_size = sizeof out};
        st = prg_generation_next(g, true, &out, err);
        end = out.finish;
        if (st == PERIGEE_OK && callback && callback(&out, user) != 0 && end == PERIGEE_FINISH_NONE) {
            end = PERIGEE_FINISH_CALLBACK;
        }
    }
    perigee_generation_free(g);
    if (st == PERIGEE_OK && finish) {
        *finish = end;
    }
    return st;
}

/* ---- scores ---- */

perigee_status perigee_score(perigee_session *session, const int32_t *ids, size_t count, double *out,
                             perigee_cancel *cancel, perigee_error **err) {
    enum { PIECE = 64, LOGITS_BYTES = 64 << 20 };
    prg_clear(err);
    if (!session || !ids || !out || count < 2) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session, ids or out is NULL, or there are less than two ids");
    }
    const size_t vocabulary = (size_t)session->model->config.vocabulary;
    const size_t piece = prg_max(1, prg_min(PIECE, LOGITS_BYTES / (vocabulary * sizeof(float))));
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= vocabulary) {
            return prg_fail(err, PERIGEE_E_TOKEN, "token %zu is %d: the vocabulary has %zu", i, (int)ids[i],
                            vocabulary);
        }
    }
    int64_t room = perigee_session_context(session) - perigee_session_position(session);
    if ((int64_t)count > room) {
        return prg_fail(err, PERIGEE_E_CONTEXT_FULL, "%zu tokens: the context has room for %lld", count,
                        (long long)room);
    }
    perigee_status st = PERIGEE_OK;
    for (size_t at = 0; st == PERIGEE_OK && at < count; at += piece) {
        const float *logits = NULL;
        size_t n = prg_min(piece, count - at), rows = 0;
        st = perigee_decode_step(session, ids + at, n, PERIGEE_LOGITS_ALL, &logits, &rows, cancel, err);
        for (size_t i = 0; st == PERIGEE_OK && i < n && at + i + 1 < count; i++) {
            st = perigee_log_probabilities(logits + i * vocabulary, vocabulary, &ids[at + i + 1], 1, &out[at + i], err);
        }
    }
    return st;
}
