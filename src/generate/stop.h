/* Stop strings in a text that comes in pieces. */
#ifndef PRG_GENERATE_STOP_H
#define PRG_GENERATE_STOP_H

#include "base/alloc.h"

typedef struct prg_stop_text {
    char *text;
    size_t length;
} prg_stop_text;

typedef struct prg_stop_filter {
    prg_allocator *allocator;
    const prg_stop_text *stops;
    size_t stop_count;
    char *held; /* `given` bytes that were handed out last, then what may be the start of a stop string */
    size_t given, length, capacity;
} prg_stop_filter;

/* Append a piece. What was taken last is gone with it. On failure nothing is appended. */
perigee_status prg_stop_append(prg_stop_filter *filter, const char *piece, size_t length, perigee_error **err);
/* What is certain, with a NUL behind, valid until the next append; with `last`, all of it. True if a stop string is
 * complete: then the text ends before it. Once after each append. */
bool prg_stop_take(prg_stop_filter *filter, bool last, const char **text, size_t *length);
void prg_stop_free(prg_stop_filter *filter);

#endif
