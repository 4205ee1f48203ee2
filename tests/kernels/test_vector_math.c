/* Elementary functions: the plain form against double precision here, and every table against the plain one. */
#include "kernels/lane_math.h"
#include "support/exec.h"
#include "support/suite.h"

/* Units in the last place of the exact value, subnormals counted by their own unit. */
static double ulps(float got, double want) {
    if (isnan(want) || isinf((float)want)) {
        return (isnan(want) && isnan(got)) || (float)want == got ? 0 : 1e9;
    }
    int e;
    frexp(want, &e);
    double unit = ldexp(1, e - 24 < -149 ? -149 : e - 24);
    return fabs((double)got - want) / unit;
}

static double log1p_exp(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double silu(double x) {
    return x / (1 + exp(-x));
}

typedef struct function {
    const char *name;
    double (*exact)(double);
    double most; /* ulps */
    float low, high;
} function;

static const function functions[] = {
    {"exp", exp, 1.5, -110, 95}, {"sigmoid", test_sigmoid, 2.5, -88, 40},
    {"tanh", tanh, 2, -12, 12},  {"softplus", log1p_exp, 2.5, -100, 60},
    {"silu", silu, 3, -88, 40},
};

static lanes compute(size_t f, lanes x) {
    switch (f) {
    case 0:
        return lanes_exp(x);
    case 1:
        return lanes_sigmoid(x);
    case 2:
        return lanes_tanh(x);
    case 3:
        return lanes_softplus(x);
    default:
        return lanes_silu(x);
    }
}

START_TEST(test_accuracy) {
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        double worst = 0;
        float at = 0;
        for (size_t i = 0; i < 40000; i++) {
            float x[LANES], y[LANES];
            for (size_t j = 0; j < LANES; j++) {
                x[j] = test_even(functions[f].low, functions[f].high);
                if (i % 2) {
                    x[j] = ldexpf(x[j], -(int)(test_random() % 40)); /* small ones too */
                }
            }
            lanes_store(y, compute(f, lanes_load(x)));
            for (size_t j = 0; j < LANES; j++) {
                double u = ulps(y[j], functions[f].exact((double)x[j]));
                if (u > worst) {
                    worst = u;
                    at = x[j];
                }
            }
        }
        ck_assert_msg(worst <= functions[f].most, "%s(%a): %.2f ulp", functions[f].name, (double)at, worst);
    }
}
END_TEST

static float one(size_t f, float x) {
    float y[LANES];
    lanes_store(y, compute(f, lanes_set(x)));
    return y[0];
}

START_TEST(test_limits) {
    ck_assert(one(0, -INFINITY) == 0 && one(0, INFINITY) == INFINITY && one(0, 0) == 1 && one(0, -0.0f) == 1);
    ck_assert(one(0, -103.0f) > 0 && one(0, -104.5f) == 0 && one(0, 88.72f) < INFINITY && one(0, 88.73f) == INFINITY);
    ck_assert(one(1, -INFINITY) == 0 && one(1, INFINITY) == 1 && one(1, 0) == 0.5f && one(1, -1000) == 0);
    ck_assert(one(2, -INFINITY) == -1 && one(2, INFINITY) == 1 && signbit(one(2, -0.0f)) && one(2, 50) == 1);
    ck_assert(one(3, -INFINITY) == 0 && one(3, INFINITY) == INFINITY && one(3, 1e30f) == 1e30f);
    ck_assert(one(4, 1e30f) == 1e30f && one(4, -1000) == 0);
    for (size_t f = 0; f < 5; f++) {
        ck_assert(isnan(one(f, NAN)));
    }
    /* monotone around the seam of tanh's two forms */
    float below = nextafterf(0.625f, 0), above = 0.625f;
    ck_assert(one(2, below) <= one(2, above));
}
END_TEST

/* Every function that the rows offer, over ranges that reach all branches: bits as those of the plain rows. */
START_TEST(test_tables_agree) {
    enum { N = 20011 };
    float *x = test_fill(N, -120, 120), *u = test_fill(N, -60, 60);
    for (size_t i = 0; i < N; i += 2) {
        x[i] = ldexpf(x[i], -(int)(test_random() % 130));
    }
    x[5] = INFINITY;
    x[6] = -INFINITY;
    x[7] = -0.0f;
    float *want = malloc(4 * N * sizeof *want), *got = malloc(4 * N * sizeof *got);
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec t;
        if (!test_exec_open(&t, test_sets[s], 1)) {
            continue;
        }
        const perigee_kernel_row *soft = prg_kernel_table_row(t.table, PERIGEE_OP_SOFTMAX, PERIGEE_DTYPE_NONE);
        const perigee_kernel_row *act = prg_kernel_table_row(t.table, PERIGEE_OP_GATED_ACTIVATION, PERIGEE_DTYPE_NONE);
        ck_assert_str_eq(soft->isa, test_sets[s]);
        float *to = s == 0 ? want : got;
        soft->run.softmax.sigmoid(x, N, to);
        act->run.gated.gated(u, x + 8, N - 8, 0, 0, 0, to + N);
        act->run.gated.gated(u, x + 8, N - 8, 1, 4, 25, to + 2 * N);
        soft->run.softmax.softmax(u, N, to + 3 * N);
        for (size_t i = 0; i < 8; i++) {
            to[2 * N - 8 + i] = to[3 * N - 8 + i] = 0;
        }
        ck_assert_msg(s == 0 || test_same_bits(want, got, 4 * N), "%s", test_sets[s]);
        test_exec_close(&t);
    }
    free(x);
    free(u);
    free(want);
    free(got);
}
END_TEST

/* SiTU and SwiGLU against their formulas, up branch clipped or not; in place. */
START_TEST(test_activations) {
    enum { N = 77 };
    float *g = test_fill(N, -12, 12), *u = test_fill(N, -90, 90);
    double want[3][N];
    for (size_t i = 0; i < N; i++) {
        want[0][i] = silu((double)g[i]) * (double)u[i];
        double a = 4 * tanh((double)g[i] / 4) * test_sigmoid((double)g[i]);
        want[1][i] = a * 25 * tanh((double)u[i] / 25);
        want[2][i] = a * (double)u[i];
    }
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec t;
        if (!test_exec_open(&t, test_sets[s], 1)) {
            continue;
        }
        const perigee_gated_functions *f =
            &prg_kernel_table_row(t.table, PERIGEE_OP_GATED_ACTIVATION, PERIGEE_DTYPE_NONE)->run.gated;
        for (int form = 0; form < 3; form++) {
            float *y = test_copy(g, N);
            f->gated(y, u, N, form > 0, 4, form == 1 ? 25 : 0, y);
            ck_assert_double_lt(test_error(y, want[form], N), 1e-6);
            free(y);
        }
        test_exec_close(&t);
    }
    free(g);
    free(u);
}
END_TEST

PRG_SUITE("vector_math", NULL, NULL, test_accuracy, test_limits, test_tables_agree, test_activations)
