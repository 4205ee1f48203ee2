/* The chat formats by name. */
#ifndef PRG_TEXT_CHAT_FORMAT_H
#define PRG_TEXT_CHAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "perigee/text.h"

typedef enum prg_thinking_kind {
    PRG_THINKING_NEVER,  /* the format has no reasoning */
    PRG_THINKING_ALWAYS, /* the model opens it by itself */
    PRG_THINKING_SWITCH  /* on and off; the prompt opens it */
} prg_thinking_kind;

typedef struct prg_chat_format {
    const char *name;
    bool xtml;
    prg_thinking_kind thinking;
    const char *default_system; /* put before a conversation that does not begin with a system message; or NULL */
    const char *behind_default; /* text behind the default system message's end */
    bool tools;                 /* has declarations, calls and results */
    bool typescript;            /* declares tools in TypeScript instead of JSON */
    bool names;                 /* a message's name stands instead of its role */
} prg_chat_format;

/* By name, or NULL. */
const prg_chat_format *prg_chat_format_find(const char *name, size_t length);
/* The tokenizer's own, from its family and its special tokens. */
const prg_chat_format *prg_chat_format_of(const perigee_tokenizer *tokenizer);

#endif
