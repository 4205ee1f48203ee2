/* Products with weights of F32 by OpenBLAS. It sums in an order that depends on the number of rows that come together,
 * so its row is marked; its own threads are left at one, because ranges of rows come from the library's. */
#include <cblas.h>
#include <string.h>

#include "perigee/sys/kernel.h"

static size_t packed_bytes(size_t k) {
    return (k * sizeof(float) + 63) / 64 * 64;
}

static void pack(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    for (size_t t = 0; t < m; t++) {
        memcpy((char *)packed + t * packed_bytes(k), x + t * ldx, k * sizeof *x);
    }
}

/* Rows that are gathered. */
static size_t scratch_bytes(size_t m, size_t k) {
    return m * packed_bytes(k);
}

static void multiply(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *scratch) {
    const size_t bytes = packed_bytes(w->cols);
    const float *x = packed;
    if (rows) {
        for (size_t t = 0; t < m; t++) {
            memcpy((char *)scratch + t * bytes, (const char *)packed + rows[t] * bytes, bytes);
        }
        x = scratch;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)count, (blasint)w->cols, 1, x,
                (blasint)(bytes / sizeof *x),
                (const float *)(const void *)((const char *)w->codes + first * w->row_bytes),
                (blasint)(w->row_bytes / sizeof *x), 0, y, (blasint)ldy);
}

static const perigee_kernel_row row = {
    .struct_size = sizeof(perigee_kernel_row),
    .op = PERIGEE_OP_MATMUL,
    .dtype = PERIGEE_DTYPE_F32,
    .precision = PERIGEE_PRECISION_EXACT,
    .flags = PERIGEE_KERNEL_NONDETERMINISTIC,
    .error_bound = 4e-6,
    .name = "matmul_f32_openblas",
    .isa = "openblas",
    .numerics = "openblas",
    .signature = "void(const ptr,size,size,const ptr,const ptr,size,ptr,size,ptr)",
    .row_tile = 16,
    .token_tile = 1,
    .run.matmul = {packed_bytes, pack, scratch_bytes, multiply, NULL},
};

__attribute__((visibility("default"))) int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry);

int32_t perigee_kernel_plugin(const perigee_kernel_registry *registry) {
    if (registry->version < PERIGEE_KERNEL_VERSION) {
        return 1;
    }
    openblas_set_num_threads(1);
    return registry->add(registry->self, &row);
}
