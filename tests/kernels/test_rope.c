#include "support/exec.h"
#include "support/suite.h"

/* Neighbouring values are a pair, every head turns alike, what lies between heads stays; far positions keep the
 * accuracy of float32, and the factor scales both. */
START_TEST(test_rope) {
    enum { PAIRS = 5, HEADS = 3, STRIDE = 17, M = 70, LD = HEADS * STRIDE + 4 };
    double frequency[PAIRS];
    int64_t position[M];
    for (size_t i = 0; i < PAIRS; i++) {
        frequency[i] = pow(50000, -2.0 * (double)i / (2 * PAIRS));
    }
    for (size_t t = 0; t < M; t++) {
        position[t] = t < 60 ? (int64_t)t * 3 : (int64_t)1 << (t - 50);
    }
    float *x = test_fill(M * LD, -1, 1), *before = test_copy(x, M * LD);
    for (size_t threads = 1; threads < 4; threads += 2) {
        test_exec e;
        ck_assert(test_exec_open(&e, "scalar", threads));
        memcpy(x, before, M * LD * sizeof *x);
        prg_rope rope = {PAIRS, frequency, 1.5f};
        prg_rope_apply(&e.exec, &rope, x, LD, M, HEADS, STRIDE, position);
        double worst = 0;
        for (size_t t = 0; t < M; t++) {
            for (size_t i = 0; i < LD; i++) {
                size_t in = i % STRIDE;
                double want = (double)before[t * LD + i];
                if (i < HEADS * STRIDE && in < 2 * PAIRS) {
                    double angle = (double)position[t] * frequency[in / 2];
                    double a = (double)before[t * LD + i - in % 2], b = (double)before[t * LD + i - in % 2 + 1];
                    want = 1.5 * (in % 2 ? a * sin(angle) + b * cos(angle) : a * cos(angle) - b * sin(angle));
                }
                worst = fmax(worst, fabs((double)x[t * LD + i] - want));
            }
        }
        ck_assert_double_lt(worst, 4e-7);
        test_exec_close(&e);
    }
    free(x);
    free(before);
}
END_TEST

PRG_SUITE("rope", NULL, NULL, test_rope)
