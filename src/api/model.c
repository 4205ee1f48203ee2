#include "perigee/model.h"

#include "api/path.h"
#include "base/error.h"
#include "base/options.h"
#include "model/model.h"
#include "model/open.h"

perigee_status perigee_model_load(perigee_context *context, const char *path, size_t length,
                                  const perigee_options *options, perigee_progress_fn progress, void *progress_user,
                                  perigee_cancel *cancel, perigee_model **out, perigee_error **err) {
    prg_clear(err);
    if (!context || !path || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context, path or out is NULL");
    }
    char *copy = NULL;
    prg_load_control control = {progress, progress_user, cancel};
    *out = NULL;
    perigee_status st = prg_options_check(options, 1u << PERIGEE_SCOPE_MODEL, err);
    if (st == PERIGEE_OK) {
        st = prg_api_path(context, path, length, &copy, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_model_open(context, copy, options, &control, NULL, out, err);
    }
    prg_free(context->allocator, copy);
    return st;
}

perigee_status perigee_model_get_info(const perigee_model *model, perigee_model_info *out, perigee_error **err) {
    prg_clear(err);
    if (!model || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "model or out is NULL, or struct_size is too small");
    }
    const prg_config *c = &model->config;
    *out = (perigee_model_info){.struct_size = out->struct_size,
                                .family = c->family,
                                .vocabulary = c->vocabulary,
                                .hidden = c->hidden,
                                .layers = c->layers,
                                .kda_layers = c->kda_layers,
                                .context = c->context,
                                .bos = c->bos,
                                .end_ids = c->end_ids,
                                .end_count = c->end_count,
                                .weight_bytes = model->weight_bytes,
                                .resident_bytes = prg_store_bytes(model->store),
                                .token_bytes = model->token_bytes};
    return PERIGEE_OK;
}
