#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "generate/random.h"
#include "generate/sampler.h"
#include "generate/select.h"
#include "generate/softmax.h"
#include "model/model.h"
#include "support/suite.h"

static perigee_context context; /* of which samplers use the allocator alone */
static uint64_t noise_state;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &context.allocator, NULL), PERIGEE_OK);
    noise_state = 0;
}

static void teardown(void) {
    ck_assert_uint_eq(context.allocator->bytes, 0);
    prg_allocator_drop(context.allocator);
}

static double unit(void) {
    return prg_random_unit(12345, noise_state++);
}

static double normal(void) {
    return sqrt(-2 * log(1 - unit())) * cos(6.283185307179586 * unit());
}

static perigee_sampler *make(void) {
    perigee_sampler *s = NULL;
    ck_assert_int_eq(perigee_sampler_new(&context, &s, NULL), PERIGEE_OK);
    return s;
}

static int32_t sample(perigee_sampler *s, const float *logits, size_t n) {
    int32_t id = -1;
    perigee_error *e = NULL;
    perigee_status st = perigee_sampler_sample(s, logits, n, &id, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return id;
}

START_TEST(test_random_stream) {
    /* The published outputs of splitmix64 from seed 1234567. */
    static const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                        UINT64_C(16408922859458223821)};
    for (size_t i = 0; i < 5; i++) {
        ck_assert(prg_random_bits(1234567, i) == expected[i]);
    }
}
END_TEST

START_TEST(test_exponentials) {
    enum { N = 4096 };
    static float x[N], w[N];
    double sum = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(-90.0 * i / (N - 1)) + 3.0f;
    }
    double total = prg_softmax_weights(x, N, 3.0f, w);
    for (int i = 0; i < N; i++) {
        float d = x[i] - 3.0f;
        double exact = exp((double)d);
        if (d < -87.0f) {
            ck_assert(w[i] == 0);
        } else {
            ck_assert_msg(fabs((double)w[i] - exact) <= 2.4e-7 * exact, "%a: %a for %a", d, w[i], exact);
        }
        sum += (double)w[i];
    }
    ck_assert_double_eq_tol(total, sum, 1e-7 * sum);
    for (double d = 0; d > -699; d -= 0.37) {
        ck_assert_double_eq_tol(prg_softmax_exp(d), exp(d), 4e-16 * exp(d));
        double y = exp(-d / 3) * 0.7;
        ck_assert_double_eq_tol(prg_softmax_ln(y), log(y), 4e-16 * fmax(fabs(log(y)), 1));
    }
    ck_assert(prg_softmax_exp(0) == 1 && prg_softmax_ln(1) == 0);
}
END_TEST

/* Bits that must come out on every machine and compiler. */
START_TEST(test_fixed_bits) {
    static float x[1001], w[1008];
    for (int i = 0; i < 1001; i++) {
        x[i] = (float)((i * 7919) % 1001) * -0.03f;
    }
    double total = prg_softmax_weights(x, 1001, 0, w);
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < 1001; i++) {
        uint32_t bits;
        memcpy(&bits, &w[i], 4);
        hash = (hash ^ bits) * 1099511628211u;
    }
    double sum = prg_softmax_log_sum(x, 1001, 0);
    char text[200];
    snprintf(text, sizeof text, "%a %a %016llx", total, sum, (unsigned long long)hash);
    ck_assert_str_eq(text, "0x1.0eafc9df02cp+5 0x1.c2c12e63609ccp+1 c02ffcdd434f3b11");
}
END_TEST

static int by_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

