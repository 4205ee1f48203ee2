/* y[t, c] = sum over r of x[t, r] w[r, c] in plain C. */
#include <math.h>

#include "dtype/dtype.h"

enum { COLS = 64 };

static void multiply(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m,
                     float *y, size_t ldy) {
    const prg_dtype *dtype = prg_dtype_get(w->dtype);
    float weights[COLS];
    for (size_t c = 0; c < w->cols; c += COLS) {
        const size_t n = w->cols - c < COLS ? w->cols - c : COLS;
        for (size_t t = 0; t < m; t++) {
            for (size_t i = 0; i < n; i++) {
                y[t * ldy + c + i] = 0;
            }
        }
        for (size_t r = 0; r < count; r++) {
            dtype->decode(w, first + r, c, n, weights);
            for (size_t t = 0; t < m; t++) {
                for (size_t i = 0; i < n; i++) {
                    y[t * ldy + c + i] = fmaf(x[t * ldx + r], weights[i], y[t * ldy + c + i]);
                }
            }
        }
    }
}

#define ROW(type, TYPE)                                                                                                \
    const perigee_kernel_row prg_transposed_##type##_scalar = {                                                        \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL_TRANSPOSED,                                                                            \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .error_bound = 2e-6,                                                                                           \
        .name = "transposed_" #type "_scalar",                                                                         \
        .isa = "scalar",                                                                                               \
        .numerics = "float32, one chain",                                                                              \
        .signature = "void(const ptr,size,size,const ptr,size,size,ptr,size)",                                         \
        .row_tile = 1,                                                                                                 \
        .token_tile = 1,                                                                                               \
        .run.transposed = {multiply},                                                                                  \
    };

ROW(f32, F32)
ROW(bf16, BF16)
