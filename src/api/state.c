#include "perigee/state.h"

#include <errno.h>
#include <string.h>

#include "api/path.h"
#include "base/cancel.h"
#include "base/error.h"
#include "generate/sampler.h"
#include "os/os.h"
#include "session/session.h"

size_t perigee_session_tokens(const perigee_session *session, const int32_t **tokens) {
    if (tokens) {
        *tokens = session ? session->tokens : NULL;
    }
    return session ? session->position : 0;
}

perigee_status perigee_session_fork(perigee_session *session, perigee_session **out, perigee_error **err) {
    prg_clear(err);
    if (!session || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or out is NULL");
    }
    return prg_session_fork(session, out, err);
}

perigee_status perigee_session_rewind(perigee_session *session, int64_t position, int64_t *nearest,
                                      perigee_cancel *cancel, perigee_error **err) {
    prg_clear(err);
    if (!session) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session is NULL");
    }
    if (position < 0 || (uint64_t)position > session->position) {
        return prg_fail(err, PERIGEE_E_RANGE, "position %lld: the session is at %zu", (long long)position,
                        session->position);
    }
    perigee_cancel *held = prg_cancel_hold(cancel);
    size_t found = 0;
    const perigee_status st = prg_session_rewind(session, (size_t)position, &found, held, err);
    perigee_cancel_free(held);
    if (nearest) {
        *nearest = (int64_t)found;
    }
    return st;
}

perigee_status perigee_session_feed(perigee_session *session, const int32_t *tokens, size_t n, perigee_logits which,
                                    const float **logits, size_t *rows, size_t *kept, perigee_cancel *cancel,
                                    perigee_error **err) {
    prg_clear(err);
    if (kept) {
        *kept = 0;
    }
    if (logits) {
        *logits = NULL;
    }
    if (rows) {
        *rows = 0;
    }
    if (!session || !tokens || n == 0 || (!logits && which != PERIGEE_LOGITS_NONE)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session, tokens or logits is NULL, or there are no tokens");
    }
    /* what the step would refuse is refused before the rewind */
    const prg_item item = {.session = session, .tokens = tokens, .n = n, .which = which};
    perigee_status st = prg_item_check(&item, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    size_t keep = prg_session_common(session, tokens, n);
    keep = keep < n ? keep : n - 1;
    keep = prg_session_nearest(session, keep);
    int64_t nearest;
    st = perigee_session_rewind(session, (int64_t)keep, &nearest, cancel, err);
    if (st == PERIGEE_OK) {
        st = perigee_decode_step(session, tokens + keep, n - keep, which, logits, rows, cancel, err);
    }
    if (st == PERIGEE_OK && kept) {
        *kept = keep;
    }
    return st;
}

/* ---- saving ---- */

/* The sampler as bytes, to be freed; NULL and no size without one. */
static perigee_status pack(const perigee_session *session, const perigee_sampler *sampler, unsigned char **bytes,
                           size_t *size, perigee_error **err) {
    *bytes = NULL;
    *size = sampler ? prg_sampler_save_size(sampler) : 0;
    if (sampler) {
        *bytes = prg_alloc(session->model->context->allocator, *size);
        if (!*bytes) {
            return prg_fail_memory(err);
        }
        prg_sampler_save(sampler, *bytes);
    }
    return PERIGEE_OK;
}

static perigee_status save(const perigee_session *session, const perigee_sampler *sampler, const prg_state_sink *sink,
                           perigee_error **err) {
    unsigned char *extra;
    size_t size;
    perigee_status st = pack(session, sampler, &extra, &size, err);
    if (st == PERIGEE_OK) {
        st = prg_snapshot_save(session, extra, size, sink, err);
        prg_free(session->model->context->allocator, extra);
    }
    return st;
}

perigee_status perigee_state_size(const perigee_session *session, const perigee_sampler *sampler, size_t *size,
                                  perigee_error **err) {
    prg_clear(err);
    if (!session || !size) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or size is NULL");
    }
    *size = prg_snapshot_size(session, sampler ? prg_sampler_save_size(sampler) : 0);
    return PERIGEE_OK;
}

