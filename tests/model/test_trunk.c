/* trunk=q8_0: which matrices are held so, what they hold, what it costs, and what may go wrong. */
#include "base/error.h"
#include "dtype/dtype.h"
#include "model/model.h"
#include "perigee/perigee.h"
#include "support/copy_case.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2 precision=exact");
}

static void teardown(void) {
    perigee_context_free(context);
}

/* b, of the model as published, encoded: must be what a holds. */
static void check_converted(const perigee_model *a, const prg_weight *x, const perigee_model *b, const prg_weight *y) {
    ck_assert_uint_eq(x->dtype, PERIGEE_DTYPE_Q8_0);
    ck_assert_uint_eq(x->rows, y->rows);
    ck_assert_uint_eq(x->cols, y->cols);
    const perigee_matrix m = prg_store_matrix(a->store, x), n = prg_store_matrix(b->store, y);
    const size_t rows = m.rows, cols = m.cols, groups = (cols + 31) / 32;
    float *values = calloc(rows * cols, sizeof *values);
    int8_t *codes = malloc(rows * cols);
    uint16_t *scales = malloc(rows * groups * sizeof *scales);
    for (size_t r = 0; r < rows; r++) {
        prg_dtype_get(n.dtype)->decode(&n, r, 0, cols, values + r * cols);
    }
    prg_dtype_get(PERIGEE_DTYPE_Q8_0)->encode(values, rows, cols, codes, scales);
    ck_assert_uint_eq((uintptr_t)m.codes % 64, 0);
    ck_assert_mem_eq(m.codes, codes, rows * cols);
    ck_assert_mem_eq(m.scales, scales, rows * groups * sizeof *scales);
    free(values);
    free(codes);
    free(scales);
}

static void check_kept(const perigee_model *a, const prg_weight *x, const perigee_model *b, const prg_weight *y) {
    ck_assert_uint_eq(x->dtype, y->dtype);
    if (x->dtype != PERIGEE_DTYPE_NONE) {
        const perigee_matrix m = prg_store_matrix(a->store, x), n = prg_store_matrix(b->store, y);
        ck_assert_mem_eq(m.codes, n.codes, prg_dtype_row_bytes(m.dtype, m.cols) * m.rows);
    }
}

static void check_mlp(const perigee_model *a, const prg_mlp_weights *x, const perigee_model *b,
                      const prg_mlp_weights *y) {
    check_converted(a, &x->gate, b, &y->gate);
    check_converted(a, &x->up, b, &y->up);
    check_converted(a, &x->down, b, &y->down);
}

static void check_layer(const perigee_model *a, const prg_layer *x, const perigee_model *b, const prg_layer *y) {
    if (x->is_kda) {
        const prg_kda_weights *p = &x->attention.kda, *q = &y->attention.kda;
        check_converted(a, &p->q, b, &q->q);
        check_converted(a, &p->out, b, &q->out);
        check_kept(a, &p->f_a, b, &q->f_a);
        check_kept(a, &p->f_b, b, &q->f_b);
        check_kept(a, &p->beta, b, &q->beta);
    } else {
        const prg_mla_weights *p = &x->attention.mla, *q = &y->attention.mla;
        check_converted(a, &p->q, b, &q->q);
        check_converted(a, &p->kv_a, b, &q->kv_a);
        check_converted(a, &p->out, b, &q->out);
        check_kept(a, &p->kv_b, b, &q->kv_b);
    }
    if (!x->is_moe) {
        check_mlp(a, &x->ffn.mlp, b, &y->ffn.mlp);
        return;
    }
    const prg_moe_weights *p = &x->ffn.moe, *q = &y->ffn.moe;
    check_mlp(a, &p->shared, b, &q->shared);
    check_kept(a, &p->router_gate, b, &q->router_gate);
    for (size_t e = 0; e < p->router.experts; e++) {
        check_kept(a, &p->experts[e].gate, b, &q->experts[e].gate);
        check_kept(a, &p->experts[e].down, b, &q->experts[e].down);
    }
}

