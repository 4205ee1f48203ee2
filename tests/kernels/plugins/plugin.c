/* One source for several plugins; which one is a macro of the build. */
#include "perigee/sys/kernel.h"

static size_t none(size_t k) {
    (void)k;
    return 64;
}

static void pack(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    (void)x, (void)ldx, (void)m, (void)k, (void)packed;
}

static size_t scratch(size_t m, size_t k) {
    (void)m, (void)k;
    return 0;
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *space) {
    (void)w, (void)first, (void)packed, (void)rows, (void)space;
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < count; r++) {
            y[t * ldy + r] = 7;
        }
    }
}

#ifndef PLUGIN_EMPTY
__attribute__((visibility("default"))) int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry);

int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry) {
    perigee_kernel_row row = {
        .struct_size = sizeof row,
        .op = PERIGEE_OP_MATMUL,
        .dtype = PERIGEE_DTYPE_F16,
        .error_bound = 1e-3,
        .name = "sevens",
        .isa = "none",
        .numerics = "sevens",
        .row_tile = 1,
        .token_tile = 1,
        .run.matmul = {none, pack, scratch, multiply, NULL},
    };
    int32_t result = registry->add(registry->self, &row);
#ifdef PLUGIN_SHORT
    row.struct_size = 16;
    result = registry->add(registry->self, &row);
#endif
#ifdef PLUGIN_REFUSING
    result = 3;
#endif
    return result;
}
#else
void (*const unused[])(void) = {(void (*)(void))none, (void (*)(void))pack, (void (*)(void))scratch,
                                (void (*)(void))multiply};
#endif
