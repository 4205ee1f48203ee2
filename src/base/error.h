/* Errors as values: every failing call returns a status and fills in the caller's error pointer. */
#ifndef PRG_BASE_ERROR_H
#define PRG_BASE_ERROR_H

#include "perigee/status.h"

/* What an error is about; NULL and -1 where it does not apply. Strings are copied. */
typedef struct prg_where {
    const char *tensor;
    const char *file;
    int64_t offset;
    int64_t layer;
} prg_where;

#define PRG_NOWHERE ((prg_where){NULL, NULL, -1, -1})

/* Fill in *err (if err is not NULL) and return `status`. An error that *err already holds is freed. */
perigee_status prg_fail(perigee_error **err, perigee_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
perigee_status prg_fail_at(perigee_error **err, perigee_status status, prg_where where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* As prg_fail for PERIGEE_E_MEMORY: takes no memory itself. */
perigee_status prg_fail_memory(perigee_error **err);

/* At the entry of every exported call: no error yet. */
static inline void prg_clear(perigee_error **err) {
    if (err) {
        *err = NULL;
    }
}

#endif
