#include "text/chat.h"

#include "base/error.h"

enum { DEPTH = 100 };

bool prg_json_is(const prg_json *value, const char *text) {
    return value && value->kind == PRG_JSON_STRING && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

static void put_span(perigee_chat *chat, size_t start, int32_t control) {
    prg_chat_span span = {start, chat->text.length - start, control, 0, 0};
    prg_buffer_put(&chat->spans, &span, sizeof span);
}

perigee_status prg_chat_control(perigee_chat *chat, const char *name, perigee_error **err) {
    int32_t id = prg_tokenizer_special(chat->tokenizer, name);
    if (id < 0) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "format %s: the vocabulary has no %s", chat->format->name, name);
    }
    size_t start = chat->text.length;
    prg_buffer_puts(&chat->text, name);
    put_span(chat, start, id);
    return PERIGEE_OK;
}

void prg_chat_put(perigee_chat *chat, const char *text, size_t length, bool join) {
    if (length == 0) {
        return;
    }
    size_t start = chat->text.length;
    prg_buffer_put(&chat->text, text, length);
    size_t size = sizeof(prg_chat_span);
    if (join && chat->spans.length >= size) {
        prg_chat_span *last = (prg_chat_span *)(void *)(chat->spans.data + chat->spans.length - size);
        if (last->control < 0) {
            last->length += length;
            return;
        }
    }
    put_span(chat, start, -1);
}

void prg_chat_puts(perigee_chat *chat, const char *text, bool join) {
    prg_chat_put(chat, text, strlen(text), join);
}

perigee_status prg_chat_string(const prg_json *object, const char *name, const prg_json **out, perigee_error **err) {
    const prg_json *value = prg_json_get(object, name);
    if (value && value->kind != PRG_JSON_NULL && value->kind != PRG_JSON_STRING) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: \"%s\" is no string", name);
    }
    *out = value && value->kind == PRG_JSON_STRING ? value : NULL;
    return PERIGEE_OK;
}

static perigee_status put_part(perigee_chat *chat, const prg_json *part, bool join, perigee_error **err) {
    const prg_json *type = prg_json_get(part, "type"), *text = prg_json_get(part, "text");
    if (part->kind != PRG_JSON_OBJECT || !type || type->kind != PRG_JSON_STRING) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: a part of content has no type");
    }
    if (!prg_json_is(type, "text")) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "messages: content of type \"%s\" is not supported", type->text);
    }
    if (!text || text->kind != PRG_JSON_STRING) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: a text part has no text");
    }
    prg_chat_put(chat, text->text, text->length, join);
    return PERIGEE_OK;
}

perigee_status prg_chat_content(perigee_chat *chat, const prg_json *message, bool join, perigee_error **err) {
    const prg_json *content = prg_json_get(message, "content");
    if (!content || content->kind == PRG_JSON_NULL) {
        return PERIGEE_OK;
    }
    if (content->kind == PRG_JSON_STRING) {
        prg_chat_put(chat, content->text, content->length, join);
        return PERIGEE_OK;
    }
    if (content->kind != PRG_JSON_ARRAY) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: content is neither a string nor an array");
    }
    perigee_status st = PERIGEE_OK;
    for (const prg_json *part = content->first; part && st == PERIGEE_OK; part = part->next) {
        st = put_part(chat, part, join, err);
    }
    return st;
}

const prg_json *prg_chat_function(const prg_json *call) {
    const prg_json *function = prg_json_get(call, "function");
    return function ? function : call;
}

perigee_status prg_chat_calls(const prg_json *message, const prg_json **out, perigee_error **err) {
    const prg_json *calls = prg_json_get(message, "tool_calls");
    *out = NULL;
    if (!calls || calls->kind == PRG_JSON_NULL || (calls->kind == PRG_JSON_ARRAY && calls->count == 0)) {
        return PERIGEE_OK;
    }
    if (calls->kind != PRG_JSON_ARRAY) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: tool_calls is no array");
    }
    for (const prg_json *call = calls->first; call; call = call->next) {
        const prg_json *name = prg_json_get(prg_chat_function(call), "name");
        if (!name || name->kind != PRG_JSON_STRING) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: a tool call has no function with a name");
        }
    }
    *out = calls;
    return PERIGEE_OK;
}

perigee_status prg_chat_reasoning(const prg_json *message, const prg_json **out, perigee_error **err) {
    perigee_status st = prg_chat_string(message, "reasoning_content", out, err);
    if (st == PERIGEE_OK && (!*out || (*out)->length == 0)) {
        st = prg_chat_string(message, "reasoning", out, err);
    }
    return st;
}

