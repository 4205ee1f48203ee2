/* The format of Kimi K2 and its relatives. All text between two control tokens is one call of the tokenizer. */
#include "base/error.h"
#include "text/chat.h"

static perigee_status open_message(perigee_chat *chat, const char *control, const char *name, size_t length,
                                   perigee_error **err) {
    perigee_status st = prg_chat_control(chat, control, err);
    if (st == PERIGEE_OK) {
        prg_chat_put(chat, name, length, true);
        st = prg_chat_control(chat, "<|im_middle|>", err);
    }
    return st;
}

/* A whole system message of the format's own. */
static perigee_status put_system(perigee_chat *chat, const char *name, const char *text, size_t length,
                                 perigee_error **err) {
    perigee_status st = open_message(chat, "<|im_system|>", name, strlen(name), err);
    if (st == PERIGEE_OK) {
        prg_chat_put(chat, text, length, true);
        st = prg_chat_control(chat, "<|im_end|>", err);
    }
    return st;
}

static perigee_status declare_tools(perigee_chat *chat, const prg_json *tools, perigee_error **err) {
    prg_buffer text;
    prg_buffer_init(&text, chat->tokenizer->allocator);
    bool typescript = chat->format->typescript;
    if (!typescript || !prg_chat_typescript(&text, tools)) {
        /* K2.5's template takes JSON, its keys in order, where its encoder cannot write the tools */
        text.length = 0;
        prg_json_write(&text, tools, typescript ? PRG_JSON_COMPACT | PRG_JSON_SORTED : PRG_JSON_SPACED);
    }
    perigee_status st = text.failed ? prg_fail_memory(err)
                                    : put_system(chat, "tool_declare", (const char *)text.data, text.length, err);
    prg_buffer_free(&text);
    return st;
}

static perigee_status put_arguments(perigee_chat *chat, const prg_json *function, perigee_error **err) {
    const prg_json *arguments = prg_json_get(function, "arguments");
    if (!arguments) {
        return PERIGEE_OK;
    }
    if (arguments->kind == PRG_JSON_STRING) {
        prg_chat_put(chat, arguments->text, arguments->length, true);
        return PERIGEE_OK;
    }
    prg_buffer text;
    prg_buffer_init(&text, chat->tokenizer->allocator);
    prg_json_write(&text, arguments, PRG_JSON_SPACED);
    prg_chat_put(chat, (const char *)text.data, text.length, true);
    perigee_status st = text.failed ? prg_fail_memory(err) : PERIGEE_OK;
    prg_buffer_free(&text);
    return st;
}

