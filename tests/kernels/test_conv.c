#include "support/exec.h"
#include "support/suite.h"

static void reference(const float *taps, size_t n, const float *all, size_t m, size_t channels, double *y) {
    for (size_t t = 0; t < m; t++) {
        for (size_t c = 0; c < channels; c++) {
            double sum = 0;
            for (size_t j = 0; j < n; j++) {
                sum += (double)taps[c * n + j] * (double)all[(t + j) * channels + c]; /* row 0 is the oldest history */
            }
            y[t * channels + c] = sum / (1 + exp(-sum));
        }
    }
}

/* Channels that are no multiple of a vector; fewer tokens than the history holds; in place; in chunks of every size. */
static void check(const char *set, size_t threads, size_t n, size_t channels, size_t m) {
    test_exec e;
    if (!test_exec_open(&e, set, threads)) {
        return;
    }
    float *taps = test_fill(channels * n, -1, 1), *all = test_fill((m + n - 1) * channels, -2, 2);
    float *got = malloc(m * channels * sizeof *got), *states[2];
    double *want = malloc(m * channels * sizeof *want);
    reference(taps, n, all, m, channels, want);
    for (size_t chunk = 1; chunk <= m; chunk++) {
        states[0] = test_copy(all, (n - 1) * channels);
        states[1] = test_fill((n - 1) * channels, 0, 1);
        memcpy(got, all + (n - 1) * channels, m * channels * sizeof *got);
        for (size_t t = 0, k = 0; t < m; t += chunk, k ^= 1) {
            size_t now = m - t < chunk ? m - t : chunk;
            float *u = got + t * channels;
            prg_short_conv(&e.exec, taps, n, states[k], states[1 - k], u, channels, now, channels, u, channels);
            ck_assert(test_same_bits(states[1 - k], all + (t + now) * channels, (n - 1) * channels));
        }
        ck_assert_double_lt(test_error(got, want, m * channels), 1e-6);
        free(states[0]);
        free(states[1]);
    }
    free(taps);
    free(all);
    free(got);
    free(want);
    test_exec_close(&e);
}

START_TEST(test_conv) {
    for (size_t s = 0; s < TEST_SETS; s++) {
        check(test_sets[s], 1, 4, 37, 7);
        check(test_sets[s], 2, 4, 640, 9);
        check(test_sets[s], 1, 2, 16, 3);
        check(test_sets[s], 3, 7, 1001, 5);
        check(test_sets[s], 1, 1, 5, 2);
    }
}
END_TEST

/* Of one tap there is no history: both places may be one, as in the second chunk of a step. */
START_TEST(test_one_tap_in_place) {
    test_exec e;
    ck_assert(test_exec_open(&e, "scalar", 1));
    const float tap = 2;
    float nowhere, u = 0.5F;
    prg_short_conv(&e.exec, &tap, 1, &nowhere, &nowhere, &u, 1, 1, 1, &u, 1);
    ck_assert_float_eq_tol(u, 0.7310586F, 1e-6F);
    test_exec_close(&e);
}
END_TEST

START_TEST(test_tables_agree) {
    enum { M = 5, C = 150 };
    float *taps = test_fill(C * 4, -1, 1), *u = test_fill(M * C, -9, 9), *history = test_fill(3 * C, -9, 9);
    float first[M * C], y[M * C], next[3 * C];
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (test_exec_open(&e, test_sets[s], 1)) {
            prg_short_conv(&e.exec, taps, 4, history, next, u, C, M, C, y, C);
            if (s == 0) {
                memcpy(first, y, sizeof y);
            }
            ck_assert(test_same_bits(first, y, M * C));
            test_exec_close(&e);
        }
    }
    free(taps);
    free(u);
    free(history);
}
END_TEST

PRG_SUITE("conv", NULL, NULL, test_conv, test_one_tap_in_place, test_tables_agree)
