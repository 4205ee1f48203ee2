#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "generate/generation.h"

perigee_status prg_generation_options_new(prg_allocator *allocator, perigee_generation_options **out,
                                          perigee_error **err) {
    perigee_generation_options *o = prg_calloc(allocator, 1, sizeof *o);
    if (!o) {
        return prg_fail_memory(err);
    }
    o->allocator = prg_allocator_hold(allocator);
    o->default_stops = true;
    o->max_tokens = -1;
    o->top = -1;
    *out = o;
    return PERIGEE_OK;
}

void perigee_generation_options_free(perigee_generation_options *options) {
    if (options) {
        prg_allocator *a = options->allocator;
        perigee_sampler_free(options->sampler);
        perigee_constraint_free(options->constraint);
        perigee_cancel_free(options->cancel);
        for (size_t i = 0; i < options->stop_count; i++) {
            prg_free(a, options->stops[i].text);
        }
        prg_free(a, options->stop_ids);
        prg_free(a, options);
        prg_allocator_drop(a);
    }
}

perigee_status prg_generation_options_add_id(perigee_generation_options *options, int32_t id, perigee_error **err) {
    int32_t *wider =
        prg_realloc(options->allocator, options->stop_ids, (options->stop_id_count + 1) * sizeof *options->stop_ids);
    if (!wider) {
        return prg_fail_memory(err);
    }
    wider[options->stop_id_count++] = id;
    options->stop_ids = wider;
    return PERIGEE_OK;
}

perigee_status prg_generation_options_add_string(perigee_generation_options *options, const char *text, size_t length,
                                                 perigee_error **err) {
    if (options->stop_count == PRG_STOP_STRINGS) {
        return prg_fail(err, PERIGEE_E_RANGE, "more than %d stop strings", PRG_STOP_STRINGS);
    }
    char *copy = prg_strndup(options->allocator, text, length);
    if (!copy) {
        return prg_fail_memory(err);
    }
    options->stops[options->stop_count++] = (prg_stop_text){copy, length};
    return PERIGEE_OK;
}

perigee_status prg_generation_options_copy(prg_allocator *allocator, const perigee_generation_options *from,
                                           perigee_generation_options **out, perigee_error **err) {
    perigee_generation_options *o = NULL;
    perigee_status st = prg_generation_options_new(allocator, &o, err);
    if (st != PERIGEE_OK || !from) {
        *out = o;
        return st;
    }
    o->default_stops = from->default_stops;
    o->max_tokens = from->max_tokens;
    o->top = from->top;
    o->cancel = prg_cancel_hold(from->cancel);
    if (from->sampler) {
        st = prg_sampler_clone(from->sampler, &o->sampler, err);
    }
    if (st == PERIGEE_OK && from->constraint) {
        st = prg_constraint_clone(from->constraint, &o->constraint, err);
    }
    for (size_t i = 0; st == PERIGEE_OK && i < from->stop_id_count; i++) {
        st = prg_generation_options_add_id(o, from->stop_ids[i], err);
    }
    for (size_t i = 0; st == PERIGEE_OK && i < from->stop_count; i++) {
        st = prg_generation_options_add_string(o, from->stops[i].text, from->stops[i].length, err);
    }
    if (st != PERIGEE_OK) {
        perigee_generation_options_free(o);
        return st;
    }
    *out = o;
    return PERIGEE_OK;
}
