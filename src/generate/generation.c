#include "generate/generation.h"

#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "generate/select.h"
#include "generate/softmax.h"
#include "os/machine.h"
#include "session/session.h"
#include "text/tokenizer.h"

static int64_t position_of(void *user) {
    const perigee_session *session = user;
    return (int64_t)session->position;
}

prg_logit_source prg_logit_source_of(perigee_session *session, prg_logit_step step) {
    const perigee_model *m = session->model;
    return (prg_logit_source){.user = session,
                              .step = step,
                              .position = position_of,
                              .context = (int64_t)session->plan.context,
                              .vocabulary = (size_t)m->config.vocabulary,
                              .chunk = session->plan.chunk,
                              .tokenizer = m->tokenizer,
                              .end_ids = m->config.end_ids,
                              .end_count = m->config.end_count,
                              .clock = prg_os_clock};
}

void perigee_generation_free(perigee_generation *generation) {
    if (generation) {
        prg_allocator *a = generation->allocator;
        perigee_generation_options_free(generation->options);
        perigee_decoder_free(generation->decoder);
        if (generation->filter.allocator) {
            prg_stop_free(&generation->filter);
        }
        prg_free(a, generation->pending);
        prg_free(a, generation->top_ids);
        prg_free(a, generation->top_values);
        prg_free(a, generation->keys);
        prg_free(a, generation);
        prg_allocator_drop(a);
    }
}

static perigee_status add_ends(perigee_generation_options *o, const int32_t *ids, size_t count, perigee_error **err) {
    perigee_status st = PERIGEE_OK;
    for (size_t i = 0; st == PERIGEE_OK && i < count; i++) {
        st = prg_generation_options_add_id(o, ids[i], err);
    }
    return st;
}

static perigee_status prepare(perigee_generation *g, const int32_t *prompt, size_t count, perigee_error **err) {
    const prg_logit_source *s = &g->source;
    perigee_generation_options *o = g->options;
    perigee_status st = PERIGEE_OK;
    if (o->default_stops) {
        st = add_ends(o, s->end_ids, s->end_count, err);
        if (st == PERIGEE_OK && s->tokenizer) {
            st = add_ends(o, s->tokenizer->end_ids, s->tokenizer->end_count, err);
        }
    }
    if (st == PERIGEE_OK && !o->sampler) {
        st = prg_sampler_new(g->allocator, &o->sampler, err);
    }
    if (st == PERIGEE_OK && s->tokenizer) {
        st = perigee_decoder_new(s->tokenizer, PERIGEE_DECODE_SKIP_SPECIAL, &g->decoder, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    if (o->constraint) {
        prg_constraint_set_ends(o->constraint, o->stop_ids, o->stop_id_count);
    }
    g->filter = (prg_stop_filter){g->allocator, o->stops, o->stop_count, NULL, 0, 0, 0};
    size_t top = o->top > 0 ? (size_t)prg_min((size_t)o->top, s->vocabulary) : 0;
    o->top = o->top > 0 ? (int32_t)top : o->top;
    g->pending = prg_calloc(g->allocator, count, sizeof *g->pending);
    g->top_ids = prg_calloc(g->allocator, top, sizeof *g->top_ids);
    g->top_values = prg_calloc(g->allocator, top, sizeof *g->top_values);
    g->keys = prg_calloc(g->allocator, 2 * top, sizeof *g->keys);
    if (!g->pending || !g->top_ids || !g->top_values || !g->keys) {
        return prg_fail_memory(err);
    }
    memcpy(g->pending, prompt, count * sizeof *prompt);
    g->pending_count = count;
    prg_sampler_accept(o->sampler, prompt, count);
    return PERIGEE_OK;
}

perigee_status prg_generation_new(prg_allocator *allocator, const prg_logit_source *source, const int32_t *prompt,
                                  size_t count, const perigee_generation_options *options, perigee_generation **out,
                                  perigee_error **err) {
    for (size_t i = 0; i < count; i++) {
        if (prompt[i] < 0 || (size_t)prompt[i] >= source->vocabulary) {
            return prg_fail(err, PERIGEE_E_TOKEN, "token %zu of the prompt is %d: the vocabulary has %zu", i,
                            (int)prompt[i], source->vocabulary);
        }
    }
    int64_t room = source->context - source->position(source->user);
    if (count > (size_t)(room > 0 ? room : 0)) {
        return prg_fail(err, PERIGEE_E_CONTEXT_FULL, "a prompt of %zu tokens: the context has room for %lld", count,
                        (long long)room);
    }
    if (options && options->stop_count > 0 && !source->tokenizer) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "stop strings need a tokenizer");
    }
    perigee_generation *g = prg_calloc(allocator, 1, sizeof *g);
    if (!g) {
        return prg_fail_memory(err);
    }
    g->allocator = prg_allocator_hold(allocator);
    g->source = *source;
    g->chosen = -1;
    perigee_status st = prg_generation_options_copy(allocator, options, &g->options, err);
    if (st == PERIGEE_OK) {
        st = prepare(g, prompt, count, err);
    }
    if (st != PERIGEE_OK) {
        perigee_generation_free(g);
        return st;
    }
    *out = g;
    return PERIGEE_OK;
}

