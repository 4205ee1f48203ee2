/* Paths as a host hands them over. */
#ifndef PRG_API_PATH_H
#define PRG_API_PATH_H

#include "model/model.h"

/* As a C string, of the context's allocator. `length` SIZE_MAX: ends in NUL. */
perigee_status prg_api_path(perigee_context *context, const char *path, size_t length, char **out, perigee_error **err);

#endif
