/* XTML, the format of Kimi K3. Every string is a tokenizer call of its own. */
#include "base/error.h"
#include "text/chat.h"

#define RAW_JSON                                                                                                       \
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."

/* A rendering under way: the first failure stays, and everything after it does nothing. */
typedef struct xtml {
    perigee_chat *chat;
    perigee_error **err;
    perigee_status status;
} xtml;

/* A text that is put together before it becomes one string. */
typedef prg_buffer body_text;

static void control(xtml *x, const char *name) {
    if (x->status == PERIGEE_OK) {
        x->status = prg_chat_control(x->chat, name, x->err);
    }
}

static void text(xtml *x, const char *bytes, size_t length) {
    if (x->status == PERIGEE_OK) {
        prg_chat_put(x->chat, bytes, length, false);
    }
}

static void open_start(xtml *x, const char *tag) {
    control(x, "<|open|>");
    text(x, tag, strlen(tag));
}

static void attribute(xtml *x, const char *spaced_key, const char *value, size_t length) {
    body_text escaped;
    prg_buffer_init(&escaped, x->chat->tokenizer->allocator);
    for (size_t i = 0; i < length; i++) {
        if (value[i] == '&') {
            prg_buffer_puts(&escaped, "&amp;");
        } else if (value[i] == '"') {
            prg_buffer_puts(&escaped, "&quot;");
        } else {
            prg_buffer_putc(&escaped, value[i]);
        }
    }
    text(x, spaced_key, strlen(spaced_key));
    text(x, "=\"", 2);
    text(x, (const char *)escaped.data, escaped.length);
    text(x, "\"", 1);
    x->chat->text.failed = x->chat->text.failed || escaped.failed;
    prg_buffer_free(&escaped);
}

static void attribute_text(xtml *x, const char *spaced_key, const char *value) {
    attribute(x, spaced_key, value, strlen(value));
}

static void attribute_number(xtml *x, const char *spaced_key, size_t value) {
    body_text digits;
    prg_buffer_init(&digits, x->chat->tokenizer->allocator);
    prg_buffer_put_int(&digits, (int64_t)value);
    attribute(x, spaced_key, (const char *)digits.data, digits.length);
    x->chat->text.failed = x->chat->text.failed || digits.failed;
    prg_buffer_free(&digits);
}

static void open_end(xtml *x) {
    control(x, "<|sep|>");
}

static void open_tag(xtml *x, const char *tag) {
    open_start(x, tag);
    open_end(x);
}

static void close_tag(xtml *x, const char *tag) {
    control(x, "<|close|>");
    text(x, tag, strlen(tag));
    control(x, "<|sep|>");
}

static void end_message(xtml *x) {
    close_tag(x, "message");
    control(x, "<|end_of_msg|>");
}

static void content(xtml *x, const prg_json *message) {
    if (x->status == PERIGEE_OK) {
        x->status = prg_chat_content(x->chat, message, false, x->err);
    }
}

/* A system message of the format's own; frees the body. */
static void internal_message(xtml *x, const char *type, body_text *body) {
    open_start(x, "message");
    attribute_text(x, " role", "system");
    attribute_text(x, " type", type);
    open_end(x);
    text(x, (const char *)body->data, body->length);
    end_message(x);
    x->chat->text.failed = x->chat->text.failed || body->failed;
    prg_buffer_free(body);
}

static body_text start_body(const xtml *x, const char *first) {
    body_text body;
    prg_buffer_init(&body, x->chat->tokenizer->allocator);
    prg_buffer_puts(&body, first);
    return body;
}

static void put_fenced(body_text *body, const prg_json *value) {
    prg_buffer_puts(body, "```json\n");
    prg_json_write(body, value, PRG_JSON_COMPACT | PRG_JSON_SORTED);
    prg_buffer_puts(body, "\n```");
}

static void declare_tools(xtml *x, const prg_json *tools, bool later) {
    body_text body = start_body(x, later ? "## New Tools Available\n"
                                           "The system dynamically extends the toolset via lazy-loading.\n"
                                           "You have access to all existing and extended tools.\n"
                                           "Here are the specs for the extended tools.\n\n"
                                         : "# Tools\nHere are the available tools, described in JSONSchema.\n\n");
    put_fenced(&body, tools);
    internal_message(x, "tool-declare", &body);
}

