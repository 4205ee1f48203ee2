#include "ops/product.h"

#include "base/alloc.h"
#include "base/checked_math.h"
#include "kernels/plain.h"

/* Rows that are decoded at a time: about half a megabyte of float32, and whole tiles. */
static size_t decode_rows(size_t k) {
    const size_t fit = (512 << 10) / (prg_max(k, 1) * sizeof(float)) / 12 * 12;
    return prg_max(12, prg_min(48, fit));
}

prg_form prg_form_of(const prg_kernel_table *table, uint32_t dtype) {
    const perigee_kernel_row *row = prg_kernel_table_row(table, PERIGEE_OP_MATMUL, dtype);
    if (row) {
        return (prg_form){row, false};
    }
    return (prg_form){prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32), true};
}

/* The best row that is no HOST's and as exact as float32, or NULL. */
static const perigee_kernel_row *own_row(const prg_kernel_table *table, uint32_t dtype) {
    const perigee_kernel_row *best = NULL;
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        if (row->op == PERIGEE_OP_MATMUL && row->dtype == dtype && !(row->flags & PERIGEE_KERNEL_HOST) &&
            row->precision == PERIGEE_PRECISION_EXACT && (!best || row->priority > best->priority)) {
            best = row;
        }
    }
    return best;
}

prg_form prg_form_exact(const prg_kernel_table *table, uint32_t dtype) {
    prg_form form = prg_form_of(table, dtype);
    if (form.row->precision != PERIGEE_PRECISION_EXACT) {
        form.row = own_row(table, dtype);
        form.decode = !form.row;
        if (form.decode) {
            form.row = own_row(table, PERIGEE_DTYPE_F32);
        }
    }
    return form;
}

/* As prg_form_of() for products on any thread, where a HOST row can't be called. */
static prg_form inner_form(const prg_kernel_table *table, uint32_t dtype) {
    prg_form form = prg_form_of(table, dtype);
    if (form.row->flags & PERIGEE_KERNEL_HOST) {
        form.row = own_row(table, dtype);
        form.decode = !form.row;
        if (form.decode) {
            form.row = own_row(table, PERIGEE_DTYPE_F32);
        }
    }
    return form;
}

size_t prg_form_scratch(prg_form form, size_t m, size_t k) {
    if (form.row->flags & PERIGEE_KERNEL_HOST) {
        return 0;
    }
    size_t bytes = prg_scratch_bytes(form.row->run.matmul.scratch_bytes(m, k), 1);
    if (form.decode) {
        bytes += prg_scratch_bytes(decode_rows(k) * k, sizeof(float));
    }
    return bytes;
}

static void multiply(const perigee_kernel_row *row, const perigee_matrix *w, size_t first, size_t count,
                     const void *packed, const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    if (row->function) {
        prg_plain_multiply((prg_plain_fn)row->function, w, first, count, packed, rows, m, y, ldy, scratch);
    } else {
        row->run.matmul.multiply(w, first, count, packed, rows, m, y, ldy, scratch);
    }
}

void prg_form_run(prg_form form, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                  const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    if (!form.decode) {
        multiply(form.row, w, first, count, packed, rows, m, y, ldy, scratch);
        return;
    }
    const prg_dtype *dtype = prg_dtype_get(w->dtype);
    const size_t tile = decode_rows(w->cols);
    float *values = scratch;
    void *rest = (char *)scratch + prg_scratch_bytes(tile * w->cols, sizeof(float));
    for (size_t r = 0; r < count; r += tile) {
        const size_t n = prg_min(tile, count - r);
        for (size_t i = 0; i < n; i++) {
            dtype->decode(w, first + r + i, 0, w->cols, values + i * w->cols);
        }
        const perigee_matrix decoded = prg_matrix_make(PERIGEE_DTYPE_F32, n, w->cols, values, NULL);
        multiply(form.row, &decoded, 0, n, packed, rows, m, y + r, ldy, rest);
    }
}

size_t prg_product_scratch(const prg_kernel_table *table, size_t count, size_t cols, size_t m) {
    size_t product = 0;
    for (uint32_t dtype = PERIGEE_DTYPE_F32; prg_dtype_get(dtype); dtype++) {
        const prg_form form = inner_form(table, dtype);
        product = prg_max(product, m * form.row->run.matmul.packed_bytes(cols) + prg_form_scratch(form, m, cols));
    }
    return prg_max(product, prg_scratch_bytes(count * cols, sizeof(float)));
}

void prg_product(const prg_kernel_table *table, const perigee_matrix *w, size_t first, size_t count, const float *x,
                 size_t ldx, size_t m, float *y, size_t ldy, void *scratch) {
    const prg_form form = inner_form(table, w->dtype);
    const perigee_matmul_functions *f = &form.row->run.matmul;
    f->pack(x, ldx, m, w->cols, scratch);
    prg_form_run(form, w, first, count, scratch, NULL, m, y, ldy, (char *)scratch + m * f->packed_bytes(w->cols));
}

void prg_product_transposed(const prg_kernel_table *table, const perigee_matrix *w, size_t first, size_t count,
                            const float *x, size_t ldx, size_t m, float *y, size_t ldy, void *scratch) {
    const perigee_kernel_row *row = prg_kernel_table_row(table, PERIGEE_OP_MATMUL_TRANSPOSED, w->dtype);
    if (row) {
        row->run.transposed.multiply(w, first, count, x, ldx, m, y, ldy);
        return;
    }
    const prg_dtype *dtype = prg_dtype_get(w->dtype);
    float *values = scratch;
    for (size_t i = 0; i < count; i++) {
        dtype->decode(w, first + i, 0, w->cols, values + i * w->cols);
    }
    const perigee_matrix decoded = prg_matrix_make(PERIGEE_DTYPE_F32, count, w->cols, values, NULL);
    row = prg_kernel_table_row(table, PERIGEE_OP_MATMUL_TRANSPOSED, PERIGEE_DTYPE_F32);
    row->run.transposed.multiply(&decoded, 0, count, x, ldx, m, y, ldy);
}
