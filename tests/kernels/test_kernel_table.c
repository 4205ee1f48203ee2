/* Which rows a table takes and which of them go first; plugins, also bad ones. */
#include "kernels/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "ops/product.h"
#include "perigee/sys/kernel_set.h"
#include "support/numbers.h"
#include "support/suite.h"

static prg_allocator *allocator;
static size_t before;

static void open_allocator(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    before = atomic_load(&allocator->bytes);
}

static void close_allocator(void) {
    ck_assert_uint_eq(atomic_load(&allocator->bytes), before);
    prg_allocator_drop(allocator);
}

static prg_kernel_table *open_table(const char *kernels, const char *precision, const char *plugins) {
    prg_kernel_table *table = NULL;
    ck_assert_int_eq(prg_kernel_table_new(allocator, kernels, precision, plugins, NULL, &table, NULL), PERIGEE_OK);
    return table;
}

START_TEST(scalar_means_scalar) {
    prg_kernel_table *table = open_table("scalar", "exact", "");
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        perigee_kernel_info info = {.struct_size = sizeof info};
        prg_kernel_table_info(table, i, &info);
        ck_assert_str_eq(info.isa, "scalar");
        ck_assert_str_eq(info.origin, "built-in");
        ck_assert(info.deterministic == 1 && strlen(info.op) > 0 && strlen(info.numerics) > 0);
    }
    ck_assert_str_eq(prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_BF16)->name, "matmul_bf16_scalar");
    prg_kernel_table_free(table);
}
END_TEST

START_TEST(the_best_set_goes_first) {
    const uint64_t features = prg_cpu_features();
    prg_kernel_table *table = open_table("auto", "exact", "");
    const perigee_kernel_row *row = prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_BF16);
    if (features & PERIGEE_CPU_AVX512) {
        ck_assert_str_eq(row->isa, "avx512");
    } else if (features & PERIGEE_CPU_AVX2) {
        ck_assert_str_eq(row->isa, "avx2");
    }
    size_t in_use = 0;
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        perigee_kernel_info info = {.struct_size = sizeof info};
        prg_kernel_table_info(table, i, &info);
        in_use += strcmp(info.op, "matmul") == 0 && strcmp(info.weight, "bf16") == 0 && info.in_use;
    }
    ck_assert_uint_eq(in_use, 1);
    prg_kernel_table_free(table);
}
END_TEST

START_TEST(precision_chooses_the_row) {
    static const char *const names[] = {"exact", "balanced", "fast"};
    for (uint32_t p = 0; p < 3; p++) {
        prg_kernel_table *table = open_table("auto", names[p], "");
        ck_assert_uint_eq(prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_MXFP4)->precision, p);
        ck_assert_uint_le(prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32)->precision, p);
        prg_kernel_table_free(table);
    }
}
END_TEST

START_TEST(names_that_mean_nothing_are_refused) {
    prg_kernel_table *table = NULL;
    perigee_error *err = NULL;
    ck_assert_int_eq(prg_kernel_table_new(allocator, "sse", "exact", "", NULL, &table, &err), PERIGEE_E_ARGUMENT);
    perigee_error_free(err);
    ck_assert_int_eq(prg_kernel_table_new(allocator, "auto", "best", "", NULL, &table, NULL), PERIGEE_E_ARGUMENT);
#if defined(__x86_64__)
    ck_assert_int_eq(prg_kernel_table_new(allocator, "neon", "exact", "", NULL, &table, NULL), PERIGEE_E_UNSUPPORTED);
#endif
    ck_assert_ptr_null(table);
}
END_TEST

static void refused(const char *plugins, const char *reason) {
    prg_kernel_table *table = NULL;
    perigee_error *err = NULL;
    const size_t bytes = atomic_load(&allocator->bytes);
    ck_assert_int_eq(prg_kernel_table_new(allocator, "auto", "exact", plugins, NULL, &table, &err), PERIGEE_E_KERNEL);
    ck_assert_msg(strstr(perigee_error_message(err), reason) != NULL, "%s", perigee_error_message(err));
    ck_assert_ptr_null(table);
    ck_assert_uint_eq(atomic_load(&allocator->bytes), bytes);
    perigee_error_free(err);
}

