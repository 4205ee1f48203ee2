#include "model/describe.h"

#include "api/path.h"
#include "base/error.h"
#include "model/model.h"

perigee_status perigee_model_describe(perigee_context *context, const char *path, size_t length,
                                      perigee_description **out, perigee_error **err) {
    prg_clear(err);
    if (!context || !path || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context, path or out is NULL");
    }
    char *copy = NULL;
    prg_checkpoint checkpoint;
    perigee_status st = prg_api_path(context, path, length, &copy, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    *out = NULL;
    st = prg_checkpoint_open(context->allocator, &context->log, NULL, copy, true, &checkpoint, err);
    if (st == PERIGEE_OK) {
        st = prg_describe(&checkpoint, out, err);
    }
    prg_checkpoint_close(&checkpoint);
    prg_free(context->allocator, copy);
    return st;
}

size_t perigee_description_count(const perigee_description *description) {
    return description ? description->count : 0;
}

perigee_status perigee_description_component(const perigee_description *description, size_t index,
                                             perigee_component *out, perigee_error **err) {
    prg_clear(err);
    if (!description || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "description or out is NULL, or struct_size is too small");
    }
    if (index >= description->count) {
        return prg_fail(err, PERIGEE_E_RANGE, "component %zu of %zu", index, description->count);
    }
    size_t struct_size = out->struct_size;
    *out = description->components[index];
    out->struct_size = struct_size;
    return PERIGEE_OK;
}

perigee_status perigee_description_totals(const perigee_description *description, perigee_totals *out,
                                          perigee_error **err) {
    prg_clear(err);
    if (!description || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "description or out is NULL, or struct_size is too small");
    }
    size_t struct_size = out->struct_size;
    *out = description->totals;
    out->struct_size = struct_size;
    return PERIGEE_OK;
}

void perigee_description_free(perigee_description *description) {
    prg_description_free(description);
}
