/* Rendering conversations: segments, which are control tokens or texts, and their ids. */
#ifndef PRG_TEXT_CHAT_H
#define PRG_TEXT_CHAT_H

#include "text/json_write.h"
#include "text/tokenizer.h"

typedef struct prg_chat_span {
    size_t start, length; /* in the text */
    int32_t control;      /* id, or -1 for text */
    size_t first, count;  /* in the ids */
} prg_chat_span;

struct perigee_chat {
    perigee_tokenizer *tokenizer; /* held */
    const prg_chat_format *format;
    prg_buffer text;
    prg_buffer spans; /* of prg_chat_span */
    prg_buffer ids;   /* of int32_t */
    bool thinking;    /* the prompt ends in open reasoning */
    size_t calls;     /* tool calls of the conversation */
};

/* What perigee_chat_render() was given, parsed and checked. */
typedef struct prg_chat_request {
    const prg_chat_format *format;
    const prg_json *messages; /* an array */
    const prg_json *tools;    /* an array that is not empty, or NULL */
    perigee_thinking thinking;
    bool generation_prompt;
    const char *effort; /* NUL-terminated, or NULL */
    const char *tool_choice;
    const prg_json *response_format; /* or NULL */
} prg_chat_request;

perigee_status prg_chat_render(const perigee_tokenizer *tokenizer, const char *messages, size_t messages_length,
                               const char *tools, size_t tools_length, const perigee_chat_options *options,
                               perigee_chat **out, perigee_error **err);
void prg_chat_free(perigee_chat *chat);

/* For the formats. Lost writes are noticed at the end. */

/* A control token by name. PERIGEE_E_UNSUPPORTED where the vocabulary has none of this name. */
perigee_status prg_chat_control(perigee_chat *chat, const char *name, perigee_error **err);
/* Text: a new segment, unless it is empty or, with `join`, stands behind text, of whose segment it becomes a part. */
void prg_chat_put(perigee_chat *chat, const char *text, size_t length, bool join);
void prg_chat_puts(perigee_chat *chat, const char *text, bool join);

/* A member that must be a string: NULL where it is absent or null; another type: PERIGEE_E_ARGUMENT. */
perigee_status prg_chat_string(const prg_json *object, const char *name, const prg_json **out, perigee_error **err);
/* Check that `content` is absent, null, a string or an array of text parts, and put it. Each part is a segment of its
 * own unless `join`. */
perigee_status prg_chat_content(perigee_chat *chat, const prg_json *message, bool join, perigee_error **err);
/* The calls of an assistant's message, or NULL where there are none; each is checked to have a function with a name. */
perigee_status prg_chat_calls(const prg_json *message, const prg_json **out, perigee_error **err);
/* A call's function: the member of that name, or the call itself. */
const prg_json *prg_chat_function(const prg_json *call);
bool prg_json_is(const prg_json *value, const char *text);
/* The reasoning of a message, under either of its names, or NULL. */
perigee_status prg_chat_reasoning(const prg_json *message, const prg_json **out, perigee_error **err);

perigee_status prg_chat_render_k2(perigee_chat *chat, const prg_chat_request *request, perigee_error **err);
perigee_status prg_chat_render_k3(perigee_chat *chat, const prg_chat_request *request, perigee_error **err);
/* Tools as the TypeScript that K2.5 declares them in. False, with `out` in any state, where its encoder writes none. */
bool prg_chat_typescript(prg_buffer *out, const prg_json *tools);

#endif
