#include "base/json.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/error.h"
#include "base/float_mode.h"

/* yajl does not look whether it was given memory. So a request that fails leaves the parser for good, by way of
 * `no_memory`, and what the parser holds is known here, in a list, and freed without it. */
typedef struct parser_block {
    struct parser_block *before, *after;
    size_t size;
    size_t pad; /* keeps what follows aligned to 16 */
} parser_block;

struct prg_json_stream {
    prg_allocator *allocator;
    parser_block held; /* ring of all blocks; itself not one */
    jmp_buf no_memory;
    yajl_handle parser;
    prg_json_handler handler;
    void *user;
    const char *file;
    size_t depth, depth_limit;
    int64_t fed; /* bytes of the pieces before the present one */
    perigee_status status;
    perigee_error *error; /* of the handler, until it can be handed out */
};

static void *take(void *context, size_t size) {
    prg_json_stream *s = context;
    parser_block *b = size < SIZE_MAX / 2 ? prg_alloc(s->allocator, sizeof *b + size) : NULL;
    if (!b) {
        longjmp(s->no_memory, 1);
    }
    *b = (parser_block){&s->held, s->held.after, size, 0};
    b->after->before = b;
    s->held.after = b;
    return b + 1;
}

static void give(void *context, void *pointer) {
    prg_json_stream *s = context;
    if (pointer) {
        parser_block *b = (parser_block *)pointer - 1;
        b->before->after = b->after;
        b->after->before = b->before;
        prg_free(s->allocator, b);
    }
}

static void *retake(void *context, void *pointer, size_t size) {
    void *grown = take(context, size);
    if (pointer) {
        size_t old = ((parser_block *)pointer - 1)->size;
        memcpy(grown, pointer, old < size ? old : size);
        give(context, pointer);
    }
    return grown;
}

/* 1 to go on, as yajl wants it. */
static int emit(prg_json_stream *s, prg_json_event event, const char *text, size_t length) {
    s->status = s->handler(s->user, event, text, length, &s->error);
    return s->status == PERIGEE_OK;
}

static int enter(prg_json_stream *s, prg_json_event event) {
    if (++s->depth > s->depth_limit) {
        s->status = prg_fail_at(&s->error, PERIGEE_E_FORMAT, (prg_where){NULL, s->file, -1, -1},
                                "%s%sJSON nested deeper than %zu levels", s->file ? s->file : "", s->file ? ": " : "",
                                s->depth_limit);
        return 0;
    }
    return emit(s, event, NULL, 0);
}

static int on_null(void *s) {
    return emit(s, PRG_JSON_EV_NULL, NULL, 0);
}
static int on_boolean(void *s, int value) {
    return emit(s, value ? PRG_JSON_EV_TRUE : PRG_JSON_EV_FALSE, NULL, 0);
}
static int on_number(void *s, const char *text, size_t length) {
    return emit(s, PRG_JSON_EV_NUMBER, text, length);
}
static int on_string(void *s, const unsigned char *text, size_t length) {
    return emit(s, PRG_JSON_EV_STRING, (const char *)text, length);
}
static int on_key(void *s, const unsigned char *text, size_t length) {
    return emit(s, PRG_JSON_EV_KEY, (const char *)text, length);
}
static int on_object(void *s) {
    return enter(s, PRG_JSON_EV_OBJECT);
}
static int on_object_end(void *s) {
    ((prg_json_stream *)s)->depth--;
    return emit(s, PRG_JSON_EV_OBJECT_END, NULL, 0);
}
static int on_array(void *s) {
    return enter(s, PRG_JSON_EV_ARRAY);
}
static int on_array_end(void *s) {
    ((prg_json_stream *)s)->depth--;
    return emit(s, PRG_JSON_EV_ARRAY_END, NULL, 0);
}

static const yajl_callbacks callbacks = {on_null,   on_boolean, NULL,          NULL,     on_number,   on_string,
                                         on_object, on_key,     on_object_end, on_array, on_array_end};

