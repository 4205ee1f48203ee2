/* Reading what a model says. The formats drive it by control tokens; it collects the message and the deltas. */
#ifndef PRG_TEXT_PARSER_H
#define PRG_TEXT_PARSER_H

#include "text/chat.h"

typedef struct prg_parsed_call {
    char *name, *id; /* NUL behind */
    prg_buffer arguments;
    bool open;
} prg_parsed_call;

/* Where text goes. */
typedef enum prg_parser_place {
    PRG_IN_NOTHING, /* between channels: blank text is dropped, other text counts as content */
    PRG_IN_THINKING,
    PRG_IN_CONTENT,
    PRG_IN_HEADER,   /* text of a tag or of a call's id, kept in `pending` */
    PRG_IN_ARGUMENT, /* text of a call */
    PRG_IN_SKIPPED   /* to be dropped */
} prg_parser_place;

enum { PRG_PARSER_CONTROLS = 12 };

struct perigee_parser {
    perigee_tokenizer *tokenizer; /* held */
    const prg_chat_format *format;
    int32_t controls[PRG_PARSER_CONTROLS]; /* ids that the format acts on, -1 where the vocabulary has none */
    size_t calls_before;                   /* calls of the conversation */
    prg_utf8_stream stream;
    prg_parser_place place;
    prg_parser_place behind; /* K3: place behind the tag that is being read */
    bool closing;            /* K3: that tag closes */
    bool seen;               /* something of the message has come */
    bool ended;              /* an end token was seen */
    bool finished;           /* PERIGEE_DELTA_END was given */
    bool failed;             /* out of memory: of no more use */
    bool raw_arguments;      /* K3: the call's arguments are one JSON text */
    bool string_argument;    /* K3: the open argument is a string */
    bool argument_open;      /* K3 */
    size_t arguments;        /* K3: of the call so far */
    prg_buffer pending;
    prg_buffer chunk; /* whole characters of the present id */
    prg_buffer thinking, content;
    prg_parsed_call *calls;
    size_t call_count, call_capacity;
    prg_buffer deltas; /* of prg_parser_delta */
    prg_buffer delta_text;
    prg_buffer json;
};

typedef struct prg_parser_delta {
    perigee_delta_kind kind;
    size_t call, start, length;
} prg_parser_delta;

perigee_status prg_parser_new(const perigee_tokenizer *tokenizer, const perigee_chat *chat, perigee_parser **out,
                              perigee_error **err);
/* `id` is one of the tokenizer's. */
perigee_status prg_parser_push(perigee_parser *parser, int32_t id, size_t *count, perigee_error **err);
perigee_status prg_parser_finish(perigee_parser *parser, size_t *count, perigee_error **err);
size_t prg_parser_delta_count(const perigee_parser *parser);
void prg_parser_get_delta(const perigee_parser *parser, size_t index, perigee_delta *out);
perigee_status prg_parser_message(perigee_parser *parser, const char **json, size_t *length, perigee_error **err);
void prg_parser_free(perigee_parser *parser);

/* For the formats. */

void prg_parser_say(perigee_parser *parser, perigee_delta_kind kind, const void *text, size_t length);
/* Text that stands where none belongs. */
void prg_parser_stray(perigee_parser *parser, const void *text, size_t length);
/* Begin a call; an open one ends. `id` empty: one is made up. */
void prg_parser_begin_call(perigee_parser *parser, const char *name, size_t name_length, const char *id,
                           size_t id_length);
/* The open call, or NULL. */
prg_parsed_call *prg_parser_open_call(perigee_parser *parser);
void prg_parser_put_arguments(perigee_parser *parser, const void *text, size_t length);
/* End the open call, if there is one. */
void prg_parser_end_call(perigee_parser *parser);
/* The message ends: PERIGEE_DELTA_END, once. */
void prg_parser_end(perigee_parser *parser);

/* A control token; text before it has been delivered. */
void prg_parser_control_k2(perigee_parser *parser, int32_t id);
void prg_parser_control_k3(perigee_parser *parser, int32_t id);
/* Whole characters inside a place that the format keeps for itself. */
void prg_parser_text_k3(perigee_parser *parser, const void *text, size_t length);
/* What is open when nothing more comes is closed. */
void prg_parser_close_k2(perigee_parser *parser);
void prg_parser_close_k3(perigee_parser *parser);
void prg_parser_controls_k2(perigee_parser *parser);
void prg_parser_controls_k3(perigee_parser *parser);

#endif