/* ---- a step ---- */

/* Take in the next chunk of what is pending. With the last one come the logits. */
static perigee_status take_in(perigee_generation *g, perigee_finish *end, perigee_error **err) {
    const prg_logit_source *s = &g->source;
    size_t left = g->pending_count - g->pending_done, n = prg_min(left, prg_max(s->chunk, 1));
    if (s->position(s->user) + (int64_t)left > s->context) {
        *end = PERIGEE_FINISH_CONTEXT_FULL;
        return PERIGEE_OK;
    }
    if (perigee_cancel_triggered(g->options->cancel)) {
        *end = PERIGEE_FINISH_CANCELLED;
        return PERIGEE_OK;
    }
    int64_t before = s->position(s->user);
    const float *logits = NULL;
    perigee_status st =
        s->step(s->user, g->pending + g->pending_done, n, n == left ? PERIGEE_LOGITS_LAST : PERIGEE_LOGITS_NONE,
                &logits, g->options->cancel, err);
    /* A cancelled step keeps the chunks that it finished. */
    size_t done = st == PERIGEE_OK ? n : (size_t)(s->position(s->user) - before);
    g->pending_done += done;
    g->prompt_tokens += g->tokens == 0 ? (int64_t)done : 0;
    g->logits = st == PERIGEE_OK && n == left ? logits : NULL;
    if (st == PERIGEE_E_CANCELLED) {
        if (err) {
            perigee_error_free(*err);
            *err = NULL;
        }
        *end = PERIGEE_FINISH_CANCELLED;
        return PERIGEE_OK;
    }
    return st;
}

static void score_top(perigee_generation *g, float maximum) {
    const size_t n = g->source.vocabulary, top = g->options->top > 0 ? (size_t)g->options->top : 0;
    double sum = prg_softmax_log_sum(g->logits, n, maximum);
    g->log_probability = (double)g->logits[g->chosen] - sum;
    prg_select_top(g->logits, n, top, g->keys);
    prg_select_sort(g->keys, top);
    for (size_t i = 0; i < top; i++) {
        g->top_ids[i] = (int32_t)prg_select_index(g->keys[i]);
        g->top_values[i] = (double)g->logits[g->top_ids[i]] - sum;
    }
}

static void find_top(perigee_generation *g, float maximum) {
    fenv_t host;
    prg_float_mode_enter(&host);
    score_top(g, maximum);
    prg_float_mode_leave(&host);
}

