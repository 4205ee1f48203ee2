#include "base/error.h"
#include "dtype/dtype.h"
#include "model/model.h"
#include <stdlib.h>
#include <string.h>
float prg_bf16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
float prg_f16_to_f32(uint16_t h) {
    (void)h;
    return 0;
}
perigee_matrix prg_matrix_make(uint32_t id, size_t rows, size_t cols, const void *codes, const void *scales) {
    perigee_matrix m = {id, 0, rows, cols, codes, scales, 0, 0, 0, 0};
    return m;
}
perigee_context *prg_context_hold(perigee_context *c) {
    atomic_fetch_add(&c->references, 1);
    return c;
}
size_t prg_pool_threads(const prg_pool *p) {
    (void)p;
    return 2;
}
perigee_status perigee_context_new(const perigee_options *o, const perigee_allocator *a, const perigee_log *l,
                                   const perigee_kernel_set *k, perigee_context **out, perigee_error **err) {
    (void)o;
    (void)l;
    (void)k;
    prg_clear(err);
    prg_allocator *al;
    perigee_status st = prg_allocator_new(a, &al, err);
    if (st)
        return st;
    perigee_context *c = prg_calloc(al, 1, sizeof *c);
    if (!c) {
        prg_allocator_drop(al);
        return prg_fail_memory(err);
    }
    atomic_init(&c->references, 1);
    c->allocator = al;
    if (l) {
        c->log = (prg_log){4, l->write, l->user};
    }
    *out = c;
    return PERIGEE_OK;
}
void perigee_context_free(perigee_context *c) {
    if (c && atomic_fetch_sub(&c->references, 1) == 1) {
        prg_allocator *a = c->allocator;
        prg_free(a, c);
        prg_allocator_drop(a);
    }
}
