/* Every row of the table that multiplies: against double precision within its bound, against scalar bit for bit where
 * numerics are equal, one row of activations against many, and gathered. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dtype/dtype.h"
#include "kernels/table.h"
#include "support/numbers.h"
#include "support/suite.h"

static prg_allocator *allocator;
static prg_kernel_table *table;

static void open_table(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_kernel_table_new(allocator, "auto", "fast", "", NULL, &table, NULL), PERIGEE_OK);
}

static void close_table(void) {
    prg_kernel_table_free(table);
    prg_allocator_drop(allocator);
}

typedef struct problem {
    perigee_matrix w;
    unsigned char *codes, *scales;
    float *weights; /* as decoded */
    float *x;
    size_t m;
} problem;

static void *block(size_t bytes) {
    void *p = prg_alloc(allocator, bytes);
    ck_assert_ptr_nonnull(p);
    return p;
}

/* Codes and scales end where their heap blocks do, so that a sanitizer sees a read behind them. */
static problem make_problem(uint32_t dtype, size_t rows, size_t cols, size_t m, uint64_t seed) {
    problem p = {.m = m};
    float *values = block(rows * cols * sizeof *values);
    test_fill(&seed, 0.05f, values, rows * cols);
    const prg_dtype *form = prg_dtype_get(dtype);
    const size_t code_bytes = rows * prg_dtype_row_bytes(dtype, cols);
    p.codes = malloc(code_bytes);
    p.scales = malloc(prg_dtype_matrix_bytes(dtype, rows, cols) - code_bytes + 1);
    ck_assert(p.codes && p.scales);
    form->encode(values, rows, cols, p.codes, p.scales);
    p.w = prg_matrix_make(dtype, rows, cols, p.codes, form->scale_rows ? p.scales : NULL);
    for (size_t r = 0; r < rows; r++) {
        form->decode(&p.w, r, 0, cols, values + r * cols);
    }
    p.weights = values;
    p.x = block(m * cols * sizeof *p.x);
    test_fill(&seed, 3, p.x, m * cols);
    return p;
}

static void free_problem(problem *p) {
    free(p->codes);
    free(p->scales);
    prg_free(allocator, p->weights);
    prg_free(allocator, p->x);
}

static void run(const perigee_kernel_row *row, const problem *p, size_t first, size_t count, const uint32_t *rows,
                size_t m, float *y, size_t ldy) {
    const perigee_matmul_functions *f = &row->run.matmul;
    const size_t k = p->w.cols, bytes = f->packed_bytes(k);
    ck_assert_uint_eq(bytes % 64, 0);
    void *packed = block(p->m * bytes), *scratch = block(f->scratch_bytes(m, k));
    f->pack(p->x, k, p->m, k, packed);
    f->multiply(&p->w, first, count, packed, rows, m, y, ldy, scratch);
    prg_free(allocator, packed);
    prg_free(allocator, scratch);
}

static const perigee_kernel_row *scalar_of(const perigee_kernel_row *row) {
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *other = prg_kernel_table_at(table, i);
        if (other->op == row->op && other->dtype == row->dtype && strcmp(other->isa, "scalar") == 0 &&
            strcmp(other->numerics, row->numerics) == 0) {
            return other;
        }
    }
    return NULL;
}

/* The mean error of balanced rows is bounded too. */
static void check_bound(const perigee_kernel_row *row, const problem *p, const float *y, size_t ldy) {
    const size_t k = p->w.cols;
    double total = 0;
    for (size_t t = 0; t < p->m; t++) {
        for (size_t r = 0; r < p->w.rows; r++) {
            double sum = 0, squares = 0;
            for (size_t c = 0; c < k; c++) {
                const double product = (double)p->weights[r * k + c] * p->x[t * k + c];
                sum += product;
                squares += product * product;
            }
            const double error = fabs(y[t * ldy + r] - sum);
            ck_assert_msg(error <= row->error_bound * sqrt(squares) + 1e-37,
                          "%s: k %zu, m %zu, row %zu of activations, row %zu: %g is not %g, off by %g", row->name, k,
                          p->m, t, r, (double)y[t * ldy + r], sum, error / sqrt(squares));
            total += squares > 0 ? error * error / squares : 0;
        }
    }
    const double count = (double)(p->m * p->w.rows), mean = sqrt(total / count);
    ck_assert_msg(row->precision != PERIGEE_PRECISION_BALANCED || count < 800 || mean <= 2e-5,
                  "%s: k %zu, m %zu: mean error %g", row->name, k, p->m, mean);
}

