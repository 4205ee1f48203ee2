/* Contexts: what they take, give back and refuse. */
#include <string.h>

#include "perigee/perigee.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static int released;

static void release(void *user) {
    ck_assert_ptr_eq(user, &released);
    released++;
}

static void ignore(int level, const char *message, void *user) {
    (void)level;
    (void)message;
    (void)user;
}

static perigee_options *options_of(const char *name, const char *value) {
    perigee_options *options = NULL;
    ck_assert_int_eq(perigee_options_new(&options, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_options_set_text(options, name, value, NULL), PERIGEE_OK);
    return options;
}

START_TEST(defaults) {
    perigee_context *context = NULL;
    perigee_error *err = (perigee_error *)(void *)&context;
    ck_assert_int_eq(perigee_context_new(NULL, NULL, NULL, NULL, &context, &err), PERIGEE_OK);
    ck_assert_ptr_null(err);
    ck_assert_uint_ge(perigee_context_threads(context), 1);
    perigee_context_free(context);
    perigee_context_free(NULL);
    ck_assert_uint_eq(perigee_context_threads(NULL), 0);
}
END_TEST

START_TEST(threads) {
    perigee_options *options = options_of("threads", "7");
    perigee_context *context = NULL;
    ck_assert_int_eq(perigee_context_new(options, NULL, NULL, NULL, &context, NULL), PERIGEE_OK);
    ck_assert_uint_eq(perigee_context_threads(context), 7);
    perigee_context_free(context);
    perigee_options_free(options);
}
END_TEST

START_TEST(lists_its_kernels) {
    perigee_options *options = options_of("kernels", "scalar");
    perigee_context *context = NULL;
    ck_assert_int_eq(perigee_context_new(options, NULL, NULL, NULL, &context, NULL), PERIGEE_OK);
    const size_t count = perigee_context_kernel_count(context);
    ck_assert_uint_gt(count, 0);
    size_t in_use = 0;
    for (size_t i = 0; i < count; i++) {
        perigee_kernel_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(perigee_context_kernel(context, i, &info, NULL), PERIGEE_OK);
        ck_assert_uint_eq(info.struct_size, sizeof info);
        ck_assert(!info.in_use || strcmp(info.isa, "scalar") == 0);
        in_use += info.in_use == 1;
    }
    ck_assert_uint_gt(in_use, 0);
    perigee_kernel_info info = {.struct_size = sizeof info}, small = {.struct_size = 8};
    ck_assert_int_eq(perigee_context_kernel(context, count, &info, NULL), PERIGEE_E_RANGE);
    ck_assert_int_eq(perigee_context_kernel(context, 0, &small, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_context_kernel(context, 0, NULL, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_context_kernel(NULL, 0, &info, NULL), PERIGEE_E_ARGUMENT);
    perigee_context_free(context);
    perigee_options_free(options);
}
END_TEST

/* What was handed over comes back once, whether or not the context comes about. */
static void handed_over(const perigee_options *options, long long fail_at, perigee_status expected) {
    host h = {0};
    atomic_store(&h.fail_at, fail_at);
    perigee_allocator allocator = host_allocator(&h);
    perigee_log log = {sizeof log, ignore, &released, release};
    perigee_context *context = NULL;
    released = 0;
    ck_assert_int_eq(perigee_context_new(options, &allocator, &log, NULL, &context, NULL), expected);
    if (expected == PERIGEE_OK) {
        ck_assert_int_eq(released, 0);
        ck_assert_int_eq(atomic_load(&h.released), 0);
        perigee_context_free(context);
    } else {
        ck_assert_ptr_null(context);
    }
    ck_assert_int_eq(released, 1);
    ck_assert_int_eq(atomic_load(&h.released), 1);
    ck_assert_int_eq(atomic_load(&h.bytes), 0);
}

START_TEST(releases_what_it_was_given) {
    handed_over(NULL, 0, PERIGEE_OK);
    handed_over(NULL, 1, PERIGEE_E_MEMORY);
    handed_over(NULL, 2, PERIGEE_E_MEMORY);
    handed_over(NULL, 3, PERIGEE_E_MEMORY);
    perigee_options *scope = options_of("chunk", "4");
    handed_over(scope, 0, PERIGEE_E_SCOPE);
    perigee_options_free(scope);
}
END_TEST

START_TEST(refuses) {
    static const struct {
        const char *name, *value;
    } cases[] = {{"kernels", "sse9"}, {"precision", "sloppy"}, {"cpus", "0-"}, {"cpus", "x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_options *options = options_of(cases[i].name, cases[i].value);
        perigee_context *context = NULL;
        perigee_error *err = NULL;
        ck_assert_msg(perigee_context_new(options, NULL, NULL, NULL, &context, &err) != PERIGEE_OK, "%s=%s",
                      cases[i].name, cases[i].value);
        ck_assert_ptr_null(context);
        ck_assert_msg(strstr(perigee_error_message(err), cases[i].value) != NULL, "%s", perigee_error_message(err));
        perigee_error_free(err);
        perigee_options_free(options);
    }
    perigee_log small = {.struct_size = 4, .write = ignore};
    perigee_allocator half = {.struct_size = sizeof half};
    perigee_context *context = NULL;
    ck_assert_int_eq(perigee_context_new(NULL, NULL, &small, NULL, &context, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_context_new(NULL, &half, NULL, NULL, &context, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_context_new(NULL, NULL, NULL, NULL, NULL, NULL), PERIGEE_E_ARGUMENT);
}
END_TEST

PRG_SUITE("context", NULL, NULL, defaults, threads, lists_its_kernels, releases_what_it_was_given, refuses)
