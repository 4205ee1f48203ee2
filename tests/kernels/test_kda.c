#include "support/exec.h"
#include "support/suite.h"

typedef struct kda_case {
    prg_kda kda;
    size_t m;
    float *q, *k, *v, *f, *beta, *rate, *bias;
} kda_case;

enum { SEQUENCE = 23 };

/* Decays from 1 - 1e-6 to 1e-20: channels with a bias at both ends. */
static kda_case make(size_t heads, size_t dim, bool bound, size_t m) {
    size_t w = heads * dim;
    kda_case c = {.kda = {.heads = heads, .dim = dim, .has_lower_bound = bound, .lower_bound = -5}, .m = m};
    c.q = test_fill(m * w, -1, 1);
    c.k = test_fill(m * w, -1, 1);
    c.v = test_fill(m * w, -2, 2);
    c.f = test_fill(m * w, -1, 1);
    c.beta = test_fill(m * heads, -4, 4);
    c.rate = test_fill(heads, 0.5f, 8);
    c.bias = test_fill(w, -1, 1);
    for (size_t i = 0; i < w; i++) {
        c.bias[i] += i % 5 == 0 ? -12 : i % 5 == 1 ? 6 : 0;
    }
    c.kda.rate = c.rate;
    c.kda.dt_bias = c.bias;
    return c;
}

static void drop(kda_case *c) {
    float *all[] = {c->q, c->k, c->v, c->f, c->beta, c->rate, c->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}

/* The formulas, in double precision: out [m, heads * dim]. */
static double *reference(const kda_case *c) {
    size_t heads = c->kda.heads, n = c->kda.dim, w = heads * n;
    double *out = calloc(c->m * w, sizeof *out), *s = calloc(n * n, sizeof *s), *u = calloc(n, sizeof *u);
    for (size_t h = 0; h < heads; h++) {
        memset(s, 0, n * n * sizeof *s);
        for (size_t t = 0; t < c->m; t++) {
            const float *q = c->q + t * w + h * n, *k = c->k + t * w + h * n, *f = c->f + t * w + h * n;
            double qq = 1e-6, kk = 1e-6, beta = test_sigmoid((double)c->beta[t * heads + h]);
            for (size_t i = 0; i < n; i++) {
                qq += (double)q[i] * (double)q[i];
                kk += (double)k[i] * (double)k[i];
            }
            for (size_t j = 0; j < n; j++) {
                u[j] = (double)c->v[t * w + h * n + j];
            }
            for (size_t i = 0; i < n; i++) {
                double x = (double)f[i] + (double)c->bias[h * n + i], rate = (double)c->rate[h];
                double g =
                    c->kda.has_lower_bound ? -5 * test_sigmoid(rate * x) : -rate * (fmax(x, 0) + log1p(exp(-fabs(x))));
                for (size_t j = 0; j < n; j++) {
                    s[i * n + j] *= exp(g);
                    u[j] -= s[i * n + j] * (double)k[i] / sqrt(kk);
                }
            }
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j < n; j++) {
                    s[i * n + j] += beta * u[j] * (double)k[i] / sqrt(kk);
                    out[t * w + h * n + j] += s[i * n + j] * (double)q[i] / sqrt(qq) / sqrt((double)n);
                }
            }
        }
    }
    free(s);
    free(u);
    return out;
}

/* Tokens in chunks, from state to state or in place. */
static void run(const prg_exec *exec, const kda_case *c, size_t chunk, bool in_place, float *out) {
    size_t w = c->kda.heads * c->kda.dim, floats = prg_kda_state_floats(&c->kda);
    float *state[2] = {calloc(floats, sizeof(float)), test_fill(floats, 5, 6)};
    for (size_t t = 0, a = 0; t < c->m; t += chunk, a ^= !in_place) {
        size_t m = c->m - t < chunk ? c->m - t : chunk;
        prg_kda_input in = {c->q + t * w,
                            c->k + t * w,
                            c->v + t * w,
                            c->f + t * w,
                            w,
                            c->beta + t * c->kda.heads,
                            c->kda.heads,
                            out + t * w,
                            w};
        prg_kda_part part = {0, m, state[a], state[in_place ? a : 1 - a], NULL};
        float *before = test_copy(state[a], floats);
        prg_kda_run(exec, &c->kda, &in, &part, 1);
        ck_assert(in_place || test_same_bits(before, state[a], floats));
        free(before);
    }
    free(state[0]);
    free(state[1]);
}

static void check(size_t heads, size_t dim, bool bound, size_t m) {
    kda_case c = make(heads, dim, bound, m);
    size_t w = heads * dim;
    double *want = reference(&c);
    float *first = NULL;
    for (size_t s = 0; s < TEST_SETS * 3; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s / 3], (size_t[]){1, 2, 5}[s % 3])) {
            continue;
        }
        for (size_t k = 0; k < 5; k++) {
            float *out = test_fill(m * w, 0, 1);
            run(&e.exec, &c, (size_t[]){m, 1, 3, 7, 1}[k], k == 4, out);
            double error = test_error(out, want, m * w);
            ck_assert_msg(error < 3e-6, "dim %zu bound %d %s: %.2e", dim, bound, test_sets[s / 3], error);
            ck_assert(!first || test_same_bits(out, first, m * w));
            if (first) {
                free(out);
            } else {
                first = out;
            }
        }
        test_exec_close(&e);
    }
    free(first);
    free(want);
    drop(&c);
}

