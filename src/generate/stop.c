#include "generate/stop.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"

/* Where the first complete stop string begins, or SIZE_MAX. */
static size_t find(const prg_stop_filter *f) {
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < f->stop_count; i++) {
        const char *at = f->length > 0 ? memmem(f->held, f->length, f->stops[i].text, f->stops[i].length) : NULL;
        if (at && (size_t)(at - f->held) < first) {
            first = (size_t)(at - f->held);
        }
    }
    return first;
}

/* Length of the longest end of the text that is the start of a stop string. */
static size_t pending(const prg_stop_filter *f) {
    size_t longest = 0;
    for (size_t i = 0; i < f->stop_count; i++) {
        size_t n = prg_min(f->stops[i].length - 1, f->length);
        while (n > longest && memcmp(f->held + f->length - n, f->stops[i].text, n) != 0) {
            n--;
        }
        longest = prg_max(longest, n);
    }
    return longest;
}

perigee_status prg_stop_append(prg_stop_filter *filter, const char *piece, size_t length, perigee_error **err) {
    prg_stop_filter *f = filter;
    size_t kept = f->length - f->given, need = kept + length + 1; /* a NUL will go between */
    char *held = f->held;
    if (need > f->capacity) {
        held = prg_alloc(f->allocator, 2 * need);
        if (!held) {
            return prg_fail_memory(err);
        }
        f->capacity = 2 * need;
    }
    if (kept > 0) {
        memmove(held, f->held + f->given, kept);
    }
    if (held != f->held) {
        prg_free(f->allocator, f->held);
        f->held = held;
    }
    if (length > 0) {
        memcpy(f->held + kept, piece, length);
    }
    f->given = 0;
    f->length = kept + length;
    return PERIGEE_OK;
}

bool prg_stop_take(prg_stop_filter *filter, bool last, const char **text, size_t *length) {
    prg_stop_filter *f = filter;
    size_t at = find(f);
    bool found = at != SIZE_MAX;
    if (found) {
        f->length = at;
    }
    *length = found || last ? f->length : f->length - pending(f);
    memmove(f->held + *length + 1, f->held + *length, f->length - *length);
    f->held[*length] = 0;
    *text = f->held;
    f->given = *length + 1;
    f->length++;
    return found;
}

void prg_stop_free(prg_stop_filter *filter) {
    prg_free(filter->allocator, filter->held);
    filter->held = NULL;
}
