/* JSON by yajl, in two forms: a stream of events, and a tree in an arena for small documents. Depth and size are
 * bounded; nothing recurses over the text. Numbers keep their text; conversion never looks at the locale. */
#ifndef PRG_BASE_JSON_H
#define PRG_BASE_JSON_H

#include "base/alloc.h"

typedef enum prg_json_kind {
    PRG_JSON_NULL,
    PRG_JSON_FALSE,
    PRG_JSON_TRUE,
    PRG_JSON_NUMBER,
    PRG_JSON_STRING,
    PRG_JSON_ARRAY,
    PRG_JSON_OBJECT
} prg_json_kind;

typedef struct prg_json {
    prg_json_kind kind;
    const char *text; /* of a string (unescaped UTF-8, NUL behind, may hold NUL bytes) or a number */
    size_t length;
    const char *key; /* as a member of an object; else NULL */
    size_t key_length;
    const struct prg_json *first; /* of an array or an object, in the order of the text */
    const struct prg_json *next;
    size_t count; /* of members */
} prg_json;

/* Parse a whole document. Deeper than `depth` levels, or anything behind it but white space: PERIGEE_E_FORMAT with the
 * offset. A name given twice in one object: the last one wins, as in JavaScript. `file` is for messages, may be NULL.
 */
perigee_status prg_json_parse(prg_arena *arena, const char *text, size_t length, size_t depth, const char *file,
                              const prg_json **out, perigee_error **err);
/* Member by name, or NULL (also if `object` is NULL or no object). */
const prg_json *prg_json_get(const prg_json *object, const char *name);
/* True if the value is a number without fraction that fits (1.0 and 1e3 fit, 1.5 and 1e30 don't). */
bool prg_json_int(const prg_json *value, int64_t *out);
bool prg_json_double(const prg_json *value, double *out);
/* Text to double in the C locale, whole text or false. */
bool prg_parse_double(const char *text, size_t length, double *out);

typedef enum prg_json_event {
    PRG_JSON_EV_NULL,
    PRG_JSON_EV_FALSE,
    PRG_JSON_EV_TRUE,
    PRG_JSON_EV_NUMBER, /* text */
    PRG_JSON_EV_STRING, /* text */
    PRG_JSON_EV_KEY,    /* text */
    PRG_JSON_EV_OBJECT,
    PRG_JSON_EV_OBJECT_END,
    PRG_JSON_EV_ARRAY,
    PRG_JSON_EV_ARRAY_END
} prg_json_event;

/* Takes an event; a status other than OK (with *err filled in) ends the parse. `text` is not NUL-terminated. */
typedef perigee_status (*prg_json_handler)(void *user, prg_json_event event, const char *text, size_t length,
                                           perigee_error **err);

/* A parse fed piece by piece. */
typedef struct prg_json_stream prg_json_stream;
perigee_status prg_json_stream_new(prg_allocator *allocator, size_t depth, const char *file, prg_json_handler handler,
                                   void *user, prg_json_stream **out, perigee_error **err);
perigee_status prg_json_stream_feed(prg_json_stream *stream, const char *text, size_t length, perigee_error **err);
perigee_status prg_json_stream_end(prg_json_stream *stream, perigee_error **err);
void prg_json_stream_free(prg_json_stream *stream);

#endif