START_TEST(bad_plugins_leave_no_trace) {
    refused(PLUGINS "/none.so", "none.so");
    refused(PLUGINS "/plugin_empty.so", "perigee_kernel_plugin");
    refused(PLUGINS "/plugin_refusing.so", "refused with 3");
    refused(PLUGINS "/plugin_short.so", "struct_size");
    refused(PLUGINS "/plugin_good.so:" PLUGINS "/plugin_refusing.so", "refused with 3");
}
END_TEST

START_TEST(a_plugin_goes_before_what_is_built_in) {
    prg_kernel_table *table = open_table("auto", "exact", ":" PLUGINS "/plugin_good.so:");
    ck_assert_str_eq(prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F16)->name, "sevens");
    const uint16_t codes[4] = {0};
    const float x[2] = {1, 2};
    float y[2] = {0};
    const perigee_matrix w = prg_matrix_make(PERIGEE_DTYPE_F16, 2, 2, codes, NULL);
    void *scratch = prg_alloc(allocator, prg_product_scratch(table, 2, 2, 1));
    prg_product(table, &w, 0, 2, x, 2, 1, y, 2, scratch);
    ck_assert(y[0] == 7 && y[1] == 7);
    prg_free(allocator, scratch);
    prg_kernel_table_free(table);
}
END_TEST

#ifdef OPENBLAS
START_TEST(openblas_multiplies_within_its_bound) {
    enum { ROWS = 70, COLS = 200, M = 9 };
    prg_kernel_table *table = open_table("auto", "exact", OPENBLAS);
    const perigee_kernel_row *row = prg_kernel_table_row(table, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32);
    ck_assert_str_eq(row->name, "matmul_f32_openblas");
    ck_assert(row->flags & PERIGEE_KERNEL_NONDETERMINISTIC);
    static float weights[ROWS * COLS], x[M * COLS], y[M * ROWS];
    uint64_t seed = 1;
    test_fill(&seed, 1, weights, ROWS * COLS);
    test_fill(&seed, 1, x, M * COLS);
    const perigee_matrix w = prg_matrix_make(PERIGEE_DTYPE_F32, ROWS, COLS, weights, NULL);
    void *scratch = prg_alloc(allocator, prg_product_scratch(table, ROWS, COLS, M));
    prg_product(table, &w, 10, ROWS - 10, x, COLS, M, y, ROWS, scratch);
    for (size_t t = 0; t < M; t++) {
        for (size_t r = 10; r < ROWS; r++) {
            double sum = 0, squares = 0;
            for (size_t c = 0; c < COLS; c++) {
                const double product = (double)weights[r * COLS + c] * x[t * COLS + c];
                sum += product;
                squares += product * product;
            }
            ck_assert(fabs(y[t * ROWS + r - 10] - sum) <= row->error_bound * sqrt(squares));
        }
    }
    prg_free(allocator, scratch);
    prg_kernel_table_free(table);
}
END_TEST
#define OPENBLAS_TESTS , openblas_multiplies_within_its_bound
#else
#define OPENBLAS_TESTS
#endif

START_TEST(rows_of_a_set_are_checked) {
    perigee_kernel_set *set;
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    perigee_kernel_row row = {.struct_size = sizeof row, .op = 999, .name = "x", .isa = "x", .numerics = "x"};
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, &err), PERIGEE_E_KERNEL);
    ck_assert_ptr_nonnull(strstr(perigee_error_message(err), "op"));
    perigee_error_free(err);
    row.op = PERIGEE_OP_MATMUL;
    row.dtype = 77;
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_E_KERNEL);
    row.dtype = PERIGEE_DTYPE_F32;
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_E_KERNEL); /* no functions */
    ck_assert_int_eq(perigee_kernel_set_add(NULL, &row, NULL, NULL), PERIGEE_E_ARGUMENT);
    perigee_kernel_set_free(set);
    perigee_kernel_set_free(NULL);
}
END_TEST

PRG_SUITE("kernel_table", open_allocator, close_allocator, scalar_means_scalar, the_best_set_goes_first,
          precision_chooses_the_row, names_that_mean_nothing_are_refused, bad_plugins_leave_no_trace,
          a_plugin_goes_before_what_is_built_in, rows_of_a_set_are_checked OPENBLAS_TESTS)
