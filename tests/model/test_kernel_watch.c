/* Tracing, checking and timing of kernels: what is right passes with the same bits, what is wrong is named. */
#include "perigee/sys/kernel_set.h"
#include "perigee/sys/kernel_watch.h"
#include "support/golden.h"
#include "support/suite.h"

static const char *const watched_cases[] = {"kimi_k3", "kimi_linear", "kimi_k2_int4", "kimi_k2_fp8", "moonlight"};

static perigee_context *context_with(const char *text, perigee_kernel_set *set) {
    perigee_options *options = golden_options(text);
    perigee_context *context = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_context_new(options, NULL, NULL, set, &context, &err), err);
    perigee_options_free(options);
    return context;
}

static perigee_kernel_check outcome(const perigee_context *context) {
    perigee_kernel_check check = {.struct_size = sizeof check};
    ck_assert_int_eq(perigee_context_check(context, &check, NULL), PERIGEE_OK);
    ck_assert_uint_eq(check.struct_size, sizeof check);
    ck_assert_int_eq(check.skipped, 0);
    return check;
}

/* Logits of a golden prompt in two steps; to be freed. */
static float *run_case(perigee_context *context, const char *name) {
    golden g = golden_read(name);
    perigee_model *model = golden_model(context, name, NULL);
    perigee_session *session = golden_session(model, NULL);
    float *all = malloc((g.tokens + 1) * g.vocabulary * sizeof *all);
    memcpy(all, golden_step(session, g.ids, g.tokens, PERIGEE_LOGITS_ALL), g.tokens * g.vocabulary * sizeof *all);
    memcpy(all + g.tokens * g.vocabulary, golden_step(session, g.ids, 1, PERIGEE_LOGITS_LAST),
           g.vocabulary * sizeof *all);
    perigee_session_free(session);
    perigee_model_free(model);
    free(g.file);
    return all;
}

static void same_logits(const char *name, const char *plain, const char *watched) {
    golden g = golden_read(name);
    perigee_context *a = context_with(plain, NULL), *b = context_with(watched, NULL);
    float *expected = run_case(a, name), *got = run_case(b, name);
    ck_assert_msg(memcmp(expected, got, (g.tokens + 1) * g.vocabulary * sizeof *got) == 0, "%s, %s", name, watched);
    perigee_context_free(a);
    perigee_context_free(b);
    free(expected);
    free(got);
    free(g.file);
}

START_TEST(watching_changes_no_bit) {
    for (size_t i = 0; i < sizeof watched_cases / sizeof *watched_cases; i++) {
        same_logits(watched_cases[i], "threads=2 precision=fast", "threads=2 precision=fast trace_kernels=1");
        same_logits(watched_cases[i], "threads=2 precision=fast", "threads=2 precision=fast check_kernels=1");
        same_logits(watched_cases[i], "threads=1", "threads=3 trace_kernels=1 check_kernels=1");
    }
}
END_TEST

START_TEST(kernels_do_what_the_scalar_rows_do) {
    static const char *const precisions[] = {"exact", "balanced", "fast"};
    for (size_t p = 0; p < 3; p++) {
        char options[64];
        snprintf(options, sizeof options, "threads=2 check_kernels=1 precision=%s", precisions[p]);
        perigee_context *context = context_with(options, NULL);
        for (size_t i = 0; i < sizeof watched_cases / sizeof *watched_cases; i++) {
            const int64_t before = outcome(context).calls;
            free(run_case(context, watched_cases[i]));
            const perigee_kernel_check check = outcome(context);
            ck_assert_int_gt(check.calls, before + 100);
            ck_assert_msg(check.different == 0 && !check.kernel, "%s: %s[%zu] is %g, not %g", check.kernel,
                          check.output, check.index, check.value, check.expected);
        }
        perigee_context_free(context);
    }
}
END_TEST

