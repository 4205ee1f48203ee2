/* A session that goes on token by token takes nothing anew: no memory from the host, no pages from the system. */
#include <limits.h>
#include <sys/resource.h>

#include "session/session.h"
#include "support/golden.h"
#include "support/host_allocator.h"
#include "support/suite.h"

/* A sanitizer's own pages come and go. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNT_FAULTS false
#elif defined(__has_feature)
#define COUNT_FAULTS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define COUNT_FAULTS true
#endif

enum { STEPS = 20, WINDOWS = 5, PAGE = 4096 };

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void check(const char *name, const char *threads) {
    host h = {0};
    perigee_allocator allocator = host_allocator(&h);
    perigee_options *options = golden_options(threads);
    perigee_context *context = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_context_new(options, &allocator, NULL, NULL, &context, &err), err);
    perigee_options_free(options);
    perigee_model *model = golden_model(context, name, "weights=resident");
    perigee_session *session = golden_session(model, "chunk=16");
    golden g = golden_read(name);
    golden_step(session, g.ids, 20, PERIGEE_LOGITS_LAST);
    golden_step(session, g.ids, 1, PERIGEE_LOGITS_LAST);
    /* tokens 21 … 120 of a block of 128; what else the system does with pages is not in every window */
    const long long calls = atomic_load(&h.calls), bytes = atomic_load(&h.bytes);
    long least = LONG_MAX;
    for (int window = 0; window < WINDOWS; window++) {
        const long before = faults();
        for (int i = 0; i < STEPS; i++) {
            const int32_t id = (int32_t)((size_t)(i * 37 + window) % g.vocabulary);
            golden_step(session, &id, 1, PERIGEE_LOGITS_LAST);
        }
        const long taken = faults() - before;
        least = taken < least ? taken : least;
    }
    /* the latents of the tokens, in every layer's part of the block; none of the weights, scratch or state */
    const size_t cache = STEPS * session->plan.token_bytes / PAGE + 2 * session->plan.mla_layers;
    ck_assert_msg(atomic_load(&h.calls) == calls, "%s: %lld allocations", name, atomic_load(&h.calls) - calls);
    ck_assert_int_eq(atomic_load(&h.bytes), bytes);
    ck_assert_msg(!COUNT_FAULTS || least <= (long)cache, "%s, %s: %ld page faults in %d steps", name, threads, least,
                  STEPS);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    free(g.file);
}

START_TEST(one_thread) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        check(golden_cases[i], "threads=1");
    }
}
END_TEST

START_TEST(two_threads) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        check(golden_cases[i], "threads=2");
    }
}
END_TEST

/* A host whose allocator waits for a thread that is in a step: it may, as no step calls it with the pool held. */
typedef struct busy_host {
    host counted;
    perigee_context *context; /* once there is one */
    size_t entered;
} busy_host;

static void *busy_allocate(size_t size, size_t alignment, void *user) {
    busy_host *h = user;
    if (h->context) {
        ck_assert_int_eq(prg_pool_enter(h->context->pool, NULL), PERIGEE_OK);
        prg_pool_leave(h->context->pool);
        h->entered++;
    }
    return host_allocate(size, alignment, &h->counted);
}

static void busy_deallocate(void *pointer, size_t size, void *user) {
    busy_host *h = user;
    if (h->context) {
        ck_assert_int_eq(prg_pool_enter(h->context->pool, NULL), PERIGEE_OK);
        prg_pool_leave(h->context->pool);
    }
    host_deallocate(pointer, size, &h->counted);
}

START_TEST(the_host_is_not_called_with_the_pool_held) {
    busy_host h = {.context = NULL};
    const perigee_allocator allocator = {sizeof allocator, busy_allocate, busy_deallocate, &h, NULL};
    perigee_context *context = NULL;
    golden_ok(perigee_context_new(NULL, &allocator, NULL, NULL, &context, NULL), NULL);
    perigee_model *model = golden_model(context, "kimi_k3", NULL);
    perigee_session *small = golden_session(model, "chunk=1"), *large = golden_session(model, "chunk=64");
    golden g = golden_read("kimi_k3");
    h.context = context;
    golden_step(small, g.ids, 20, PERIGEE_LOGITS_ALL);
    const size_t bytes = context->scratch.capacity;
    golden_step(large, g.ids, 20, PERIGEE_LOGITS_ALL);
    ck_assert_uint_gt(context->scratch.capacity, bytes);
    ck_assert_uint_gt(h.entered, 4);
    h.context = NULL;
    perigee_session_free(small);
    perigee_session_free(large);
    perigee_model_free(model);
    perigee_context_free(context);
    ck_assert_int_eq(atomic_load(&h.counted.bytes), 0);
    free(g.file);
}
END_TEST

PRG_SUITE("steady", NULL, NULL, one_thread, two_threads, the_host_is_not_called_with_the_pool_held)