/* Choose a token; sampler and constraint move over it together or not at all. */
static perigee_status choose(perigee_generation *g, perigee_error **err) {
    perigee_generation_options *o = g->options;
    const uint64_t *allowed = NULL;
    size_t bits = 0;
    int32_t id = -1;
    float maximum = 0;
    size_t where;
    perigee_status st = PERIGEE_OK;
    if (o->constraint) {
        st = prg_constraint_allowed(o->constraint, &allowed, err);
        bits = prg_constraint_vocabulary(o->constraint);
    }
    const uint64_t counter = o->sampler->counter;
    if (st == PERIGEE_OK) {
        st = prg_sampler_sample(o->sampler, g->logits, g->source.vocabulary, allowed, bits, &id, err);
    }
    if (st == PERIGEE_OK && o->constraint) {
        st = prg_constraint_accept(o->constraint, id, err);
        o->sampler->counter = st == PERIGEE_OK ? o->sampler->counter : counter;
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    prg_sampler_accept(o->sampler, &id, 1);
    g->chosen = id;
    g->decoded = false;
    g->log_probability = NAN;
    if (o->top >= 0 && prg_softmax_maximum(g->logits, g->source.vocabulary, NULL, &maximum, &where)) {
        find_top(g, maximum);
    }
    g->logits = NULL;
    return PERIGEE_OK;
}

static bool is_stop(const perigee_generation_options *o, int32_t id) {
    for (size_t i = 0; i < o->stop_id_count; i++) {
        if (o->stop_ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* In a constrained text a stop id is an end only where the text is complete; else it is a token like others. */
static bool ends(const perigee_generation *g) {
    const perigee_constraint *c = g->options->constraint;
    return g->chosen >= 0 && is_stop(g->options, g->chosen) && (!c || c->ended);
}

/* The text that the token, or at the end what was held back, makes certain. A repeated call goes on where it failed. */
static perigee_status give_text(perigee_generation *g, perigee_finish finish, perigee_generated *out,
                                perigee_error **err) {
    const char *piece = "";
    size_t length = 0;
    perigee_status st = PERIGEE_OK;
    if (!g->decoder) {
        g->finish = finish;
        return st;
    }
    if (!g->decoded) {
        bool has_text = g->chosen >= 0 && !ends(g) && g->chosen < prg_tokenizer_vocabulary(g->source.tokenizer);
        if (has_text) {
            st = perigee_decoder_push(g->decoder, g->chosen, &piece, &length, err);
        }
        if (st == PERIGEE_OK) {
            st = prg_stop_append(&g->filter, piece, length, err);
        }
        g->decoded = st == PERIGEE_OK;
    }
    if (st == PERIGEE_OK && finish != PERIGEE_FINISH_NONE && !g->flushed) {
        st = perigee_decoder_flush(g->decoder, &piece, &length, err);
        if (st == PERIGEE_OK) {
            st = prg_stop_append(&g->filter, piece, length, err);
        }
        g->flushed = st == PERIGEE_OK;
    }
    if (st == PERIGEE_OK) {
        bool found = prg_stop_take(&g->filter, finish != PERIGEE_FINISH_NONE, &out->text, &out->text_length);
        g->finish = found ? PERIGEE_FINISH_STOP_STRING : finish;
    }
    return st;
}

static void fill_in(const perigee_generation *g, double begin, perigee_generated *out) {
    out->finish = g->finish;
    out->seconds = g->source.clock() - begin;
    out->prompt_tokens = g->prompt_tokens;
    out->tokens = g->tokens;
}

/* Hand out the chosen token. */
static perigee_status hand_out(perigee_generation *g, perigee_generated *out, perigee_error **err) {
    const perigee_generation_options *o = g->options;
    bool stop = ends(g);
    perigee_finish finish = stop ? PERIGEE_FINISH_STOP : PERIGEE_FINISH_NONE;
    if (!stop && o->max_tokens >= 0 && g->tokens + 1 >= o->max_tokens) {
        finish = PERIGEE_FINISH_LENGTH;
    }
    if (!stop && o->constraint && o->stop_id_count == 0 && prg_constraint_finished(o->constraint)) {
        finish = PERIGEE_FINISH_STOP; /* no token could say so */
    }
    perigee_status st = give_text(g, finish, out, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    out->id = g->chosen;
    out->log_probability = g->log_probability;
    out->top_count = o->top > 0 ? (size_t)o->top : 0;
    out->top_ids = g->top_ids;
    out->top_log_probabilities = g->top_values;
    g->pending[0] = g->chosen;
    g->pending_count = 1;
    g->pending_done = 0;
    g->chosen = -1;
    g->tokens++;
    return PERIGEE_OK;
}

perigee_status prg_generation_next(perigee_generation *generation, bool by_chunk, perigee_generated *out,
                                   perigee_error **err) {
    perigee_generation *g = generation;
    const double begin = g->source.clock();
    perigee_status st = PERIGEE_OK;
    *out = (perigee_generated){.struct_size = out->struct_size, .id = -1, .text = "", .log_probability = NAN};
    if (g->finish == PERIGEE_FINISH_NONE && g->chosen < 0) {
        perigee_finish end = PERIGEE_FINISH_NONE;
        while (st == PERIGEE_OK && !g->logits && end == PERIGEE_FINISH_NONE) {
            st = take_in(g, &end, err);
            if (by_chunk && st == PERIGEE_OK && !g->logits && end == PERIGEE_FINISH_NONE) {
                fill_in(g, begin, out);
                return PERIGEE_OK;
            }
        }
        if (st == PERIGEE_OK && end != PERIGEE_FINISH_NONE) {
            g->decoded = false;
            st = give_text(g, end, out, err);
        } else if (st == PERIGEE_OK) {
            st = choose(g, err);
        }
    }
    if (st == PERIGEE_OK && g->chosen >= 0) {
        st = hand_out(g, out, err);
    }
    if (st != PERIGEE_OK) {
        *out = (perigee_generated){.struct_size = out->struct_size, .id = -1, .text = "", .log_probability = NAN};
    }
    fill_in(g, begin, out);
    return st;
}

perigee_status prg_generation_sampler(const perigee_generation *g, perigee_sampler **out, perigee_error **err) {
    if (g->chosen >= 0) { /* the draw is made, and behind a failure the token is still to come */
        return prg_fail(err, PERIGEE_E_STATE, "a token was drawn and not handed out: repeat the call that failed");
    }
    perigee_status st = prg_sampler_clone(g->options->sampler, out, err);
    if (st == PERIGEE_OK) {
        prg_sampler_forget(*out, g->pending_count - g->pending_done);
    }
    return st;
}