static perigee_status put_call(perigee_chat *chat, const prg_json *call, perigee_error **err) {
    const prg_json *function = prg_chat_function(call), *id;
    perigee_status st = prg_chat_string(call, "id", &id, err);
    if (st == PERIGEE_OK) {
        st = prg_chat_control(chat, "<|tool_call_begin|>", err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    if (id) {
        prg_chat_put(chat, id->text, id->length, true);
    } else {
        const prg_json *name = prg_json_get(function, "name");
        prg_buffer made;
        prg_buffer_init(&made, chat->tokenizer->allocator);
        prg_buffer_puts(&made, "functions.");
        prg_buffer_put(&made, name->text, name->length);
        prg_buffer_puts(&made, ":");
        prg_buffer_put_int(&made, (int64_t)chat->calls);
        prg_chat_put(chat, (const char *)made.data, made.length, true);
        chat->text.failed = chat->text.failed || made.failed;
        prg_buffer_free(&made);
    }
    chat->calls++;
    st = prg_chat_control(chat, "<|tool_call_argument_begin|>", err);
    if (st == PERIGEE_OK) {
        st = put_arguments(chat, function, err);
    }
    return st == PERIGEE_OK ? prg_chat_control(chat, "<|tool_call_end|>", err) : st;
}

static perigee_status put_reasoning(perigee_chat *chat, const prg_json *message, bool keep, perigee_error **err) {
    const prg_json *reasoning;
    perigee_status st = prg_chat_reasoning(message, &reasoning, err);
    if (st == PERIGEE_OK) {
        st = prg_chat_control(chat, "<think>", err);
    }
    if (st == PERIGEE_OK) {
        if (keep && reasoning) {
            prg_chat_put(chat, reasoning->text, reasoning->length, true);
        }
        st = prg_chat_control(chat, "</think>", err);
    }
    return st;
}

static perigee_status put_assistant(perigee_chat *chat, const prg_json *message, bool keep, perigee_error **err) {
    const prg_json *calls;
    perigee_status st = prg_chat_calls(message, &calls, err);
    if (st == PERIGEE_OK && calls && !chat->format->tools) {
        st = prg_fail(err, PERIGEE_E_UNSUPPORTED, "chat format %s has no tools", chat->format->name);
    }
    if (st == PERIGEE_OK && chat->format->thinking != PRG_THINKING_NEVER) {
        st = put_reasoning(chat, message, keep, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_chat_content(chat, message, true, err);
    }
    if (st != PERIGEE_OK || !calls) {
        return st;
    }
    st = prg_chat_control(chat, "<|tool_calls_section_begin|>", err);
    for (const prg_json *call = calls->first; call && st == PERIGEE_OK; call = call->next) {
        st = put_call(chat, call, err);
    }
    return st == PERIGEE_OK ? prg_chat_control(chat, "<|tool_calls_section_end|>", err) : st;
}

static perigee_status put_tool_result(perigee_chat *chat, const prg_json *message, perigee_error **err) {
    const prg_json *id;
    perigee_status st = prg_chat_string(message, "tool_call_id", &id, err);
    if (st == PERIGEE_OK && !chat->format->tools) {
        st = prg_fail(err, PERIGEE_E_UNSUPPORTED, "chat format %s has no tools", chat->format->name);
    }
    if (st == PERIGEE_OK && !id) {
        st = prg_fail(err, PERIGEE_E_ARGUMENT, "messages: a tool message has no tool_call_id");
    }
    if (st == PERIGEE_OK) {
        prg_chat_puts(chat, "## Return of ", true);
        prg_chat_put(chat, id->text, id->length, true);
        prg_chat_puts(chat, "\n", true);
        st = prg_chat_content(chat, message, true, err);
    }
    return st;
}

static perigee_status put_message(perigee_chat *chat, const prg_json *message, bool keep, perigee_error **err) {
    const prg_json *role = prg_json_get(message, "role"), *name;
    perigee_status st = prg_chat_string(message, "name", &name, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (!name || name->length == 0 || !chat->format->names) {
        name = role;
    }
    bool assistant = prg_json_is(role, "assistant");
    const char *control = assistant ? "<|im_assistant|>" : prg_json_is(role, "user") ? "<|im_user|>" : "<|im_system|>";
    st = open_message(chat, control, name->text, name->length, err);
    if (st == PERIGEE_OK) {
        st = assistant                   ? put_assistant(chat, message, keep, err)
             : prg_json_is(role, "tool") ? put_tool_result(chat, message, err)
                                         : prg_chat_content(chat, message, true, err);
    }
    return st == PERIGEE_OK ? prg_chat_control(chat, "<|im_end|>", err) : st;
}

/* The last message of the assistant that calls no tool: reasoning up to it is dropped. */
static perigee_status last_answer(const prg_json *messages, const prg_json **out, perigee_error **err) {
    *out = NULL;
    for (const prg_json *m = messages->first; m; m = m->next) {
        const prg_json *calls;
        perigee_status st = prg_chat_calls(m, &calls, err);
        if (st != PERIGEE_OK) {
            return st;
        }
        if (prg_json_is(prg_json_get(m, "role"), "assistant") && !calls) {
            *out = m;
        }
    }
    return PERIGEE_OK;
}

perigee_status prg_chat_render_k2(perigee_chat *chat, const prg_chat_request *request, perigee_error **err) {
    const prg_chat_format *format = chat->format;
    const prg_json *first = request->messages->first, *answer;
    bool off = request->thinking == PERIGEE_THINKING_OFF;
    perigee_status st = last_answer(request->messages, &answer, err);
    if (st == PERIGEE_OK && request->tools) {
        st = declare_tools(chat, request->tools, err);
    }
    if (st == PERIGEE_OK && first && format->default_system && !prg_json_is(prg_json_get(first, "role"), "system")) {
        st = put_system(chat, "system", format->default_system, strlen(format->default_system), err);
        prg_chat_puts(chat, format->behind_default, true);
    }
    bool keep = !answer && !off;
    for (const prg_json *m = first; m && st == PERIGEE_OK; m = m->next) {
        st = put_message(chat, m, keep, err);
        keep = keep || (m == answer && !off);
    }
    if (st != PERIGEE_OK || !request->generation_prompt) {
        return st;
    }
    st = open_message(chat, "<|im_assistant|>", "assistant", strlen("assistant"), err);
    if (st == PERIGEE_OK && format->thinking == PRG_THINKING_SWITCH) {
        st = prg_chat_control(chat, "<think>", err);
        chat->thinking = !off;
        if (st == PERIGEE_OK && off) {
            st = prg_chat_control(chat, "</think>", err);
        }
    }
    return st;
}