START_TEST(test_dims) {
    for (int bound = 0; bound < 2; bound++) {
        check(3, 24, bound, SEQUENCE);
        check(3, 40, bound, SEQUENCE);
        check(2, 32, bound, SEQUENCE);
        check(5, 7, bound, SEQUENCE);
        check(2, 128, bound, 40);
        check(1, 200, bound, 6);
    }
}
END_TEST

/* Four sequences in one call, of 1, 9, 0 and 4 tokens, equal each alone; the one without tokens keeps its state. */
START_TEST(test_parts) {
    enum { HEADS = 3, DIM = 40, W = HEADS * DIM, ROWS = 14 };
    kda_case c = make(HEADS, DIM, true, ROWS);
    size_t floats = prg_kda_state_floats(&c.kda);
    const size_t m[4] = {1, 9, 0, 4}, row[4] = {0, 1, 10, 10};
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s], 3)) {
            continue;
        }
        float *state[4], *together[4], *alone[4], out[ROWS * W], single[ROWS * W];
        prg_kda_part parts[4];
        prg_kda_input in = {c.q, c.k, c.v, c.f, W, c.beta, HEADS, out, W};
        for (size_t p = 0; p < 4; p++) {
            state[p] = test_fill(floats, -0.1f, 0.1f);
            together[p] = calloc(floats, sizeof(float));
            alone[p] = calloc(floats, sizeof(float));
            parts[p] = (prg_kda_part){row[p], m[p], state[p], together[p], NULL};
        }
        prg_kda_run(&e.exec, &c.kda, &in, parts, 4);
        in.out = single;
        for (size_t p = 0; p < 4; p++) {
            prg_kda_part part = {row[p], m[p], state[p], alone[p], NULL};
            prg_kda_run(&e.exec, &c.kda, &in, &part, 1);
            ck_assert(test_same_bits(together[p], alone[p], floats));
        }
        ck_assert(test_same_bits(out, single, ROWS * W));
        ck_assert(test_same_bits(together[2], state[2], floats));
        for (size_t p = 0; p < 4; p++) {
            free(state[p]);
            free(together[p]);
            free(alone[p]);
        }
        test_exec_close(&e);
    }
    drop(&c);
}
END_TEST

/* A key of zeros and the strongest decay leave numbers finite. */
START_TEST(test_extremes) {
    kda_case c = make(1, 32, false, 50);
    memset(c.k, 0, 10 * 32 * sizeof *c.k);
    for (size_t i = 0; i < 32; i++) {
        c.bias[i] = i < 16 ? 1000 : -1000;
    }
    double *want = reference(&c);
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (test_exec_open(&e, test_sets[s], 1)) {
            float out[50 * 32];
            run(&e.exec, &c, 7, false, out);
            ck_assert_double_lt(test_error(out, want, 50 * 32), 1e-5);
            test_exec_close(&e);
        }
    }
    free(want);
    drop(&c);
}
END_TEST

/* A token that was taken in with what is pending set aside: put back, the state is that of a step; taken back, it is
 * that of before for every token after it, also where S has zeros of both signs. */
START_TEST(test_take_back) {
    enum { HEADS = 3, DIM = 40, W = HEADS * DIM, ROWS = 3 };
    kda_case c = make(HEADS, DIM, true, ROWS);
    size_t floats = prg_kda_state_floats(&c.kda), square = prg_kda_square_floats(&c.kda);
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s], 2)) {
            continue;
        }
        float *before = test_fill(floats, -0.1f, 0.1f), *one = calloc(floats, sizeof(float)),
              *two = test_copy(one, floats);
        for (size_t i = 0; i < floats; i += 5) {
            before[i] = i % 2 ? -0.0f : 0.0f;
        }
        float *place = test_copy(before, floats), aside[3 * W], out[ROWS * W], again[ROWS * W];
        prg_kda_input in = {c.q, c.k, c.v, c.f, W, c.beta, HEADS, out, W};
        const prg_kda_part first = {0, 1, before, one, NULL}, second = {1, 1, one, two, NULL};
        const prg_kda_part other = {2, 1, before, two, NULL}, first_in_place = {0, 1, place, place, aside};
        const prg_kda_part second_in_place = {1, 1, place, place, aside}, other_in_place = {2, 1, place, place, aside};
        prg_kda_run(&e.exec, &c.kda, &in, &first, 1);
        prg_kda_run(&e.exec, &c.kda, &in, &second, 1);
        prg_kda_run(&e.exec, &c.kda, &in, &other, 1);
        in.out = again;
        prg_kda_run(&e.exec, &c.kda, &in, &first_in_place, 1);
        ck_assert(test_same_bits(place + square, before + square, 3 * W));
        prg_kda_take_back(&c.kda, place);
        prg_kda_run(&e.exec, &c.kda, &in, &other_in_place, 1);
        prg_kda_take_back(&c.kda, place);
        prg_kda_take_back(&c.kda, place);
        prg_kda_run(&e.exec, &c.kda, &in, &first_in_place, 1);
        memcpy(place + square, aside, sizeof aside);
        ck_assert(test_same_bits(place, one, floats));
        prg_kda_run(&e.exec, &c.kda, &in, &second_in_place, 1);
        ck_assert(test_same_bits(out, again, ROWS * W));
        free(before);
        free(place);
        free(one);
        free(two);
        test_exec_close(&e);
    }
    drop(&c);
}
END_TEST

PRG_SUITE("kda", NULL, NULL, test_dims, test_parts, test_extremes, test_take_back)
