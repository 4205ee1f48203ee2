#include "base/file.h"

#include <errno.h>

#include "base/error.h"
#include "os/os.h"

perigee_status prg_file_open(const char *path, const prg_io *io, prg_file *out, perigee_error **err) {
    *out = (prg_file){path, -1, 0, io};
    int error = prg_os_open(path, &out->fd, &out->size);
    if (error) {
        perigee_status st = error == ENOENT || error == ENOTDIR ? PERIGEE_E_NOT_FOUND : PERIGEE_E_IO;
        return prg_fail_at(err, st, (prg_where){NULL, path, -1, -1}, "%s: %s", path, prg_os_error_text(error));
    }
    return PERIGEE_OK;
}

void prg_file_close(prg_file *file) {
    prg_os_close(file->fd);
    file->fd = -1;
}

perigee_status prg_file_read(const prg_file *file, uint64_t offset, void *buffer, size_t size, perigee_error **err) {
    for (size_t done = 0; done < size;) {
        unsigned char *to = (unsigned char *)buffer + done;
        int64_t got = file->io ? file->io->read(file->io->user, file->fd, to, size - done, offset + done)
                               : prg_os_read(file->fd, to, size - done, offset + done);
        int64_t at = (int64_t)(offset + done);
        if (got < 0) {
            return prg_fail_at(err, PERIGEE_E_IO, (prg_where){NULL, file->path, at, -1},
                               "%s: reading at byte %lld failed: %s", file->path, (long long)at,
                               prg_os_error_text((int)-got));
        }
        if (got == 0) {
            return prg_fail_at(err, PERIGEE_E_TRUNCATED, (prg_where){NULL, file->path, at, -1},
                               "%s ends at byte %lld; %zu more were to be read", file->path, (long long)at,
                               size - done);
        }
        done += (size_t)got;
    }
    return PERIGEE_OK;
}

perigee_status prg_file_load(prg_arena *arena, const char *path, const prg_io *io, size_t limit, char **text,
                             size_t *length, perigee_error **err) {
    prg_file file;
    perigee_status st = prg_file_open(path, io, &file, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (file.size > limit) {
        st = prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, path, -1, -1}, "%s has %llu bytes; %zu are allowed",
                         path, (unsigned long long)file.size, limit);
    } else if (!(*text = prg_arena_alloc(arena, (size_t)file.size + 1, 1))) {
        st = prg_fail_memory(err);
    } else {
        *length = (size_t)file.size;
        st = prg_file_read(&file, 0, *text, *length, err);
    }
    prg_file_close(&file);
    return st;
}
