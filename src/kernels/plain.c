#include "kernels/plain.h"

#include <string.h>

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

const perigee_matmul_functions prg_plain_functions = {packed_bytes, pack, scratch_bytes, NULL, NULL};

void prg_plain_multiply(prg_plain_fn function, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                        const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    const size_t bytes = packed_bytes(w->cols);
    const float *x = packed;
    if (rows) {
        for (size_t t = 0; t < m; t++) {
            memcpy((char *)scratch + t * bytes, (const char *)packed + rows[t] * bytes, bytes);
        }
        x = scratch;
    }
    function(w, first, count, x, bytes / sizeof *x, m, y, ldy);
}
