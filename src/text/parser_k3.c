/* K3's output: XTML elements. A tag lies between <|open|> or <|close|> and <|sep|>; elements that lack a closer are
 * closed by whatever comes. */
#include "base/error.h"
#include "text/parser.h"

enum { OPEN, CLOSE, SEP, COUNT };

static const char *const names[COUNT] = {"<|open|>", "<|close|>", "<|sep|>"};

void prg_parser_controls_k3(perigee_parser *parser) {
    for (size_t i = 0; i < PRG_PARSER_CONTROLS; i++) {
        parser->controls[i] = i < COUNT ? prg_tokenizer_special(parser->tokenizer, names[i]) : -1;
    }
}

static void puts_arguments(perigee_parser *p, const char *text) {
    prg_parser_put_arguments(p, text, strlen(text));
}

static void put_escaped(perigee_parser *p, const void *text, size_t length) {
    prg_buffer escaped;
    prg_buffer_init(&escaped, p->tokenizer->allocator);
    prg_json_escape(&escaped, text, length);
    prg_parser_put_arguments(p, escaped.data, escaped.length);
    p->failed = p->failed || escaped.failed;
    prg_buffer_free(&escaped);
}

void prg_parser_text_k3(perigee_parser *parser, const void *text, size_t length) {
    if (parser->raw_arguments) {
        prg_parser_put_arguments(parser, text, length);
    } else if (parser->string_argument) {
        put_escaped(parser, text, length);
    } else {
        prg_buffer_put(&parser->pending, text, length); /* judged when it is whole */
    }
}

/* A value that is no string goes in as it is if it is JSON, else as a string. */
static void put_value(perigee_parser *p) {
    prg_arena arena;
    prg_arena_init(&arena, p->tokenizer->allocator);
    const prg_json *value = NULL;
    const char *text = p->pending.data ? (const char *)p->pending.data : "";
    perigee_status st = prg_json_parse(&arena, text, p->pending.length, 100, NULL, &value, NULL);
    p->failed = p->failed || st == PERIGEE_E_MEMORY;
    if (st == PERIGEE_OK) {
        prg_parser_put_arguments(p, text, p->pending.length);
    } else {
        puts_arguments(p, "\"");
        put_escaped(p, text, p->pending.length);
        puts_arguments(p, "\"");
    }
    prg_arena_free(&arena);
}

static void close_argument(perigee_parser *p) {
    if (!p->argument_open) {
        return;
    }
    p->argument_open = false;
    if (p->string_argument) {
        puts_arguments(p, "\"");
    } else if (!p->raw_arguments) {
        put_value(p);
    }
    p->pending.length = 0;
}

static void close_call(perigee_parser *p) {
    close_argument(p);
    if (prg_parser_open_call(p)) {
        if (!p->raw_arguments && p->arguments > 0) {
            puts_arguments(p, "}");
        }
        prg_parser_end_call(p);
    }
    p->raw_arguments = false;
    p->arguments = 0;
}

/* Value of an attribute of the tag in `tag`, without its escapes, or false. */
static bool attribute(const char *tag, const char *key, prg_buffer *out) {
    size_t key_length = strlen(key);
    const char *at = strchr(tag, ' ');
    out->length = 0;
    while (at) {
        at += strspn(at, " \t\r\n");
        const char *equals = strstr(at, "=\"");
        if (!equals) {
            return false;
        }
        const char *value = equals + 2, *end = strchr(value, '"');
        end = end ? end : value + strlen(value);
        if ((size_t)(equals - at) == key_length && memcmp(at, key, key_length) == 0) {
            while (value < end) {
                size_t left = (size_t)(end - value);
                if (left >= 5 && memcmp(value, "&amp;", 5) == 0) {
                    prg_buffer_putc(out, '&');
                    value += 5;
                } else if (left >= 6 && memcmp(value, "&quot;", 6) == 0) {
                    prg_buffer_putc(out, '"');
                    value += 6;
                } else {
                    prg_buffer_putc(out, *value++);
                }
            }
            return true;
        }
        at = *end ? end + 1 : NULL;
    }
    return false;
}

static bool named(const char *tag, const char *name) {
    size_t length = strlen(name);
    return strncmp(tag, name, length) == 0 && (tag[length] == 0 || tag[length] == ' ');
}

static void open_argument(perigee_parser *p, const char *tag, prg_buffer *value) {
    if (!prg_parser_open_call(p) || p->raw_arguments) {
        p->place = PRG_IN_SKIPPED; /* of no call */
        return;
    }
    attribute(tag, "key", value);
    puts_arguments(p, p->arguments++ == 0 ? "{\"" : ", \"");
    put_escaped(p, value->data, value->length);
    puts_arguments(p, "\": ");
    p->string_argument = attribute(tag, "type", value) && value->length == 6 && memcmp(value->data, "string", 6) == 0;
    if (p->string_argument) {
        puts_arguments(p, "\"");
    }
    p->argument_open = true;
    p->place = PRG_IN_ARGUMENT;
}

static void open_element(perigee_parser *p, const char *tag, prg_buffer *value) {
    if (named(tag, "argument")) {
        open_argument(p, tag, value);
    } else if (named(tag, "json")) {
        bool fresh = prg_parser_open_call(p) && p->arguments == 0;
        p->raw_arguments = p->raw_arguments || fresh;
        p->place = fresh ? PRG_IN_ARGUMENT : PRG_IN_SKIPPED;
    } else if (named(tag, "call")) {
        close_call(p);
        attribute(tag, "tool", value);
        prg_parser_begin_call(p, value->data ? (const char *)value->data : "", value->length, "", 0);
        p->place = PRG_IN_NOTHING;
    } else {
        close_call(p);
        p->place = named(tag, "think") ? PRG_IN_THINKING : named(tag, "response") ? PRG_IN_CONTENT : PRG_IN_NOTHING;
    }
}

/* The tag in `pending` is whole. */
static void finish_tag(perigee_parser *p) {
    prg_buffer tag = p->pending, value; /* pending serves the next text */
    prg_buffer_init(&p->pending, p->tokenizer->allocator);
    prg_buffer_init(&value, p->tokenizer->allocator);
    const char *text = prg_buffer_text(&tag);
    if (!text) {
        p->failed = true;
    } else if (p->closing) {
        if (!named(text, "argument") && !named(text, "json")) {
            close_call(p);
        }
        p->place = PRG_IN_NOTHING;
    } else if (named(text, "message") && p->behind != PRG_IN_SKIPPED) {
        close_call(p);
        prg_parser_end(p); /* the next message: this one has lost its end */
    } else {
        open_element(p, text, &value);
    }
    p->failed = p->failed || value.failed;
    prg_buffer_free(&value);
    prg_buffer_free(&tag);
}

void prg_parser_close_k3(perigee_parser *parser) {
    if (parser->place == PRG_IN_HEADER) {
        finish_tag(parser);
    }
    close_call(parser);
}

void prg_parser_control_k3(perigee_parser *parser, int32_t id) {
    perigee_parser *p = parser;
    bool in_tag = p->place == PRG_IN_HEADER;
    if (in_tag && (id == p->controls[OPEN] || id == p->controls[CLOSE] || id == p->controls[SEP])) {
        finish_tag(p);
    }
    if (id == p->controls[OPEN] || id == p->controls[CLOSE]) {
        close_argument(p);
        /* a message that opens before anything else is the answer itself */
        p->behind = p->seen ? PRG_IN_NOTHING : PRG_IN_SKIPPED;
        p->closing = id == p->controls[CLOSE];
        p->place = PRG_IN_HEADER;
        p->pending.length = 0;
    }
}
