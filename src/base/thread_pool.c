/* Fork and join by epochs: run() publishes a function under a new epoch, workers see it, run it and count down. Who
 * waits spins for a short time, then sleeps; whoever changes what a sleeper waits for looks at the sleepers' flag after
 * the change, both sequentially consistent, so that no wake-up is lost. */
#include "base/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/error.h"
#include "base/float_mode.h"
#include "os/os.h"

enum { SPIN_NS = 40000, CHECKS = 16, CPUS_MOST = 1024, THREADS_MOST = 1024 };

typedef struct worker {
    prg_pool *pool;
    size_t index;
    pthread_t thread;
} worker;

struct prg_pool {
    prg_allocator *allocator;
    size_t threads;
    size_t cpus; /* 0: unbound */
    uint16_t cpu[CPUS_MOST];
    worker *workers; /* [threads - 1] */

    pthread_mutex_t turn_lock;
    pthread_cond_t turn_changed;
    uint64_t next_ticket, serving;

    /* of the holder of the turn */
    bool started;
    bool oversubscribed;
    fenv_t saved_mode;

    /* that the threads belong to; 0: there are none. Read without the turn, which a forked child may never get */
    _Atomic pid_t process;

    prg_pool_fn fn;
    void *argument;
    bool stop;
    _Alignas(64) atomic_uint epoch;
    _Alignas(64) atomic_size_t running;
    _Alignas(64) atomic_size_t asleep; /* workers that wait for an epoch */
    atomic_bool caller_asleep;
    pthread_mutex_t sleep_lock;
    pthread_cond_t wake, done;
};

/* "0,2-5" to a list. */
static bool parse_cpus(const char *text, prg_pool *pool) {
    const char *at = text;
    while (*at) {
        char *end;
        if (*at < '0' || *at > '9') {
            return false;
        }
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') {
            at = end + 1;
            if (*at < '0' || *at > '9') {
                return false;
            }
            last = strtoul(at, &end, 10);
        }
        if (last < first || last >= CPU_SETSIZE) {
            return false;
        }
        for (unsigned long c = first; c <= last; c++) {
            if (pool->cpus == CPUS_MOST) {
                return false;
            }
            pool->cpu[pool->cpus++] = (uint16_t)c;
        }
        at = end;
        if (*at == ',') {
            at++;
            if (!*at) {
                return false;
            }
        } else if (*at) {
            return false;
        }
    }
    return true;
}

perigee_status prg_pool_new(prg_allocator *allocator, size_t threads, const char *cpus, prg_pool **out,
                            perigee_error **err) {
    if (threads < 1 || threads > THREADS_MOST) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "threads: %zu is not between 1 and %d", threads, THREADS_MOST);
    }
    prg_pool *pool = prg_calloc(allocator, 1, sizeof *pool);
    if (!pool) {
        return prg_fail_memory(err);
    }
    pool->allocator = allocator;
    pool->threads = threads;
    perigee_status status = PERIGEE_OK;
    if (!parse_cpus(cpus, pool)) {
        status = prg_fail(err, PERIGEE_E_ARGUMENT, "cpus: \"%s\" is no list of processors as 0,2-5", cpus);
    } else if (threads > 1) {
        pool->workers = prg_calloc(allocator, threads - 1, sizeof *pool->workers);
        if (!pool->workers) {
            status = prg_fail_memory(err);
        }
    }
    if (status != PERIGEE_OK) {
        prg_free(allocator, pool);
        return status;
    }
    pthread_mutex_init(&pool->turn_lock, NULL);
    pthread_cond_init(&pool->turn_changed, NULL);
    pthread_mutex_init(&pool->sleep_lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    *out = pool;
    return PERIGEE_OK;
}

size_t prg_pool_threads(const prg_pool *pool) {
    return pool->threads;
}

static void relax(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool epoch_moved(prg_pool *pool, unsigned seen) {
    return atomic_load(&pool->epoch) != seen;
}

static bool all_returned(prg_pool *pool, unsigned unused) {
    (void)unused;
    return atomic_load(&pool->running) == 0;
}

/* True if the condition came within the time that spinning may take. With more threads than processors, the one that is
 * waited for may need this one's. */
static bool spin(prg_pool *pool, bool (*condition)(prg_pool *, unsigned), unsigned seen) {
    if (pool->oversubscribed) {
        for (int i = 0; i < CHECKS; i++) {
            if (condition(pool, seen)) {
                return true;
            }
            sched_yield();
        }
        return false;
    }
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < CHECKS; i++) {
            if (condition(pool, seen)) {
                return true;
            }
            relax();
        }
        int64_t now = now_ns();
        if (end == 0) {
            end = now + SPIN_NS;
        } else if (now > end) {
            return false;
        }
    }
}

static unsigned wait_epoch(prg_pool *pool, unsigned seen) {
    if (!spin(pool, epoch_moved, seen)) {
        pthread_mutex_lock(&pool->sleep_lock);
        atomic_fetch_add(&pool->asleep, 1);
        while (!epoch_moved(pool, seen)) {
            pthread_cond_wait(&pool->wake, &pool->sleep_lock);
        }
        atomic_fetch_sub(&pool->asleep, 1);
        pthread_mutex_unlock(&pool->sleep_lock);
    }
    return seen + 1;
}

