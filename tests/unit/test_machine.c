/* Processors that a process may use, in made-up trees of /proc and /sys. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/machine.h"
#include "support/suite.h"

static char root[256];

static void folder(const char *name) {
    char path[512], *at = path;
    snprintf(path, sizeof path, "%s/%s", root, name);
    while ((at = strchr(at + 1, '/'))) {
        *at = 0;
        mkdir(path, 0755);
        *at = '/';
    }
    mkdir(path, 0755);
}

static void file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void setup(void) {
    snprintf(root, sizeof root, "%s/perigee-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
    folder("proc/self");
    folder("sys/fs/cgroup/cpu/job");
    folder("sys/fs/cgroup/a/b");
}

static void teardown(void) {
    static const char *const names[] = {"proc/self/cgroup",
                                        "sys/fs/cgroup/a/cpu.max",
                                        "sys/fs/cgroup/a/b/cpu.max",
                                        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us",
                                        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us",
                                        "sys/fs/cgroup/cpu/job",
                                        "sys/fs/cgroup/cpu",
                                        "sys/fs/cgroup/a/b",
                                        "sys/fs/cgroup/a",
                                        "sys/fs/cgroup",
                                        "sys/fs",
                                        "sys",
                                        "proc/self",
                                        "proc",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", root, names[i]);
        remove(path);
    }
}

static size_t allowed(void) {
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return (size_t)CPU_COUNT(&set);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

START_TEST(no_group) {
    ck_assert_uint_eq(prg_os_processors(root), allowed());
    file("proc/self/cgroup", "nonsense\n0::/gone/away\n");
    ck_assert_uint_eq(prg_os_processors(root), allowed());
}
END_TEST

/* The tightest group above counts; a part of a processor is rounded up. */
START_TEST(second_version) {
    file("proc/self/cgroup", "0::/a/b\n");
    file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ck_assert_uint_eq(prg_os_processors(root), allowed());
    file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    ck_assert_uint_eq(prg_os_processors(root), least(2, allowed()));
    file("sys/fs/cgroup/a/b/cpu.max", "30000 100000\n");
    ck_assert_uint_eq(prg_os_processors(root), 1);
}
END_TEST

START_TEST(first_version) {
    file("proc/self/cgroup", "5:memory:/other\n4:cpuacct,cpu:/job\n");
    file("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    ck_assert_uint_eq(prg_os_processors(root), allowed());
    file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
    ck_assert_uint_eq(prg_os_processors(root), 1);
}
END_TEST

/* A thread that may use one processor is given one. */
START_TEST(affinity) {
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
            break;
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    const size_t got = prg_os_processors("");
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
    ck_assert_uint_eq(got, 1);
}
END_TEST

START_TEST(clock_runs_forward) {
    const double first = prg_os_clock();
    usleep(2000);
    const double passed = prg_os_clock() - first;
    ck_assert(passed >= 0.002 && passed < 60);
}
END_TEST

PRG_SUITE("machine", setup, teardown, no_group, second_version, first_version, affinity, clock_runs_forward)