START_TEST(what_is_converted) {
    /* experts of MXFP4, of INT4 and of BF16 */
    static const char *const names[] = {"kimi_k3", "kimi_k2_int4", "kimi_linear", "moonlight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        perigee_model *a = golden_model(context, names[i], "trunk=q8_0");
        perigee_model *b = golden_model(context, names[i], NULL);
        check_kept(a, &a->embed, b, &b->embed);
        check_converted(a, &a->head, b, &b->head);
        for (int64_t l = 0; l < a->config.layers; l++) {
            check_layer(a, &a->layers[l], b, &b->layers[l]);
        }
        perigee_model_free(a);
        perigee_model_free(b);
    }
}
END_TEST

/* A matrix in FP8 stays: there is nothing to gain. */
START_TEST(other_forms_stay) {
    perigee_model *a = golden_model(context, "kimi_k2_fp8", "trunk=q8_0");
    ck_assert_uint_eq(a->layers[0].ffn.mlp.gate.dtype, PERIGEE_DTYPE_FP8);
    ck_assert_uint_eq(a->head.dtype, PERIGEE_DTYPE_Q8_0);
    perigee_model_free(a);
}
END_TEST

static perigee_plan plan_of(const char *name, const char *text) {
    char path[512];
    perigee_options *options = golden_options(text);
    perigee_plan p = {.struct_size = sizeof p};
    golden_ok(perigee_model_plan(context, golden_path(name, path, sizeof path), SIZE_MAX, options, &p, NULL), NULL);
    perigee_options_free(options);
    return p;
}

START_TEST(the_plan_counts_it) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        const char *name = golden_cases[i];
        host counted = {0};
        perigee_allocator allocator = host_allocator(&counted);
        perigee_context *own = NULL;
        golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &own, NULL), NULL);
        const perigee_plan p = plan_of(name, "trunk=q8_0"), published = plan_of(name, "weights=resident");
        const long long before = atomic_load(&counted.bytes);
        perigee_model *model = golden_model(own, name, "trunk=q8_0");
        const long long taken = atomic_load(&counted.bytes) - before;
        perigee_model_info info = {.struct_size = sizeof info};
        golden_ok(perigee_model_get_info(model, &info, NULL), NULL);
        ck_assert_int_eq(p.resident_bytes, info.resident_bytes);
        ck_assert_int_eq(p.token_bytes, info.token_bytes);
        ck_assert_int_eq(p.disk_bytes, info.weight_bytes);
        ck_assert_int_eq(p.disk_bytes, published.disk_bytes);
        ck_assert_int_lt(p.resident_bytes, published.resident_bytes);
        ck_assert_int_lt(p.token_bytes, published.token_bytes);
        ck_assert(p.relaid_bytes > 0 && p.relaid_bytes <= p.resident_bytes && published.relaid_bytes == 0);
        ck_assert_int_eq(p.mapped, 0);
        ck_assert_msg(llabs(taken - p.table_bytes) < 128 * 1024, "%s: %lld taken, %lld planned", name, taken,
                      (long long)p.table_bytes);
        perigee_model_free(model);
        perigee_context_free(own);
        ck_assert_int_eq(atomic_load(&counted.bytes), 0);
    }
    /* from a config alone, the same */
    const perigee_plan p = plan_of("kimi_k2_int4", "trunk=q8_0"), q = plan_of("kimi_k2_int4/config.json", "trunk=q8_0");
    ck_assert_int_eq(p.resident_bytes, q.resident_bytes);
    ck_assert_int_eq(p.relaid_bytes, q.relaid_bytes);
    ck_assert_int_eq(p.token_bytes, q.token_bytes);
    ck_assert_int_eq(p.disk_bytes, q.disk_bytes);
    /* the published K3: its trunk of BF16 goes to 17 of 32 parts */
    const perigee_plan k3 = plan_of("configs/kimi_k3/config.json", "trunk=q8_0");
    ck_assert(k3.mapped == 0 && k3.fits == 0);
    ck_assert_int_gt(k3.relaid_bytes, INT64_C(50) << 30);
    ck_assert_int_lt(k3.relaid_bytes, INT64_C(60) << 30);
}
END_TEST

