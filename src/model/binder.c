#include "model/binder.h"

#include <string.h>

#include "base/error.h"
#include "dtype/dtype.h"

static perigee_status read_tensor(prg_binder *b, const prg_tensor *t, uint64_t size, void *buffer) {
    if (b->file_index != (int64_t)t->file) {
        prg_file_close(&b->file);
        b->file_index = -1;
        b->status = prg_file_open(b->checkpoint->paths[t->file], b->checkpoint->io, &b->file, b->err);
        if (b->status != PERIGEE_OK) {
            return b->status;
        }
        b->file_index = t->file;
    }
    b->status = prg_file_read(&b->file, t->offset, buffer, (size_t)size, b->err);
    return b->status;
}

static uint32_t form_of(const prg_binder *b, const prg_stored *s) {
    return prg_trunk_form(b->trunk, s->id, s->dtype);
}

/* What a token reads of a tensor: a row of the embedding, top_k of the experts, all of everything else. */
static void count_bytes(prg_binder *b, const prg_stored *s) {
    const prg_config *c = &b->checkpoint->config;
    int64_t bytes = prg_stored_bytes(s), read = bytes;
    if (form_of(b, s) != s->dtype) {
        read = (int64_t)prg_dtype_matrix_bytes(form_of(b, s), (size_t)s->part.rows, (size_t)s->part.columns);
        b->out->relaid_bytes += read;
    }
    if (s->id == PRG_PART_EMBED) {
        read = c->tied_head ? bytes + bytes / c->vocabulary : bytes / c->vocabulary;
    }
    b->out->weight_bytes += bytes;
    b->out->token_bytes += s->part.scope == PRG_SCOPE_EXPERT ? 0 : read;
}

static uint32_t add_part(prg_binder *b, uint32_t file, uint64_t offset, uint64_t size) {
    prg_bound *o = b->out;
    if (b->status != PERIGEE_OK) {
        return UINT32_MAX;
    }
    if (o->part_count == o->part_capacity) {
        size_t capacity = o->part_capacity ? o->part_capacity * 2 : 256;
        prg_part *grown = prg_realloc(b->checkpoint->allocator, o->parts, capacity * sizeof *grown);
        if (!grown) {
            b->status = prg_fail_memory(b->err);
            return UINT32_MAX;
        }
        o->parts = grown;
        o->part_capacity = capacity;
    }
    o->parts[o->part_count] = (prg_part){file, b->group, offset, size};
    return (uint32_t)o->part_count++;
}

static uint32_t add_tensor(prg_binder *b, const prg_tensor *t) {
    return add_part(b, t->file, t->offset, t->size);
}

/* The two parts of a matrix that is held in another form than it is stored in. */
static void add_conversion(prg_binder *b, const prg_stored *s, prg_weight *out) {
    prg_bound *o = b->out;
    if (o->conversion_count == o->conversion_capacity) {
        size_t capacity = o->conversion_capacity ? o->conversion_capacity * 2 : 64;
        prg_conversion *grown = prg_realloc(b->checkpoint->allocator, o->conversions, capacity * sizeof *grown);
        if (!grown) {
            b->status = prg_fail_memory(b->err);
            return;
        }
        o->conversions = grown;
        o->conversion_capacity = capacity;
    }
    const size_t rows = (size_t)s->part.rows, columns = (size_t)s->part.columns;
    out->dtype = PERIGEE_DTYPE_Q8_0;
    out->scale_dtype = PERIGEE_DTYPE_F16;
    out->codes = add_part(b, PRG_PART_MADE, 0, rows * prg_dtype_row_bytes(out->dtype, columns));
    out->scales = add_part(b, PRG_PART_MADE, 0, rows * prg_dtype_scale_row_bytes(out->dtype, columns));
    o->conversions[o->conversion_count++] = (prg_conversion){
        s->codes->file, s->dtype, s->codes->offset, (uint64_t)rows, (uint64_t)columns, out->codes, out->scales};
}

