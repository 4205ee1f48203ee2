#include "model/stored.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "perigee/sys/kernel.h"

static prg_tensor *look_up(const prg_checkpoint *c, const prg_stored *s, const char *ending) {
    char name[PRG_STORED_NAME + 32];
    int length = snprintf(name, sizeof name, "%s%s", s->name, ending);
    return prg_tensors_find(&c->tensors, prg_tensor_hash(name, (size_t)length));
}

static uint32_t plain_dtype(const prg_tensor *t) {
    switch (t->type) {
    case PRG_TENSOR_F32:
        return PERIGEE_DTYPE_F32;
    case PRG_TENSOR_F16:
        return PERIGEE_DTYPE_F16;
    case PRG_TENSOR_BF16:
        return PERIGEE_DTYPE_BF16;
    case PRG_TENSOR_F8_E4M3:
        return PERIGEE_DTYPE_FP8;
    default:
        return PERIGEE_DTYPE_NONE;
    }
}

void prg_stored_find(const prg_checkpoint *checkpoint, prg_component_id id, int64_t layer, int64_t expert,
                     prg_stored *out) {
    out->id = id;
    out->part = prg_component_of(&checkpoint->config, id);
    out->dtype = PERIGEE_DTYPE_NONE;
    out->codes = out->scales = out->shape = NULL;
    prg_arch_tensor_name(checkpoint->config.arch, id, out->part.scope, layer, expert, out->name, sizeof out->name);
    if (out->part.form == PRG_FORM_VECTOR) {
        out->codes = look_up(checkpoint, out, "");
        out->dtype = out->codes ? plain_dtype(out->codes) : PERIGEE_DTYPE_NONE;
        return;
    }
    out->codes = look_up(checkpoint, out, ".weight");
    if (out->codes) {
        out->dtype = plain_dtype(out->codes);
        out->scales = out->dtype == PERIGEE_DTYPE_FP8 ? look_up(checkpoint, out, ".weight_scale_inv") : NULL;
        return;
    }
    out->codes = look_up(checkpoint, out, ".weight_packed");
    if (out->codes) {
        out->dtype = out->codes->type == PRG_TENSOR_U8    ? PERIGEE_DTYPE_MXFP4
                     : out->codes->type == PRG_TENSOR_I32 ? PERIGEE_DTYPE_INT4
                                                          : PERIGEE_DTYPE_NONE;
        out->scales = look_up(checkpoint, out, ".weight_scale");
        out->shape = look_up(checkpoint, out, ".weight_shape");
    }
}

/* A text as "[96, 64]". */
static const char *shape_text(const prg_tensor *t, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (uint32_t i = 0; i < t->rank && i < PRG_TENSOR_KEPT_RANK; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
    }
    snprintf(text + used, size - used, "%s]", t->rank > PRG_TENSOR_KEPT_RANK ? ", ..." : "");
    return text;
}

static perigee_status fail_tensor(const prg_checkpoint *c, const prg_stored *s, const prg_tensor *t, const char *ending,
                                  perigee_status status, const char *what, perigee_error **err) {
    char name[PRG_STORED_NAME + 32], shape[128];
    snprintf(name, sizeof name, "%s%s", s->name, ending);
    if (!t) {
        return prg_fail_at(err, status, (prg_where){name, c->folder, -1, -1}, "tensor %s is missing", name);
    }
    return prg_fail_at(err, status, (prg_where){name, c->paths[t->file], (int64_t)t->offset, -1},
                       "tensor %s in %s is %s %s; wanted is %s", name, c->names[t->file],
                       prg_tensor_type_name((prg_tensor_type)t->type), shape_text(t, shape, sizeof shape), what);
}

static bool has_shape(const prg_tensor *t, uint64_t rows, uint64_t columns) {
    return t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns;
}

/* Sides of one element don't count: [1, d] and [c, 1, taps] are as good as [d] and [c, taps]. */
static bool same_without_ones(const prg_tensor *t, uint64_t rows, uint64_t columns) {
    uint64_t wanted[2], found[PRG_TENSOR_KEPT_RANK];
    size_t n = 0, m = 0;
    for (size_t i = 0; i < PRG_TENSOR_KEPT_RANK; i++) {
        if (t->shape[i] != 1) {
            found[n++] = t->shape[i];
        }
    }
    if (rows != 1) {
        wanted[m++] = rows;
    }
    if (columns != 1) {
        wanted[m++] = columns;
    }
    return t->rank <= PRG_TENSOR_KEPT_RANK && n == m && memcmp(found, wanted, n * sizeof *found) == 0;
}

static perigee_status check_vector(const prg_checkpoint *c, const prg_stored *s, perigee_error **err) {
    uint64_t rows = (uint64_t)s->part.rows, columns = (uint64_t)s->part.columns;
    char what[128];
    bool plain = s->dtype != PERIGEE_DTYPE_NONE && s->dtype != PERIGEE_DTYPE_FP8;
    /* K3 pads this one with zeros behind the last head */
    bool padded = s->id == PRG_PART_KDA_A_LOG && s->codes->rank <= PRG_TENSOR_KEPT_RANK &&
                  prg_tensor_elements(s->codes) >= columns;
    if (plain && (padded || same_without_ones(s->codes, rows, columns))) {
        return PERIGEE_OK;
    }
    snprintf(what, sizeof what, rows == 1 ? "[%llu] of F32, F16 or BF16" : "[%llu, %llu] of F32, F16 or BF16",
             (unsigned long long)(rows == 1 ? columns : rows), (unsigned long long)columns);
    return fail_tensor(c, s, s->codes, "", PERIGEE_E_TENSOR, what, err);
}