static void put_effort(xtml *x, const char *effort) {
    if (strcmp(effort, "low") != 0 && strcmp(effort, "high") != 0 && strcmp(effort, "max") != 0) {
        x->status = prg_fail(x->err, PERIGEE_E_ARGUMENT, "effort \"%s\" is none of low, high and max", effort);
        return;
    }
    body_text body = start_body(x, "`thinking_effort` guides on how much to think in your thinking channel (not "
                                   "including the response channel), supported values include `low`, `medium`, "
                                   "`high`, and `max`.\nNow the system is invoked with `thinking_effort=");
    prg_buffer_puts(&body, effort);
    prg_buffer_puts(&body, "`.");
    internal_message(x, "thinking-effort", &body);
}

static void put_tool_choice(xtml *x, const char *choice) {
    bool required = strcmp(choice, "required") == 0;
    if (!required && strcmp(choice, "none") != 0) {
        x->status = prg_fail(x->err, PERIGEE_E_UNSUPPORTED, "tool choice is none of auto, required and none");
        return;
    }
    body_text body = start_body(x, "The system is invoked with `tool_choice=");
    prg_buffer_puts(&body, choice);
    prg_buffer_puts(&body, "`.\nYou MUST ");
    prg_buffer_puts(&body, required ? "call tools" : "NOT call any tools");
    prg_buffer_puts(&body, " in the next message.");
    internal_message(x, "tool-choice", &body);
}

static void put_response_format(xtml *x, const prg_json *format) {
    const prg_json *type = prg_json_get(format, "type");
    if (prg_json_is(type, "json_object")) {
        body_text body = start_body(x, "The system is invoked with `response_format=json_object`.\n" RAW_JSON);
        internal_message(x, "response-format", &body);
        return;
    }
    const prg_json *wrapped = prg_json_get(format, "json_schema");
    if (!prg_json_is(type, "json_schema") || !wrapped || wrapped->kind != PRG_JSON_OBJECT) {
        bool known = prg_json_is(type, "json_schema");
        x->status = prg_fail(x->err, known ? PERIGEE_E_ARGUMENT : PERIGEE_E_UNSUPPORTED,
                             known ? "response_format has no json_schema" : "response_format: type \"%s\"", type->text);
        return;
    }
    const prg_json *schema = prg_json_get(wrapped, "schema");
    if (!schema) {
        schema = prg_json_get(wrapped, "json_schema");
    }
    body_text body = start_body(x, "The system is invoked with `response_format=json_schema`.\n" RAW_JSON
                                   "\nThe JSON data must match the following schema:\n");
    put_fenced(&body, schema ? schema : wrapped);
    internal_message(x, "response-format", &body);
}

static bool blank(const prg_json *string) {
    return strspn(string->text, " \t\n\v\f\r") == string->length;
}

static const char *type_name(const prg_json *value) {
    switch (value->kind) {
    case PRG_JSON_NULL:
        return "null";
    case PRG_JSON_FALSE:
    case PRG_JSON_TRUE:
        return "boolean";
    case PRG_JSON_NUMBER:
        return "number";
    case PRG_JSON_STRING:
        return "string";
    case PRG_JSON_ARRAY:
        return "array";
    default:
        return "object";
    }
}

static void put_argument(xtml *x, const prg_json *value) {
    open_start(x, "argument");
    attribute(x, " key", value->key, value->key_length);
    attribute_text(x, " type", type_name(value));
    open_end(x);
    if (value->kind == PRG_JSON_STRING) {
        text(x, value->text, value->length);
    } else {
        body_text body = start_body(x, "");
        prg_json_write(&body, value, PRG_JSON_SPACED);
        text(x, (const char *)body.data, body.length);
        x->chat->text.failed = x->chat->text.failed || body.failed;
        prg_buffer_free(&body);
    }
    close_tag(x, "argument");
}