/* The checkpoint's own word on the shape of a packed matrix must be that of the config. */
static void check_shape_values(prg_binder *b, const prg_stored *s) {
    int64_t sides[2];
    int32_t small[2];
    bool wide = s->shape->type == PRG_TENSOR_I64;
    if (read_tensor(b, s->shape, wide ? sizeof sides : sizeof small, wide ? (void *)sides : small) != PERIGEE_OK) {
        return;
    }
    if (!wide) {
        sides[0] = small[0];
        sides[1] = small[1];
    }
    if (sides[0] != s->part.rows || sides[1] != s->part.columns) {
        b->status = prg_fail_at(
            b->err, PERIGEE_E_TENSOR, (prg_where){s->name, b->file.path, (int64_t)s->shape->offset, b->layer},
            "%s.weight_shape says [%lld, %lld]; wanted is [%lld, %lld]", s->name, (long long)sides[0],
            (long long)sides[1], (long long)s->part.rows, (long long)s->part.columns);
    }
}

static bool find(prg_binder *b, prg_component_id id, int64_t expert, prg_stored *s) {
    if (b->status != PERIGEE_OK) {
        return false;
    }
    prg_stored_find(b->checkpoint, id, b->layer, expert, s);
    if (!s->part.present) {
        return false;
    }
    b->status = prg_stored_check(b->checkpoint, s, b->err);
    if (b->status != PERIGEE_OK) {
        return false;
    }
    s->codes->used = true;
    if (s->scales) {
        s->scales->used = true;
    }
    if (s->shape) {
        s->shape->used = true;
    }
    count_bytes(b, s);
    return true;
}

void prg_binder_matrix(prg_binder *b, prg_component_id id, int64_t expert, prg_weight *out) {
    prg_stored s;
    *out = (prg_weight){PERIGEE_DTYPE_NONE, UINT32_MAX, UINT32_MAX, PERIGEE_DTYPE_NONE, 0, 0};
    if (!find(b, id, expert, &s)) {
        return;
    }
    if (s.shape && b->read) {
        check_shape_values(b, &s);
    }
    out->rows = (uint64_t)s.part.rows;
    out->cols = (uint64_t)s.part.columns;
    if (form_of(b, &s) != s.dtype) {
        add_conversion(b, &s, out);
        return;
    }
    out->codes = add_tensor(b, s.codes);
    if (s.scales) {
        out->scales = add_tensor(b, s.scales);
        out->scale_dtype = s.dtype == PERIGEE_DTYPE_INT4  ? PERIGEE_DTYPE_BF16
                           : s.dtype == PERIGEE_DTYPE_FP8 ? PERIGEE_DTYPE_F32
                                                          : PERIGEE_DTYPE_NONE;
    }
    out->dtype = s.dtype;
}

static float *take_floats(prg_binder *b, size_t count) {
    b->out->vector_bytes += (int64_t)((count * sizeof(float) + 15) & ~(size_t)15);
    if (!b->read) {
        return NULL;
    }
    float *values = prg_arena_alloc(b->arena, count, sizeof *values);
    if (!values) {
        b->status = prg_fail_memory(b->err);
    }
    return values;
}

static void widen(uint32_t dtype, const unsigned char *raw, size_t count, float *values) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        if (dtype == PERIGEE_DTYPE_F32) {
            memcpy(&values[i], raw + 4 * i, 4);
            continue;
        }
        memcpy(&half, raw + 2 * i, 2);
        values[i] = dtype == PERIGEE_DTYPE_BF16 ? prg_bf16_to_f32(half) : prg_f16_to_f32(half);
    }
}

void prg_binder_vector(prg_binder *b, prg_component_id id, float **out) {
    prg_stored s;
    *out = NULL;
    if (!find(b, id, 0, &s)) {
        return;
    }
    size_t count = (size_t)(s.part.rows * s.part.columns);
    float *values = take_floats(b, count);
    if (!values) {
        return;
    }
    size_t size = count * prg_tensor_type_bytes((prg_tensor_type)s.codes->type);
    unsigned char *raw = prg_alloc(b->checkpoint->allocator, size);
    if (!raw) {
        b->status = prg_fail_memory(b->err);
        return;
    }
    if (read_tensor(b, s.codes, size, raw) == PERIGEE_OK) {
        widen(s.dtype, raw, count, values);
        *out = values;
    }
    prg_free(b->checkpoint->allocator, raw);
}
