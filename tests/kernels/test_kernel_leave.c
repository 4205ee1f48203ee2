/* Leave of the system for the tiles of AMX and for code made at run time, on any machine: what the processor has and
 * what the system says are this file's. */
#include <ffi.h>
#include <limits.h>

#include "kernels/cpu.h"
#include "kernels/table.h"
#include "os/machine.h"
#include "support/suite.h"

uint64_t __wrap_prg_cpu_features(void);
bool __wrap_prg_os_allow_tiles(void);

void *__wrap_ffi_closure_alloc(size_t size, void **code);
void __wrap_ffi_closure_free(void *closure);
void *__real_ffi_closure_alloc(size_t size, void **code);
void __real_ffi_closure_free(void *closure);

static uint64_t features;
static bool allowed;
static int asked;
static int closures, closures_left = INT_MAX;

uint64_t __wrap_prg_cpu_features(void) {
    return features;
}

bool __wrap_prg_os_allow_tiles(void) {
    asked++;
    return allowed;
}

void *__wrap_ffi_closure_alloc(size_t size, void **code) {
    void *closure = closures_left-- > 0 ? __real_ffi_closure_alloc(size, code) : NULL;
    closures += closure != NULL;
    return closure;
}

void __wrap_ffi_closure_free(void *closure) {
    ck_assert_ptr_nonnull(closure);
    closures--;
    __real_ffi_closure_free(closure);
}

static perigee_status open_with(const char *kernels, const char *plugins, perigee_error **err) {
    prg_allocator *allocator = NULL;
    prg_kernel_table *table = NULL;
    asked = 0;
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    const perigee_status status = prg_kernel_table_new(allocator, kernels, "exact", plugins, NULL, &table, err);
    prg_kernel_table_free(table);
    prg_allocator_drop(allocator);
    return status;
}

/* The plugin refuses if it is shown tiles. */
static const char plugin[] = PLUGINS "/plugin_shown_tiles.so";

START_TEST(a_plugin_is_shown_what_it_may_use) {
    perigee_error *err = NULL;
    features = PERIGEE_CPU_AVX2 | PERIGEE_CPU_AMX_BF16;
    allowed = false;
    ck_assert_int_eq(open_with("scalar", plugin, NULL), PERIGEE_OK);
    ck_assert_int_eq(asked, 1);
    allowed = true;
    ck_assert_int_eq(open_with("scalar", plugin, &err), PERIGEE_E_KERNEL);
    ck_assert_ptr_nonnull(strstr(perigee_error_message(err), "refused with 50"));
    ck_assert_int_eq(asked, 1);
    perigee_error_free(err);
    features = PERIGEE_CPU_AVX2;
    ck_assert_int_eq(open_with("scalar", plugin, NULL), PERIGEE_OK);
    ck_assert_int_eq(asked, 0);
}
END_TEST

START_TEST(nobody_asks_for_what_nobody_uses) {
    features = PERIGEE_CPU_AMX_BF16;
    allowed = true;
    ck_assert_int_eq(open_with("scalar", "", NULL), PERIGEE_OK);
    ck_assert_int_eq(open_with("scalar", "::", NULL), PERIGEE_OK);
    ck_assert_int_eq(asked, 0);
    allowed = false;
    ck_assert_int_eq(open_with("amx", "", NULL), PERIGEE_E_UNSUPPORTED);
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(no_memory_for_code) {
    for (int left = 0; left < 3; left++) {
        perigee_error *err = NULL;
        prg_allocator *allocator = NULL;
        prg_kernel_table *table = NULL;
        ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_kernel_table_new(allocator, "scalar", "exact", "", NULL, &table, NULL), PERIGEE_OK);
        closures_left = left;
        ck_assert_int_eq(prg_kernel_table_watch(table, PRG_WATCH_TRACE, &err), PERIGEE_E_UNSUPPORTED);
        prg_kernel_table_free(table);
        ck_assert_int_eq(closures, 0);
        perigee_error_free(err);
        prg_allocator_drop(allocator);
    }
}
END_TEST

PRG_SUITE("kernel_leave", NULL, NULL, a_plugin_is_shown_what_it_may_use, nobody_asks_for_what_nobody_uses,
          no_memory_for_code)
