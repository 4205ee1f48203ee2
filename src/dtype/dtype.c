#include "dtype/dtype.h"

#include <string.h>

#define PRG_DTYPE(name) extern const prg_dtype prg_dtype_##name;
#include "dtype/dtype.def"
#undef PRG_DTYPE

static const prg_dtype *const dtypes[] = {
#define PRG_DTYPE(name) &prg_dtype_##name,
#include "dtype/dtype.def"
#undef PRG_DTYPE
};

static size_t divide_up(size_t n, size_t by) {
    return n / by + (n % by != 0);
}

const prg_dtype *prg_dtype_get(uint32_t id) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if ((uint32_t)dtypes[i]->id == id) {
            return dtypes[i];
        }
    }
    return NULL;
}

const prg_dtype *prg_dtype_find(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i]->name, name) == 0) {
            return dtypes[i];
        }
    }
    return NULL;
}

size_t prg_dtype_row_bytes(uint32_t id, size_t cols) {
    const prg_dtype *dtype = prg_dtype_get(id);
    return dtype ? divide_up(cols, dtype->block_cols) * dtype->block_bytes : 0;
}

size_t prg_dtype_scale_row_bytes(uint32_t id, size_t cols) {
    const prg_dtype *dtype = prg_dtype_get(id);
    return dtype && dtype->scale_cols ? divide_up(cols, dtype->scale_cols) * dtype->scale_bytes : 0;
}

size_t prg_dtype_matrix_bytes(uint32_t id, size_t rows, size_t cols) {
    const prg_dtype *dtype = prg_dtype_get(id);
    if (!dtype) {
        return 0;
    }
    size_t bytes = rows * prg_dtype_row_bytes(id, cols);
    if (dtype->scale_rows) {
        bytes += divide_up(rows, dtype->scale_rows) * prg_dtype_scale_row_bytes(id, cols);
    }
    return bytes;
}

perigee_matrix prg_matrix_make(uint32_t id, size_t rows, size_t cols, const void *codes, const void *scales) {
    static const uint32_t scale_dtypes[] = {
        [PERIGEE_DTYPE_INT4] = PERIGEE_DTYPE_BF16,
        [PERIGEE_DTYPE_FP8] = PERIGEE_DTYPE_F32,
        [PERIGEE_DTYPE_Q8_0] = PERIGEE_DTYPE_F16,
    };
    return (perigee_matrix){
        .dtype = id,
        .rows = rows,
        .cols = cols,
        .codes = codes,
        .scales = scales,
        .row_bytes = prg_dtype_row_bytes(id, cols),
        .scale_row_bytes = prg_dtype_scale_row_bytes(id, cols),
        .scale_dtype = id < sizeof scale_dtypes / sizeof *scale_dtypes ? scale_dtypes[id] : PERIGEE_DTYPE_NONE,
    };
}
