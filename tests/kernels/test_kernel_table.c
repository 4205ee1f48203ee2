/* Which rows a table takes and which of them go first; plugins, also bad ones. */
#include "kernels/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kernel_set.h"
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
        ck_assert_str_eq(row->isa, features & PERIGEE_CPU_AMX_BF16 ? "amx_bf16" : "avx512");
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

static void refused_by(const char *kernels, const char *plugins, const char *reason) {
    prg_kernel_table *table = NULL;
    perigee_error *err = NULL;
    const size_t bytes = atomic_load(&allocator->bytes);
    ck_assert_int_eq(prg_kernel_table_new(allocator, kernels, "exact", plugins, NULL, &table, &err), PERIGEE_E_KERNEL);
    ck_assert_msg(strstr(perigee_error_message(err), reason) != NULL, "%s", perigee_error_message(err));
    ck_assert_ptr_null(table);
    ck_assert_uint_eq(atomic_load(&allocator->bytes), bytes);
    perigee_error_free(err);
}

static void refused(const char *plugins, const char *reason) {
    refused_by("auto", plugins, reason);
}

START_TEST(bad_plugins_leave_no_trace) {
    refused(PLUGINS "/none.so", "none.so");
    static const struct {
        const char *kind, *reason;
    } bad[] = {
        {"no_symbol", "exports no perigee_kernel_plugin"},
        {"refusing", "refused with 3"},
        {"version_to_come", "for version 3 of kernels"},
        {"version_none", "for version 0 of kernels"},
        {"short", "struct_size"},
        {"endless", "struct_size"},
        {"part", "struct_size"},
        {"tile", "no size of a tile"},
        {"bound", "bound is not a number"},
        {"flag", "a flag that this version"},
        {"larger", "a member that this version"},
        {"arity", "has 8 parameters, that of the op 9"},
        {"type", "parameter 6 of its signature is i32, in that of the op size"},
        {"const", "parameter 4 of its signature is ptr, in that of the op const ptr"},
        {"result", "returns i32, that of the op void"},
        {"unreadable", "can't be read at byte 15"},
        {"unsigned", "says its signature"},
        {"bare_and_more", "others beside it"},
        {"null", "a function of its op is missing"},
        {"empty", "it has no function"},
        {"op", "its op is not known"},
        {"dtype", "its stored form is not known"},
        {"nameless", "a name is missing"},
        {"name_empty", "a name is empty"},
        {"name_latin", "a name is not UTF-8"},
        {"isa_line", "a name has a control character"},
        {"numerics_control", "a name has a control character"},
        {"host", "HOST rows come in a kernel set only"},
        {"duplicate", "there is one of that name"},
        {"built_in", "from built-in"},
        {"other_table", "from built-in"},
        {"other_machine", "there is one of that name"},
        {"packed", "it packs 1 activations in 4 bytes"},
        {"packed_none", "it packs 1 activations in 0 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/plugin_%s.so", PLUGINS, bad[i].kind);
        refused(path, bad[i].reason);
    }
    refused_by("scalar", PLUGINS "/plugin_other_table.so", "from built-in");
    refused(PLUGINS "/plugin_good.so:" PLUGINS "/plugin_refusing.so", "refused with 3");
    refused(PLUGINS "/plugin_good.so:" PLUGINS "/plugin_good.so", "there is one of that name");
    refused(PLUGINS "/CMakeFiles", "CMakeFiles");
}
END_TEST

START_TEST(other_versions_of_a_row_are_taken) {
    static const char *const kinds[] = {PLUGINS "/plugin_larger_zero.so", PLUGINS "/plugin_first_version.so"};
    for (size_t i = 0; i < 2; i++) {
        prg_kernel_table *table = open_table("auto", "exact", kinds[i]);
        const perigee_kernel_row *row = prg_kernel_table_at(table, prg_kernel_table_count(table) - 1);
        ck_assert_str_eq(row->name, "another");
        ck_assert(row->struct_size == sizeof *row && !row->function && row->run.matmul.multiply);
        prg_kernel_table_free(table);
    }
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

START_TEST(signatures_of_rows_built_in) {
    prg_kernel_table *table = open_table("auto", "fast", "");
    for (size_t i = 0; i < prg_kernel_table_count(table); i++) {
        const perigee_kernel_row *row = prg_kernel_table_at(table, i);
        perigee_kernel_row taken;
        char reason[PRG_REASON_SIZE] = "";
        ck_assert_msg(prg_kernel_row_take(row, &taken, reason), "%s: %s", row->name, reason);
    }
    prg_kernel_table_free(table);
}
END_TEST

/* As a bare function: y = w x, every other result negated so that nothing else can have made it. */
static void bare_product(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m,
                         float *y, size_t ldy) {
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < count; r++) {
            const float *weights = (const float *)(const void *)((const char *)w->codes + (first + r) * w->row_bytes);
            float sum = 0;
            for (size_t c = 0; c < w->cols; c++) {
                sum += weights[c] * x[t * ldx + c];
            }
            y[t * ldy + r] = (first + r) % 2 ? -sum : sum;
        }
    }
}

static void bare_norm(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y) {
    (void)x, (void)gain, (void)gate, (void)eps;
    for (size_t i = 0; i < n; i++) {
        y[i] = 3;
    }
}

static perigee_kernel_row bare_row(uint32_t op, uint32_t dtype, perigee_kernel_fn function, const char *signature) {
    return (perigee_kernel_row){.struct_size = sizeof(perigee_kernel_row),
                                .op = op,
                                .dtype = dtype,
                                .name = "bare",
                                .isa = "host",
                                .numerics = "bare",
                                .signature = signature,
                                .function = function};
}