static void check_shape(const perigee_kernel_row *row, size_t rows, size_t k, size_t m) {
    const perigee_kernel_row *scalar = scalar_of(row);
    problem p = make_problem(row->dtype, rows, k, m, rows * 1000 + k * 10 + m);
    const size_t ldy = rows + 3;
    float *y = block(m * ldy * sizeof *y), *other = block(m * ldy * sizeof *y);
    for (size_t i = 0; i < m * ldy; i++) {
        y[i] = other[i] = -77;
    }
    run(row, &p, 0, rows, NULL, m, y, ldy);
    check_bound(row, &p, y, ldy);
    for (size_t t = 0; t < m; t++) {
        for (size_t r = rows; r < ldy; r++) {
            ck_assert_msg(y[t * ldy + r] == -77, "%s writes behind a row", row->name);
        }
    }
    if (scalar) {
        run(scalar, &p, 0, rows, NULL, m, other, ldy);
        ck_assert_msg(memcmp(y, other, m * ldy * sizeof *y) == 0, "%s: k %zu, m %zu: bits differ from scalar's",
                      row->name, k, m);
    }
    const perigee_kernel_row *decoded = prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32);
    if (!scalar && strcmp(row->numerics, decoded->numerics) == 0) { /* as if the weights were decoded first */
        problem values = p;
        values.w = prg_matrix_make(PERIGEE_DTYPE_F32, rows, k, p.weights, NULL);
        run(decoded, &values, 0, rows, NULL, m, other, ldy);
        ck_assert_msg(memcmp(y, other, m * ldy * sizeof *y) == 0, "%s: k %zu, m %zu: bits differ from decoded weights",
                      row->name, k, m);
    }
    for (uint32_t t = 0; t < m; t += 2) { /* alone, and in a smaller range of rows */
        const size_t first = rows / 3, count = rows - first;
        run(row, &p, first, count, &t, 1, other, ldy);
        ck_assert_msg(memcmp(other, y + t * ldy + first, count * sizeof *y) == 0,
                      "%s: k %zu, row %u of %zu alone: bits differ", row->name, k, t, m);
    }
    const uint32_t gathered[5] = {(uint32_t)m - 1, 0, (uint32_t)m / 2, 0, (uint32_t)m - 1};
    float *few = block(5 * ldy * sizeof *few);
    run(row, &p, 0, rows, gathered, 5, few, ldy);
    for (size_t t = 0; t < 5; t++) {
        ck_assert_msg(memcmp(few + t * ldy, y + gathered[t] * ldy, rows * sizeof *y) == 0,
                      "%s: k %zu: gathered rows differ", row->name, k);
    }
    prg_free(allocator, few);
    prg_free(allocator, y);
    prg_free(allocator, other);
    free_problem(&p);
}

START_TEST(rows_compute_what_they_say) {
    static const size_t widths[] = {1, 31, 32, 33, 64, 100, 129, 257, 480, 1056};
    static const size_t batches[] = {1, 2, 3, 5, 7, 16, 17, 64};
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        if (row->op != PERIGEE_OP_MATMUL) {
            continue;
        }
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++) {
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                check_shape(row, batches[b] == 64 ? 7 : 53, widths[j], batches[b]);
            }
        }
        if (prg_dtype_get(row->dtype)->scale_cols != 32) {
            check_shape(row, 130, 2080, 101); /* several panels, blocks of K and chunks of tokens */
            check_shape(row, 259, 1100, 3);
            for (size_t m = 1; m <= 40; m++) {
                check_shape(row, 29, 417, m);
            }
        } else {
            check_shape(row, 30, 1100, 11); /* three superblocks */
        }
    }
}
END_TEST