START_TEST(test_select_top) {
    enum { N = 5000 };
    static float v[N];
    static uint64_t all[N], keys[2 * N];
    for (int shape = 0; shape < 6; shape++) {
        for (int i = 0; i < N; i++) {
            v[i] = shape == 0   ? (float)normal()
                   : shape == 1 ? (float)i
                   : shape == 2 ? (float)-i
                   : shape == 3 ? (float)(i % 7) /* many ties */
                   : shape == 4 ? 0.0f
                                : (i % 2 ? -0.0f : 0.0f);
            all[i] = prg_select_key(v[i] + 0.0f, (uint32_t)i);
        }
        qsort(all, N, sizeof *all, by_order);
        static const size_t ks[] = {1, 2, 3, 40, 999, N - 1, N};
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            prg_select_top(v, N, ks[j], keys);
            prg_select_sort(keys, ks[j]);
            ck_assert_msg(memcmp(keys, all, ks[j] * sizeof *all) == 0, "shape %d, k %zu", shape, ks[j]);
        }
    }
}
END_TEST

/* Against a full sort and a running sum. */
START_TEST(test_select_mass) {
    enum { N = 3000 };
    static float w[N];
    static uint64_t all[N];
    static prg_mass_buckets buckets;
    static float scratch[N];
    for (int shape = 0; shape < 4; shape++) {
        double total = 0;
        for (int i = 0; i < N; i++) {
            w[i] = shape == 0   ? (float)exp(3 * normal())
                   : shape == 1 ? 0.25f
                   : shape == 2 ? (float)(i % 3)
                                : (float)unit();
            total += (double)w[i];
            all[i] = prg_select_key(w[i], (uint32_t)i);
        }
        qsort(all, N, sizeof *all, by_order);
        for (double p = 0; p < 1; p += 0.0625) {
            size_t n = 0;
            double sum = 0;
            do {
                sum += (double)prg_select_value(all[n++]);
            } while (sum < p * total);
            float floor;
            size_t equal = prg_select_mass(w, N, p * total, &buckets, scratch, &floor), got = 0;
            size_t ties = 0;
            for (int i = 0; i < N; i++) {
                got += w[i] > floor;
                ties += w[i] == floor;
            }
            ck_assert(equal == SIZE_MAX || equal < ties);
            equal = equal == SIZE_MAX ? ties : equal;
            /* a sum that meets its target exactly may fall either way by rounding */
            size_t difference = got + equal > n ? got + equal - n : n - got - equal;
            ck_assert_msg(difference <= (shape == 0 || shape == 3), "shape %d, p %g: %zu for %zu", shape, p,
                          got + equal, n);
        }
    }
}
END_TEST

START_TEST(test_greedy_and_ties) {
    perigee_sampler *s = make();
    float logits[70] = {0};
    logits[13] = logits[40] = 2.5f;
    ck_assert_int_eq(sample(s, logits, 70), 13);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, 0, NULL), PERIGEE_OK);
    ck_assert_int_eq(sample(s, logits, 70), 13);
    logits[13] = -0.0f;
    logits[40] = 0.0f;
    ck_assert_int_eq(sample(s, logits, 70), 0);
    int32_t id = -1;
    logits[5] = 1;
    ck_assert_int_eq(perigee_argmax(logits, 70, &id, NULL), PERIGEE_OK);
    ck_assert_int_eq(id, 5);
    int32_t top[3];
    float values[3];
    ck_assert_int_eq(perigee_top_k(&context, logits, 70, 3, top, values, NULL), PERIGEE_OK);
    ck_assert(top[0] == 5 && top[1] == 0 && top[2] == 1 && values[0] == 1 && values[2] == 0);
    perigee_sampler_free(s);
}
END_TEST

START_TEST(test_not_finite) {
    perigee_sampler *s = make();
    float logits[70] = {0};
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t at = 0; at < 70; at += 23) {
        for (size_t i = 0; i < 3; i++) {
            int32_t id = -7;
            perigee_error *e = NULL;
            logits[at] = bad[i];
            ck_assert_int_eq(perigee_sampler_sample(s, logits, 70, &id, &e), PERIGEE_E_NOT_FINITE);
            ck_assert_int_eq(id, -7);
            char expected[32];
            snprintf(expected, sizeof expected, "token %zu ", at);
            ck_assert_ptr_nonnull(strstr(perigee_error_message(e), expected));
            perigee_error_free(e);
            ck_assert_int_eq(perigee_argmax(logits, 70, &id, NULL), PERIGEE_E_NOT_FINITE);
            double p = 0;
            ck_assert_int_eq(perigee_log_probabilities(logits, 70, &(int32_t){0}, 1, &p, NULL), PERIGEE_E_NOT_FINITE);
            logits[at] = 0;
        }
    }
    ck_assert_uint_eq(s->counter, 0);
    perigee_sampler_free(s);
}
END_TEST

