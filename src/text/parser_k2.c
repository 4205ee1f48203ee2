/* K2's output: reasoning between <think> and </think>, then text, then a section of tool calls. */
#include "text/parser.h"

enum { THINK, THINK_END, SECTION, SECTION_END, CALL, ARGUMENTS, CALL_END, USER, SYSTEM, ASSISTANT, MIDDLE, COUNT };

static const char *const names[COUNT] = {"<think>",
                                         "</think>",
                                         "<|tool_calls_section_begin|>",
                                         "<|tool_calls_section_end|>",
                                         "<|tool_call_begin|>",
                                         "<|tool_call_argument_begin|>",
                                         "<|tool_call_end|>",
                                         "<|im_user|>",
                                         "<|im_system|>",
                                         "<|im_assistant|>",
                                         "<|im_middle|>"};

void prg_parser_controls_k2(perigee_parser *parser) {
    for (size_t i = 0; i < PRG_PARSER_CONTROLS; i++) {
        parser->controls[i] = i < COUNT ? prg_tokenizer_special(parser->tokenizer, names[i]) : -1;
    }
}

static bool blank(unsigned char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The header of a call is whole: functions.NAME:N, or whatever the model made of it. */
static void begin_call(perigee_parser *p) {
    const char *id = (const char *)p->pending.data;
    size_t length = p->pending.length, from = 0;
    while (length > 0 && blank(p->pending.data[length - 1])) {
        length--;
    }
    while (from < length && blank(p->pending.data[from])) {
        from++;
    }
    if (length == 0) {
        prg_parser_begin_call(p, "", 0, "", 0);
        return;
    }
    id += from;
    length -= from;
    const char *name = id;
    size_t size = length, digits = length;
    static const char prefix[] = "functions.";
    if (size >= sizeof prefix - 1 && memcmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
        size -= sizeof prefix - 1;
    }
    digits = size;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') {
        digits--;
    }
    if (digits > 0 && digits < size && name[digits - 1] == ':') {
        size = digits - 1;
    }
    prg_parser_begin_call(p, name, size, id, length);
}

/* A call's header or arguments may be open: whatever comes next ends them. */
static void leave_call(perigee_parser *p) {
    if (p->place == PRG_IN_HEADER) {
        begin_call(p);
    }
    prg_parser_end_call(p);
    p->pending.length = 0;
}

void prg_parser_close_k2(perigee_parser *parser) {
    leave_call(parser);
}

void prg_parser_control_k2(perigee_parser *parser, int32_t id) {
    perigee_parser *p = parser;
    int which = 0;
    while (which < COUNT && p->controls[which] != id) {
        which++;
    }
    switch (which) {
    case THINK:
    case THINK_END:
        leave_call(p);
        p->place = which == THINK ? PRG_IN_THINKING : PRG_IN_CONTENT;
        break;
    case SECTION:
    case CALL_END:
        leave_call(p);
        p->place = PRG_IN_NOTHING;
        break;
    case SECTION_END:
        leave_call(p);
        p->place = PRG_IN_CONTENT;
        break;
    case CALL:
        leave_call(p);
        p->place = PRG_IN_HEADER;
        break;
    case ARGUMENTS:
        if (p->place == PRG_IN_HEADER) {
            begin_call(p);
            p->pending.length = 0;
            p->place = PRG_IN_ARGUMENT;
        }
        break;
    case ASSISTANT:
        if (!p->seen) { /* the prompt did not open the answer */
            p->place = PRG_IN_SKIPPED;
            break;
        }
        /* fall through */
    case USER:
    case SYSTEM:
        leave_call(p);
        prg_parser_end(p); /* a turn of somebody else */
        break;
    case MIDDLE:
        p->place = p->place == PRG_IN_SKIPPED ? PRG_IN_CONTENT : p->place;
        break;
    default: /* no other control token is text */
        break;
    }
}
