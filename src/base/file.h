/* Files for reading, with errors that say where. */
#ifndef PRG_BASE_FILE_H
#define PRG_BASE_FILE_H

#include <stdint.h>

#include "base/alloc.h"

/* What reads: the system, or whatever stands in for it (a buffer in memory, a device that fails). */
typedef struct prg_io {
    int64_t (*read)(void *user, int fd, void *buffer, size_t size, uint64_t offset); /* bytes, 0: end, or -errno */
    void *user;
} prg_io;

typedef struct prg_file {
    const char *path; /* borrowed */
    int fd;
    uint64_t size;
    const prg_io *io; /* NULL: the system; borrowed */
} prg_file;

/* Absent: PERIGEE_E_NOT_FOUND. */
perigee_status prg_file_open(const char *path, const prg_io *io, prg_file *out, perigee_error **err);
void prg_file_close(prg_file *file);
/* All `size` bytes at `offset`. The file ends before: PERIGEE_E_TRUNCATED. */
perigee_status prg_file_read(const prg_file *file, uint64_t offset, void *buffer, size_t size, perigee_error **err);
/* A whole file of at most `limit` bytes, in the arena, with a NUL behind. */
perigee_status prg_file_load(prg_arena *arena, const char *path, const prg_io *io, size_t limit, char **text,
                             size_t *length, perigee_error **err);

#endif