/* Penalties and bias against the definition in double, read off greedy choices: the penalised token's logit is
 * bracketed by that of a token that is not in the window. */
static void expect_logit(perigee_sampler *s, float before, double after) {
    for (int side = -1; side <= 1; side += 2) {
        float logits[4] = {-1e6f, before, (float)(after + side * 1e-4), -1e6f};
        ck_assert_msg(sample(s, logits, 4) == (side < 0 ? 1 : 2), "%g should become %g", (double)before, after);
    }
}

START_TEST(test_penalties) {
    static const int32_t history[] = {1, 3, 1, 1, 0, 0};
    for (int kind = 0; kind < 3; kind++) {
        for (size_t window = 1; window <= 8; window++) {
            perigee_sampler *s = make();
            perigee_status st = kind == 0   ? perigee_sampler_add_repetition(s, 1.3, window, NULL)
                                : kind == 1 ? perigee_sampler_add_presence(s, 0.6, window, NULL)
                                            : perigee_sampler_add_frequency(s, 0.4, window, NULL);
            ck_assert_int_eq(st, PERIGEE_OK);
            ck_assert_int_eq(perigee_sampler_add_greedy(s, NULL), PERIGEE_OK);
            ck_assert_int_eq(perigee_sampler_accept(s, history, 6, NULL), PERIGEE_OK);
            int times = 0;
            for (size_t i = 6 - (window < 6 ? window : 6); i < 6; i++) {
                times += history[i] == 1;
            }
            for (int sign = -1; sign <= 1; sign += 2) {
                double v = 2.5 * sign, after = v;
                if (times > 0) {
                    after = kind == 0 ? (sign > 0 ? v / 1.3 : v * 1.3) : kind == 1 ? v - 0.6 : v - 0.4 * times;
                }
                expect_logit(s, (float)v, after);
            }
            perigee_sampler_free(s);
        }
    }
}
END_TEST

START_TEST(test_bias_and_order) {
    /* Temperature before or after a penalty differ: the stages work in the order in which they are added. */
    for (int first = 0; first < 2; first++) {
        perigee_sampler *s = make();
        if (first) {
            ck_assert_int_eq(perigee_sampler_add_temperature(s, 0.5, NULL), PERIGEE_OK);
        }
        const int32_t ids[] = {1, 99};
        const float biases[] = {-1.5f, 7.0f};
        ck_assert_int_eq(perigee_sampler_add_bias(s, ids, biases, 2, NULL), PERIGEE_OK);
        ck_assert_int_eq(perigee_sampler_add_greedy(s, NULL), PERIGEE_OK);
        for (int side = -1; side <= 1; side += 2) {
            double other = first ? (2 * 2.0 - 1.5) / 2 : 2.0 - 1.5;
            float logits[4] = {-9, 2.0f, (float)(other + side * 1e-4), -9};
            ck_assert_int_eq(sample(s, logits, 4), side < 0 ? 1 : 2);
        }
        perigee_sampler_free(s);
    }
}
END_TEST

/* Draws counted against exact probabilities. The bound is the 99.9th percentile for the degrees of freedom or more; the
 * seeds are fixed, so the test says the same each time. */
