/* The memory that the system grants, read from trees that stand in for /proc and /sys. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "support/suite.h"

static char root[64];

static void setup(void) {
    snprintf(root, sizeof root, "/tmp/perigee-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(test_no_groups) {
    ck_assert_int_eq(prg_os_memory_available(root), INT64_MAX);
    put("proc/meminfo", "MemTotal:  24684084 kB\nMemFree: 17 kB\nMemAvailable:   1000 kB\n");
    ck_assert_int_eq(prg_os_memory_available(root), 1024000);
}
END_TEST

START_TEST(test_v2) {
    put("proc/meminfo", "MemAvailable:   1000000 kB\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "77\n");
    ck_assert_int_eq(prg_os_memory_available(root), 1024000000);
    /* the limit of a group above counts */
    put("sys/fs/cgroup/a/memory.max", "5000000\n");
    put("sys/fs/cgroup/a/memory.current", "3000000\n");
    ck_assert_int_eq(prg_os_memory_available(root), 2000000);
    /* page cache can be reclaimed */
    put("sys/fs/cgroup/a/memory.stat", "anon 1\nfile 7\ninactive_file 1000000\nactive_file 500000\n");
    ck_assert_int_eq(prg_os_memory_available(root), 3500000);
    put("sys/fs/cgroup/a/b/memory.max", "1000\n");
    ck_assert_int_eq(prg_os_memory_available(root), 1000 - 77);
    put("sys/fs/cgroup/a/b/memory.current", "2000\n");
    ck_assert_int_eq(prg_os_memory_available(root), 0);
}
END_TEST

/* In a container the mount shows the group itself, while the path may be the one of the host. */
START_TEST(test_container) {
    put("proc/self/cgroup", "0::/docker/123\n");
    put("proc/self/mountinfo", "30 25 0:26 /docker/123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("sys/fs/cgroup/memory.max", "900\n");
    put("sys/fs/cgroup/memory.current", "100\n");
    ck_assert_int_eq(prg_os_memory_available(root), 800);
    put("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    ck_assert_int_eq(prg_os_memory_available(root), 800);
}
END_TEST

START_TEST(test_v1) {
    put("proc/self/cgroup", "9:name=systemd:/\n4:memory:/job/x\n3:cpuset:/\n0::/\n");
    put("proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                               "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("sys/fs/cgroup/memory/job/x/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/job/x/memory.usage_in_bytes", "500\n");
    ck_assert_int_eq(prg_os_memory_available(root), INT64_MAX);
    put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000\n");
    put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
    put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 999\ntotal_inactive_file 200\n");
    ck_assert_int_eq(prg_os_memory_available(root), 3200);
}
END_TEST

PRG_SUITE("memory_limit", setup, teardown, test_no_groups, test_v2, test_container, test_v1)
