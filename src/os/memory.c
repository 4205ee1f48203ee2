#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"

enum { PATH_SIZE = 4096, TEXT_SIZE = 65536 };

/* The beginning of a small file as text; false if it can't be read. */
static bool read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    for (ssize_t got; used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0;) {
        used += (size_t)got;
    }
    close(fd);
    text[used] = 0;
    return used > 0;
}

/* The number behind `key` at the start of a line, or -1. */
static int64_t number_of(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == ':')) {
            return strtoll(line + length + 1, NULL, 10);
        }
    }
    return -1;
}

/* A file of one number; "max", a missing file and anything beyond 2^62 mean: no limit. */
static int64_t number_in(const char *folder, const char *name) {
    char path[PATH_SIZE], text[64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path || !read_text(path, text, sizeof text)) {
        return -1;
    }
    char *end;
    long long value = strtoll(text, &end, 10);
    return end == text || value < 0 || value >= (1LL << 62) ? -1 : value;
}

typedef struct group_files {
    const char *limit, *usage, *inactive, *active;
} group_files;

/* What one group leaves, or -1 without a limit. Its page cache can be reclaimed and does not count as used. */
static int64_t left_in(const char *folder, const group_files *names, char *text) {
    int64_t limit = number_in(folder, names->limit), usage = number_in(folder, names->usage);
    if (limit < 0 || usage < 0) {
        return limit;
    }
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/memory.stat", folder) < (int)sizeof path && read_text(path, text, TEXT_SIZE)) {
        int64_t inactive = number_of(text, names->inactive), active = number_of(text, names->active);
        usage -= (inactive > 0 ? inactive : 0) + (active > 0 ? active : 0);
    }
    usage = usage < 0 ? 0 : usage;
    return usage < limit ? limit - usage : 0;
}

/* The smallest of all groups from mount + path up to the mount itself. */
static int64_t smallest_above(const char *mount, const char *path, const group_files *names, char *text) {
    char folder[PATH_SIZE];
    int64_t smallest = -1;
    size_t floor = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder) {
        return -1;
    }
    for (size_t length = strlen(folder); length >= floor;) {
        folder[length] = 0;
        int64_t left = left_in(folder, names, text);
        if (left >= 0 && (smallest < 0 || left < smallest)) {
            smallest = left;
        }
        if (length <= floor) {
            break;
        }
        do {
            length--;
        } while (length > floor && folder[length] != '/');
    }
    return smallest;
}

/* The path of this process in a hierarchy, from a line "id:controllers:path" of /proc/self/cgroup. */
static bool group_path(const char *text, bool v2, char *path) {
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        const char *first = memchr(line, ':', length);
        const char *second = first ? memchr(first + 1, ':', length - (size_t)(first + 1 - line)) : NULL;
        if (second) {
            size_t controllers = (size_t)(second - first - 1), rest = length - (size_t)(second + 1 - line);
            bool memory = controllers == 6 && strncmp(first + 1, "memory", 6) == 0;
            if ((v2 ? controllers == 0 : memory) && rest < PATH_SIZE) {
                memcpy(path, second + 1, rest);
                path[rest] = 0;
                if (rest == 1) {
                    path[0] = 0; /* the root group: the mount itself */
                }
                return true;
            }
        }
        line += length + (end != NULL);
    }
    return false;
}

/* Where a hierarchy is mounted, and which part of it, from /proc/self/mountinfo. */
static bool group_mount(char *text, bool v2, char *mount, char *part) {
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char root[PATH_SIZE], point[PATH_SIZE], kind[64], options[1024];
        const char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
            sscanf(dash + 3, "%63s %*s %1023s", kind, options) != 2) {
            continue;
        }
        if (v2 ? strcmp(kind, "cgroup2") == 0 : strcmp(kind, "cgroup") == 0 && strstr(options, "memory")) {
            memcpy(mount, point, strlen(point) + 1);
            memcpy(part, root, strlen(root) + 1);
            return true;
        }
    }
    return false;
}

static int64_t left_in_groups(const char *root, bool v2, char *text) {
    static const group_files v1_files = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                         "total_active_file"};
    static const group_files v2_files = {"memory.max", "memory.current", "inactive_file", "active_file"};
    char name[PATH_SIZE], path[PATH_SIZE], mount[PATH_SIZE], part[PATH_SIZE];
    if (snprintf(name, sizeof name, "%s/proc/self/cgroup", root) >= (int)sizeof name ||
        !read_text(name, text, TEXT_SIZE) || !group_path(text, v2, path)) {
        return -1;
    }
    if (snprintf(name, sizeof name, "%s/proc/self/mountinfo", root) >= (int)sizeof name ||
        !read_text(name, text, TEXT_SIZE) || !group_mount(text, v2, mount, part)) {
        return -1;
    }
    /* In a container the mount shows a part of the tree only: what stands before it in the path is not there. */
    const char *below = path;
    size_t prefix = strlen(part);
    if (prefix > 1 && strncmp(path, part, prefix) == 0) {
        below = path + prefix;
    }
    if (snprintf(name, sizeof name, "%s%s", root, mount) >= (int)sizeof name) {
        return -1;
    }
    return smallest_above(name, below, v2 ? &v2_files : &v1_files, text);
}

int64_t prg_os_memory_available(const char *root) {
    char path[PATH_SIZE];
    char *text = malloc(TEXT_SIZE);
    int64_t best = INT64_MAX;
    if (!text) {
        return 0;
    }
    if (snprintf(path, sizeof path, "%s/proc/meminfo", root) < (int)sizeof path && read_text(path, text, TEXT_SIZE)) {
        int64_t kilobytes = number_of(text, "MemAvailable");
        best = kilobytes >= 0 && kilobytes < INT64_MAX / 1024 ? kilobytes * 1024 : best;
    }
    for (int v2 = 0; v2 < 2; v2++) {
        int64_t left = left_in_groups(root, v2, text);
        best = left >= 0 && left < best ? left : best;
    }
    free(text);
    return best;
}