/* Every text segment is a call of the tokenizer; control tokens go in by id. */
static perigee_status encode_spans(perigee_chat *chat, perigee_error **err) {
    size_t count = chat->spans.length / sizeof(prg_chat_span), capacity = chat->text.length + count;
    if (chat->text.failed || chat->spans.failed || capacity > SIZE_MAX / sizeof(int32_t) / 2) {
        return prg_fail_memory(err);
    }
    /* a text has no more ids than bytes */
    int32_t *ids = prg_alloc(chat->tokenizer->allocator, capacity * sizeof *ids);
    if (!ids) {
        return prg_fail_memory(err);
    }
    prg_ids out = {ids, capacity, 0};
    prg_chat_span *spans = (prg_chat_span *)(void *)chat->spans.data;
    perigee_status st = PERIGEE_OK;
    for (size_t i = 0; i < count && st == PERIGEE_OK; i++) {
        spans[i].first = out.count;
        if (spans[i].control >= 0) {
            prg_ids_put(&out, spans[i].control);
        } else {
            st = prg_tokenizer_encode(chat->tokenizer, (const char *)chat->text.data + spans[i].start, spans[i].length,
                                      0, false, &out, err);
        }
        spans[i].count = out.count - spans[i].first;
    }
    if (st == PERIGEE_OK) {
        prg_buffer_put(&chat->ids, ids, out.count * sizeof *ids);
        st = chat->ids.failed || !prg_buffer_text(&chat->text) ? prg_fail_memory(err) : PERIGEE_OK;
    }
    prg_free(chat->tokenizer->allocator, ids);
    return st;
}

static perigee_status check_messages(const prg_json *messages, perigee_error **err) {
    if (messages->kind != PRG_JSON_ARRAY) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "messages is no array");
    }
    for (const prg_json *m = messages->first; m; m = m->next) {
        const prg_json *role = prg_json_get(m, "role");
        if (!role || role->kind != PRG_JSON_STRING || role->length == 0) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "messages: a message has no role");
        }
    }
    return PERIGEE_OK;
}

static perigee_status parse_tools(prg_arena *arena, const char *tools, size_t length, prg_chat_request *r,
                                  perigee_error **err) {
    if (!tools) {
        return PERIGEE_OK;
    }
    perigee_status st = prg_json_parse(arena, tools, length, DEPTH, "tools", &r->tools, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (r->tools->kind == PRG_JSON_NULL || (r->tools->kind == PRG_JSON_ARRAY && r->tools->count == 0)) {
        r->tools = NULL;
        return PERIGEE_OK;
    }
    if (r->tools->kind != PRG_JSON_ARRAY) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tools is no array");
    }
    for (const prg_json *t = r->tools->first; t; t = t->next) {
        if (t->kind != PRG_JSON_OBJECT) {
            return prg_fail(err, PERIGEE_E_ARGUMENT, "tools: a tool is no object");
        }
    }
    return PERIGEE_OK;
}

/* An option of text; empty counts as not given. *out NUL-terminated in the arena. */
static perigee_status option_text(prg_arena *arena, const char *text, size_t length, const char **out,
                                  perigee_error **err) {
    length = length == SIZE_MAX && text ? strlen(text) : length;
    *out = NULL;
    if (text && length > 0) {
        *out = prg_arena_strndup(arena, text, length);
        return *out ? PERIGEE_OK : prg_fail_memory(err);
    }
    return PERIGEE_OK;
}

static perigee_status parse_options(const perigee_tokenizer *tokenizer, prg_arena *arena, const perigee_chat_options *o,
                                    prg_chat_request *r, perigee_error **err) {
    const char *format, *response;
    perigee_status st = option_text(arena, o->format, o->format_length, &format, err);
    if (st == PERIGEE_OK) {
        st = option_text(arena, o->effort, o->effort_length, &r->effort, err);
    }
    if (st == PERIGEE_OK) {
        st = option_text(arena, o->tool_choice, o->tool_choice_length, &r->tool_choice, err);
    }
    if (st == PERIGEE_OK) {
        st = option_text(arena, o->response_format, o->response_format_length, &response, err);
    }
    if (st == PERIGEE_OK && response) {
        st = prg_json_parse(arena, response, strlen(response), DEPTH, "response_format", &r->response_format, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    r->format = format ? prg_chat_format_find(format, strlen(format)) : tokenizer->format;
    if (!r->format) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "no chat format \"%s\"", format);
    }
    if (o->thinking < PERIGEE_THINKING_DEFAULT || o->thinking > PERIGEE_THINKING_OFF) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "thinking is none of its values");
    }
    r->thinking = o->thinking;
    r->generation_prompt = !o->omit_generation_prompt;
    if (r->tool_choice && strcmp(r->tool_choice, "auto") == 0) {
        r->tool_choice = NULL;
    }
    const prg_json *type = prg_json_get(r->response_format, "type");
    if (r->response_format && (!type || type->kind != PRG_JSON_STRING)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "response_format has no type");
    }
    if (prg_json_is(type, "text")) {
        r->response_format = NULL;
    }
    return PERIGEE_OK;
}