static void chi_square(perigee_sampler *s, const float *logits, size_t n, const double *expected, double bound) {
    enum { DRAWS = 40000 };
    double counts[64] = {0}, sum = 0, chi = 0;
    perigee_sampler_set_seed(s, 99);
    for (int i = 0; i < DRAWS; i++) {
        counts[sample(s, logits, n)]++;
    }
    for (size_t i = 0; i < n; i++) {
        sum += expected[i];
    }
    for (size_t i = 0; i < n; i++) {
        double e = expected[i] / sum * DRAWS;
        if (e == 0) {
            ck_assert_msg(counts[i] == 0, "token %zu was cut off and drawn", i);
        } else {
            ck_assert(e >= 5);
            chi += (counts[i] - e) * (counts[i] - e) / e;
        }
    }
    ck_assert_msg(chi < bound, "chi-square %g, bound %g", chi, bound);
}

static const float small[12] = {0.3f, 1.7f, -0.5f, 2.9f, 2.9f, 0.0f, 1.1f, -1.0f, 2.2f, 1.7f, -2.0f, 0.9f};

START_TEST(test_distribution_temperature) {
    static const double ts[] = {0.7, 1.0, 1.7};
    for (size_t t = 0; t < 3; t++) {
        perigee_sampler *s = make();
        ck_assert_int_eq(perigee_sampler_add_temperature(s, ts[t], NULL), PERIGEE_OK);
        double p[12];
        for (int i = 0; i < 12; i++) {
            p[i] = exp((double)small[i] / ts[t]);
        }
        chi_square(s, small, 12, p, 31.26);
        perigee_sampler_free(s);
    }
}
END_TEST

/* What top-k, top-p and min-p leave, worked out from sorted probabilities. */
START_TEST(test_distribution_cuts) {
    int order[12];
    double whole = 0;
    for (int i = 0; i < 12; i++) {
        whole += exp((double)small[i]);
        int at = i;
        for (; at > 0 && small[order[at - 1]] < small[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (int kind = 0; kind < 3; kind++) {
        for (int step = 1; step <= 10; step++) {
            perigee_sampler *s = make();
            double p[12] = {0}, before = 0, x = step / 10.5;
            for (int r = 0; r < 12; r++) {
                int i = order[r];
                double e = exp((double)small[i]);
                bool kept = kind == 0   ? r < step
                            : kind == 1 ? before < x * whole
                                        : e >= x * exp((double)small[order[0]]);
                p[i] = kept ? e : 0;
                before += e;
            }
            perigee_status st = kind == 0   ? perigee_sampler_add_top_k(s, (size_t)step, NULL)
                                : kind == 1 ? perigee_sampler_add_top_p(s, x, NULL)
                                            : perigee_sampler_add_min_p(s, x, NULL);
            ck_assert_int_eq(st, PERIGEE_OK);
            chi_square(s, small, 12, p, 31.26);
            perigee_sampler_free(s);
        }
    }
}
END_TEST

/* The edges: p = 0 leaves one, p = 1 all; a cut after a cut renormalises. */
START_TEST(test_cut_after_cut) {
    perigee_sampler *s = make();
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 3, NULL), PERIGEE_OK); /* 3, 4, 8: 0.401, 0.401, 0.199 */
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 0.79, NULL), PERIGEE_OK);
    double p[12] = {0};
    p[3] = p[4] = 1;
    chi_square(s, small, 12, p, 10.83);
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 0, NULL), PERIGEE_OK);
    ck_assert_int_eq(sample(s, small, 12), 3);
    perigee_sampler_free(s);
    s = make();
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 1, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 1000, NULL), PERIGEE_OK);
    for (int i = 0; i < 12; i++) {
        p[i] = exp((double)small[i]);
    }
    chi_square(s, small, 12, p, 31.26);
    perigee_sampler_free(s);
}
END_TEST

