/* Products over threads: every stored form, gathered activations, gates, weights, rows of a host; the same bits with
 * any number of threads, in no more scratch than is said. */
#include <math.h>
#include <string.h>

#include "ops/ops.h"
#include "perigee/sys/kernel_set.h"
#include "support/numbers.h"
#include "support/suite.h"

enum { MOST_JOBS = 8 };

static prg_allocator *allocator;

static void open_allocator(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
}

static void close_allocator(void) {
    ck_assert_uint_eq(atomic_load(&allocator->references), 1);
    prg_allocator_drop(allocator);
}

static void *block(size_t bytes) {
    void *p = prg_alloc(allocator, bytes);
    ck_assert_ptr_nonnull(p);
    return p;
}

/* What an op needs to run. */
typedef struct bench {
    prg_kernel_table *table;
    prg_pool *pool;
    prg_scratch scratch;
    int64_t weight_bytes;
    prg_exec exec;
} bench;

static void bench_open(bench *b, const char *kernels, const perigee_kernel_set *set, size_t threads, size_t scratch) {
    *b = (bench){0};
    ck_assert_int_eq(prg_kernel_table_new(allocator, kernels, "exact", "", set, &b->table, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_pool_new(allocator, threads, "", &b->pool, NULL), PERIGEE_OK);
    b->scratch.base = block(scratch);
    b->scratch.capacity = scratch;
    b->exec = (prg_exec){b->table, b->pool, &b->scratch, &b->weight_bytes};
    ck_assert_int_eq(prg_pool_enter(b->pool, NULL), PERIGEE_OK);
}

static void bench_close(bench *b) {
    ck_assert_uint_eq(b->scratch.used, 0);
    prg_pool_leave(b->pool);
    prg_pool_free(b->pool);
    prg_kernel_table_free(b->table);
    prg_free(allocator, b->scratch.base);
}

typedef struct weights {
    perigee_matrix w;
    void *codes, *scales;
    float *values;
} weights;

static weights make_weights(uint32_t dtype, size_t rows, size_t cols, uint64_t seed) {
    weights made = {.values = block(rows * cols * sizeof(float))};
    const prg_dtype *form = prg_dtype_get(dtype);
    test_fill(&seed, 0.3f, made.values, rows * cols);
    made.codes = block(prg_dtype_matrix_bytes(dtype, rows, cols));
    made.scales = block(prg_dtype_matrix_bytes(dtype, rows, cols));
    form->encode(made.values, rows, cols, made.codes, made.scales);
    made.w = prg_matrix_make(dtype, rows, cols, made.codes, form->scale_rows ? made.scales : NULL);
    for (size_t r = 0; r < rows; r++) {
        form->decode(&made.w, r, 0, cols, made.values + r * cols);
    }
    return made;
}

static void free_weights(weights *w) {
    prg_free(allocator, w->values);
    prg_free(allocator, w->codes);
    prg_free(allocator, w->scales);
}

static double dot(const weights *w, size_t row, const float *x, double *size) {
    double sum = 0, squares = 0;
    for (size_t c = 0; c < w->w.cols; c++) {
        const double product = (double)w->values[row * w->w.cols + c] * x[c];
        sum += product;
        squares += product * product;
    }
    *size = sqrt(squares);
    return sum;
}

static size_t exact_scratch(const char *kernels, size_t threads, size_t n, size_t m, size_t k) {
    prg_kernel_table *table;
    ck_assert_int_eq(prg_kernel_table_new(allocator, kernels, "exact", "", NULL, &table, NULL), PERIGEE_OK);
    const size_t bytes = prg_matmul_scratch(table, threads, n, m, k);
    prg_kernel_table_free(table);
    return bytes;
}

static const uint32_t forms[] = {PERIGEE_DTYPE_F32,  PERIGEE_DTYPE_F16, PERIGEE_DTYPE_BF16, PERIGEE_DTYPE_MXFP4,
                                 PERIGEE_DTYPE_INT4, PERIGEE_DTYPE_FP8, PERIGEE_DTYPE_Q8_0};

/* Two jobs of each form: one over all activations, one over some of them and some rows. */
static void check_plain(uint32_t form, const char *kernels, size_t m) {
    enum { ROWS = 150, COLS = 288 };
    static const size_t threads[] = {1, 2, 5};
    weights w = make_weights(form, ROWS, COLS, form);
    uint64_t seed = m;
    float *x = block(m * COLS * sizeof *x);
    test_fill(&seed, 1, x, m * COLS);
    const uint32_t some[] = {(uint32_t)m - 1, 0, (uint32_t)m / 2};
    float *first = NULL;
    for (size_t i = 0; i < 3; i++) {
        bench b;
        bench_open(&b, kernels, NULL, threads[i], exact_scratch(kernels, threads[i], 2, m + 3, COLS));
        float *y = block((m * ROWS + 3 * 100) * sizeof *y), *y2 = y + m * ROWS;
        const prg_matmul_job jobs[2] = {{&w.w, 0, ROWS, {x, COLS, m, COLS, NULL}, y, ROWS},
                                        {&w.w, 31, 100, {x, COLS, 3, COLS, some}, y2, 100}};
        ck_assert_int_eq(prg_matmul(&b.exec, jobs, 2, NULL), PERIGEE_OK);
        ck_assert_int_ge(b.weight_bytes, (int64_t)(w.w.row_bytes * 250));
        bench_close(&b);
        for (size_t t = 0; i == 0 && t < m; t++) {
            for (size_t r = 0; r < ROWS; r++) {
                double size, sum = dot(&w, r, x + t * COLS, &size);
                ck_assert_msg(fabs(y[t * ROWS + r] - sum) <= 1e-6 * size, "form %u, m %zu, %zu, %zu: %g %g", form, m, t,
                              r, (double)y[t * ROWS + r], sum);
            }
        }
        for (size_t t = 0; t < 3; t++) {
            ck_assert(memcmp(y2 + t * 100, y + some[t] * ROWS + 31, 100 * sizeof *y) == 0);
        }
        if (first) {
            ck_assert_msg(memcmp(first, y, m * ROWS * sizeof *y) == 0, "%zu threads: bits differ", threads[i]);
            prg_free(allocator, y);
        } else {
            first = y;
        }
    }
    prg_free(allocator, first);
    prg_free(allocator, x);
    free_weights(&w);
}

START_TEST(every_form_multiplies) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check_plain(forms[i], "scalar", 2);
        check_plain(forms[i], "auto", 1);
        check_plain(forms[i], "auto", 3);
        check_plain(forms[i], "auto", 70);
    }
}
END_TEST

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double activated(const prg_gate *gate, double g, double u) {
    if (gate->kind == PRG_SILU) {
        return g * sigmoid(g) * u;
    }
    return gate->beta * tanh(g / gate->beta) * sigmoid(g) *
           (gate->linear_beta > 0 ? gate->linear_beta * tanh(u / gate->linear_beta) : u);
}