START_TEST(where_it_may_lie) {
    char path[512];
    static const struct {
        const char *options;
        perigee_status status;
    } cases[] = {
        {"trunk=q8_0 weights=mapped", PERIGEE_E_UNSUPPORTED},
        {"trunk=q8_0 weights=auto memory_budget=100000", PERIGEE_E_MEMORY}, /* never mapped as published instead */
        {"trunk=q8_0 weights=resident", PERIGEE_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_options *options = golden_options(cases[i].options);
        perigee_model *model = NULL;
        ck_assert_int_eq(perigee_model_load(context, golden_path("kimi_k3", path, sizeof path), SIZE_MAX, options, NULL,
                                            NULL, NULL, &model, NULL),
                         cases[i].status);
        ck_assert((model != NULL) == (cases[i].status == PERIGEE_OK));
        perigee_model_free(model);
        perigee_options_free(options);
    }
    perigee_options *options = golden_options("trunk=q8_0 weights=mapped");
    perigee_plan p = {.struct_size = sizeof p};
    ck_assert_int_eq(perigee_model_plan(context, path, SIZE_MAX, options, &p, NULL), PERIGEE_E_UNSUPPORTED);
    perigee_options_free(options);
}
END_TEST

static perigee_status load_damaged(const char *folder, perigee_error **err) {
    perigee_options *options = golden_options("trunk=q8_0");
    perigee_model *model = NULL;
    perigee_status st = perigee_model_load(context, folder, SIZE_MAX, options, NULL, NULL, NULL, &model, err);
    perigee_options_free(options);
    perigee_model_free(model);
    return st;
}

/* No code of int8 stands for a NaN: what could not be told from a weight later is refused now. */
START_TEST(weights_that_are_none) {
    static const uint16_t wrong[] = {0x7fc0, 0xff80, 0x4b80}; /* NaN, -inf, 2^24 */
    static const uint16_t large = 0x4af0;                     /* 7,864,320 = 127 * 61,923.8 */
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        char folder[256];
        perigee_error *err = NULL;
        const bool bad = i < sizeof wrong / sizeof *wrong;
        copy_case("kimi_k3", folder, sizeof folder);
        damage(folder, "language_model.model.layers.0.mlp.gate_proj.weight", 2 * 70, bad ? &wrong[i] : &large, 2);
        ck_assert_int_eq(load_damaged(folder, &err), bad ? PERIGEE_E_TENSOR : PERIGEE_OK);
        if (bad) {
            ck_assert_ptr_nonnull(strstr(perigee_error_file(err), ".safetensors"));
            ck_assert_int_gt(perigee_error_offset(err), 0);
        }
        perigee_error_free(err);
        remove_case(folder);
    }
}
END_TEST

START_TEST(a_file_cut_short) {
    char folder[256], path[1024];
    copy_case("moonlight", folder, sizeof folder);
    size_t size;
    for (int shard = 1; shard <= 2; shard++) {
        perigee_error *err = NULL;
        snprintf(path, sizeof path, "%s/model-0000%d-of-000002.safetensors", folder, shard);
        char *data = read_whole(path, &size);
        write_whole(path, data, size - 1);
        ck_assert_int_eq(load_damaged(folder, &err), PERIGEE_E_TRUNCATED);
        perigee_error_free(err);
        write_whole(path, data, size);
        free(data);
    }
    ck_assert_int_eq(load_damaged(folder, NULL), PERIGEE_OK);
    remove_case(folder);
}
END_TEST