static void add_bare(perigee_kernel_set *set, uint32_t op, uint32_t dtype, perigee_kernel_fn function,
                     const char *signature, const char *refusal) {
    const perigee_kernel_row row = bare_row(op, dtype, function, signature);
    perigee_error *err = NULL;
    const perigee_status status = perigee_kernel_set_add(set, &row, NULL, &err);
    ck_assert_int_eq(status, refusal ? PERIGEE_E_KERNEL : PERIGEE_OK);
    if (refusal) {
        ck_assert_msg(strstr(perigee_error_message(err), refusal) != NULL, "%s", perigee_error_message(err));
    }
    perigee_error_free(err);
}

#define BARE_PRODUCT "void(const ptr,size,size,const ptr,size,size,ptr,size)"
#define BARE_NORM "void(const ptr,const ptr,const ptr,size,f32,ptr)"

START_TEST(a_bare_function_is_called_as_it_is) {
    enum { ROWS = 5, COLS = 37, M = 3 };
    perigee_kernel_set *set = NULL;
    prg_kernel_table *table = NULL;
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    add_bare(set, PERIGEE_OP_MATMUL, PERIGEE_DTYPE_F32, (perigee_kernel_fn)bare_product, BARE_PRODUCT, NULL);
    add_bare(set, PERIGEE_OP_RMS_NORM, PERIGEE_DTYPE_NONE, (perigee_kernel_fn)bare_norm, BARE_NORM, NULL);
    ck_assert_int_eq(prg_kernel_table_new(allocator, "auto", "exact", "", set, &table, NULL), PERIGEE_OK);
    perigee_kernel_set_free(set);
    /* directly: the very pointer that was registered */
    ck_assert(prg_kernel_table_row(table, PERIGEE_OP_RMS_NORM, 0)->run.norm.rms_norm == bare_norm);
    static float weights[ROWS * COLS], x[M * COLS], y[M * ROWS], gathered[2 * ROWS];
    uint64_t seed = 1;
    test_fill(&seed, 1, weights, ROWS * COLS);
    test_fill(&seed, 1, x, M * COLS);
    const perigee_matrix w = prg_matrix_make(PERIGEE_DTYPE_F32, ROWS, COLS, weights, NULL);
    void *scratch = prg_alloc(allocator, prg_product_scratch(table, ROWS, COLS, M));
    prg_product(table, &w, 1, ROWS - 1, x, COLS, M, y, ROWS, scratch);
    float expected[M * ROWS];
    bare_product(&w, 1, ROWS - 1, x, COLS, M, expected, ROWS);
    for (size_t i = 0; i < M * ROWS; i++) {
        ck_assert(i % ROWS == ROWS - 1 || memcmp(&y[i], &expected[i], sizeof *y) == 0);
    }
    /* rows of activations by number */
    const uint32_t numbers[] = {2, 0};
    const prg_form form = prg_form_of(table, PERIGEE_DTYPE_F32);
    unsigned char *packed =
        prg_alloc(allocator, M * form.row->run.matmul.packed_bytes(COLS) + prg_form_scratch(form, M, COLS));
    form.row->run.matmul.pack(x, COLS, M, COLS, packed);
    prg_form_run(form, &w, 1, ROWS - 1, packed, numbers, 2, gathered, ROWS,
                 packed + M * form.row->run.matmul.packed_bytes(COLS));
    ck_assert(gathered[0] == expected[2 * ROWS] && gathered[ROWS + 3] == expected[3]);
    prg_free(allocator, packed);
    prg_free(allocator, scratch);
    prg_kernel_table_free(table);
}
END_TEST

START_TEST(bare_functions_say_what_they_are) {
    perigee_kernel_set *set = NULL;
    const perigee_kernel_fn product = (perigee_kernel_fn)bare_product, norm = (perigee_kernel_fn)bare_norm;
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    const uint32_t f32 = PERIGEE_DTYPE_F32;
    add_bare(set, PERIGEE_OP_MATMUL, f32, product, NULL, "says its signature");
    add_bare(set, PERIGEE_OP_MATMUL, f32, product, BARE_NORM, "has 6 parameters, that of the op 8");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "void(const ptr,const ptr,const ptr,size,f64,ptr)", "parameter 5");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "void(ptr,const ptr,const ptr,size,f32,ptr)", "parameter 1");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "void(const ptr,const ptr,const ptr,size,f32,const ptr)",
             "parameter 6");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "f32(const ptr,const ptr,const ptr,size,f32,ptr)", "returns f32");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, BARE_NORM " ;", "can't be read at byte 49");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "", "can't be read at byte 0");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "void(size,void)", "can't be read");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm, "void(size,)", "can't be read");
    add_bare(set, PERIGEE_OP_RMS_NORM, 0, norm,
             "void(size,size,size,size,size,size,size,size,size,size,size,size,size,size,size,size,size)", "can't be");
    add_bare(set, PERIGEE_OP_RMS_NORM, f32, norm, BARE_NORM, "no other op does");
    add_bare(set, PERIGEE_OP_SOFTMAX, 0, norm, BARE_NORM, "more than a bare function");
    perigee_kernel_set_free(set);
}
END_TEST

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
          other_versions_of_a_row_are_taken, a_plugin_goes_before_what_is_built_in, signatures_of_rows_built_in,
          a_bare_function_is_called_as_it_is, bare_functions_say_what_they_are,
          rows_of_a_set_are_checked OPENBLAS_TESTS)