static void put_arguments(xtml *x, const prg_json *arguments) {
    prg_arena arena;
    prg_arena_init(&arena, x->chat->tokenizer->allocator);
    const prg_json *object = arguments, *raw = NULL;
    if (arguments->kind == PRG_JSON_STRING) {
        perigee_status st = prg_json_parse(&arena, arguments->text, arguments->length, 100, NULL, &object, NULL);
        raw = st == PERIGEE_E_FORMAT ? arguments : NULL;
        x->status = st == PERIGEE_E_MEMORY ? prg_fail_memory(x->err) : x->status;
    }
    if (raw) {
        open_start(x, "json");
        attribute_text(x, " type", "object");
        open_end(x);
        text(x, raw->text, raw->length);
        close_tag(x, "json");
    } else if (x->status == PERIGEE_OK && object->kind != PRG_JSON_OBJECT) {
        x->status = prg_fail(x->err, PERIGEE_E_ARGUMENT, "messages: arguments of a tool call are no JSON object");
    } else if (x->status == PERIGEE_OK) {
        prg_json_members members;
        if (!prg_json_collect(x->chat->tokenizer->allocator, object, false, &members)) {
            x->status = prg_fail_memory(x->err);
        }
        for (size_t i = 0; i < members.count; i++) {
            put_argument(x, members.values[i]);
        }
        prg_free(x->chat->tokenizer->allocator, members.values);
    }
    prg_arena_free(&arena);
}

static void put_calls(xtml *x, const prg_json *calls) {
    size_t index = 0;
    open_tag(x, "tools");
    for (const prg_json *call = calls->first; call && x->status == PERIGEE_OK; call = call->next) {
        const prg_json *function = prg_chat_function(call), *name = prg_json_get(function, "name");
        const prg_json *arguments = prg_json_get(function, "arguments");
        open_start(x, "call");
        attribute(x, " tool", name->text, name->length);
        attribute_number(x, " index", ++index);
        open_end(x);
        bool none =
            !arguments || arguments->kind == PRG_JSON_NULL || (arguments->kind == PRG_JSON_STRING && blank(arguments));
        if (!none && x->status == PERIGEE_OK) {
            put_arguments(x, arguments);
        }
        close_tag(x, "call");
        x->chat->calls++;
    }
    close_tag(x, "tools");
}

static void put_assistant(xtml *x, const prg_json *message, bool thinking) {
    const prg_json *reasoning = NULL, *calls = NULL;
    x->status = prg_chat_reasoning(message, &reasoning, x->err);
    if (x->status == PERIGEE_OK) {
        x->status = prg_chat_calls(message, &calls, x->err);
    }
    open_start(x, "message");
    attribute_text(x, " role", "assistant");
    open_end(x);
    if (thinking) {
        open_tag(x, "think");
        if (reasoning && !blank(reasoning)) {
            text(x, reasoning->text, reasoning->length);
        }
        close_tag(x, "think");
    }
    open_tag(x, "response");
    content(x, message);
    close_tag(x, "response");
    if (calls) {
        put_calls(x, calls);
    }
    end_message(x);
}

static void put_plain(xtml *x, const prg_json *message, const prg_json *role) {
    const prg_json *name = NULL;
    x->status = prg_chat_string(message, "name", &name, x->err);
    open_start(x, "message");
    attribute(x, " role", role->text, role->length);
    if (name && name->length > 0) {
        attribute(x, " name", name->text, name->length);
    }
    open_end(x);
    content(x, message);
    end_message(x);
}

/* A tool message, and the call it answers: its place among the calls from 1, or 0, and the name that the call has. */
typedef struct tool_result {
    const prg_json *message;
    const prg_json *name;
    size_t place;
} tool_result;

static perigee_status match_result(xtml *x, const prg_json *message, const prg_json *calls, tool_result *out) {
    const prg_json *id, *own;
    *out = (tool_result){message, NULL, 0};
    perigee_status st = prg_chat_string(message, "tool_call_id", &id, x->err);
    if (st == PERIGEE_OK && !id) {
        st = prg_chat_string(message, "id", &id, x->err);
    }
    size_t place = 0;
    for (const prg_json *call = calls ? calls->first : NULL; id && call && st == PERIGEE_OK; call = call->next) {
        place++;
        const prg_json *call_id = prg_json_get(call, "id");
        if (call_id && call_id->kind == PRG_JSON_STRING && prg_json_is(id, call_id->text) && out->place == 0) {
            out->place = place;
            out->name = prg_json_get(prg_chat_function(call), "name");
        }
    }
    if (st == PERIGEE_OK && !out->name) {
        st = prg_chat_string(message, "tool", &own, x->err);
        if (st == PERIGEE_OK && !own) {
            st = prg_chat_string(message, "name", &own, x->err);
        }
        out->name = st == PERIGEE_OK ? own : NULL;
    }
    return st;
}