/* Two experts over parts of the activations; `up_form` may pack in another way than `gate_form`. */
static void check_gated(uint32_t gate_form, uint32_t up_form, prg_gate gate, size_t m) {
    enum { ROWS = 230, COLS = 96 };
    weights g = make_weights(gate_form, ROWS, COLS, 1), u = make_weights(up_form, ROWS, COLS, 2);
    uint64_t seed = 3;
    float *x = block(m * COLS * sizeof *x), *first = NULL;
    test_fill(&seed, 2, x, m * COLS);
    uint32_t some[64];
    for (uint32_t t = 0; t < m; t++) {
        some[t] = (uint32_t)m - 1 - t;
    }
    for (size_t threads = 1; threads <= 3; threads++) {
        bench b;
        bench_open(&b, "auto", NULL, threads, exact_scratch("auto", threads, 2, 2 * m, COLS));
        float *y = block(2 * m * ROWS * sizeof *y);
        const prg_gated_job jobs[2] = {{&g.w, &u.w, {x, COLS, m, COLS, NULL}, y, ROWS},
                                       {&g.w, &u.w, {x, COLS, m, COLS, some}, y + m * ROWS, ROWS}};
        ck_assert_int_eq(prg_gated_matmul(&b.exec, jobs, 2, gate, NULL), PERIGEE_OK);
        bench_close(&b);
        for (size_t t = 0; threads == 1 && t < m; t++) {
            for (size_t r = 0; r < ROWS; r++) {
                double size;
                const double want = activated(&gate, dot(&g, r, x + t * COLS, &size), dot(&u, r, x + t * COLS, &size));
                ck_assert_msg(fabs(y[t * ROWS + r] - want) <= 1e-5 * (fabs(want) + 1), "%g is not %g",
                              (double)y[t * ROWS + r], want);
            }
        }
        for (size_t t = 0; t < m; t++) {
            ck_assert(memcmp(y + (m + t) * ROWS, y + some[t] * ROWS, ROWS * sizeof *y) == 0);
        }
        if (first) {
            ck_assert(memcmp(first, y, 2 * m * ROWS * sizeof *y) == 0);
            prg_free(allocator, y);
        } else {
            first = y;
        }
    }
    prg_free(allocator, first);
    prg_free(allocator, x);
    free_weights(&g);
    free_weights(&u);
}

