#include <check.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/error.h"
#include "base/thread_pool.h"
#include "support/suite.h"

static prg_allocator *allocator;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
}

static void teardown(void) {
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

static prg_pool *make(size_t threads) {
    prg_pool *pool = NULL;
    ck_assert_int_eq(prg_pool_new(allocator, threads, "", &pool, NULL), PERIGEE_OK);
    ck_assert_uint_eq(prg_pool_threads(pool), threads);
    return pool;
}

typedef struct tally {
    size_t seen[64];
    size_t count;
    size_t total; /* only the caller's, after run() */
} tally;

static void add_one(void *argument, size_t index, size_t count) {
    tally *t = argument;
    t->seen[index]++;
    if (index == 0) {
        t->count = count;
    }
}

/* Each index once a section, and all writes are visible afterwards: plain fields, so that ThreadSanitizer would tell.
 */
START_TEST(test_sections) {
    static const size_t sizes[] = {1, 2, 3, 9};
    for (size_t s = 0; s < 4; s++) {
        prg_pool *pool = make(sizes[s]);
        tally t = {0};
        for (int step = 0; step < 20; step++) {
            ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
            for (int i = 0; i < 50; i++) {
                prg_pool_run(pool, add_one, &t);
                for (size_t k = 0; k < sizes[s]; k++) {
                    ck_assert_uint_eq(t.seen[k], (size_t)(step * 50 + i + 1));
                }
            }
            prg_pool_leave(pool);
            if (step % 5 == 0) {
                nanosleep(&(struct timespec){0, 2000000}, NULL); /* let them fall asleep */
            }
        }
        ck_assert_uint_eq(t.count, sizes[s]);
        prg_pool_free(pool);
    }
}
END_TEST

static void slow_for_others(void *argument, size_t index, size_t count) {
    (void)count;
    if (index != 0) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    ((int *)argument)[index] = 1;
}

START_TEST(test_caller_sleeps) {
    prg_pool *pool = make(3);
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    int done[3] = {0};
    prg_pool_run(pool, slow_for_others, done);
    ck_assert(done[0] && done[1] && done[2]);
    prg_pool_leave(pool);
    prg_pool_free(pool);
}
END_TEST

START_TEST(test_bad_lists) {
    static const char *const bad[] = {"x",       "1,",  ",1", "3-1",  "1-",
                                      "0-99999", "0 1", "-1", "1,,2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        prg_pool *pool = NULL;
        perigee_error *err = NULL;
        ck_assert_msg(prg_pool_new(allocator, 2, bad[i], &pool, &err) == PERIGEE_E_ARGUMENT, "%s", bad[i]);
        perigee_error_free(err);
    }
    prg_pool *pool = NULL;
    ck_assert_int_eq(prg_pool_new(allocator, 0, "", &pool, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(prg_pool_new(allocator, 5, "0,0-0", &pool, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    tally t = {0};
    prg_pool_run(pool, add_one, &t);
    ck_assert_uint_eq(t.seen[4], 1);
    prg_pool_leave(pool);
    prg_pool_free(pool);
}
END_TEST

/* Processor 1000 exists nowhere: the threads don't start, and the pool can be entered (and fail) again. */
START_TEST(test_start_fails) {
    prg_pool *pool = NULL;
    ck_assert_int_eq(prg_pool_new(allocator, 4, "0,0,1000", &pool, NULL), PERIGEE_OK);
    for (int i = 0; i < 3; i++) {
        perigee_error *err = NULL;
        ck_assert_int_eq(prg_pool_enter(pool, &err), PERIGEE_E_SYSTEM);
        ck_assert_ptr_nonnull(strstr(perigee_error_message(err), "thread 3 of 4"));
        perigee_error_free(err);
    }
    prg_pool_free(pool);
}
END_TEST

typedef struct modes {
    int rounding[4];
    float subnormal[4];
    sigset_t mask[4];
} modes;

static volatile float tiny = 1e-38f;

static void read_mode(void *argument, size_t index, size_t count) {
    (void)count;
    modes *m = argument;
    m->rounding[index] = fegetround();
    m->subnormal[index] = tiny * 0.125f;
    pthread_sigmask(SIG_SETMASK, NULL, &m->mask[index]);
}

/* The host rounds towards zero and flushes subnormals: not in here, and again when the step is over. */
START_TEST(test_float_mode_and_signals) {
    prg_pool *pool = make(4);
    fesetround(FE_TOWARDZERO);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
    unsigned before = _mm_getcsr() & ~0x3fu;
#endif
    modes m;
    perigee_status status = prg_pool_enter(pool, NULL);
    prg_pool_run(pool, read_mode, &m);
    prg_pool_leave(pool);
    int rounding = fegetround();
#if defined(__x86_64__)
    unsigned after = _mm_getcsr() & ~0x3fu;
    _mm_setcsr(0x1f80);
    ck_assert_uint_eq(before, after);
#endif
    fesetround(FE_TONEAREST);
    ck_assert_int_eq(status, PERIGEE_OK);
    ck_assert_int_eq(rounding, FE_TOWARDZERO);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(m.rounding[i], FE_TONEAREST);
        ck_assert(m.subnormal[i] > 0);
        ck_assert_int_eq(sigismember(&m.mask[i], SIGUSR1), i > 0);
    }
    prg_pool_free(pool);
}
END_TEST

typedef struct visitor {
    prg_pool *pool;
    int *inside;
    int *order;
    int *arrived;
    int id;
} visitor;

static void *visit(void *argument) {
    visitor *v = argument;
    for (int i = 0; i < 200; i++) {
        if (prg_pool_enter(v->pool, NULL) != PERIGEE_OK) {
            return argument;
        }
        int alone = (*v->inside)++ == 0; /* not atomic: the pool must keep others out */
        tally t = {0};
        prg_pool_run(v->pool, add_one, &t);
        alone &= t.seen[1] == 1;
        (*v->inside)--;
        prg_pool_leave(v->pool);
        if (!alone) {
            return argument;
        }
    }
    return NULL;
}

START_TEST(test_one_step_at_a_time) {
    prg_pool *pool = make(2);
    int inside = 0;
    pthread_t threads[5];
    visitor v = {pool, &inside, NULL, NULL, 0};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, visit, &v), 0);
    }
    for (int i = 0; i < 5; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    prg_pool_free(pool);
}
END_TEST

static void *queue_up(void *argument) {
    visitor *v = argument;
    if (prg_pool_enter(v->pool, NULL) == PERIGEE_OK) {
        v->order[(*v->arrived)++] = v->id;
        prg_pool_leave(v->pool);
    }
    return NULL;
}

START_TEST(test_first_come_first_served) {
    prg_pool *pool = make(1);
    int order[6] = {0}, arrived = 0;
    pthread_t threads[6];
    visitor v[6];
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    for (int i = 0; i < 6; i++) {
        v[i] = (visitor){pool, NULL, order, &arrived, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, queue_up, &v[i]), 0);
        nanosleep(&(struct timespec){0, 30000000}, NULL);
    }
    prg_pool_leave(pool);
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(order[i], i);
    }
    prg_pool_free(pool);
}
END_TEST

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