static void publish(prg_pool *pool) {
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->asleep) > 0) {
        pthread_mutex_lock(&pool->sleep_lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->sleep_lock);
    }
}

static void *work(void *argument) {
    const worker *self = argument;
    prg_pool *pool = self->pool;
    prg_float_mode_set();
    unsigned seen = 0;
    for (;;) {
        seen = wait_epoch(pool, seen);
        if (pool->stop) {
            return NULL;
        }
        pool->fn(pool->argument, self->index, pool->threads);
        if (atomic_fetch_sub(&pool->running, 1) == 1 && atomic_load(&pool->caller_asleep)) {
            pthread_mutex_lock(&pool->sleep_lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->sleep_lock);
        }
    }
}

static void stop_workers(prg_pool *pool, size_t count) {
    pool->stop = true;
    publish(pool);
    for (size_t i = 0; i < count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pool->stop = false;
    atomic_store(&pool->epoch, 0);
}

static int start_worker(prg_pool *pool, size_t i) {
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed) {
        return failed;
    }
    if (pool->cpus) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(pool->cpu[(i + 1) % pool->cpus], &set);
        failed = pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (!failed) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i + 1;
        failed = pthread_create(&pool->workers[i].thread, &attributes, work, &pool->workers[i]);
    }
    pthread_attr_destroy(&attributes);
    return failed;
}

static size_t usable_cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (size_t)CPU_COUNT(&set);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (size_t)n : 1;
}

static perigee_status start(prg_pool *pool, perigee_error **err) {
    sigset_t all, before;
    sigfillset(&all);
    size_t usable = usable_cpus();
    pool->oversubscribed = pool->threads > (pool->cpus && pool->cpus < usable ? pool->cpus : usable);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    size_t count = 0;
    for (; count + 1 < pool->threads; count++) {
        failed = start_worker(pool, count);
        if (failed) {
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        stop_workers(pool, count);
        return prg_fail(err, PERIGEE_E_SYSTEM, "thread %zu of %zu did not start%s: %s", count + 2, pool->threads,
                        pool->cpus ? " (are all processors of the list usable?)" : "", prg_os_error_text(failed));
    }
    atomic_store(&pool->process, getpid());
    pool->started = true;
    return PERIGEE_OK;
}

static void pass_turn(prg_pool *pool) {
    pthread_mutex_lock(&pool->turn_lock);
    pool->serving++;
    pthread_cond_broadcast(&pool->turn_changed);
    pthread_mutex_unlock(&pool->turn_lock);
}

/* In a forked child: locks and counts are as the parent's threads held them when they were copied. */
static bool is_copy(prg_pool *pool) {
    const pid_t process = atomic_load(&pool->process);
    return process != 0 && process != getpid();
}

perigee_status prg_pool_enter(prg_pool *pool, perigee_error **err) {
    if (is_copy(pool)) {
        return prg_fail(err, PERIGEE_E_STATE, "a context does not survive fork(): its threads are the parent's");
    }
    pthread_mutex_lock(&pool->turn_lock);
    uint64_t ticket = pool->next_ticket++;
    while (pool->serving != ticket) {
        pthread_cond_wait(&pool->turn_changed, &pool->turn_lock);
    }
    pthread_mutex_unlock(&pool->turn_lock);
    perigee_status status = PERIGEE_OK;
    if (pool->threads > 1 && !pool->started) {
        status = start(pool, err);
    }
    if (status != PERIGEE_OK) {
        pass_turn(pool);
        return status;
    }
    prg_float_mode_enter(&pool->saved_mode);
    return PERIGEE_OK;
}

void prg_pool_leave(prg_pool *pool) {
    prg_float_mode_leave(&pool->saved_mode);
    pass_turn(pool);
}

void prg_pool_run(prg_pool *pool, prg_pool_fn fn, void *argument) {
    if (pool->threads == 1) {
        fn(argument, 0, 1);
        return;
    }
    pool->fn = fn;
    pool->argument = argument;
    atomic_store_explicit(&pool->running, pool->threads - 1, memory_order_relaxed);
    publish(pool);
    fn(argument, 0, pool->threads);
    if (!spin(pool, all_returned, 0)) {
        pthread_mutex_lock(&pool->sleep_lock);
        atomic_store(&pool->caller_asleep, true);
        while (!all_returned(pool, 0)) {
            pthread_cond_wait(&pool->done, &pool->sleep_lock);
        }
        atomic_store(&pool->caller_asleep, false);
        pthread_mutex_unlock(&pool->sleep_lock);
    }
}

void prg_pool_free(prg_pool *pool) {
    if (!pool) {
        return;
    }
    if (!is_copy(pool)) { /* a copy's condition would wait for sleepers that are not there */
        if (pool->started) {
            stop_workers(pool, pool->threads - 1);
        }
        pthread_cond_destroy(&pool->done);
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->sleep_lock);
        pthread_cond_destroy(&pool->turn_changed);
        pthread_mutex_destroy(&pool->turn_lock);
    }
    prg_free(pool->allocator, pool->workers);
    prg_free(pool->allocator, pool);
}