START_TEST(a_trace_counts_calls_by_shape) {
    perigee_context *context = context_with("threads=1 trace_kernels=1", NULL);
    ck_assert_uint_eq(perigee_context_trace_count(context), 0);
    golden g = golden_read("kimi_k2");
    perigee_model *model = golden_model(context, "kimi_k2", NULL);
    perigee_session *session = golden_session(model, NULL);
    golden_step(session, g.ids, 4, PERIGEE_LOGITS_LAST);
    int64_t norms = 0, products = 0, after = 0;
    const size_t count = perigee_context_trace_count(context);
    for (size_t i = 0; i < count; i++) {
        perigee_kernel_trace t = {.struct_size = sizeof t};
        ck_assert_int_eq(perigee_context_trace(context, i, &t, NULL), PERIGEE_OK);
        ck_assert(t.calls > 0 && t.seconds > 0 && t.seconds < 100);
        norms += strcmp(t.op, "rms_norm") == 0 && t.cols == g.hidden ? t.calls : 0;
        products += strcmp(t.function, "multiply") == 0 && strcmp(t.op, "matmul") == 0 ? t.calls : 0;
    }
    /* two norms of the stream in a layer and row, one at the end of the last row */
    ck_assert_int_eq(norms, (int64_t)(g.layers * 2 * 4 + 1));
    ck_assert_int_gt(products, (int64_t)g.layers * 4);
    golden_step(session, g.ids, 1, PERIGEE_LOGITS_LAST);
    for (size_t i = 0; i < perigee_context_trace_count(context); i++) {
        perigee_kernel_trace t = {.struct_size = sizeof t};
        ck_assert_int_eq(perigee_context_trace(context, i, &t, NULL), PERIGEE_OK);
        after += strcmp(t.op, "rms_norm") == 0 && t.cols == g.hidden ? t.calls : 0;
    }
    ck_assert_int_eq(after, norms + (int64_t)(g.layers * 2 + 1));
    perigee_kernel_trace t = {.struct_size = sizeof t};
    ck_assert_int_eq(perigee_context_trace(context, SIZE_MAX, &t, NULL), PERIGEE_E_RANGE);
    t.struct_size = 8;
    ck_assert_int_eq(perigee_context_trace(context, 0, &t, NULL), PERIGEE_E_ARGUMENT);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    free(g.file);
}
END_TEST

/* Kernels of a host, right or wrong by what `user` says; bare functions have no user, hence a flag for the test. */
static float wrong_by;

static void own_norm(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (double)x[i] * (double)x[i];
    }
    const double scale = 1 / sqrt(squares / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        double v = (double)gain[i] * (double)x[i] * scale;
        v = gate ? v / (1 + exp(-(double)gate[i])) : v;
        y[i] = (float)v + (i == 3 ? wrong_by : 0);
    }
}