static void put_result(xtml *x, const tool_result *result, const prg_json *calls, size_t index) {
    const prg_json *name = result->name;
    if (!name && calls && index <= calls->count) {
        const prg_json *call = calls->first;
        for (size_t i = 1; i < index; i++) {
            call = call->next;
        }
        name = prg_json_get(prg_chat_function(call), "name");
    }
    if (!name) {
        x->status = prg_fail(x->err, PERIGEE_E_ARGUMENT, "messages: a tool message does not say of which tool");
        return;
    }
    open_start(x, "message");
    attribute_text(x, " role", "tool");
    attribute(x, " tool", name->text, name->length);
    attribute_number(x, " index", index);
    open_end(x);
    content(x, result->message);
    end_message(x);
}

/* A run of tool messages from `first` on, in the order of the calls if each answers one; gives the message behind. */
static const prg_json *put_results(xtml *x, const prg_json *first, const prg_json *calls, size_t *index) {
    size_t count = 0;
    bool ordered = true;
    const prg_json *m = first;
    for (; m && prg_json_is(prg_json_get(m, "role"), "tool"); m = m->next) {
        count++;
    }
    prg_allocator *allocator = x->chat->tokenizer->allocator;
    tool_result *results = prg_calloc(allocator, count, sizeof *results);
    if (!results) {
        x->status = prg_fail_memory(x->err);
        return NULL;
    }
    size_t n = 0;
    for (m = first; n < count && x->status == PERIGEE_OK; m = m->next) {
        x->status = match_result(x, m, calls, &results[n]);
        ordered = ordered && results[n].place > 0;
        n++;
    }
    for (size_t i = 1; ordered && i < n; i++) { /* insertion: stable, and most often in order already */
        tool_result r = results[i];
        size_t at = i;
        for (; at > 0 && results[at - 1].place > r.place; at--) {
            results[at] = results[at - 1];
        }
        results[at] = r;
    }
    for (size_t i = 0; i < n && x->status == PERIGEE_OK; i++) {
        put_result(x, &results[i], calls, ++*index);
    }
    prg_free(allocator, results);
    return m;
}

static void put_messages(xtml *x, const prg_json *messages, bool thinking) {
    const prg_json *calls = NULL; /* of the last assistant's message */
    size_t index = 0;
    for (const prg_json *m = messages->first; m && x->status == PERIGEE_OK;) {
        const prg_json *role = prg_json_get(m, "role"), *tools = prg_json_get(m, "tools");
        if (prg_json_is(role, "tool")) {
            m = put_results(x, m, calls, &index);
            continue;
        }
        if (prg_json_is(role, "assistant")) {
            index = 0;
            put_assistant(x, m, thinking);
            calls = prg_json_get(m, "tool_calls"); /* checked by now */
            calls = calls && calls->kind == PRG_JSON_ARRAY ? calls : NULL;
        } else if (prg_json_is(role, "system") && tools && tools->kind == PRG_JSON_ARRAY && tools->count > 0) {
            declare_tools(x, tools, true);
        } else if (prg_json_is(role, "system") || prg_json_is(role, "user")) {
            put_plain(x, m, role);
        } else {
            x->status = prg_fail(x->err, PERIGEE_E_UNSUPPORTED, "chat format kimi_k3 has no role \"%s\"", role->text);
        }
        m = m->next;
    }
}

perigee_status prg_chat_render_k3(perigee_chat *chat, const prg_chat_request *request, perigee_error **err) {
    xtml x = {chat, err, PERIGEE_OK};
    bool thinking = request->thinking != PERIGEE_THINKING_OFF;
    if (request->tools) {
        declare_tools(&x, request->tools, false);
    }
    if (thinking && request->effort && x.status == PERIGEE_OK) {
        put_effort(&x, request->effort);
    }
    put_messages(&x, request->messages, thinking);
    if (request->tool_choice && x.status == PERIGEE_OK) {
        put_tool_choice(&x, request->tool_choice);
    }
    if (request->response_format && x.status == PERIGEE_OK) {
        put_response_format(&x, request->response_format);
    }
    if (request->generation_prompt) {
        open_start(&x, "message");
        attribute_text(&x, " role", "assistant");
        open_end(&x);
        open_tag(&x, thinking ? "think" : "response");
        chat->thinking = thinking;
    }
    return x.status;
}