static yajl_handle make_parser(prg_json_stream *s) {
    yajl_alloc_funcs memory = {take, retake, give, s};
    return setjmp(s->no_memory) ? NULL : yajl_alloc(&callbacks, &memory, s);
}

/* One piece, or with no text the end. */
static yajl_status run_parser(prg_json_stream *s, const char *text, size_t length) {
    if (setjmp(s->no_memory)) {
        s->status = prg_fail_memory(&s->error);
        return yajl_status_error;
    }
    return text ? yajl_parse(s->parser, (const unsigned char *)text, length) : yajl_complete_parse(s->parser);
}

perigee_status prg_json_stream_new(prg_allocator *allocator, size_t depth, const char *file, prg_json_handler handler,
                                   void *user, prg_json_stream **out, perigee_error **err) {
    prg_json_stream *s = prg_calloc(allocator, 1, sizeof *s);
    if (!s) {
        return prg_fail_memory(err);
    }
    s->allocator = allocator;
    s->handler = handler;
    s->user = user;
    s->file = file;
    s->depth_limit = depth;
    s->held.before = s->held.after = &s->held;
    s->parser = make_parser(s);
    if (!s->parser) {
        prg_json_stream_free(s);
        return prg_fail_memory(err);
    }
    *out = s;
    return PERIGEE_OK;
}

static perigee_status conclude(prg_json_stream *s, yajl_status result, size_t length, perigee_error **err) {
    if (result == yajl_status_ok) {
        s->fed += (int64_t)length;
        return PERIGEE_OK;
    }
    if (s->status != PERIGEE_OK) {
        if (err) {
            *err = s->error;
        } else {
            perigee_error_free(s->error);
        }
        s->error = NULL;
        return s->status;
    }
    int64_t at = s->fed + (int64_t)yajl_get_bytes_consumed(s->parser);
    s->status =
        prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, s->file, at, -1}, "%s%snot well-formed JSON at byte %lld",
                    s->file ? s->file : "", s->file ? ": " : "", (long long)at);
    return s->status;
}

perigee_status prg_json_stream_feed(prg_json_stream *stream, const char *text, size_t length, perigee_error **err) {
    return length ? conclude(stream, run_parser(stream, text, length), length, err) : PERIGEE_OK;
}

perigee_status prg_json_stream_end(prg_json_stream *stream, perigee_error **err) {
    return conclude(stream, run_parser(stream, NULL, 0), 0, err);
}

void prg_json_stream_free(prg_json_stream *stream) {
    if (stream) {
        while (stream->held.after != &stream->held) {
            give(stream, stream->held.after + 1);
        }
        perigee_error_free(stream->error);
        prg_free(stream->allocator, stream);
    }
}

/* ---- the tree ---- */

enum { MAX_DEPTH = 256 };

typedef struct tree_builder {
    prg_arena *arena;
    prg_json *open[MAX_DEPTH + 1]; /* open[0] stands above the document */
    prg_json *last[MAX_DEPTH + 1]; /* newest member of each */
    size_t depth;
    const char *key;
    size_t key_length;
} tree_builder;