START_TEST(gates_are_applied) {
    const prg_gate silu = {PRG_SILU, 0, 0}, situ = {PRG_SITU, 1.5f, 2.5f}, half_situ = {PRG_SITU, 0.75f, 0};
    check_gated(PERIGEE_DTYPE_BF16, PERIGEE_DTYPE_BF16, silu, 1);
    check_gated(PERIGEE_DTYPE_BF16, PERIGEE_DTYPE_BF16, situ, 17);
    check_gated(PERIGEE_DTYPE_MXFP4, PERIGEE_DTYPE_MXFP4, half_situ, 64);
    check_gated(PERIGEE_DTYPE_BF16, PERIGEE_DTYPE_F32, silu, 5);
    check_gated(PERIGEE_DTYPE_F32, PERIGEE_DTYPE_BF16, situ, 1);
}
END_TEST

/* Three experts that add to rows which they share, in the order of the jobs. */
START_TEST(weighted_products_add_in_order) {
    enum { ROWS = 201, COLS = 64, M = 9 };
    weights w[3] = {make_weights(PERIGEE_DTYPE_BF16, ROWS, COLS, 1), make_weights(PERIGEE_DTYPE_F32, ROWS, COLS, 2),
                    make_weights(PERIGEE_DTYPE_BF16, ROWS, COLS, 3)};
    const uint32_t target[3][M] = {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1, 0}, {2, 4, 6, 8}};
    const size_t counts[3] = {M, M, 4};
    float share[3][M];
    uint64_t seed = 5;
    float *x = block(3 * M * COLS * sizeof *x), *y[4], *want = block(M * ROWS * sizeof *want);
    test_fill(&seed, 2, x, 3 * M * COLS);
    test_fill(&seed, 1, share[0], 3 * M);
    test_fill(&seed, 1, want, M * ROWS);
    for (size_t threads = 1; threads <= 4; threads++) {
        bench b;
        bench_open(&b, "auto", NULL, threads, exact_scratch("auto", threads, 3, 3 * M, COLS));
        y[threads - 1] = block(M * ROWS * sizeof *want);
        memcpy(y[threads - 1], want, M * ROWS * sizeof *want);
        prg_weighted_job jobs[3];
        for (size_t j = 0; j < 3; j++) {
            jobs[j] = (prg_weighted_job){&w[j].w, {x + j * M * COLS, COLS, counts[j], COLS, NULL}, target[j], share[j]};
        }
        ck_assert_int_eq(prg_weighted_matmul(&b.exec, jobs, 3, y[threads - 1], ROWS, NULL), PERIGEE_OK);
        bench_close(&b);
        ck_assert(memcmp(y[0], y[threads - 1], M * ROWS * sizeof *want) == 0);
    }
    for (size_t r = 0; r < ROWS; r++) {
        double sum[M], size;
        for (size_t t = 0; t < M; t++) {
            sum[t] = want[t * ROWS + r];
        }
        for (size_t j = 0; j < 3; j++) {
            for (size_t t = 0; t < counts[j]; t++) {
                sum[target[j][t]] += share[j][t] * dot(&w[j], r, x + (j * M + t) * COLS, &size);
            }
        }
        for (size_t t = 0; t < M; t++) {
            ck_assert(fabs(sum[t] - y[0][t * ROWS + r]) < 1e-5);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        prg_free(allocator, y[i]);
    }
    prg_free(allocator, x);
    prg_free(allocator, want);
    for (size_t j = 0; j < 3; j++) {
        free_weights(&w[j]);
    }
}
END_TEST