static float weight_of(const perigee_matrix *w, size_t r, size_t c) {
    uint16_t half;
    memcpy(&half, (const char *)w->codes + r * w->row_bytes + 2 * c, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void own_product(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m,
                        float *y, size_t ldy) {
    for (size_t t = 0; t < m; t++) {
        for (size_t r = 0; r < count; r++) {
            double sum = 0;
            for (size_t c = 0; c < w->cols; c++) {
                sum += (double)weight_of(w, first + r, c) * (double)x[t * ldx + c];
            }
            y[t * ldy + r] = (float)sum + (t == 1 ? wrong_by : 0);
        }
    }
}

static int calls_left = -1; /* of host_product(), before it fails */

static int32_t host_product(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                            size_t m, float *y, size_t ldy) {
    (void)user;
    if (calls_left == 0) {
        for (size_t t = 0; t < m; t++) {
            y[t * ldy] = 1e6f; /* it had begun */
        }
        return 5;
    }
    calls_left -= calls_left > 0;
    own_product(w, first, count, x, ldx, m, y, ldy);
    return 0;
}

static perigee_kernel_row own_row(const char *kind) {
    perigee_kernel_row row = {.struct_size = sizeof row, .name = "own", .isa = "test", .numerics = "double"};
    row.op = strcmp(kind, "norm") == 0 ? PERIGEE_OP_RMS_NORM : PERIGEE_OP_MATMUL;
    row.dtype = row.op == PERIGEE_OP_MATMUL ? PERIGEE_DTYPE_BF16 : PERIGEE_DTYPE_NONE;
    row.error_bound = row.op == PERIGEE_OP_MATMUL ? 1e-6 : 1e-5;
    if (strcmp(kind, "host") == 0) {
        row.flags = PERIGEE_KERNEL_HOST;
        row.run.matmul.host = host_product;
    } else if (row.op == PERIGEE_OP_MATMUL) {
        row.function = (perigee_kernel_fn)own_product;
        row.signature = "void(const ptr,size,size,const ptr,size,size,ptr,size)";
    } else {
        row.function = (perigee_kernel_fn)own_norm;
        row.signature = "void(const ptr,const ptr,const ptr,size,f32,ptr)";
    }
    return row;
}

static perigee_kernel_check check_own(const char *kind, float wrong) {
    perigee_kernel_set *set = NULL;
    const perigee_kernel_row row = own_row(kind);
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    perigee_error *err = NULL;
    golden_ok(perigee_kernel_set_add(set, &row, NULL, &err), err);
    perigee_context *context = context_with("threads=1 check_kernels=1", set);
    wrong_by = wrong;
    free(run_case(context, "kimi_k3"));
    perigee_kernel_check check = outcome(context);
    check.op = check.op ? strcmp(check.op, "rms_norm") == 0 ? "rms_norm" : "matmul" : NULL;
    check.kernel = check.kernel && strcmp(check.kernel, "own") == 0 ? "own" : check.kernel ? "another" : NULL;
    check.function = check.reference = check.output = NULL; /* gone with the context */
    perigee_context_free(context);
    perigee_kernel_set_free(set);
    return check;
}

START_TEST(the_first_wrong_value_is_named) {
    static const char *const kinds[] = {"norm", "bare", "host"};
    for (size_t i = 0; i < 3; i++) {
        perigee_kernel_check check = check_own(kinds[i], 0);
        ck_assert_msg(check.different == 0, "%s: %g, not %g", kinds[i], check.value, check.expected);
        ck_assert(check.largest > 0 && check.largest <= 1); /* other sums: other bits, within the bound */
        check = check_own(kinds[i], 0.5f);
        ck_assert_msg(check.different > 0 && check.largest > 1, "%s: %lld", kinds[i], (long long)check.different);
        ck_assert_str_eq(check.kernel, "own");
        ck_assert(fabs(check.value - check.expected - 0.5) < 1e-3 && check.allowed > 0 && check.allowed < 1e-2);
        if (i == 0) {
            ck_assert(check.index == 3 && check.tokens == 1 && check.width == check.cols);
        } else {
            ck_assert(check.index == check.width && check.width == check.rows && check.tokens > 1);
        }
    }
}
END_TEST

/* A product that could not be made is an error of the step: not a wrong one. */
START_TEST(a_host_that_fails_is_not_wrong) {
    perigee_kernel_set *set = NULL;
    const perigee_kernel_row row = own_row("host");
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    golden_ok(perigee_kernel_set_add(set, &row, NULL, NULL), NULL);
    perigee_context *context = context_with("threads=1 check_kernels=1", set);
    golden g = golden_read("kimi_k3");
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *session = golden_session(model, NULL);
    wrong_by = 0;
    for (int calls = 0; calls < 12; calls++) {
        calls_left = calls;
        ck_assert_int_eq(perigee_decode_step(session, g.ids, g.tokens, PERIGEE_LOGITS_NONE, NULL, NULL, NULL, NULL),
                         PERIGEE_E_KERNEL);
        ck_assert_int_eq(outcome(context).different, 0);
    }
    calls_left = -1;
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    perigee_kernel_set_free(set);
    free(g.file);
}
END_TEST

START_TEST(questions_that_have_no_answer) {
    perigee_context *context = context_with("threads=1", NULL);
    perigee_kernel_check check = {.struct_size = sizeof check};
    perigee_kernel_trace trace = {.struct_size = sizeof trace};
    perigee_kernel_timing timing = {.struct_size = sizeof timing};
    ck_assert_int_eq(perigee_context_check(context, &check, NULL), PERIGEE_E_STATE);
    ck_assert_int_eq(perigee_context_check(NULL, &check, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_context_trace(context, 0, &trace, NULL), PERIGEE_E_RANGE);
    ck_assert_uint_eq(perigee_context_trace_count(context), 0);
    ck_assert_uint_eq(perigee_context_trace_count(NULL), 0);
    ck_assert_int_eq(perigee_context_time_kernel(context, 0, 0, &timing, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_context_time_kernel(context, 0, 257, &timing, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_context_time_kernel(context, SIZE_MAX, 1, &timing, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_context_time_kernel(NULL, 0, 1, &timing, NULL), PERIGEE_E_ARGUMENT);
    perigee_context_free(context);
}
END_TEST

START_TEST(rows_are_timed) {
    perigee_kernel_set *set = NULL;
    perigee_kernel_row row = own_row("host");
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_OK);
    row = own_row("bare");
    row.name = "own bare";
    ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_OK);
    perigee_context *context = context_with("threads=1 trace_kernels=1 precision=balanced", set);
    for (size_t i = 0; i < perigee_context_kernel_count(context); i++) {
        perigee_kernel_info info = {.struct_size = sizeof info};
        perigee_kernel_timing t = {.struct_size = sizeof t};
        ck_assert_int_eq(perigee_context_kernel(context, i, &info, NULL), PERIGEE_OK);
        const perigee_status status = perigee_context_time_kernel(context, i, 3, &t, NULL);
        if (strcmp(info.name, "own") == 0) {
            ck_assert_int_eq(status, PERIGEE_E_UNSUPPORTED);
            continue;
        }
        ck_assert_int_eq(status, PERIGEE_OK);
        ck_assert(t.struct_size == sizeof t && t.seconds > 0 && t.bytes > 0 && t.tokens == 3 && t.cols > 0);
        ck_assert_int_eq(t.multiply_adds, (int64_t)(t.rows * t.cols * 3));
        ck_assert((t.rows > 0) == (info.weight[0] != 0));
        i += !info.in_use; /* not all of them: it takes its time */
    }
    perigee_context_free(context);
    perigee_kernel_set_free(set);
}
END_TEST

PRG_SUITE("kernel_watch", NULL, NULL, watching_changes_no_bit, kernels_do_what_the_scalar_rows_do,
          a_trace_counts_calls_by_shape, the_first_wrong_value_is_named, a_host_that_fails_is_not_wrong,
          questions_that_have_no_answer, rows_are_timed)
