#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"

enum { HUGE_PAGE = 2 << 20, LARGEST_READ = 1 << 30 };

int prg_os_open(const char *path, int *fd, uint64_t *size) {
    /* without O_NONBLOCK a pipe would be waited for; to a regular file it is nothing */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (opened < 0) {
        return errno;
    }
    struct stat st;
    int error = fstat(opened, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : S_ISREG(st.st_mode) ? 0 : EINVAL;
    if (error) {
        close(opened);
        return error;
    }
    *fd = opened;
    *size = (uint64_t)st.st_size;
    return 0;
}

void prg_os_close(int fd) {
    if (fd >= 0) {
        close(fd);
    }
}

int64_t prg_os_read(int fd, void *buffer, size_t size, uint64_t offset) {
    if (offset > INT64_MAX) {
        return -EINVAL;
    }
    for (;;) {
        ssize_t got = pread(fd, buffer, size < LARGEST_READ ? size : LARGEST_READ, (off_t)offset);
        if (got >= 0) {
            return got;
        }
        if (errno != EINTR) {
            return -errno;
        }
    }
}

bool prg_os_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int prg_os_list(const char *folder, bool (*take)(void *user, const char *name), void *user) {
    DIR *d = opendir(folder);
    if (!d) {
        return errno;
    }
    int error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(d);
        if (!entry) {
            error = errno;
            break;
        }
        if (entry->d_name[0] != '.' && !take(user, entry->d_name)) {
            break;
        }
    }
    closedir(d);
    return error;
}

const char *prg_os_error_text(int error) {
    const char *text = strerrordesc_np(error);
    return text ? text : "unknown error";
}

int prg_os_map(int fd, size_t size, const void **out) {
    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return errno;
    }
    *out = p;
    return 0;
}

void prg_os_unmap(const void *start, size_t size) {
    if (start) {
        munmap((void *)(uintptr_t)start, size);
    }
}

int prg_os_pages_new(size_t size, void **out) {
    if (size > SIZE_MAX / 2) {
        return ENOMEM;
    }
    size_t whole = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    unsigned char *p = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return errno;
    }
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before) {
        munmap(p, before);
    }
    munmap(p + before + whole, HUGE_PAGE - before);
    prg_os_pages_prefer_huge(p + before, whole);
    *out = p + before;
    return 0;
}

void prg_os_pages_prefer_huge(void *start, size_t size) {
#ifdef MADV_HUGEPAGE
    const uintptr_t from = ((uintptr_t)start + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t to = ((uintptr_t)start + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (from < to) {
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* small pages do as well */
    }
#else
    (void)start;
    (void)size;
#endif
}

void prg_os_pages_free(void *start, size_t size) {
    if (start) {
        munmap(start, (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1));
    }
}
