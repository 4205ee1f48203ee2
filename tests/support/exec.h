/* What an op runs on, for a table, a number of threads and any scratch; and numbers to feed it. */
#ifndef PRG_TESTS_EXEC_H
#define PRG_TESTS_EXEC_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

/* Also outside of a running test, where Check's own assertions can't be. */
#define test_require(condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *const test_sets[] = {"scalar", "avx2", "avx512", "neon"};
enum { TEST_SETS = sizeof test_sets / sizeof *test_sets };

typedef struct test_exec {
    prg_allocator *allocator;
    prg_kernel_table *table;
    prg_pool *pool;
    prg_scratch scratch;
    prg_exec exec;
} test_exec;

/* False if this processor cannot run the set. */
static inline bool test_exec_open_as(test_exec *t, const char *kernels, const char *precision, size_t threads) {
    memset(t, 0, sizeof *t);
    test_require(prg_allocator_new(NULL, &t->allocator, NULL) == PERIGEE_OK);
    perigee_error *err = NULL;
    perigee_status status = prg_kernel_table_new(t->allocator, kernels, precision, "", NULL, &t->table, &err);
    perigee_error_free(err);
    if (status != PERIGEE_OK) {
        test_require(status == PERIGEE_E_UNSUPPORTED);
        test_require(strcmp(kernels, "scalar") != 0);
        prg_allocator_drop(t->allocator);
        return false;
    }
    test_require(prg_pool_new(t->allocator, threads, "", &t->pool, NULL) == PERIGEE_OK);
    test_require(prg_pool_enter(t->pool, NULL) == PERIGEE_OK);
    t->exec = (prg_exec){t->table, t->pool, &t->scratch, NULL};
    return true;
}

static inline bool test_exec_open(test_exec *t, const char *kernels, size_t threads) {
    return test_exec_open_as(t, kernels, "exact", threads);
}

/* Scratch of just so many bytes. */
static inline void test_exec_scratch(test_exec *t, size_t bytes) {
    prg_free(t->allocator, t->scratch.base);
    t->scratch = (prg_scratch){prg_alloc(t->allocator, bytes), bytes, 0, 0};
    test_require(t->scratch.base);
}

static inline void test_exec_close(test_exec *t) {
    test_require(t->scratch.used == 0);
    prg_free(t->allocator, t->scratch.base);
    prg_pool_leave(t->pool);
    prg_pool_free(t->pool);
    prg_kernel_table_free(t->table);
    test_require(t->allocator->bytes == 0);
    prg_allocator_drop(t->allocator);
}

static uint64_t test_seed = 88172645463325252u;

static inline uint64_t test_random(void) {
    test_seed ^= test_seed << 13;
    test_seed ^= test_seed >> 7;
    test_seed ^= test_seed << 17;
    return test_seed;
}

/* Even in [low, high). */
static inline float test_even(float low, float high) {
    return low + (high - low) * (float)((double)(test_random() >> 40) / 16777216.0);
}

static inline float *test_fill(size_t n, float low, float high) {
    float *p = malloc((n ? n : 1) * sizeof *p);
    test_require(p);
    for (size_t i = 0; i < n; i++) {
        p[i] = test_even(low, high);
    }
    return p;
}

static inline float *test_copy(const float *from, size_t n) {
    float *p = malloc((n ? n : 1) * sizeof *p);
    test_require(p);
    return memcpy(p, from, n * sizeof *p);
}

/* Largest |a - b| over the largest |b|. */
static inline double test_error(const float *a, const double *b, size_t n) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - b[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs(b[i]));
    }
    return largest > 0 ? worst / largest : worst;
}

static inline bool test_same_bits(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

static inline double test_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

#endif
