#include "support/exec.h"
#include "support/suite.h"

static test_exec e;

static void setup(void) {
    ck_assert(test_exec_open(&e, "scalar", 2));
}

static void teardown(void) {
    test_exec_close(&e);
}

/* The logit of a score. */
static float logit(double p) {
    return (float)log(p / (1 - p));
}

/* The bias reorders the best and takes no part in the weights; ids ascend. */
START_TEST(test_bias_selects_only) {
    const double score[6] = {0.9, 0.2, 0.8, 0.1, 0.7, 0.6};
    const float bias[6] = {-0.5f, 0.7f, 0, 0, 0, 0.15f};
    float logits[6], weight[3];
    uint32_t chosen[3];
    for (int i = 0; i < 6; i++) {
        logits[i] = logit(score[i]);
    }
    prg_router r = {
        .experts = 6, .top_k = 3, .groups = 1, .top_groups = 1, .renormalise = true, .scale = 2.5f, .bias = bias};
    prg_route(&e.exec, &r, logits, 1, chosen, weight); /* 0.4 0.9 0.8 0.1 0.7 0.75 */
    ck_assert(chosen[0] == 1 && chosen[1] == 2 && chosen[2] == 5);
    double sum = 0.2 + 0.8 + 0.6;
    ck_assert_double_eq_tol((double)weight[0], 2.5 * 0.2 / sum, 1e-6);
    ck_assert_double_eq_tol((double)weight[1], 2.5 * 0.8 / sum, 1e-6);
    ck_assert_double_eq_tol((double)weight[2], 2.5 * 0.6 / sum, 1e-6);
}
END_TEST

START_TEST(test_ties_and_switches) {
    float logits[8] = {1, 2, 2, 0, 2, 2, 1, 0}, weight[3];
    uint32_t chosen[3];
    prg_router r = {
        .experts = 8, .top_k = 3, .groups = 1, .top_groups = 1, .softmax = true, .renormalise = false, .scale = 1};
    prg_route(&e.exec, &r, logits, 1, chosen, weight);
    ck_assert(chosen[0] == 1 && chosen[1] == 2 && chosen[2] == 4);
    double all = 2 * exp(1) + 4 * exp(2) + 2;
    ck_assert_double_eq_tol((double)weight[0], exp(2) / all, 1e-6);
    /* one expert is not renormalised to 1 */
    float two[2] = {0, -1}, own;
    uint32_t id;
    r = (prg_router){.experts = 2, .top_k = 1, .groups = 1, .top_groups = 1, .renormalise = true, .scale = 3};
    prg_route(&e.exec, &r, two, 1, &id, &own);
    ck_assert(id == 0 && fabsf(own - 1.5f) < 1e-6f);
}
END_TEST

/* Group 1 has the single best expert, groups 0 and 2 the best pairs; all biased scores but one are negative, so that
 * masking with zero in place of minus infinity would let a masked expert in. */
START_TEST(test_groups) {
    const double score[12] = {0.5, 0.5, 0.1, 0.1, 0.9, 0.05, 0.05, 0.05, 0.55, 0.5, 0.1, 0.1};
    float bias[12], logits[12], weight[4];
    uint32_t chosen[4];
    for (int i = 0; i < 12; i++) {
        bias[i] = i == 8 ? -0.5f : -0.6f;
        logits[i] = logit(score[i]);
    }
    prg_router r = {
        .experts = 12, .top_k = 4, .groups = 3, .top_groups = 2, .renormalise = false, .scale = 1, .bias = bias};
    prg_route(&e.exec, &r, logits, 1, chosen, weight);
    ck_assert(chosen[0] == 0 && chosen[1] == 1 && chosen[2] == 8 && chosen[3] == 9);
    /* groups that tie: the lower two; and more experts wanted than they hold */
    float even[12] = {0};
    uint32_t ten[10];
    float weights[10];
    r = (prg_router){.experts = 12, .top_k = 10, .groups = 3, .top_groups = 2, .scale = 1};
    prg_route(&e.exec, &r, even, 1, ten, weights);
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(ten[i], i);
    }
}
END_TEST

/* Against a selection by full sort, many tokens over threads. */
START_TEST(test_many) {
    enum { M = 300, E = 64, K = 6 };
    float *logits = test_fill(M * E, -3, 3), *bias = test_fill(E, -0.3f, 0.3f), *raw = test_copy(logits, M * E);
    static uint32_t chosen[M * K];
    static float weight[M * K];
    prg_router r = {
        .experts = E, .top_k = K, .groups = 8, .top_groups = 3, .renormalise = true, .scale = 1, .bias = bias};
    prg_route(&e.exec, &r, logits, M, chosen, weight);
    for (size_t t = 0; t < M; t++) {
        double choice[E], group[8];
        for (size_t i = 0; i < E; i++) {
            choice[i] = test_sigmoid((double)raw[t * E + i]) + (double)bias[i];
        }
        for (size_t g = 0; g < 8; g++) {
            double best = -9, second = -9;
            for (size_t i = g * 8; i < g * 8 + 8; i++) {
                second = choice[i] > best ? best : fmax(second, choice[i]);
                best = fmax(best, choice[i]);
            }
            group[g] = best + second;
        }
        double sum = 0;
        for (size_t i = 0; i < K; i++) {
            size_t id = chosen[t * K + i], better = 0;
            ck_assert(i == 0 || chosen[t * K + i - 1] < id);
            for (size_t j = 0; j < E; j++) {
                size_t rank = 0;
                for (size_t g = 0; g < 8; g++) {
                    rank += group[g] > group[j / 8];
                }
                better += rank < 3 && choice[j] > choice[id];
            }
            ck_assert_uint_lt(better, K);
            sum += (double)weight[t * K + i];
        }
        ck_assert_double_eq_tol(sum, 1, 1e-5);
    }
    free(logits);
    free(raw);
    free(bias);
}
END_TEST

START_TEST(test_not_finite) {
    float logits[16], weight[4];
    uint32_t chosen[4];
    for (int i = 0; i < 16; i++) {
        logits[i] = i % 3 ? NAN : 1;
    }
    prg_router r = {.experts = 16, .top_k = 4, .groups = 4, .top_groups = 2, .renormalise = true, .scale = 1};
    prg_route(&e.exec, &r, logits, 1, chosen, weight);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_lt(chosen[i], 16);
        ck_assert(i == 0 || chosen[i - 1] < chosen[i]);
    }
}
END_TEST

PRG_SUITE("router", setup, teardown, test_bias_selects_only, test_ties_and_switches, test_groups, test_many,
          test_not_finite)
