#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct perigee_error {
    perigee_status status;
    int64_t offset;
    int64_t layer;
    const char *message; /* this and the next two point into `text` */
    const char *tensor;
    const char *file;
    char text[];
};

/* Handed out when there is no memory for an object; never freed, never written. */
static const struct perigee_error out_of_memory = {PERIGEE_E_MEMORY, -1, -1, "out of memory", NULL, NULL};

static char *place(char **cursor, const char *text, size_t size) {
    char *at = *cursor;
    memcpy(at, text, size);
    *cursor += size;
    return at;
}

static perigee_error *make_error(perigee_status status, prg_where where, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        length = 0;
    }
    size_t tensor = where.tensor ? strlen(where.tensor) + 1 : 0;
    size_t file = where.file ? strlen(where.file) + 1 : 0;
    struct perigee_error *e = malloc(sizeof *e + (size_t)length + 1 + tensor + file);
    if (!e) {
        return (perigee_error *)(uintptr_t)&out_of_memory;
    }
    e->status = status;
    e->offset = where.offset;
    e->layer = where.layer;
    e->text[0] = 0;
    vsnprintf(e->text, (size_t)length + 1, format, args);
    e->message = e->text;
    char *cursor = e->text + length + 1;
    e->tensor = tensor ? place(&cursor, where.tensor, tensor) : NULL;
    e->file = file ? place(&cursor, where.file, file) : NULL;
    return e;
}

static void put_error(perigee_error **err, perigee_error *made) {
    perigee_error_free(*err);
    *err = made;
}

perigee_status prg_fail(perigee_error **err, perigee_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        put_error(err, make_error(status, PRG_NOWHERE, format, args));
        va_end(args);
    }
    return status;
}

perigee_status prg_fail_at(perigee_error **err, perigee_status status, prg_where where, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        put_error(err, make_error(status, where, format, args));
        va_end(args);
    }
    return status;
}

perigee_status prg_fail_memory(perigee_error **err) {
    if (err) {
        put_error(err, (perigee_error *)(uintptr_t)&out_of_memory);
    }
    return PERIGEE_E_MEMORY;
}

perigee_status perigee_error_status(const perigee_error *error) {
    return error ? error->status : PERIGEE_OK;
}

const char *perigee_error_message(const perigee_error *error) {
    return error ? error->message : "";
}

const char *perigee_error_tensor(const perigee_error *error) {
    return error ? error->tensor : NULL;
}

const char *perigee_error_file(const perigee_error *error) {
    return error ? error->file : NULL;
}

int64_t perigee_error_offset(const perigee_error *error) {
    return error ? error->offset : -1;
}

int64_t perigee_error_layer(const perigee_error *error) {
    return error ? error->layer : -1;
}

void perigee_error_free(perigee_error *error) {
    if (error != &out_of_memory) {
        free(error);
    }
}