static bool is_block_form(const perigee_kernel_row *row) {
    return row->op == PERIGEE_OP_MATMUL &&
           (row->dtype == PERIGEE_DTYPE_MXFP4 || row->dtype == PERIGEE_DTYPE_INT4 || row->dtype == PERIGEE_DTYPE_Q8_0);
}

/* Blocks at the ends of what the codes can hold, a kind for each row of weights. */
static void fill_hard(uint32_t dtype, problem *p, uint64_t seed) {
    const size_t cols = p->w.cols;
    const size_t scale_bytes = prg_dtype_get(dtype)->scale_bytes, scales = p->w.scale_row_bytes / scale_bytes;
    for (size_t r = 0; r < p->w.rows; r++) {
        static const uint8_t codes[8] = {0x91, 0x2f, 0x7c, 0x00, 0x88, 0x77, 0xff, 0x80};
        static const uint8_t e8m0[8] = {0, 1, 254, 127, 127, 130, 120, 126};
        for (size_t i = 0; i < p->w.row_bytes; i++) {
            const bool noise = r < 3 || r == 7;
            p->codes[r * p->w.row_bytes + i] = noise ? (uint8_t)test_random(&seed) : codes[r];
        }
        for (size_t g = 0; g < scales; g++) {
            const float value = r == 3 ? 0 : r == 4 ? -1 : ldexpf(1, (int)(test_random(&seed) % 20) - 10);
            const uint16_t half = dtype == PERIGEE_DTYPE_INT4 ? prg_f32_to_bf16(value) : prg_f32_to_f16(value);
            const uint8_t byte = r == 7 ? (uint8_t)(110 + test_random(&seed) % 30) : e8m0[r];
            memcpy(p->scales + r * p->w.scale_row_bytes + g * scale_bytes,
                   scale_bytes == 1 ? (const void *)&byte : (const void *)&half, scale_bytes);
        }
    }
    for (size_t i = 0; i < p->m * cols; i++) {
        p->x[i] = 1e-4f * test_uniform(&seed);
    }
}

/* In double, because 6 * 2^127 is beyond float32. */
static double weight_at(const problem *p, size_t r, size_t c) {
    float value;
    if (p->w.dtype == PERIGEE_DTYPE_MXFP4) {
        perigee_matrix w = p->w;
        const uint8_t one[] = {127};
        w.scales = one;
        w.scale_row_bytes = 0;
        w.codes = p->codes + r * p->w.row_bytes + c / 32 * 16;
        prg_dtype_get(w.dtype)->decode(&w, 0, c % 32, 1, &value);
        return ldexp(value, p->scales[r * p->w.scale_row_bytes + c / 32] - 127);
    }
    prg_dtype_get(p->w.dtype)->decode(&p->w, r, c, 1, &value);
    return value;
}

static void check_hard(const perigee_kernel_row *row, size_t k, size_t m) {
    enum { ROWS = 8 };
    problem p = make_problem(row->dtype, ROWS, k, m, k + m);
    fill_hard(row->dtype, &p, k);
    float *y = block(m * ROWS * sizeof *y), *other = block(m * ROWS * sizeof *y);
    run(row, &p, 0, ROWS, NULL, m, y, ROWS);
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < ROWS; r++) {
            double sum = 0, squares = 0;
            for (size_t c = 0; c < k; c++) {
                const double product = weight_at(&p, r, c) * p.x[t * k + c];
                sum += product;
                squares += product * product;
            }
            ck_assert_msg(fabs(y[t * ROWS + r] - sum) <= row->error_bound * sqrt(squares) + 1e-37,
                          "%s: k %zu, hard row %zu: %g is not %g", row->name, k, r, (double)y[t * ROWS + r], sum);
        }
    }
    const perigee_kernel_row *scalar = scalar_of(row);
    ck_assert(scalar || strcmp(row->isa, "amx_bf16") == 0); /* which has an order of sums of its own */
    for (uint32_t t = 0; t < m; t++) {
        run(scalar ? scalar : row, &p, 0, ROWS, &t, 1, other, ROWS);
        ck_assert_msg(memcmp(y + t * ROWS, other, ROWS * sizeof *y) == 0, "%s: hard blocks: bits differ", row->name);
    }
    prg_free(allocator, y);
    prg_free(allocator, other);
    free_problem(&p);
}

