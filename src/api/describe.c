#include "model/describe.h"

#include "base/error.h"

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
