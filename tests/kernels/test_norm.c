#include "support/exec.h"
#include "support/suite.h"

enum { SIZES = 7 };
static const size_t sizes[SIZES] = {1, 15, 16, 24, 63, 130, 1153};

/* Gains that are not one, a small eps that matters in one row, all tables, bits alike for 1, 2 and 5 threads. */
START_TEST(test_rms_norm) {
    enum { M = 9 };
    for (size_t z = 0; z < SIZES; z++) {
        size_t n = sizes[z], ld = n + 3;
        float *x = test_fill(M * ld, -2, 2), *gain = test_fill(n, 0.5f, 3), *first = NULL;
        double *want = malloc(M * n * sizeof *want);
        for (size_t i = 0; i < n; i++) {
            x[4 * ld + i] *= 1e-4f;
        }
        for (size_t t = 0; t < M; t++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++) {
                sum += (double)x[t * ld + i] * (double)x[t * ld + i];
            }
            for (size_t i = 0; i < n; i++) {
                want[t * n + i] = (double)gain[i] * (double)x[t * ld + i] / sqrt(sum / (double)n + 1e-6);
            }
        }
        for (size_t s = 0; s < TEST_SETS * 3; s++) {
            test_exec e;
            if (!test_exec_open(&e, test_sets[s / 3], (size_t[]){1, 2, 5}[s % 3])) {
                continue;
            }
            float *y = test_fill(M * n, 0, 1);
            prg_rms_norm(&e.exec, x, ld, gain, M, n, 1e-6f, y, n);
            ck_assert_double_lt(test_error(y, want, M * n), 1e-6);
            ck_assert(!first || test_same_bits(y, first, M * n));
            if (!first) {
                first = y;
            } else {
                free(y);
            }
            test_exec_close(&e);
        }
        free(first);
        free(want);
        free(gain);
        free(x);
    }
}
END_TEST

/* Heads in a row, one gain for all, the gate through a sigmoid (not SiLU); in place. */
START_TEST(test_rms_norm_gated) {
    enum { M = 3, GROUPS = 5, N = 24, W = GROUPS * N };
    float *x = test_fill(M * W, -1, 1), *gain = test_fill(N, 0.5f, 3), *gate = test_fill(M * W, -6, 6), *first = NULL;
    double want[M * W];
    for (size_t g = 0; g < M * GROUPS; g++) {
        double sum = 0;
        for (size_t i = 0; i < N; i++) {
            sum += (double)x[g * N + i] * (double)x[g * N + i];
        }
        for (size_t i = 0; i < N; i++) {
            want[g * N + i] =
                (double)gain[i] * (double)x[g * N + i] / sqrt(sum / N + 1e-5) * test_sigmoid((double)gate[g * N + i]);
        }
    }
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s], 2)) {
            continue;
        }
        float *y = test_copy(x, M * W);
        prg_rms_norm_gated(&e.exec, y, W, gain, gate, W, M, GROUPS, N, 1e-5f, y, W);
        ck_assert_double_lt(test_error(y, want, M * W), 1e-6);
        ck_assert(!first || test_same_bits(y, first, M * W));
        if (!first) {
            first = y;
        } else {
            free(y);
        }
        test_exec_close(&e);
    }
    free(first);
    free(x);
    free(gain);
    free(gate);
}
END_TEST

START_TEST(test_rows) {
    enum { M = 40, N = 501 };
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s], 3)) {
            continue;
        }
        float *x = test_fill(M * N, -1, 1), *y = test_fill(M * N, -1, 1), *before = test_copy(y, M * N);
        prg_add_rows(&e.exec, x, N, M, N, y, N);
        double *want = malloc(M * N * sizeof *want);
        for (size_t i = 0; i < M * N; i++) {
            ck_assert(y[i] == before[i] + x[i]);
            want[i] = (double)y[i] * test_sigmoid(8 * (double)x[i]);
            x[i] *= 8;
        }
        prg_sigmoid_gate(&e.exec, x, N, M, N, y, N);
        ck_assert_double_lt(test_error(y, want, M * N), 1e-6);
        ck_assert_uint_eq(prg_first_not_finite(&e.exec, y, N, M, N), M);
        y[17 * N + N - 1] = NAN;
        y[18 * N] = INFINITY;
        ck_assert_uint_eq(prg_first_not_finite(&e.exec, y, N, M, N), 17);
        ck_assert_uint_eq(prg_first_not_finite(&e.exec, y, N, M, N - 1), 18);
        y[2 * N + 3] = -INFINITY;
        ck_assert_uint_eq(prg_first_not_finite(&e.exec, y, N, M, N), 2);
        free(x);
        free(y);
        free(before);
        free(want);
        test_exec_close(&e);
    }
}
END_TEST

/* Scores come from the normalised sources, the mix from the raw ones; sources of very different size tell them apart.
 */
START_TEST(test_residual_mix) {
    enum { M = 5, N = 205, SOURCES = 9 };
    float *sources[SOURCES], *key = test_fill(N, -0.5f, 0.5f), *first = NULL;
    for (size_t j = 0; j < SOURCES; j++) {
        sources[j] = test_fill(M * N, -1, 1);
        for (size_t i = 0; i < M * N; i++) {
            sources[j][i] = sources[j][i] * (float)(j * j + 1) + 0.2f * key[i % N];
        }
    }
    double want[M * N];
    for (size_t t = 0; t < M; t++) {
        double score[SOURCES], most = -1e300, sum = 0;
        for (size_t j = 0; j < SOURCES; j++) {
            double square = 0, dot = 0;
            for (size_t i = 0; i < N; i++) {
                double v = (double)sources[j][t * N + i];
                square += v * v;
                dot += v * (double)key[i];
            }
            score[j] = dot / sqrt(square / N + 1e-5);
            most = fmax(most, score[j]);
        }
        for (size_t j = 0; j < SOURCES; j++) {
            sum += score[j] = exp(score[j] - most);
        }
        for (size_t i = 0; i < N; i++) {
            want[t * N + i] = 0;
            for (size_t j = 0; j < SOURCES; j++) {
                want[t * N + i] += score[j] / sum * (double)sources[j][t * N + i];
            }
        }
    }
    for (size_t s = 0; s < TEST_SETS * 2; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s / 2], 1 + s % 2 * 2)) {
            continue;
        }
        float *y = test_fill(M * N, 0, 1);
        prg_residual_mix(&e.exec, (const float *const *)sources, SOURCES, N, key, M, N, 1e-5f, y, N);
        ck_assert_double_lt(test_error(y, want, M * N), 2e-6);
        ck_assert(!first || test_same_bits(y, first, M * N));
        /* one row alone */
        prg_residual_mix(&e.exec, (const float *const *)sources, SOURCES, N, key, 1, N, 1e-5f, y, N);
        ck_assert(!first || test_same_bits(y, first, N));
        if (!first) {
            first = y;
        } else {
            free(y);
        }
        test_exec_close(&e);
    }
    for (size_t j = 0; j < SOURCES; j++) {
        free(sources[j]);
    }
    free(first);
    free(key);
}
END_TEST

PRG_SUITE("norm", NULL, NULL, test_rms_norm, test_rms_norm_gated, test_rows, test_residual_mix)
