/* Writing JSON values as Python's json.dumps(…, ensure_ascii=False) does: chat templates and encoders are Python, and
 * models have seen its spacing, escapes and numbers. */
#ifndef PRG_TEXT_JSON_WRITE_H
#define PRG_TEXT_JSON_WRITE_H

#include "base/buffer.h"
#include "base/json.h"

enum {
    PRG_JSON_SPACED = 0,  /* ", " and ": " */
    PRG_JSON_COMPACT = 1, /* "," and ":" */
    PRG_JSON_SORTED = 2   /* keys in order of code points, at every level */
};

void prg_json_write(prg_buffer *out, const prg_json *value, unsigned style);
/* A string with its quotes. */
void prg_json_write_string(prg_buffer *out, const char *text, size_t length);
/* The inside of a string: what json_write_string puts between the quotes. */
void prg_json_escape(prg_buffer *out, const char *text, size_t length);
/* A number as Python prints the value of this text: integers of any size, floats in their shortest form. */
void prg_json_write_number(prg_buffer *out, const char *text, size_t length);

/* Members of an object, each name once, with the last value given for it. */
typedef struct prg_json_members {
    const prg_json **values;
    size_t count;
} prg_json_members;

/* In the order of first mention, or sorted by name. `values` comes from `allocator`; false: no memory. */
bool prg_json_collect(prg_allocator *allocator, const prg_json *object, bool sorted, prg_json_members *out);

#endif
