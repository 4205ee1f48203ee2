#include "model/plan.h"

#include "api/path.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/options.h"
#include "model/describe.h"
#include "model/open.h"
#include "session/plan.h"

/* Whether weights, scratch and one session that has run to its end fit. */
static bool all_fits(const perigee_plan *p) {
    int64_t blocks = (p->context + p->cache_block_tokens - 1) / p->cache_block_tokens;
    int64_t cache, sum = p->resident_bytes;
    const int64_t rest[] = {p->table_bytes, p->session_fixed_bytes, p->scratch_bytes};
    if (!prg_mul_i64(blocks * p->cache_block_tokens, p->session_token_bytes, &cache) ||
        !prg_add_i64(sum, cache, &sum)) {
        return false;
    }
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (!prg_add_i64(sum, rest[i], &sum)) {
            return false;
        }
    }
    return sum <= p->available_bytes;
}

static perigee_status make_plan(perigee_context *context, prg_checkpoint *checkpoint, const perigee_options *options,
                                perigee_plan *out, perigee_error **err) {
    prg_weight_plan weights;
    prg_placement place;
    prg_session_plan session;
    perigee_status st = prg_plan_weights(checkpoint, prg_trunk_of(options), &weights, err);
    if (st == PERIGEE_OK) {
        st = prg_model_place(options, weights.resident_bytes, weights.vector_bytes + PRG_MEMORY_RESERVE, &place, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_session_plan_make(&checkpoint->config, context->table, prg_pool_threads(context->pool), options,
                                   &session, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    *out = (perigee_plan){.struct_size = out->struct_size,
                          .disk_bytes = weights.disk_bytes,
                          .resident_bytes = place.mapped ? 0 : weights.resident_bytes,
                          .relaid_bytes = weights.relaid_bytes,
                          .table_bytes = weights.table_bytes,
                          .token_bytes = weights.token_bytes,
                          .session_fixed_bytes = (int64_t)session.fixed_bytes,
                          .session_token_bytes = (int64_t)session.token_bytes,
                          .cache_block_tokens = PRG_CACHE_BLOCK,
                          .scratch_bytes = (int64_t)session.scratch_bytes,
                          .chunk = (int64_t)session.chunk,
                          .context = (int64_t)session.context,
                          .available_bytes = place.available,
                          .mapped = place.mapped};
    out->fits = all_fits(out);
    return PERIGEE_OK;
}

perigee_status perigee_model_inspect(perigee_context *context, const char *path, size_t length,
                                     const perigee_options *options, perigee_description **description,
                                     perigee_plan *plan, perigee_error **err) {
    prg_clear(err);
    if (!context || !path || (plan && plan->struct_size < sizeof *plan)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or path is NULL, or struct_size is too small");
    }
    char *copy = NULL;
    prg_checkpoint checkpoint;
    perigee_description *described = NULL;
    perigee_status st = prg_options_check(options, 1u << PERIGEE_SCOPE_MODEL | 1u << PERIGEE_SCOPE_SESSION, err);
    if (st == PERIGEE_OK) {
        st = prg_model_check_options(options, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_api_path(context, path, length, &copy, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    st = prg_checkpoint_open(context->allocator, &context->log, NULL, copy, true, &checkpoint, err);
    if (st == PERIGEE_OK && description) {
        st = prg_describe(&checkpoint, &described, err);
    }
    if (st == PERIGEE_OK && plan) {
        st = make_plan(context, &checkpoint, options, plan, err);
    }
    prg_checkpoint_close(&checkpoint);
    prg_free(context->allocator, copy);
    if (st != PERIGEE_OK) {
        prg_description_free(described);
    } else if (description) {
        *description = described;
    }
    return st;
}

perigee_status perigee_model_plan(perigee_context *context, const char *path, size_t length,
                                  const perigee_options *options, perigee_plan *out, perigee_error **err) {
    prg_clear(err);
    return out ? perigee_model_inspect(context, path, length, options, NULL, out, err)
               : prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
}

perigee_status perigee_model_describe(perigee_context *context, const char *path, size_t length,
                                      perigee_description **out, perigee_error **err) {
    prg_clear(err);
    return out ? perigee_model_inspect(context, path, length, NULL, out, NULL, err)
               : prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
}