static perigee_status write_buffer(void *user, const void *data, size_t size, perigee_error **err) {
    (void)err; /* the size was checked before */
    unsigned char **at = user;
    memcpy(*at, data, size);
    *at += size;
    return PERIGEE_OK;
}

perigee_status perigee_state_save(const perigee_session *session, const perigee_sampler *sampler, void *buffer,
                                  size_t capacity, size_t *written, perigee_error **err) {
    size_t size = 0;
    perigee_status st = perigee_state_size(session, sampler, &size, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (written) {
        *written = size;
    }
    if (!buffer || capacity < size) {
        return prg_fail(err, PERIGEE_E_BUFFER, "the state takes %zu bytes, the buffer has %zu", size,
                        buffer ? capacity : 0);
    }
    unsigned char *at = buffer;
    const prg_state_sink sink = {write_buffer, &at};
    return save(session, sampler, &sink, err);
}

typedef struct callback_sink {
    perigee_write_fn write;
    void *user;
} callback_sink;

static perigee_status write_callback(void *user, const void *data, size_t size, perigee_error **err) {
    const callback_sink *to = user;
    return to->write(data, size, to->user) == 0
               ? PERIGEE_OK
               : prg_fail(err, PERIGEE_E_CALLBACK, "the write callback failed the save");
}

perigee_status perigee_state_save_to(const perigee_session *session, const perigee_sampler *sampler,
                                     perigee_write_fn write, void *user, perigee_error **err) {
    prg_clear(err);
    if (!session || !write) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or write is NULL");
    }
    callback_sink to = {write, user};
    const prg_state_sink sink = {write_callback, &to};
    return save(session, sampler, &sink, err);
}

/* A path as a string of its own, to be freed. */
static perigee_status copy_path(const perigee_session *session, const char *path, size_t length, char **out,
                                perigee_error **err) {
    if (!session || !path) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or path is NULL");
    }
    return prg_api_path(session->model->context, path, length, out, err);
}

static perigee_status fail_os(const char *path, int error, const char *what, perigee_error **err) {
    const perigee_status st = error == ENOSPC || error == EDQUOT ? PERIGEE_E_DISK_FULL
                              : error == ENOENT                  ? PERIGEE_E_NOT_FOUND
                              : error == ENOMEM                  ? PERIGEE_E_MEMORY
                                                                 : PERIGEE_E_IO;
    return prg_fail_at(err, st, (prg_where){NULL, path, -1, -1}, "%s %s: %s", what, path, prg_os_error_text(error));
}

typedef struct file_sink {
    const char *path;
    int fd;
} file_sink;

static perigee_status write_file(void *user, const void *data, size_t size, perigee_error **err) {
    const file_sink *to = user;
    const int error = prg_os_write(to->fd, data, size);
    return error ? fail_os(to->path, error, "writing", err) : PERIGEE_OK;
}

