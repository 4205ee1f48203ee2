#include "safetensors_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 8 << 20 };

struct writer_file {
    int fd;
    char *path;
    char *header; /* grows */
    size_t header_used, header_room;
    uint64_t data_bytes; /* of all tensors named */
    uint64_t written;    /* of data, holes included */
    uint64_t data_start;
    size_t tensors;
    unsigned char *buffer;
    size_t buffered;
    const volatile sig_atomic_t *stop; /* or NULL */
    char error[512];
};

static bool fail(writer_file *file, const char *what) {
    snprintf(file->error, sizeof file->error, "%s: %s", file->path, what);
    return false;
}

void writer_heed(writer_file *file, const volatile sig_atomic_t *stop) {
    file->stop = stop;
}

static bool stopped(writer_file *file) {
    return file->stop && *file->stop && !fail(file, "stopped");
}

const char *writer_error(const writer_file *file) {
    return file->error;
}

uint64_t writer_data_bytes(const writer_file *file) {
    return file->data_bytes;
}

size_t writer_dtype_bytes(const char *dtype) {
    static const struct {
        const char *name;
        size_t bytes;
    } known[] = {{"F64", 8}, {"I64", 8}, {"F32", 4}, {"I32", 4},     {"F16", 2}, {"BF16", 2},
                 {"I16", 2}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"BOOL", 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, dtype) == 0) {
            return known[i].bytes;
        }
    }
    return 0;
}

static bool put(writer_file *file, const char *text, size_t length) {
    if (file->header_room - file->header_used < length) {
        size_t room = (file->header_room + length) * 2;
        char *grown = realloc(file->header, room);
        if (!grown) {
            return fail(file, "out of memory");
        }
        file->header = grown;
        file->header_room = room;
    }
    memcpy(file->header + file->header_used, text, length);
    file->header_used += length;
    return true;
}

writer_file *writer_open(const char *path) {
    writer_file *file = calloc(1, sizeof *file);
    if (!file) {
        return NULL;
    }
    file->path = strdup(path);
    file->buffer = aligned_alloc(4096, BUFFER);
    file->fd = -1;
    if (!file->path || !file->buffer) {
        writer_close(file, false);
        return NULL;
    }
    static const char metadata[] = "\0\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}";
    file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        fail(file, strerror(errno));
    } else {
        put(file, metadata, sizeof metadata - 1);
    }
    return file;
}

bool writer_add(writer_file *file, const char *name, const char *dtype, const uint64_t *shape, size_t rank) {
    if (file->error[0]) {
        return false;
    }
    uint64_t bytes = writer_dtype_bytes(dtype);
    if (!bytes || rank > WRITER_MAX_RANK || strpbrk(name, "\"\\") || file->data_start) {
        return fail(file, "bad tensor");
    }
    char sizes[WRITER_MAX_RANK * 24] = "";
    size_t at = 0;
    for (size_t i = 0; i < rank; i++) {
        at += (size_t)snprintf(sizes + at, sizeof sizes - at, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
        if (__builtin_mul_overflow(bytes, shape[i], &bytes)) {
            return fail(file, "tensor too large");
        }
    }
    char line[1024];
    int length =
        snprintf(line, sizeof line, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}", name,
                 dtype, sizes, (unsigned long long)file->data_bytes, (unsigned long long)(file->data_bytes + bytes));
    if (length < 0 || (size_t)length >= sizeof line) {
        return fail(file, "name too long");
    }
    file->data_bytes += bytes;
    file->tensors++;
    return put(file, line, (size_t)length);
}

static bool write_all(writer_file *file, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    while (count > 0) {
        ssize_t done = write(file->fd, at, count);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return fail(file, strerror(errno));
        }
        at += done;
        count -= (size_t)done;
    }
    return true;
}

static bool flush(writer_file *file) {
    size_t count = file->buffered;
    file->buffered = 0;
    return write_all(file, file->buffer, count);
}

bool writer_begin(writer_file *file) {
    if (file->error[0] || !put(file, "}", 1)) {
        return false;
    }
    /* the data starts at a multiple of 8 */
    while (file->header_used % 8) {
        if (!put(file, " ", 1)) {
            return false;
        }
    }
    for (size_t i = 0; i < 8; i++) {
        file->header[i] = (char)(unsigned char)((uint64_t)(file->header_used - 8) >> (8 * i));
    }
    file->data_start = file->header_used;
    return write_all(file, file->header, file->header_used);
}

bool writer_data(writer_file *file, const void *bytes, size_t count) {
    if (file->error[0] || stopped(file)) {
        return false;
    }
    if (count > file->data_bytes - file->written) {
        return fail(file, "more data than named");
    }
    file->written += count;
    /* large pieces go straight to the file, small ones are gathered */
    if (count >= BUFFER / 4) {
        return flush(file) && write_all(file, bytes, count);
    }
    if (count > BUFFER - file->buffered && !flush(file)) {
        return false;
    }
    memcpy(file->buffer + file->buffered, bytes, count);
    file->buffered += count;
    return true;
}

bool writer_hole(writer_file *file, uint64_t count) {
    if (file->error[0] || stopped(file) || !flush(file)) {
        return false;
    }
    if (count > file->data_bytes - file->written) {
        return fail(file, "more data than named");
    }
    file->written += count;
    off_t end = (off_t)(file->data_start + file->written);
    if (ftruncate(file->fd, end) != 0 || lseek(file->fd, end, SEEK_SET) < 0) {
        return fail(file, strerror(errno));
    }
    return true;
}

bool writer_close(writer_file *file, bool keep) {
    bool good = keep && !file->error[0] && file->data_start && file->written == file->data_bytes && flush(file);
    if (file->fd >= 0) {
        struct stat st;
        bool regular = fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode);
        good = close(file->fd) == 0 && good;
        if (!good && regular) { /* a device or a pipe is not this program's */
            unlink(file->path);
        }
    }
    free(file->header);
    free(file->buffer);
    free(file->path);
    free(file);
    return good;
}
