#include "model/open.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "os/os.h"
#include "text/tokenizer.h"

perigee_status prg_model_place(const perigee_options *options, int64_t resident_bytes, int64_t need, prg_placement *out,
                               perigee_error **err) {
    const char *where = prg_options_string(options, PERIGEE_OPTION_WEIGHTS);
    int64_t budget = prg_options_int(options, PERIGEE_OPTION_MEMORY_BUDGET);
    bool resident = strcmp(where, "resident") == 0, choose = strcmp(where, "auto") == 0;
    if (!resident && !choose && strcmp(where, "mapped") != 0) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "option weights: \"%s\" is not auto, resident or mapped", where);
    }
    int64_t system = prg_os_memory_available("");
    out->resident_bytes = resident_bytes;
    out->available = budget > 0 && budget < system ? budget : system;
    out->fits = resident_bytes <= out->available && need <= out->available - resident_bytes;
    /* a trunk in another form is never mapped: where it doesn't fit, the load fails */
    bool converted = prg_trunk_of(options) != PRG_TRUNK_PUBLISHED;
    out->mapped = !resident && !converted && (!choose || !out->fits);
    return PERIGEE_OK;
}

perigee_status prg_model_check_options(const perigee_options *options, perigee_error **err) {
    const char *trunk = prg_options_string(options, PERIGEE_OPTION_TRUNK);
    bool converted = prg_trunk_of(options) != PRG_TRUNK_PUBLISHED;
    if (converted && strcmp(prg_options_string(options, PERIGEE_OPTION_WEIGHTS), "mapped") == 0) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "trunk=%s: mapped weights keep the form that they are stored in",
                        trunk);
    }
    if (!converted && strcmp(trunk, "published") != 0) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "option trunk: \"%s\" is not published or q8_0", trunk);
    }
    return PERIGEE_OK;
}

static perigee_status open_store(perigee_model *m, const prg_checkpoint *c, const prg_bound *bound,
                                 const perigee_options *options, const prg_load_control *control, perigee_error **err) {
    prg_store_plan plan = {c->paths,           c->file_count, bound->parts,       bound->part_count,
                           bound->group_count, c->io,         bound->conversions, bound->conversion_count};
    prg_placement place;
    int64_t resident = prg_store_resident_bytes(bound->parts, bound->part_count);
    int64_t need = bound->vector_bytes + PRG_MEMORY_RESERVE;
    perigee_status st = prg_model_place(options, resident, need, &place, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (!place.mapped && !place.fits) {
        return prg_fail(err, PERIGEE_E_MEMORY, "resident weights take %lld bytes and %lld beside them; %lld are there",
                        (long long)resident, (long long)need, (long long)place.available);
    }
    if (place.mapped) {
        return prg_store_open_mapped(c->allocator, &plan, &m->store, err);
    }
    return prg_store_open_resident(c->allocator, &plan, prg_pool_threads(m->context->pool), control, &m->store, err);
}

static void take_bound(perigee_model *m, const prg_bound *bound) {
    m->layers = bound->layers;
    m->embed = bound->embed;
    m->head = bound->head;
    m->embed_group = bound->embed_group;
    m->head_group = bound->head_group;
    m->final_norm = bound->final_norm;
    m->final_mix = bound->final_mix;
    m->weight_bytes = bound->weight_bytes;
    m->token_bytes = bound->token_bytes;
}

/* The config of a checkpoint lies in the checkpoint's arena: the one list that it holds is copied. */
static perigee_status take_config(perigee_model *m, const prg_config *config, perigee_error **err) {
    m->config = *config;
    m->config.is_kda = prg_arena_alloc(&m->arena, (size_t)config->layers, sizeof *config->is_kda);
    if (!m->config.is_kda) {
        return prg_fail_memory(err);
    }
    memcpy(m->config.is_kda, config->is_kda, (size_t)config->layers * sizeof *config->is_kda);
    return PERIGEE_OK;
}

static perigee_status fill_model(perigee_model *m, prg_checkpoint *c, const perigee_options *options,
                                 const prg_load_control *control, perigee_error **err) {
    prg_bound bound;
    double inner_eps = prg_options_float(options, PERIGEE_OPTION_INNER_EPS);
    perigee_status st = take_config(m, &c->config, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    st = prg_bind(c, &m->arena, inner_eps, prg_trunk_of(options), true, &bound, err);
    if (st == PERIGEE_OK) {
        st = prg_fingerprint(c, inner_eps, prg_trunk_of(options), m->fingerprint, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_tokenizer_open(c->allocator, c->folder, c->config.family, c->config.vocabulary, &m->tokenizer, err);
    }
    if (st == PERIGEE_OK && control && perigee_cancel_triggered(control->cancel)) {
        st = prg_fail(err, PERIGEE_E_CANCELLED, "the load was cancelled");
    }
    if (st == PERIGEE_OK) {
        st = open_store(m, c, &bound, options, control, err);
    }
    if (st == PERIGEE_OK) {
        take_bound(m, &bound);
    }
    prg_bound_free(c->allocator, &bound);
    return st;
}

perigee_status prg_model_open(perigee_context *context, const char *path, const perigee_options *options,
                              const prg_load_control *control, const prg_io *io, perigee_model **out,
                              perigee_error **err) {
    perigee_status st = prg_model_check_options(options, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    perigee_model *m = prg_calloc(context->allocator, 1, sizeof *m);
    if (!m) {
        return prg_fail_memory(err);
    }
    atomic_init(&m->references, 1);
    m->context = prg_context_hold(context);
    prg_arena_init(&m->arena, context->allocator);
    prg_checkpoint checkpoint;
    st = prg_checkpoint_open(context->allocator, &context->log, io, path, false, &checkpoint, err);
    if (st == PERIGEE_OK) {
        st = fill_model(m, &checkpoint, options, control, err);
    }
    prg_checkpoint_close(&checkpoint);
    if (st != PERIGEE_OK) {
        perigee_model_free(m);
        return st;
    }
    *out = m;
    return PERIGEE_OK;
}

perigee_model *prg_model_hold(perigee_model *model) {
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    return model;
}

void perigee_model_free(perigee_model *model) {
    if (!model || atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    perigee_context *context = model->context;
    prg_store_free(model->store);
    prg_tokenizer_drop(model->tokenizer);
    prg_arena_free(&model->arena);
    prg_free(context->allocator, model);
    perigee_context_free(context);
}
