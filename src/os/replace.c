#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

int prg_os_replace_begin(const char *path, prg_os_replacement *out) {
    const size_t room = strlen(path) + 64;
    out->fd = -1;
    out->aside = malloc(room);
    if (!out->aside) {
        return ENOMEM;
    }
    int error = EEXIST;
    for (int i = 0; error == EEXIST && i < 100; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(out->aside, room, "%s.%ld.%ld.aside", path, (long)getpid(), now.tv_nsec);
        out->fd = open(out->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        error = out->fd < 0 ? errno : 0;
    }
    if (error) {
        free(out->aside);
        out->aside = NULL;
    }
    return error;
}

int prg_os_write(int fd, const void *data, size_t size) {
    const unsigned char *at = data;
    while (size > 0) {
        const ssize_t n = write(fd, at, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

void prg_os_replace_abandon(prg_os_replacement *replacement) {
    if (replacement->fd >= 0) {
        close(replacement->fd);
    }
    if (replacement->aside) {
        unlink(replacement->aside);
        free(replacement->aside);
    }
    *replacement = (prg_os_replacement){-1, NULL};
}

/* The rename itself is on the disk only when the folder is. */
static int sync_folder(const char *path) {
    char *folder = strdup(path);
    if (!folder) {
        return ENOMEM;
    }
    char *slash = strrchr(folder, '/');
    if (slash) {
        slash[slash == folder] = 0;
    }
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) {
        return errno;
    }
    /* some file systems have no sync of a folder */
    const int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return error;
}

int prg_os_replace_commit(prg_os_replacement *replacement, const char *path) {
    int error = fsync(replacement->fd) == 0 ? 0 : errno;
    if (close(replacement->fd) != 0 && !error) {
        error = errno;
    }
    replacement->fd = -1;
    if (!error && rename(replacement->aside, path) != 0) {
        error = errno;
    }
    if (error) {
        prg_os_replace_abandon(replacement);
        return error;
    }
    free(replacement->aside);
    replacement->aside = NULL;
    return sync_folder(path);
}