static perigee_status check_fp8(const prg_checkpoint *c, const prg_stored *s, perigee_error **err) {
    uint64_t rows = ((uint64_t)s->part.rows + 127) / 128, columns = ((uint64_t)s->part.columns + 127) / 128;
    char what[128];
    snprintf(what, sizeof what, "F32 [%llu, %llu]", (unsigned long long)rows, (unsigned long long)columns);
    if (!s->scales || s->scales->type != PRG_TENSOR_F32 || !has_shape(s->scales, rows, columns)) {
        return fail_tensor(c, s, s->scales, ".weight_scale_inv", PERIGEE_E_TENSOR, what, err);
    }
    return PERIGEE_OK;
}

static perigee_status check_packed(const prg_checkpoint *c, const prg_stored *s, perigee_error **err) {
    uint64_t rows = (uint64_t)s->part.rows, columns = (uint64_t)s->part.columns;
    bool int4 = s->dtype == PERIGEE_DTYPE_INT4;
    char what[128];
    if (columns % 32 != 0) {
        return fail_tensor(c, s, s->codes, ".weight_packed", PERIGEE_E_UNSUPPORTED, "a multiple of 32 columns", err);
    }
    if (!has_shape(s->codes, rows, columns / (int4 ? 8 : 2))) {
        snprintf(what, sizeof what, "[%llu, %llu]", (unsigned long long)rows,
                 (unsigned long long)columns / (int4 ? 8 : 2));
        return fail_tensor(c, s, s->codes, ".weight_packed", PERIGEE_E_TENSOR, what, err);
    }
    bool type = s->scales && (int4 ? s->scales->type == PRG_TENSOR_BF16
                                   : s->scales->type == PRG_TENSOR_U8 || s->scales->type == PRG_TENSOR_F8_E8M0);
    if (!type || !has_shape(s->scales, rows, columns / 32)) {
        snprintf(what, sizeof what, "%s [%llu, %llu]", int4 ? "BF16" : "U8", (unsigned long long)rows,
                 (unsigned long long)columns / 32);
        return fail_tensor(c, s, s->scales, ".weight_scale", PERIGEE_E_TENSOR, what, err);
    }
    bool shape = !s->shape || ((s->shape->type == PRG_TENSOR_I32 || s->shape->type == PRG_TENSOR_I64) &&
                               prg_tensor_elements(s->shape) == 2);
    if (!shape || (int4 && !s->shape)) {
        return fail_tensor(c, s, s->shape, ".weight_shape", PERIGEE_E_TENSOR, "I32 or I64 [2]", err);
    }
    return PERIGEE_OK;
}

perigee_status prg_stored_check(const prg_checkpoint *checkpoint, const prg_stored *stored, perigee_error **err) {
    bool vector = stored->part.form == PRG_FORM_VECTOR;
    if (!stored->codes) {
        return fail_tensor(checkpoint, stored, NULL, vector ? "" : ".weight", PERIGEE_E_TENSOR, "", err);
    }
    if (vector) {
        return check_vector(checkpoint, stored, err);
    }
    if (stored->dtype == PERIGEE_DTYPE_MXFP4 || stored->dtype == PERIGEE_DTYPE_INT4) {
        return check_packed(checkpoint, stored, err);
    }
    if (stored->dtype == PERIGEE_DTYPE_NONE) {
        return fail_tensor(checkpoint, stored, stored->codes, ".weight", PERIGEE_E_TENSOR,
                           "F32, F16, BF16, F8_E4M3, or packed U8 or I32", err);
    }
    if (!has_shape(stored->codes, (uint64_t)stored->part.rows, (uint64_t)stored->part.columns)) {
        char what[128];
        snprintf(what, sizeof what, "[%lld, %lld]", (long long)stored->part.rows, (long long)stored->part.columns);
        return fail_tensor(checkpoint, stored, stored->codes, ".weight", PERIGEE_E_TENSOR, what, err);
    }
    return stored->dtype == PERIGEE_DTYPE_FP8 ? check_fp8(checkpoint, stored, err) : PERIGEE_OK;
}

int64_t prg_stored_elements(const prg_stored *stored) {
    if (!stored->codes) {
        return 0;
    }
    uint64_t elements = prg_tensor_elements(stored->codes);
    elements *= stored->dtype == PERIGEE_DTYPE_MXFP4 ? 2 : stored->dtype == PERIGEE_DTYPE_INT4 ? 8 : 1;
    if (stored->id == PRG_PART_KDA_A_LOG && elements > (uint64_t)stored->part.columns) {
        elements = (uint64_t)stored->part.columns;
    }
    return (int64_t)elements;
}

int64_t prg_stored_bytes(const prg_stored *stored) {
    uint64_t bytes = stored->codes ? stored->codes->size : 0;
    bytes += stored->scales ? stored->scales->size : 0;
    bytes += stored->shape ? stored->shape->size : 0;
    return (int64_t)bytes;
}
