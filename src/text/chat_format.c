#include "text/chat_format.h"

#include <string.h>

#include "text/tokenizer.h"

#define KIMI "You are Kimi, an AI assistant created by Moonshot AI."
#define HELPFUL "You are a helpful assistant"

/* The newline of kimi_k2 is the published template's own. */
static const prg_chat_format formats[] = {
    {"kimi_k2", false, PRG_THINKING_NEVER, KIMI, "\n", true, false, true},
    {"kimi_k2_thinking", false, PRG_THINKING_ALWAYS, KIMI, "", true, false, true},
    {"kimi_k25", false, PRG_THINKING_SWITCH, NULL, "", true, true, true},
    {"moonlight", false, PRG_THINKING_NEVER, HELPFUL, "", false, false, false},
    {"kimi_linear", false, PRG_THINKING_NEVER, HELPFUL, "", true, false, true},
    {"kimi_k3", true, PRG_THINKING_SWITCH, NULL, "", true, false, true},
};

const prg_chat_format *prg_chat_format_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, name, length) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

const prg_chat_format *prg_chat_format_of(const perigee_tokenizer *tokenizer) {
    const char *name = tokenizer->family;
    if (strcmp(name, "deepseek_v3") == 0) {
        name = "moonlight";
    } else if (strcmp(name, "kimi_k2") == 0 && prg_tokenizer_special(tokenizer, "<think>") >= 0) {
        name = "kimi_k2_thinking";
    }
    const prg_chat_format *format = prg_chat_format_find(name, strlen(name));
    return format ? format : &formats[0];
}
