#include "api/path.h"

#include <string.h>

#include "base/error.h"

perigee_status prg_api_path(perigee_context *context, const char *path, size_t length, char **out,
                            perigee_error **err) {
    length = length == SIZE_MAX ? strlen(path) : length;
    if (length == 0 || memchr(path, 0, length)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "path is empty or holds a NUL byte");
    }
    *out = prg_strndup(context->allocator, path, length);
    return *out ? PERIGEE_OK : prg_fail_memory(err);
}