START_TEST(hard_blocks_are_within_bounds) {
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        if (is_block_form(row)) {
            check_hard(row, 1024, 1);
            check_hard(row, 1600, 6);
        }
    }
}
END_TEST

/* All codes of FP8 under scales of every size, as if they were decoded first; an output is no number where its row
 * holds a code that is none. */
static void check_codes(const perigee_kernel_row *row, const perigee_kernel_row *decoded, size_t k, size_t m) {
    enum { ROWS = 259 };
    static const float sizes[] = {1, -0.01f, 0x1p-140f, 300, 127.5f, -128, 0x1p-126f, 1e25f};
    problem p = make_problem(row->dtype, ROWS, k, m, k + m);
    uint64_t seed = k;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < k; c++) {
            uint8_t *code = &p.codes[r * p.w.row_bytes + c];
            *code = (uint8_t)(r % 3 == 0 ? c + r : r % 3 == 1 ? test_random(&seed) % 8 : test_random(&seed));
            *code ^= (*code & 127) == 127 && (r % 5 || c < k / 2);
        }
    }
    for (size_t i = 0; i < (ROWS + 127) / 128 * p.w.scale_row_bytes / sizeof *sizes; i++) {
        memcpy(p.scales + i * sizeof *sizes, &sizes[(i + k) % (sizeof sizes / sizeof *sizes)], sizeof *sizes);
    }
    for (size_t r = 0; r < ROWS; r++) {
        prg_dtype_get(row->dtype)->decode(&p.w, r, 0, k, p.weights + r * k);
    }
    problem values = p;
    values.w = prg_matrix_make(PERIGEE_DTYPE_F32, ROWS, k, p.weights, NULL);
    float *y = block(m * ROWS * sizeof *y), *other = block(m * ROWS * sizeof *y);
    run(row, &p, 0, ROWS, NULL, m, y, ROWS);
    run(decoded, &values, 0, ROWS, NULL, m, other, ROWS);
    for (size_t n = 0; n < m * ROWS; n++) {
        ck_assert_msg(isnan(other[n]) ? isnan(y[n]) : memcmp(&y[n], &other[n], sizeof *y) == 0,
                      "%s: k %zu, m %zu, row %zu: %g is not %g", row->name, k, m, n % ROWS, (double)y[n],
                      (double)other[n]);
    }
    prg_free(allocator, y);
    prg_free(allocator, other);
    free_problem(&p);
}

START_TEST(fp8_codes_are_what_they_decode_to) {
    const perigee_kernel_row *decoded = NULL;
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        decoded = strcmp(row->name, "matmul_f32_scalar") == 0 ? row : decoded;
    }
    ck_assert_ptr_nonnull(decoded);
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        if (row->op == PERIGEE_OP_MATMUL && row->dtype == PERIGEE_DTYPE_FP8 &&
            strcmp(row->numerics, decoded->numerics) == 0) {
            for (size_t m = 1; m <= 6; m++) {
                check_codes(row, decoded, 1024, m);
                check_codes(row, decoded, 433 + m, m);
            }
        }
    }
}
END_TEST

/* Sums of the largest codes times the largest parts of activations, all of one sign, so that nothing may overflow. */
static void fill_largest(problem *p) {
    static const uint8_t nibbles[] = {0x77, 0xff, 0x00, 0x88}, bytes[] = {0x7f, 0x80, 0x81, 0xff};
    const size_t cols = p->w.cols;
    for (size_t r = 0; r < p->w.rows; r++) {
        memset(p->codes + r * p->w.row_bytes, p->w.dtype == PERIGEE_DTYPE_Q8_0 ? bytes[r % 4] : nibbles[r % 4],
               p->w.row_bytes);
    }
    for (size_t i = 0; i < p->m * cols; i++) {
        /* 127 alone; or 126, 127 in the first two parts, or its negative in the second */
        static const float sizes[] = {1, 126.4999f / 127, 125.5001f / 127};
        const size_t t = i / cols;
        p->x[i] = (t % 2 ? -1.0f : 1.0f) * (i % cols % 32 == 0 ? 1 : sizes[t / 2 % 3]);
    }
}

