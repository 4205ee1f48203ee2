#include "perigee/model.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "model/model.h"
#include "model/open.h"

/* A path as a C string, of the context's allocator. */
static perigee_status copy_path(perigee_context *context, const char *path, size_t length, char **out,
                                perigee_error **err) {
    length = length == SIZE_MAX ? strlen(path) : length;
    if (length == 0 || memchr(path, 0, length)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "path is empty or holds a NUL byte");
    }
    *out = prg_strndup(context->allocator, path, length);
    return *out ? PERIGEE_OK : prg_fail_memory(err);
}

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
        st = copy_path(context, path, length, &copy, err);
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
