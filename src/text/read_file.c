#include "text/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "text/buffer.h"

static perigee_status read_all(int file, const char *path, size_t limit, prg_file *out, perigee_error **err) {
    prg_where where = {NULL, path, -1, -1};
    struct stat status;
    if (fstat(file, &status) != 0) {
        return prg_fail_at(err, PERIGEE_E_IO, where, "cannot stat: error %d", errno);
    }
    if (!S_ISREG(status.st_mode) || status.st_size < 0 || (uintmax_t)status.st_size > limit) {
        return prg_fail_at(err, PERIGEE_E_FORMAT, where, "no regular file of at most %zu bytes", limit);
    }
    size_t size = (size_t)status.st_size;
    out->text = prg_alloc(out->allocator, size + 1);
    if (!out->text) {
        return prg_fail_memory(err);
    }
    while (out->length < size) {
        ssize_t got = read(file, out->text + out->length, size - out->length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return prg_fail_at(err, PERIGEE_E_IO, where, "cannot read: error %d", errno);
        }
        if (got == 0) {
            return prg_fail_at(err, PERIGEE_E_TRUNCATED, where, "file got shorter while it was read");
        }
        out->length += (size_t)got;
    }
    out->text[size] = 0;
    return PERIGEE_OK;
}

perigee_status prg_read_file(prg_allocator *allocator, const char *folder, const char *name, size_t limit,
                             prg_file *out, perigee_error **err) {
    *out = (prg_file){NULL, 0, allocator};
    prg_buffer path;
    prg_buffer_init(&path, allocator);
    prg_buffer_puts(&path, folder);
    prg_buffer_puts(&path, "/");
    prg_buffer_puts(&path, name);
    const char *text = prg_buffer_text(&path);
    perigee_status st = text ? PERIGEE_OK : prg_fail_memory(err);
    int saved = errno;
    if (st == PERIGEE_OK) {
        int file = open(text, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            st = read_all(file, text, limit, out, err);
            close(file);
        } else if (errno != ENOENT && errno != ENOTDIR) {
            st = prg_fail_at(err, PERIGEE_E_IO, (prg_where){NULL, text, -1, -1}, "cannot open: error %d", errno);
        }
    }
    errno = saved;
    if (st != PERIGEE_OK) {
        prg_file_free(out);
    }
    prg_buffer_free(&path);
    return st;
}

void prg_file_free(prg_file *file) {
    if (file->text) {
        prg_free(file->allocator, file->text);
        file->text = NULL;
    }
}
