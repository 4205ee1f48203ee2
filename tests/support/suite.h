/* A test program of one suite: PRG_SUITE(name, setup, teardown, test, …) defines main(). The variable PERIGEE_TEST
 * names the only test of it to run. */
#ifndef PRG_TESTS_SUITE_H
#define PRG_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

static inline int prg_run_suite(const char *name, void (*setup)(void), void (*teardown)(void),
                                const TTest *const *tests, size_t count) {
    Suite *suite = suite_create(name);
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 600);
    tcase_add_checked_fixture(group, setup, teardown);
    const char *only = getenv("PERIGEE_TEST");
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!only || !only[0] || strcmp(only, tests[i]->name) == 0) {
            tcase_add_test(group, tests[i]);
            chosen++;
        }
    }
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 && chosen > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define PRG_SUITE(name, setup, teardown, ...)                                                                          \
    int main(void) {                                                                                                   \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return prg_run_suite(name, setup, teardown, tests, sizeof tests / sizeof *tests);                              \
    }

#endif