START_TEST(test_idle_pool_burns_nothing) {
    prg_pool *pool = make(4);
    tally t = {0};
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    prg_pool_run(pool, add_one, &t);
    prg_pool_leave(pool);
    double before = cpu_seconds();
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    ck_assert_double_lt(cpu_seconds() - before, 0.02);
    prg_pool_free(pool);
}
END_TEST

#if !defined(__SANITIZE_THREAD__)
START_TEST(test_fork) {
    prg_pool *pool = make(2);
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    prg_pool_leave(pool);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        _exit(prg_pool_enter(pool, NULL) == PERIGEE_E_STATE ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    prg_pool_free(pool);
}
END_TEST

/* Workers sleep and the turn is taken when the process is copied: the child can neither enter nor hang. */
START_TEST(test_fork_in_a_step) {
    prg_pool *pool = make(3);
    tally t = {0};
    ck_assert_int_eq(prg_pool_enter(pool, NULL), PERIGEE_OK);
    prg_pool_run(pool, add_one, &t);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        perigee_status st = prg_pool_enter(pool, NULL);
        prg_pool_free(pool);
        _exit(st == PERIGEE_E_STATE ? 0 : 1);
    }
    int status = -1;
    for (int i = 0; i < 500 && waitpid(child, &status, WNOHANG) == 0; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    if (status == -1) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    ck_assert_int_eq(status, 0);
    prg_pool_leave(pool);
    prg_pool_free(pool);
}
END_TEST
#else
#define test_fork test_caller_sleeps
#define test_fork_in_a_step test_caller_sleeps
#endif

PRG_SUITE("thread_pool", setup, teardown, test_sections, test_caller_sleeps, test_bad_lists, test_start_fails,
          test_float_mode_and_signals, test_one_step_at_a_time, test_first_come_first_served,
          test_idle_pool_burns_nothing, test_fork, test_fork_in_a_step)
