#include "os/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

double prg_os_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool prg_os_allow_tiles(void) {
#if defined(__x86_64__)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}

static bool read_line(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_SIZE + 64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return false;
    }
    FILE *f = fopen(path, "re");
    if (!f) {
        return false;
    }
    bool got = fgets(text, (int)size, f) != NULL;
    fclose(f);
    return got;
}

/* Processors that one group grants, 0: no limit. */
static double quota_of(const char *folder, bool v2) {
    char text[128];
    long long quota = 0, period = 0;
    if (v2) {
        if (!read_line(folder, "cpu.max", text, sizeof text) || sscanf(text, "%lld %lld", &quota, &period) != 2) {
            return 0;
        }
    } else {
        if (!read_line(folder, "cpu.cfs_quota_us", text, sizeof text) || sscanf(text, "%lld", &quota) != 1 ||
            !read_line(folder, "cpu.cfs_period_us", text, sizeof text) || sscanf(text, "%lld", &period) != 1) {
            return 0;
        }
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* The least of all groups from mount + path up to the mount. */
static double least_quota(const char *mount, const char *path, bool v2, double least) {
    char folder[PATH_SIZE];
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder) {
        return least;
    }
    for (const size_t floor = strlen(mount);;) {
        double quota = quota_of(folder, v2);
        least = quota > 0 && quota < least ? quota : least;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= floor || !slash || (size_t)(slash - folder) < floor) {
            return least;
        }
        *slash = 0;
    }
}

static bool has_controller(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == 0 || at[length] == ',')) {
            return true;
        }
    }
    return false;
}

static double granted(const char *root, double processors) {
    char name[PATH_SIZE], line[PATH_SIZE], mount[PATH_SIZE];
    if (snprintf(name, sizeof name, "%s/proc/self/cgroup", root) >= (int)sizeof name) {
        return processors;
    }
    FILE *f = fopen(name, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *path++ = 0;
        list++;
        const bool v2 = *list == 0;
        if (!v2 && !has_controller(list, "cpu")) {
            continue;
        }
        /* inside a container the path may begin above the mount: then the mount itself counts */
        if (snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, v2 ? "" : "/cpu") < (int)sizeof mount) {
            processors = least_quota(mount, path, v2, processors);
        }
    }
    if (f) {
        fclose(f);
    }
    return processors;
}

size_t prg_os_processors(const char *root) {
    cpu_set_t set;
    size_t count = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        count = (size_t)CPU_COUNT(&set);
    }
    const double share = granted(root, (double)count);
    const size_t whole = (size_t)share + ((double)(size_t)share < share);
    return whole < 1 ? 1 : whole < count ? whole : count;
}