/* A whole vocabulary: the choice against a reference in double, where it is not within rounding of a border. */
START_TEST(test_large_against_reference) {
    enum { N = 163840 };
    static float logits[N];
    static uint64_t keys[N];
    static double e[N];
    static unsigned char kept[N];
    for (int shape = 0; shape < 3; shape++) {
        double whole = 0, left = 0;
        for (int i = 0; i < N; i++) {
            logits[i] = shape == 0 ? (float)(3 * normal()) : shape == 1 ? 1.0f : (float)(0.5 * normal());
            keys[i] = prg_select_key(logits[i], (uint32_t)i);
        }
        qsort(keys, N, sizeof *keys, by_order);
        double top = (double)prg_select_value(keys[0]);
        for (int i = 0; i < N; i++) {
            e[i] = exp(((double)logits[i] - top) / 0.8);
            whole += e[i];
        }
        memset(kept, 0, sizeof kept);
        for (int r = 0; r < N && left < 0.95 * whole; r++) {
            kept[prg_select_index(keys[r])] = 1;
            left += e[prg_select_index(keys[r])];
        }
        perigee_sampler *s = make();
        ck_assert_int_eq(perigee_sampler_add_temperature(s, 0.8, NULL), PERIGEE_OK);
        ck_assert_int_eq(perigee_sampler_add_top_p(s, 0.95, NULL), PERIGEE_OK);
        perigee_sampler_set_seed(s, 7);
        int compared = 0;
        for (uint64_t draw = 0; draw < 60; draw++) {
            double target = prg_random_unit(7, draw) * left, low = 0;
            int expected = 0;
            while (!kept[expected] || low + e[expected] <= target) {
                low += kept[expected] ? e[expected] : 0;
                expected++;
            }
            int32_t got = sample(s, logits, N);
            ck_assert(kept[got]);
            if (target - low > 1e-5 * left / 10 && low + e[expected] - target > 1e-5 * left / 10) {
                ck_assert_int_eq(got, expected);
                compared++;
            }
        }
        ck_assert_int_gt(compared, shape == 0 ? 30 : 5);
        perigee_sampler_free(s);
    }
}
END_TEST

START_TEST(test_log_probabilities) {
    enum { N = 1000 };
    static float logits[N];
    double sum = 0;
    for (int i = 0; i < N; i++) {
        logits[i] = (float)(8 * normal() + 50);
        sum += exp((double)logits[i]);
    }
    const int32_t ids[] = {0, 17, N - 1};
    double got[3];
    ck_assert_int_eq(perigee_log_probabilities(logits, N, ids, 3, got, NULL), PERIGEE_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(got[i], (double)logits[ids[i]] - log(sum), 1e-12);
    }
    const int32_t outside = N;
    ck_assert_int_eq(perigee_log_probabilities(logits, N, &outside, 1, got, NULL), PERIGEE_E_TOKEN);
}
END_TEST