START_TEST(largest_sums_do_not_overflow) {
    enum { ROWS = 9, K = 1120, M = 7 };
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i), *scalar = scalar_of(row);
        if (!is_block_form(row) || !scalar) {
            continue;
        }
        problem p = make_problem(row->dtype, ROWS, K, M, i);
        float y[M * ROWS], other[M * ROWS];
        fill_largest(&p);
        run(scalar, &p, 0, ROWS, NULL, M, other, ROWS);
        run(row, &p, 0, ROWS, NULL, M, y, ROWS);
        ck_assert_msg(memcmp(y, other, sizeof y) == 0, "%s: largest sums differ from scalar's", row->name);
        for (uint32_t t = 0; t < M; t++) {
            run(row, &p, 0, ROWS, &t, 1, y, ROWS);
            ck_assert_msg(memcmp(y, other + t * ROWS, ROWS * sizeof *y) == 0, "%s: largest sums, row %u alone",
                          row->name, t);
        }
        free_problem(&p);
    }
}
END_TEST

/* Whatever is left of tiles, panels and blocks. */
START_TEST(every_count_gives_the_same_bits) {
    enum { ROWS = 19, MOST = 40 };
    static const size_t widths[] = {600, 2080};
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i), *scalar = scalar_of(row);
        for (size_t j = 0; j < 2 && is_block_form(row) && scalar; j++) {
            problem p = make_problem(row->dtype, ROWS, widths[j], MOST, i);
            float *y = block(MOST * ROWS * sizeof *y), *other = block(MOST * ROWS * sizeof *y);
            run(scalar, &p, 0, ROWS, NULL, MOST, other, ROWS);
            for (size_t m = 1; m <= MOST; m++) {
                const size_t count = m % ROWS + 1, first = ROWS - count;
                run(row, &p, first, count, NULL, m, y, ROWS);
                for (size_t t = 0; t < m; t++) {
                    ck_assert_msg(memcmp(y + t * ROWS, other + t * ROWS + first, count * sizeof *y) == 0,
                                  "%s: k %zu, %zu rows by %zu: bits of row %zu differ", row->name, widths[j], count, m,
                                  t);
                }
            }
            prg_free(allocator, y);
            prg_free(allocator, other);
            free_problem(&p);
        }
    }
}
END_TEST

/* An activation, or a scale, that is no number shows in every output that it belongs to, and in no other. */
START_TEST(what_is_not_finite_shows) {
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    enum { ROWS = 9, K = 600, M = 6 };
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        for (size_t j = 0; row->op == PERIGEE_OP_MATMUL && j < 3; j++) {
            problem p = make_problem(row->dtype, ROWS, K, M, 5);
            float y[M * ROWS];
            p.x[2 * K + 577 - j] = wrong[j];
            run(row, &p, 0, ROWS, NULL, M, y, ROWS);
            for (size_t n = 0; n < (size_t)M * ROWS; n++) {
                ck_assert_msg((isfinite(y[n]) == 0) == (n / ROWS == 2), "%s: output %zu", row->name, n);
            }
            if (row->dtype == PERIGEE_DTYPE_MXFP4) {
                p.scales[4 * p.w.scale_row_bytes + 18] = 255;
                run(row, &p, 0, ROWS, NULL, M, y, ROWS);
                for (size_t t = 0; t < M; t++) {
                    ck_assert_msg(isnan(y[t * ROWS + 4]) && (t == 2 || isfinite(y[t * ROWS + 5])), "%s", row->name);
                }
            }
            free_problem(&p);
        }
    }
}
END_TEST