static perigee_status build(void *user, prg_json_event event, const char *text, size_t length, perigee_error **err) {
    tree_builder *t = user;
    if (event == PRG_JSON_EV_OBJECT_END || event == PRG_JSON_EV_ARRAY_END) {
        t->depth--;
        return PERIGEE_OK;
    }
    char *copy = NULL;
    if (text && !(copy = prg_arena_strndup(t->arena, text, length))) {
        return prg_fail_memory(err);
    }
    if (event == PRG_JSON_EV_KEY) {
        t->key = copy;
        t->key_length = length;
        return PERIGEE_OK;
    }
    prg_json *node = prg_arena_alloc(t->arena, 1, sizeof *node);
    if (!node) {
        return prg_fail_memory(err);
    }
    static const prg_json_kind kinds[] = {
        [PRG_JSON_EV_NULL] = PRG_JSON_NULL,     [PRG_JSON_EV_FALSE] = PRG_JSON_FALSE,
        [PRG_JSON_EV_TRUE] = PRG_JSON_TRUE,     [PRG_JSON_EV_NUMBER] = PRG_JSON_NUMBER,
        [PRG_JSON_EV_STRING] = PRG_JSON_STRING, [PRG_JSON_EV_OBJECT] = PRG_JSON_OBJECT,
        [PRG_JSON_EV_ARRAY] = PRG_JSON_ARRAY};
    *node = (prg_json){kinds[event], copy, length, NULL, 0, NULL, NULL, 0};
    prg_json *parent = t->open[t->depth];
    if (parent->kind == PRG_JSON_OBJECT) {
        node->key = t->key;
        node->key_length = t->key_length;
    }
    if (t->last[t->depth]) {
        t->last[t->depth]->next = node;
    } else {
        parent->first = node;
    }
    t->last[t->depth] = node;
    parent->count++;
    if (event == PRG_JSON_EV_OBJECT || event == PRG_JSON_EV_ARRAY) {
        t->depth++;
        t->open[t->depth] = node;
        t->last[t->depth] = NULL;
    }
    return PERIGEE_OK;
}

perigee_status prg_json_parse(prg_arena *arena, const char *text, size_t length, size_t depth, const char *file,
                              const prg_json **out, perigee_error **err) {
    prg_json above = {PRG_JSON_ARRAY, NULL, 0, NULL, 0, NULL, NULL, 0};
    tree_builder builder = {.arena = arena};
    builder.open[0] = &above;
    prg_json_stream *stream = NULL;
    if (depth > MAX_DEPTH - 1) {
        depth = MAX_DEPTH - 1;
    }
    perigee_status st = prg_json_stream_new(arena->allocator, depth, file, build, &builder, &stream, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    st = prg_json_stream_feed(stream, text, length, err);
    if (st == PERIGEE_OK) {
        st = prg_json_stream_end(stream, err);
    }
    prg_json_stream_free(stream);
    if (st == PERIGEE_OK && !above.first) {
        st = prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, file, 0, -1}, "empty JSON document");
    }
    if (st == PERIGEE_OK) {
        *out = above.first;
    }
    return st;
}

const prg_json *prg_json_get(const prg_json *object, const char *name) {
    const prg_json *found = NULL;
    if (!object || object->kind != PRG_JSON_OBJECT) {
        return NULL;
    }
    size_t length = strlen(name);
    for (const prg_json *m = object->first; m; m = m->next) {
        if (m->key_length == length && memcmp(m->key, name, length) == 0) {
            found = m;
        }
    }
    return found;
}

bool prg_parse_double(const char *text, size_t length, double *out) {
    char copy[512];
    if (length == 0 || length >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) {
        return false;
    }
    char *end = NULL;
    fenv_t host;
    prg_float_mode_enter(&host);
    double value = strtod_l(copy, &end, c);
    prg_float_mode_leave(&host);
    freelocale(c);
    if (end != copy + length || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

bool prg_json_double(const prg_json *value, double *out) {
    return value && value->kind == PRG_JSON_NUMBER && prg_parse_double(value->text, value->length, out);
}

bool prg_json_int(const prg_json *value, int64_t *out) {
    if (!value || value->kind != PRG_JSON_NUMBER) {
        return false;
    }
    char *end = NULL;
    int saved = errno;
    errno = 0;
    long long whole = strtoll(value->text, &end, 10);
    bool exact = errno == 0 && end == value->text + value->length;
    errno = saved;
    if (exact) {
        *out = whole;
        return true;
    }
    double real;
    if (!prg_parse_double(value->text, value->length, &real) || real != floor(real) ||
        fabs(real) > 9007199254740992.0) {
        return false;
    }
    *out = (int64_t)real;
    return true;
}