/* What a format cannot say is refused. */
static perigee_status check_format(const prg_chat_request *r, perigee_error **err) {
    const prg_chat_format *f = r->format;
    const char *what = NULL;
    if (r->thinking == PERIGEE_THINKING_ON && f->thinking == PRG_THINKING_NEVER) {
        what = "thinking";
    } else if (r->thinking == PERIGEE_THINKING_OFF && f->thinking == PRG_THINKING_ALWAYS) {
        what = "way to turn thinking off";
    } else if (r->tools && !f->tools) {
        what = "tools";
    } else if (r->effort && !f->xtml) {
        what = "effort";
    } else if (r->tool_choice && !f->xtml) {
        what = "tool choice";
    } else if (r->response_format && !f->xtml) {
        what = "response format";
    }
    return what ? prg_fail(err, PERIGEE_E_UNSUPPORTED, "chat format %s has no %s", f->name, what) : PERIGEE_OK;
}

static perigee_chat *new_chat(const perigee_tokenizer *tokenizer, const prg_chat_format *format) {
    perigee_chat *chat = prg_calloc(tokenizer->allocator, 1, sizeof *chat);
    if (chat) {
        chat->tokenizer = prg_tokenizer_hold(tokenizer);
        chat->format = format;
        prg_buffer_init(&chat->text, tokenizer->allocator);
        prg_buffer_init(&chat->spans, tokenizer->allocator);
        prg_buffer_init(&chat->ids, tokenizer->allocator);
    }
    return chat;
}

static perigee_status render(const perigee_tokenizer *tokenizer, const prg_chat_request *r, perigee_chat **out,
                             perigee_error **err) {
    perigee_chat *chat = new_chat(tokenizer, r->format);
    if (!chat) {
        return prg_fail_memory(err);
    }
    perigee_status st = r->format->xtml ? prg_chat_render_k3(chat, r, err) : prg_chat_render_k2(chat, r, err);
    if (st == PERIGEE_OK) {
        st = encode_spans(chat, err);
    }
    if (st != PERIGEE_OK) {
        prg_chat_free(chat);
        return st;
    }
    *out = chat;
    return PERIGEE_OK;
}

perigee_status prg_chat_render(const perigee_tokenizer *tokenizer, const char *messages, size_t messages_length,
                               const char *tools, size_t tools_length, const perigee_chat_options *options,
                               perigee_chat **out, perigee_error **err) {
    static const perigee_chat_options defaults = {.struct_size = sizeof defaults};
    prg_chat_request r = {0};
    prg_arena arena;
    prg_arena_init(&arena, tokenizer->allocator);
    perigee_status st = parse_options(tokenizer, &arena, options ? options : &defaults, &r, err);
    if (st == PERIGEE_OK) {
        st = prg_json_parse(&arena, messages, messages_length, DEPTH, "messages", &r.messages, err);
    }
    if (st == PERIGEE_OK) {
        st = check_messages(r.messages, err);
    }
    if (st == PERIGEE_OK) {
        st = parse_tools(&arena, tools, tools_length, &r, err);
    }
    if (st == PERIGEE_OK) {
        st = check_format(&r, err);
    }
    if (st == PERIGEE_OK) {
        st = render(tokenizer, &r, out, err);
    }
    prg_arena_free(&arena);
    return st;
}

void prg_chat_free(perigee_chat *chat) {
    if (chat) {
        perigee_tokenizer *tokenizer = chat->tokenizer;
        prg_buffer_free(&chat->text);
        prg_buffer_free(&chat->spans);
        prg_buffer_free(&chat->ids);
        prg_free(tokenizer->allocator, chat);
        prg_tokenizer_drop(tokenizer);
    }
}