/* A sum of nothing is 0, however many rows of activations there are. */
START_TEST(no_columns_give_zeros) {
    enum { ROWS = 5, MOST = 30 };
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        for (size_t m = 1; row->op == PERIGEE_OP_MATMUL && row->features <= PERIGEE_CPU_AVX2 && m <= MOST; m++) {
            problem p = make_problem(row->dtype, ROWS, 0, m, i);
            float y[MOST * ROWS];
            memset(y, 0xff, sizeof y);
            run(row, &p, 0, ROWS, NULL, m, y, ROWS);
            for (size_t n = 0; n < m * ROWS; n++) {
                ck_assert_msg(y[n] == 0, "%s: output %zu of %zu rows", row->name, n, m);
            }
            free_problem(&p);
        }
    }
}
END_TEST

START_TEST(all_forms_have_a_row) {
    size_t seen = 0;
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        seen += prg_kernel_table_at(table, i)->op == PERIGEE_OP_MATMUL;
    }
    ck_assert_uint_ge(seen, 3);
    ck_assert_ptr_nonnull(prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32));
    ck_assert_ptr_nonnull(prg_kernel_table_row(table, PERIGEE_OP_MATMUL_TRANSPOSED, PERIGEE_DTYPE_F32));
}
END_TEST

static void check_transposed(const perigee_kernel_row *row, size_t rows, size_t cols, size_t m) {
    const perigee_kernel_row *scalar = scalar_of(row);
    problem p = make_problem(row->dtype, rows, cols, 1, rows + cols);
    uint64_t seed = m;
    const size_t first = rows / 4, count = rows - first, ldx = count + 5, ldy = cols + 3;
    float *x = block(m * ldx * sizeof *x), *y = block(m * ldy * sizeof *y), *other = block(m * ldy * sizeof *y);
    test_fill(&seed, 2, x, m * ldx);
    for (size_t i = 0; i < m * ldy; i++) {
        y[i] = other[i] = -77;
    }
    row->run.transposed.multiply(&p.w, first, count, x, ldx, m, y, ldy);
    for (size_t t = 0; t < m; t++) {
        for (size_t c = 0; c < cols; c++) {
            double sum = 0, squares = 0;
            for (size_t r = 0; r < count; r++) {
                const double product = (double)p.weights[(first + r) * cols + c] * x[t * ldx + r];
                sum += product;
                squares += product * product;
            }
            /* one chain of float32: the bound grows with its length */
            ck_assert_msg(fabs(y[t * ldy + c] - sum) <=
                              row->error_bound * fmax(1, sqrt((double)count / 32)) * sqrt(squares) + 1e-37,
                          "%s: %zu x %zu, row %zu, column %zu", row->name, count, cols, t, c);
        }
        ck_assert(y[t * ldy + cols] == -77);
    }
    ck_assert_ptr_nonnull(scalar);
    scalar->run.transposed.multiply(&p.w, first, count, x, ldx, m, other, ldy);
    ck_assert_msg(memcmp(y, other, m * ldy * sizeof *y) == 0, "%s: bits differ from scalar's", row->name);
    prg_free(allocator, x);
    prg_free(allocator, y);
    prg_free(allocator, other);
    free_problem(&p);
}

START_TEST(transposed_rows_compute_what_they_say) {
    static const size_t columns[] = {1, 15, 16, 63, 64, 65, 200, 512, 777};
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        for (size_t c = 0; row->op == PERIGEE_OP_MATMUL_TRANSPOSED && c < sizeof columns / sizeof *columns; c++) {
            for (size_t m = 1; m <= 9; m += 2) {
                check_transposed(row, 43, columns[c], m);
            }
            check_transposed(row, 180, columns[c], 13);
        }
    }
}
END_TEST

PRG_SUITE("matmul_rows", open_table, close_table, rows_compute_what_they_say, hard_blocks_are_within_bounds,
          fp8_codes_are_what_they_decode_to, largest_sums_do_not_overflow, every_count_gives_the_same_bits,
          what_is_not_finite_shows, no_columns_give_zeros, all_forms_have_a_row, transposed_rows_compute_what_they_say)
