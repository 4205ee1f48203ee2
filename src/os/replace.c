#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

static void forget(prg_os_replacement *replacement) {
    free(replacement->target);
    free(replacement->aside);
    *replacement = (prg_os_replacement){-1, NULL, NULL};
}

static const mode_t NO_FILE = (mode_t)-1;

/* The file that `path` leads to and its permissions, or NO_FILE where there is none yet. */
static int resolve(const char *path, char **target, mode_t *mode) {
    struct stat old;
    *mode = NO_FILE;
    *target = realpath(path, NULL);
    if (!*target) {
        /* new, or a link to what is not there: it gives way */
        *target = errno == ENOENT ? strdup(path) : NULL;
        return *target ? 0 : errno;
    }
    if (stat(*target, &old) != 0) {
        return errno;
    }
    *mode = old.st_mode & 0777;
    return S_ISREG(old.st_mode) ? 0 : S_ISDIR(old.st_mode) ? EISDIR : EINVAL;
}

/* A name that is free beside the target. */
static int create_aside(prg_os_replacement *r, mode_t mode) {
    const size_t room = strlen(r->target) + 64;
    r->aside = malloc(room);
    if (!r->aside) {
        return ENOMEM;
    }
    int error = EEXIST;
    for (int i = 0; error == EEXIST && i < 100; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(r->aside, room, "%s.%ld.%ld.aside", r->target, (long)getpid(), now.tv_nsec);
        r->fd = open(r->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        error = r->fd < 0 ? errno : 0;
    }
    return error;
}

int prg_os_replace_begin(const char *path, prg_os_replacement *out) {
    mode_t mode;
    *out = (prg_os_replacement){-1, NULL, NULL};
    int error = resolve(path, &out->target, &mode);
    if (!error) {
        error = create_aside(out, mode == NO_FILE ? 0666 : mode);
    }
    if (error) {
        forget(out);
        return error;
    }
    /* the umask may have taken from the old permissions */
    if (mode != NO_FILE && fchmod(out->fd, mode) != 0) {
        error = errno;
        prg_os_replace_abandon(out);
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
    }
    forget(replacement);
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

int prg_os_replace_commit(prg_os_replacement *replacement) {
    int error = fsync(replacement->fd) == 0 ? 0 : errno;
    if (close(replacement->fd) != 0 && !error) {
        error = errno;
    }
    replacement->fd = -1;
    if (!error && rename(replacement->aside, replacement->target) != 0) {
        error = errno;
    }
    if (error) {
        prg_os_replace_abandon(replacement);
        return error;
    }
    error = sync_folder(replacement->target);
    forget(replacement);
    return error;
}
