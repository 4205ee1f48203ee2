/* Sessions of two models over one context, made, stepped, forked, saved, cancelled and freed by many threads; made for
 * ThreadSanitizer as much as for what it compares. PERIGEE_TEST_SECONDS lengthens it. */
#include <pthread.h>
#include <time.h>

#include "perigee/batch.h"
#include "support/golden.h"
#include "support/suite.h"

enum { THREADS = 8, PROMPT = 17, SHARED = 9 };

static const char *const names[] = {"kimi_k3", "moonlight"};
static perigee_model *models[2];
static golden goldens[2];
static float *expected[2]; /* last logits of the prompt */
static double until;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A small generator of its own for each thread. */
static unsigned next(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static void check_row(int which, const float *logits) {
    ck_assert(memcmp(logits, expected[which], goldens[which].vocabulary * sizeof *logits) == 0);
}

static void in_steps(int which, perigee_session *s, unsigned *seed) {
    const int32_t *ids = goldens[which].ids;
    size_t first = 1 + next(seed) % (PROMPT - 1);
    golden_step(s, ids, first, PERIGEE_LOGITS_NONE);
    check_row(which, golden_step(s, ids + first, PROMPT - first, PERIGEE_LOGITS_LAST));
}

static void cancelled(int which, perigee_session *s, perigee_cancel *cancel) {
    const float *logits = NULL;
    const int32_t *ids = goldens[which].ids;
    perigee_cancel_reset(cancel);
    perigee_status st = perigee_decode_step(s, ids, PROMPT, PERIGEE_LOGITS_LAST, &logits, NULL, cancel, NULL);
    ck_assert(st == PERIGEE_OK || st == PERIGEE_E_CANCELLED);
    if (st != PERIGEE_OK) {
        size_t at = (size_t)perigee_session_position(s);
        logits = golden_step(s, ids + at, PROMPT - at, PERIGEE_LOGITS_LAST);
    }
    check_row(which, logits);
}

static void in_batch(int which, perigee_session *s) {
    perigee_session *other = golden_session(models[which], NULL);
    perigee_batch_item items[2] = {
        {.struct_size = sizeof *items, .session = s, .which = PERIGEE_LOGITS_LAST},
        {.struct_size = sizeof *items, .session = other, .which = PERIGEE_LOGITS_LAST},
    };
    for (int i = 0; i < 2; i++) {
        items[i].tokens = goldens[which].ids;
        items[i].n = PROMPT;
    }
    golden_ok(perigee_decode_batch(items, 2, NULL, NULL), NULL);
    check_row(which, items[0].logits);
    check_row(which, items[1].logits);
    perigee_session_free(other);
}

/* Forks of forks of one session that all threads share blocks with. */
static void forked(int which, perigee_session *base) {
    perigee_session *a = NULL, *b = NULL;
    golden_ok(perigee_session_fork(base, &a, NULL), NULL);
    golden_ok(perigee_session_fork(a, &b, NULL), NULL);
    const int32_t *ids = goldens[which].ids;
    golden_step(a, ids, 3, PERIGEE_LOGITS_NONE); /* goes its own way */
    perigee_session_free(a);
    check_row(which, golden_step(b, ids + SHARED, PROMPT - SHARED, PERIGEE_LOGITS_LAST));
    perigee_session_free(b);
}

static void saved(int which, perigee_session *s) {
    const int32_t *ids = goldens[which].ids;
    size_t size = 0;
    golden_step(s, ids, SHARED, PERIGEE_LOGITS_NONE);
    golden_ok(perigee_state_size(s, NULL, &size, NULL), NULL);
    void *bytes = malloc(size);
    golden_ok(perigee_state_save(s, NULL, bytes, size, NULL, NULL), NULL);
    golden_step(s, ids, 2, PERIGEE_LOGITS_NONE);
    golden_ok(perigee_state_load(s, NULL, bytes, size, NULL), NULL);
    free(bytes);
    check_row(which, golden_step(s, ids + SHARED, PROMPT - SHARED, PERIGEE_LOGITS_LAST));
}

typedef struct worker {
    unsigned seed;
    perigee_session *base[2]; /* at SHARED */
    perigee_cancel *own, *neighbour;
    size_t rounds;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    do {
        const int which = (int)(next(&w->seed) % 2);
        perigee_session *s = golden_session(models[which], next(&w->seed) % 2 ? "chunk=5" : NULL);
        switch (next(&w->seed) % 5) {
        case 0:
            in_steps(which, s, &w->seed);
            break;
        case 1:
            cancelled(which, s, w->own);
            break;
        case 2:
            forked(which, w->base[which]);
            break;
        case 3:
            saved(which, s);
            break;
        default:
            in_batch(which, s);
        }
        perigee_cancel_trigger(w->neighbour);
        perigee_session_free(s);
        w->rounds++;
    } while (now() < until);
    return NULL;
}

START_TEST(many_threads) {
    const char *seconds = getenv("PERIGEE_TEST_SECONDS");
    perigee_context *context = golden_context("threads=2");
    for (int i = 0; i < 2; i++) {
        models[i] = golden_model(context, names[i], NULL);
        goldens[i] = golden_read(names[i]);
        perigee_session *s = golden_session(models[i], NULL);
        const size_t bytes = goldens[i].vocabulary * sizeof(float);
        expected[i] = malloc(bytes);
        memcpy(expected[i], golden_step(s, goldens[i].ids, PROMPT, PERIGEE_LOGITS_LAST), bytes);
        perigee_session_free(s);
    }
    perigee_session *root[2];
    for (int i = 0; i < 2; i++) {
        root[i] = golden_session(models[i], NULL);
        golden_step(root[i], goldens[i].ids, SHARED, PERIGEE_LOGITS_NONE);
    }
    until = now() + (seconds ? atof(seconds) : 2);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.seed = i * 77 + 1};
        golden_ok(perigee_cancel_new(&workers[i].own, NULL), NULL);
        golden_ok(perigee_session_fork(root[0], &workers[i].base[0], NULL), NULL);
        golden_ok(perigee_session_fork(root[1], &workers[i].base[1], NULL), NULL);
    }
    perigee_session_free(root[0]);
    perigee_session_free(root[1]);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].neighbour = workers[(i + 1) % THREADS].own;
    }
    for (size_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    size_t rounds = 0;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        rounds += workers[i].rounds;
    }
    printf("%zu rounds on %d threads\n", rounds, (int)THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        perigee_cancel_free(workers[i].own);
        perigee_session_free(workers[i].base[0]);
        perigee_session_free(workers[i].base[1]);
    }
    for (int i = 0; i < 2; i++) {
        perigee_model_free(models[i]);
        free(goldens[i].file);
        free(expected[i]);
    }
    perigee_context_free(context);
}
END_TEST

PRG_SUITE("threads", NULL, NULL, many_threads)