/* How far apart two distributions are, in nats. */
static double divergence(const float *p, const float *q, size_t n) {
    double sums[2] = {0, 0}, tops[2] = {p[0], q[0]}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        tops[0] = fmax(tops[0], p[i]);
        tops[1] = fmax(tops[1], q[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sums[0] += exp(p[i] - tops[0]);
        sums[1] += exp(q[i] - tops[1]);
    }
    for (size_t i = 0; i < n; i++) {
        const double lp = p[i] - tops[0] - log(sums[0]), lq = q[i] - tops[1] - log(sums[1]);
        sum += exp(lp) * (lp - lq);
    }
    return sum;
}

/* As far from the published weights as the reference pass in float64 is when it rounds the same matrices: random
 * weights of a small width are no measure of how much that is. And the same bits whatever the threads and chunks. */
START_TEST(it_computes_what_the_reference_does) {
    static const double expected[GOLDEN_CASES] = {0.05958570, 0.01868140, 1.0005659e-4, 0.05366932, 0.02179881,
                                                  1.13116807, 1.04202171, 0.18851807,   0.02757413, 0.01358275};
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        golden g = golden_read(golden_cases[i]);
        perigee_model *model = golden_model(context, golden_cases[i], "trunk=q8_0");
        perigee_context *alone = golden_context("threads=1 precision=exact");
        perigee_model *other = golden_model(alone, golden_cases[i], "trunk=q8_0");
        perigee_session *a = golden_session(model, NULL), *b = golden_session(other, "chunk=5");
        const float *p = golden_step(a, g.ids, g.tokens, PERIGEE_LOGITS_ALL);
        const float *q = golden_step(b, g.ids, g.tokens, PERIGEE_LOGITS_ALL);
        ck_assert_mem_eq(p, q, g.tokens * g.vocabulary * sizeof *p);
        double sum = 0;
        for (size_t t = 0; t < g.tokens; t++) {
            sum += divergence(g.logits + t * g.vocabulary, p + t * g.vocabulary, g.vocabulary);
        }
        sum /= (double)g.tokens;
        printf("%s: divergence %.5f nats, %.5f expected\n", golden_cases[i], sum, expected[i]);
        ck_assert_double_eq_tol(sum, expected[i], 2e-3 * expected[i]);
        perigee_session_free(a);
        perigee_session_free(b);
        perigee_model_free(model);
        perigee_model_free(other);
        perigee_context_free(alone);
        free(g.file);
    }
}
END_TEST

/* Every allocation of a load fails once. */
START_TEST(memory_runs_out) {
    char path[512];
    long long failures = 0;
    for (long long n = 1;; n++) {
        host h = {0};
        perigee_allocator allocator = host_allocator(&h);
        perigee_options *options = golden_options("threads=2"), *q8_0 = golden_options("trunk=q8_0");
        perigee_context *own = NULL;
        perigee_model *model = NULL;
        golden_ok(perigee_context_new(options, &allocator, NULL, NULL, &own, NULL), NULL);
        const long long calls = atomic_load(&h.calls);
        atomic_store(&h.fail_at, calls + n);
        perigee_status st = perigee_model_load(own, golden_path("moonlight", path, sizeof path), SIZE_MAX, q8_0, NULL,
                                               NULL, NULL, &model, NULL);
        const bool reached = atomic_load(&h.calls) >= calls + n;
        ck_assert_int_eq(st, reached ? PERIGEE_E_MEMORY : PERIGEE_OK);
        perigee_model_free(model);
        perigee_context_free(own);
        perigee_options_free(options);
        perigee_options_free(q8_0);
        ck_assert_int_eq(atomic_load(&h.bytes), 0);
        if (!reached) {
            break;
        }
        failures++;
    }
    ck_assert_int_gt(failures, 10);
}
END_TEST

PRG_SUITE("trunk", setup, teardown, what_is_converted, other_forms_stay, the_plan_counts_it, where_it_may_lie,
          weights_that_are_none, a_file_cut_short, it_computes_what_the_reference_does, memory_runs_out)