START_TEST(embeddings_are_decoded) {
    weights w = make_weights(PERIGEE_DTYPE_BF16, 11, 40, 4);
    const int32_t ids[3] = {10, 0, 10};
    float y[3 * 48];
    bench b;
    bench_open(&b, "auto", NULL, 2, 64);
    prg_embed(&b.exec, &w.w, ids, 3, y, 48);
    bench_close(&b);
    for (size_t t = 0; t < 3; t++) {
        ck_assert(memcmp(y + t * 48, w.values + ids[t] * 40, 40 * sizeof *y) == 0);
    }
    free_weights(&w);
}
END_TEST

/* A row of a host: the plain sum, each call counted; fails when told to. */
typedef struct host_state {
    int calls, fail, released;
} host_state;

static int32_t host_multiply(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x,
                             size_t ldx, size_t m, float *y, size_t ldy) {
    host_state *state = user;
    state->calls++;
    if (state->fail) {
        return 42;
    }
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < count; r++) {
            double sum = 0;
            for (size_t c = 0; c < w->cols; c++) {
                float weight;
                memcpy(&weight, (const char *)w->codes + (first + r) * w->row_bytes + c * 4, 4);
                sum += (double)weight * x[t * ldx + c];
            }
            y[t * ldy + r] = (float)sum;
        }
    }
    return 0;
}

static void host_release(void *user) {
    ((host_state *)user)->released++;
}

START_TEST(rows_of_a_host_are_called) {
    enum { ROWS = 60, COLS = 50, M = 6 };
    host_state state = {0};
    const perigee_kernel_row row = {.struct_size = sizeof row,
                                    .op = PERIGEE_OP_MATMUL,
                                    .dtype = PERIGEE_DTYPE_F32,
                                    .flags = PERIGEE_KERNEL_HOST,
                                    .error_bound = 1e-6,
                                    .name = "mine",
                                    .isa = "host",
                                    .numerics = "double",
                                    .row_tile = 1,
                                    .token_tile = 1,
                                    .user = &state,
                                    .run.matmul = {.host = host_multiply}};
    perigee_kernel_set *set;
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, host_release, NULL), PERIGEE_OK);
    weights w = make_weights(PERIGEE_DTYPE_F32, ROWS, COLS, 4);
    uint64_t seed = 6;
    const uint32_t some[3] = {5, 1, 5};
    float x[M * COLS], y[M * ROWS], few[3 * ROWS], before[M * ROWS];
    test_fill(&seed, 1, x, M * COLS);
    bench b;
    bench_open(&b, "auto", set, 2, exact_scratch("auto", 2, 1, M, COLS));
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_E_STATE);
    perigee_kernel_set_free(set);
    prg_matmul_job job = {&w.w, 0, ROWS, {x, COLS, M, COLS, NULL}, y, ROWS};
    ck_assert_int_eq(prg_matmul(&b.exec, &job, 1, NULL), PERIGEE_OK);
    job = (prg_matmul_job){&w.w, 0, ROWS, {x, COLS, 3, COLS, some}, few, ROWS};
    ck_assert_int_eq(prg_matmul(&b.exec, &job, 1, NULL), PERIGEE_OK);
    ck_assert_int_eq(state.calls, 2);
    for (size_t t = 0; t < M; t++) {
        for (size_t r = 0; r < ROWS; r++) {
            double size;
            ck_assert(fabs(y[t * ROWS + r] - dot(&w, r, x + t * COLS, &size)) <= 1e-6 * size);
        }
    }
    for (size_t t = 0; t < 3; t++) {
        ck_assert(memcmp(few + t * ROWS, y + some[t] * ROWS, sizeof few / 3) == 0);
    }
    memset(before, 0, sizeof before);
    const prg_gated_job gated = {&w.w, &w.w, {x, COLS, M, COLS, NULL}, before, ROWS};
    ck_assert_int_eq(prg_gated_matmul(&b.exec, &gated, 1, (prg_gate){PRG_SILU, 0, 0}, NULL), PERIGEE_OK);
    ck_assert(fabs(before[7] - y[7] * y[7] * sigmoid(y[7])) < 1e-5);
    state.fail = 1;
    ck_assert_int_eq(prg_matmul(&b.exec, &job, 1, NULL), PERIGEE_E_KERNEL);
    ck_assert_int_eq(state.released, 0);
    bench_close(&b);
    ck_assert_int_eq(state.released, 1);
    free_weights(&w);
}
END_TEST

PRG_SUITE("matmul", open_allocator, close_allocator, every_form_multiplies, gates_are_applied,
          weighted_products_add_in_order, embeddings_are_decoded, rows_of_a_host_are_called)