static perigee_sampler *make_chain(void) {
    perigee_sampler *s = make();
    const int32_t ids[] = {2, 3};
    const float biases[] = {0.5f, -0.25f};
    ck_assert_int_eq(perigee_sampler_add_repetition(s, 1.1, 5, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_presence(s, 0.3, 3, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_frequency(s, 0.2, 9, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_bias(s, ids, biases, 2, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, 1.2, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 10, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 0.97, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_min_p(s, 0.02, NULL), PERIGEE_OK);
    perigee_sampler_set_seed(s, UINT64_C(0xFEDCBA9876543210));
    return s;
}

static void step(perigee_sampler *s, int32_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        out[i] = sample(s, small, 12);
        ck_assert_int_eq(perigee_sampler_accept(s, &out[i], 1, NULL), PERIGEE_OK);
    }
}

START_TEST(test_clone_save_load) {
    perigee_sampler *s = make_chain();
    for (size_t before = 0; before < 25; before += 6) { /* the history's ring wraps */
        int32_t lead[25], a[20], b[20], c[20];
        perigee_sampler_reset(s);
        step(s, lead, before);
        perigee_sampler *copy = NULL, *loaded = NULL;
        ck_assert_int_eq(perigee_sampler_clone(s, &copy, NULL), PERIGEE_OK);
        size_t size = prg_sampler_save_size(s);
        unsigned char *bytes = malloc(size);
        prg_sampler_save(s, bytes);
        perigee_error *e = NULL;
        perigee_status st = prg_sampler_load(context.allocator, bytes, size, &loaded, &e);
        ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
        step(s, a, 20);
        step(copy, b, 20);
        step(loaded, c, 20);
        ck_assert(memcmp(a, b, sizeof a) == 0 && memcmp(a, c, sizeof a) == 0);
        perigee_sampler_free(copy);
        perigee_sampler_free(loaded);
        for (size_t cut = 0; cut < size; cut++) {
            loaded = NULL;
            ck_assert_int_ne(prg_sampler_load(context.allocator, bytes, cut, &loaded, NULL), PERIGEE_OK);
            ck_assert_ptr_null(loaded);
        }
        for (size_t at = 0; at < size; at++) { /* damage is an error or another sampler, never a fault */
            bytes[at] ^= 0x55;
            loaded = NULL;
            if (prg_sampler_load(context.allocator, bytes, size, &loaded, NULL) == PERIGEE_OK) {
                int32_t id;
                (void)perigee_sampler_sample(loaded, small, 12, &id, NULL);
                perigee_sampler_free(loaded);
            }
            bytes[at] ^= 0x55;
        }
        free(bytes);
    }
    perigee_sampler_free(s);
}
END_TEST

START_TEST(test_seeds) {
    int32_t a[64], b[64], c[64];
    perigee_sampler *s = make_chain();
    step(s, a, 64);
    perigee_sampler_reset(s);
    step(s, b, 64);
    perigee_sampler_reset(s);
    perigee_sampler_set_seed(s, 1);
    step(s, c, 64);
    ck_assert(memcmp(a, b, sizeof a) == 0);
    ck_assert(memcmp(a, c, sizeof a) != 0);
    perigee_sampler_free(s);
}
END_TEST

START_TEST(test_allowed) {
    perigee_sampler *s = make();
    float logits[130];
    for (int i = 0; i < 130; i++) {
        logits[i] = (float)i;
    }
    const uint64_t allowed[3] = {1u << 5, UINT64_C(1) << 63, 0};
    int32_t id = -1;
    ck_assert_int_eq(prg_sampler_sample(s, logits, 130, allowed, 130, &id, NULL), PERIGEE_OK);
    ck_assert_int_eq(id, 127);
    const uint64_t none[3] = {0, 0, UINT64_C(1) << 2}; /* 130 is past the end */
    ck_assert_int_eq(prg_sampler_sample(s, logits, 130, none, 130, &id, NULL), PERIGEE_E_STATE);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, 3, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 0.999, NULL), PERIGEE_OK);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(prg_sampler_sample(s, logits, 130, allowed, 130, &id, NULL), PERIGEE_OK);
        ck_assert(id == 5 || id == 127);
    }
    perigee_sampler_free(s);
}
END_TEST

/* Ids that an independent program in double (sorted, exact exponentials) drew for this chain; no border is nearer than
 * 3.8e-5 of the whole. They must come out on every machine. */
START_TEST(test_fixed_ids) {
    static const int32_t expected[] = {731, 159, 311, 351, 48,  886, 229, 815, 355, 620, 195, 499, 517, 570, 672, 206,
                                       93,  514, 85,  706, 981, 58,  633, 654, 72,  323, 784, 828, 929, 676, 792, 832,
                                       613, 762, 598, 355, 53,  250, 731, 93,  499, 144, 251, 784, 660, 326, 72,  122};
    static float logits[1000];
    perigee_sampler *s = make();
    for (size_t i = 0; i < 1000; i++) {
        logits[i] = (float)(prg_random_unit(1, i) * 12 - 6);
    }
    ck_assert_int_eq(perigee_sampler_add_repetition(s, 1.3, 16, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 200, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, 0.9, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 0.8, NULL), PERIGEE_OK);
    perigee_sampler_set_seed(s, 42);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int32_t id = sample(s, logits, 1000);
        ck_assert_msg(id == expected[i], "draw %zu is %d, not %d", i, id, expected[i]);
        ck_assert_int_eq(perigee_sampler_accept(s, &id, 1, NULL), PERIGEE_OK);
    }
    perigee_sampler_free(s);
}
END_TEST

