#include "store/convert.h"

#include <math.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "dtype/dtype.h"

enum { READ = 1 << 20, ALIGNMENT = 64 };
/* 127 times the largest scale that F16 holds. */
static const float most = 127 * 65504.0F;

static size_t raw_row_bytes(const prg_conversion *c) {
    return prg_dtype_row_bytes(c->dtype, (size_t)c->cols);
}

size_t prg_convert_rows_of(const prg_conversion *conversion) {
    return prg_max(1, READ / prg_max(1, raw_row_bytes(conversion)));
}

static size_t raw_bytes(const prg_conversion *c) {
    return prg_round_up(prg_convert_rows_of(c) * raw_row_bytes(c), ALIGNMENT);
}

size_t prg_convert_buffer_bytes(const prg_conversion *conversions, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes = prg_max(bytes, raw_bytes(&conversions[i]) + (size_t)conversions[i].cols * sizeof(float));
    }
    return bytes;
}

/* Index of the first row that Q8_0 can't hold, or count. */
static size_t encode_rows(const prg_conversion *c, const unsigned char *raw, size_t count, float *values, int8_t *codes,
                          unsigned char *scales) {
    const prg_dtype *from = prg_dtype_get(c->dtype), *to = prg_dtype_get(PERIGEE_DTYPE_Q8_0);
    const size_t cols = (size_t)c->cols, scale_bytes = prg_dtype_scale_row_bytes(to->id, cols);
    const perigee_matrix matrix = prg_matrix_make(c->dtype, count, cols, raw, NULL);
    for (size_t r = 0; r < count; r++) {
        int wrong = 0;
        from->decode(&matrix, r, 0, cols, values);
        for (size_t i = 0; i < cols; i++) {
            wrong |= !(fabsf(values[i]) <= most);
        }
        if (wrong) {
            return r;
        }
        to->encode(values, 1, cols, codes + r * cols, scales + r * scale_bytes);
    }
    return count;
}

perigee_status prg_convert_rows(const prg_conversion *conversion, const prg_file *file, size_t first, size_t count,
                                void *buffer, int8_t *codes, unsigned char *scales, perigee_error **err) {
    const prg_conversion *c = conversion;
    const size_t row = raw_row_bytes(c), cols = (size_t)c->cols;
    const uint64_t offset = c->offset + (uint64_t)first * row;
    float *values = (float *)(void *)((char *)buffer + raw_bytes(c));
    perigee_status st = prg_file_read(file, offset, buffer, count * row, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    fenv_t host;
    prg_float_mode_enter(&host);
    size_t done = encode_rows(c, buffer, count, values, codes + first * cols,
                              scales + first * prg_dtype_scale_row_bytes(PERIGEE_DTYPE_Q8_0, cols));
    prg_float_mode_leave(&host);
    if (done < count) {
        return prg_fail_at(err, PERIGEE_E_TENSOR, (prg_where){NULL, file->path, (int64_t)(offset + done * row), -1},
                           "%s: a weight among the %zu from byte %llu on is not finite, or too large for q8_0",
                           file->path, cols, (unsigned long long)(offset + done * row));
    }
    return PERIGEE_OK;
}