perigee_status perigee_state_save_file(const perigee_session *session, const perigee_sampler *sampler, const char *path,
                                       size_t length, perigee_error **err) {
    prg_clear(err);
    char *name = NULL;
    perigee_status st = copy_path(session, path, length, &name, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    prg_os_replacement aside;
    int error = prg_os_replace_begin(name, &aside);
    if (error) {
        st = fail_os(name, error, "creating a file beside", err);
    } else {
        file_sink to = {name, aside.fd};
        const prg_state_sink sink = {write_file, &to};
        st = save(session, sampler, &sink, err);
        if (st != PERIGEE_OK) {
            prg_os_replace_abandon(&aside);
        } else if ((error = prg_os_replace_commit(&aside)) != 0) {
            st = fail_os(name, error, "putting in place", err);
        }
    }
    prg_free(session->model->context->allocator, name);
    return st;
}

/* ---- loading ---- */

static perigee_status load(perigee_session *session, perigee_sampler *sampler, const prg_state_source *source,
                           perigee_error **err) {
    prg_loaded loaded;
    perigee_status st = prg_snapshot_load(session, source, &loaded, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (sampler) {
        const prg_where where = {NULL, source->file, -1, -1};
        st = loaded.extra_size == 0 ? prg_fail_at(err, PERIGEE_E_NOT_FOUND, where, "the saved state holds no sampler")
                                    : prg_sampler_restore(sampler, loaded.extra, loaded.extra_size, err);
    }
    if (st == PERIGEE_OK) {
        prg_snapshot_commit(session, &loaded);
    } else {
        prg_snapshot_drop(session, &loaded);
    }
    return st;
}

typedef struct buffer_source {
    const unsigned char *at;
    size_t left;
} buffer_source;

static perigee_status read_buffer(void *user, void *data, size_t size, perigee_error **err) {
    buffer_source *from = user;
    if (size > from->left) {
        return prg_fail(err, PERIGEE_E_TRUNCATED, "the saved state ends too early");
    }
    memcpy(data, from->at, size);
    from->at += size;
    from->left -= size;
    return PERIGEE_OK;
}

perigee_status perigee_state_load(perigee_session *session, perigee_sampler *sampler, const void *buffer, size_t size,
                                  perigee_error **err) {
    prg_clear(err);
    if (!session || !buffer) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or buffer is NULL");
    }
    buffer_source from = {buffer, size};
    const prg_state_source source = {read_buffer, &from, NULL};
    return load(session, sampler, &source, err);
}

typedef struct callback_source {
    perigee_read_fn read;
    void *user;
} callback_source;

static perigee_status read_callback(void *user, void *data, size_t size, perigee_error **err) {
    const callback_source *from = user;
    unsigned char *at = data;
    while (size > 0) {
        const int64_t n = from->read(at, size, from->user);
        if (n < 0 || (uint64_t)n > size) {
            return prg_fail(err, PERIGEE_E_CALLBACK, "the read callback failed the load");
        }
        if (n == 0) {
            return prg_fail(err, PERIGEE_E_TRUNCATED, "the saved state ends too early");
        }
        at += n;
        size -= (size_t)n;
    }
    return PERIGEE_OK;
}

perigee_status perigee_state_load_from(perigee_session *session, perigee_sampler *sampler, perigee_read_fn read,
                                       void *user, perigee_error **err) {
    prg_clear(err);
    if (!session || !read) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "session or read is NULL");
    }
    callback_source from = {read, user};
    const prg_state_source source = {read_callback, &from, NULL};
    return load(session, sampler, &source, err);
}

typedef struct file_source {
    const char *path;
    int fd;
    uint64_t at;
} file_source;

static perigee_status read_file(void *user, void *data, size_t size, perigee_error **err) {
    file_source *from = user;
    unsigned char *to = data;
    while (size > 0) {
        const int64_t n = prg_os_read(from->fd, to, size, from->at);
        if (n < 0) {
            return fail_os(from->path, (int)-n, "reading", err);
        }
        if (n == 0) {
            const prg_where where = {NULL, from->path, (int64_t)from->at, -1};
            return prg_fail_at(err, PERIGEE_E_TRUNCATED, where, "%s ends too early", from->path);
        }
        to += n;
        size -= (size_t)n;
        from->at += (uint64_t)n;
    }
    return PERIGEE_OK;
}

perigee_status perigee_state_load_file(perigee_session *session, perigee_sampler *sampler, const char *path,
                                       size_t length, perigee_error **err) {
    prg_clear(err);
    char *name = NULL;
    perigee_status st = copy_path(session, path, length, &name, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    int fd = -1;
    uint64_t size = 0;
    const int error = prg_os_open(name, &fd, &size);
    if (error) {
        st = fail_os(name, error, "opening", err);
    } else {
        file_source from = {name, fd, 0};
        const prg_state_source source = {read_file, &from, name};
        st = load(session, sampler, &source, err);
        prg_os_close(fd);
    }
    prg_free(session->model->context->allocator, name);
    return st;
}