/* A penalised logit that just ties with another: rounding the host's way would break the tie. */
START_TEST(test_rounding_mode) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const int32_t seen = 1;
    perigee_sampler *s = make();
    ck_assert_int_eq(perigee_sampler_add_repetition(s, 1.3, 4, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_add_greedy(s, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_sampler_accept(s, &seen, 1, NULL), PERIGEE_OK);
    for (int k = 0; k < 30; k++) {
        float before = 1.0f + 0.37f * (float)k, after = (float)((double)before / 1.3);
        float logits[4] = {after, before, after, -1};
        for (int m = 0; m < 3; m++) {
            int32_t id = -1;
            logits[0] = m == 0 ? after : -1; /* ties before and behind it */
            fesetround(modes[m]);
            perigee_status st = perigee_sampler_sample(s, logits, 4, &id, NULL);
            int kept = fegetround();
            fesetround(FE_TONEAREST);
            ck_assert_int_eq(st, PERIGEE_OK);
            ck_assert_int_eq(kept, modes[m]);
            ck_assert_int_eq(id, m == 0 ? 0 : 1);
        }
    }
    perigee_sampler_free(s);
}
END_TEST

START_TEST(test_log_probabilities_whatever_the_rounding) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    float logits[100];
    int32_t ids[100];
    double plain[100], other[100];
    for (int i = 0; i < 100; i++) {
        logits[i] = (float)normal();
        ids[i] = i;
    }
    ck_assert_int_eq(perigee_log_probabilities(logits, 100, ids, 100, plain, NULL), PERIGEE_OK);
    for (int m = 0; m < 3; m++) {
        fesetround(modes[m]);
        perigee_status st = perigee_log_probabilities(logits, 100, ids, 100, other, NULL);
        int kept = fegetround();
        fesetround(FE_TONEAREST);
        ck_assert_int_eq(st, PERIGEE_OK);
        ck_assert_int_eq(kept, modes[m]);
        ck_assert_mem_eq(plain, other, sizeof plain);
    }
}
END_TEST

START_TEST(test_bad_arguments) {
    perigee_sampler *s = make();
    float logit = 0, bias = NAN;
    int32_t id = 0;
    ck_assert_int_eq(perigee_sampler_new(NULL, &s, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_sampler_add_repetition(s, 0, 4, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_repetition(s, 1.1, 0, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_presence(s, NAN, 4, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_frequency(s, 1, (size_t)PRG_SAMPLER_WINDOW + 1, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, -1, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_temperature(s, 1e-9, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 0, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_top_p(s, 1.5, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_min_p(s, -0.1, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_add_bias(s, &id, &bias, 1, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_sampler_sample(s, &logit, 0, &id, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_sampler_sample(NULL, &logit, 1, &id, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_top_k(&context, &logit, 1, 2, &id, NULL, NULL), PERIGEE_E_ARGUMENT);
    for (int i = 0; i < PRG_SAMPLER_STAGES; i++) {
        ck_assert_int_eq(perigee_sampler_add_top_k(s, 5, NULL), PERIGEE_OK);
    }
    ck_assert_int_eq(perigee_sampler_add_top_k(s, 5, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(sample(s, &logit, 1), 0);
    perigee_sampler_free(NULL);
    perigee_sampler_free(s);
}
END_TEST

PRG_SUITE("sampler", setup, teardown, test_random_stream, test_exponentials, test_fixed_bits, test_select_top,
          test_select_mass, test_greedy_and_ties, test_not_finite, test_penalties, test_bias_and_order,
          test_distribution_temperature, test_distribution_cuts, test_cut_after_cut, test_large_against_reference,
          test_log_probabilities, test_clone_save_load, test_seeds, test_allowed, test_fixed_ids, test_rounding_mode,
          test_log_probabilities_whatever_the_rounding, test_bad_arguments)
