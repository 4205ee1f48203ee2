#include "text/parser.h"

#include "base/checked_math.h"
#include "base/error.h"

perigee_status prg_parser_new(const perigee_tokenizer *tokenizer, const perigee_chat *chat, perigee_parser **out,
                              perigee_error **err) {
    perigee_parser *p = prg_calloc(tokenizer->allocator, 1, sizeof *p);
    if (!p) {
        return prg_fail_memory(err);
    }
    p->tokenizer = prg_tokenizer_hold(tokenizer);
    p->format = chat ? chat->format : tokenizer->format;
    p->calls_before = chat ? chat->calls : 0;
    bool thinking = chat ? chat->thinking : p->format->thinking == PRG_THINKING_SWITCH;
    p->place = thinking ? PRG_IN_THINKING : PRG_IN_CONTENT;
    prg_buffer *buffers[] = {&p->pending, &p->chunk, &p->thinking, &p->content, &p->deltas, &p->delta_text, &p->json};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        prg_buffer_init(buffers[i], tokenizer->allocator);
    }
    if (p->format->xtml) {
        prg_parser_controls_k3(p);
    } else {
        prg_parser_controls_k2(p);
    }
    *out = p;
    return PERIGEE_OK;
}

void prg_parser_free(perigee_parser *parser) {
    if (!parser) {
        return;
    }
    perigee_parser *p = parser;
    prg_allocator *allocator = p->tokenizer->allocator;
    prg_buffer *buffers[] = {&p->pending, &p->chunk, &p->thinking, &p->content, &p->deltas, &p->delta_text, &p->json};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        prg_buffer_free(buffers[i]);
    }
    for (size_t i = 0; i < p->call_count; i++) {
        prg_free(allocator, p->calls[i].name);
        prg_free(allocator, p->calls[i].id);
        prg_buffer_free(&p->calls[i].arguments);
    }
    prg_free(allocator, p->calls);
    perigee_tokenizer *tokenizer = p->tokenizer;
    prg_free(allocator, p);
    prg_tokenizer_drop(tokenizer);
}

/* A delta; more of what the last one said goes into it. Texts in delta_text have a NUL behind. */
static void add_delta(perigee_parser *p, perigee_delta_kind kind, size_t call, const void *text, size_t length) {
    prg_parser_delta *last = NULL;
    if (p->deltas.length > 0) {
        last = (prg_parser_delta *)(void *)(p->deltas.data + p->deltas.length - sizeof *last);
    }
    if (last && last->kind == kind && last->call == call && kind <= PERIGEE_DELTA_ARGUMENTS && !p->delta_text.failed) {
        p->delta_text.length--;
        last->length += length;
    } else {
        prg_parser_delta delta = {kind, call, p->delta_text.length, length};
        prg_buffer_put(&p->deltas, &delta, sizeof delta);
    }
    prg_buffer_put(&p->delta_text, text, length);
    prg_buffer_putc(&p->delta_text, 0);
}

void prg_parser_say(perigee_parser *parser, perigee_delta_kind kind, const void *text, size_t length) {
    if (length > 0) {
        prg_buffer_put(kind == PERIGEE_DELTA_THINKING ? &parser->thinking : &parser->content, text, length);
        add_delta(parser, kind, 0, text, length);
    }
}

void prg_parser_stray(perigee_parser *parser, const void *text, size_t length) {
    const char *bytes = text;
    for (size_t i = 0; i < length; i++) {
        if (!strchr(" \t\r\n", bytes[i]) || bytes[i] == 0) {
            prg_parser_say(parser, PERIGEE_DELTA_CONTENT, text, length);
            return;
        }
    }
}

prg_parsed_call *prg_parser_open_call(perigee_parser *parser) {
    prg_parsed_call *last = parser->call_count > 0 ? &parser->calls[parser->call_count - 1] : NULL;
    return last && last->open ? last : NULL;
}

static char *make_id(perigee_parser *p) {
    prg_buffer made;
    prg_buffer_init(&made, p->tokenizer->allocator);
    prg_buffer_puts(&made, "call_");
    prg_buffer_put_int(&made, (int64_t)(p->calls_before + p->call_count));
    char *id = made.failed ? NULL : prg_strndup(p->tokenizer->allocator, (const char *)made.data, made.length);
    prg_buffer_free(&made);
    return id;
}

void prg_parser_begin_call(perigee_parser *parser, const char *name, size_t name_length, const char *id,
                           size_t id_length) {
    prg_allocator *allocator = parser->tokenizer->allocator;
    prg_parser_end_call(parser);
    if (parser->call_count == parser->call_capacity) {
        size_t capacity = prg_max(4, parser->call_capacity * 2), bytes;
        prg_parsed_call *calls =
            prg_mul(capacity, sizeof *calls, &bytes) ? prg_realloc(allocator, parser->calls, bytes) : NULL;
        if (!calls) {
            parser->failed = true;
            return;
        }
        parser->calls = calls;
        parser->call_capacity = capacity;
    }
    prg_parsed_call call = {.name = prg_strndup(allocator, name, name_length),
                            .id = id_length > 0 ? prg_strndup(allocator, id, id_length) : make_id(parser),
                            .open = true};
    prg_buffer_init(&call.arguments, allocator);
    parser->failed = parser->failed || !call.name || !call.id;
    parser->calls[parser->call_count++] = call;
    add_delta(parser, PERIGEE_DELTA_CALL, parser->call_count - 1, "", 0);
}

void prg_parser_put_arguments(perigee_parser *parser, const void *text, size_t length) {
    prg_parsed_call *call = prg_parser_open_call(parser);
    if (call && length > 0) {
        prg_buffer_put(&call->arguments, text, length);
        add_delta(parser, PERIGEE_DELTA_ARGUMENTS, parser->call_count - 1, text, length);
    }
}

void prg_parser_end_call(perigee_parser *parser) {
    prg_parsed_call *call = prg_parser_open_call(parser);
    if (call) {
        if (call->arguments.length == 0) {
            prg_parser_put_arguments(parser, "{}", 2); /* no arguments are an object too */
        }
        call->open = false;
        add_delta(parser, PERIGEE_DELTA_CALL_END, parser->call_count - 1, "", 0);
    }
}

void prg_parser_end(perigee_parser *parser) {
    if (!parser->finished) {
        parser->finished = true;
        add_delta(parser, PERIGEE_DELTA_END, 0, "", 0);
    }
}

/* Give the characters that have come to where they belong. */
static void deliver(perigee_parser *p) {
    const void *text = p->chunk.data;
    size_t length = p->chunk.length;
    p->seen = p->seen || length > 0;
    switch (p->place) {
    case PRG_IN_NOTHING:
        prg_parser_stray(p, text, length);
        break;
    case PRG_IN_THINKING:
        prg_parser_say(p, PERIGEE_DELTA_THINKING, text, length);
        break;
    case PRG_IN_CONTENT:
        prg_parser_say(p, PERIGEE_DELTA_CONTENT, text, length);
        break;
    case PRG_IN_HEADER:
        prg_buffer_put(&p->pending, text, length);
        break;
    case PRG_IN_ARGUMENT:
        if (p->format->xtml) {
            prg_parser_text_k3(p, text, length);
        } else {
            prg_parser_put_arguments(p, text, length);
        }
        break;
    case PRG_IN_SKIPPED:
        break;
    }
    p->chunk.failed = p->chunk.failed || p->pending.failed;
    p->chunk.length = 0;
}

static void flush_text(perigee_parser *p) {
    prg_utf8_stream_end(&p->stream, &p->chunk);
    deliver(p);
}

static bool is_end(const perigee_parser *p, int32_t id) {
    for (size_t i = 0; i < p->tokenizer->end_count; i++) {
        if (p->tokenizer->end_ids[i] == id) {
            return true;
        }
    }
    return false;
}

static void close_all(perigee_parser *p) {
    flush_text(p);
    if (p->format->xtml) {
        prg_parser_close_k3(p);
    } else {
        prg_parser_close_k2(p);
    }
    prg_parser_end_call(p);
    prg_parser_end(p);
}

static perigee_status conclude(perigee_parser *p, size_t *count, perigee_error **err) {
    p->failed = p->failed || p->chunk.failed || p->pending.failed || p->thinking.failed || p->content.failed ||
                p->deltas.failed || p->delta_text.failed;
    for (size_t i = 0; i < p->call_count; i++) {
        p->failed = p->failed || p->calls[i].arguments.failed;
    }
    if (p->failed) {
        p->deltas.length = 0;
        return prg_fail_memory(err);
    }
    if (count) {
        *count = prg_parser_delta_count(p);
    }
    return PERIGEE_OK;
}

perigee_status prg_parser_push(perigee_parser *parser, int32_t id, size_t *count, perigee_error **err) {
    perigee_parser *p = parser;
    p->deltas.length = 0;
    p->delta_text.length = 0;
    if (p->failed) {
        return prg_fail_memory(err);
    }
    if (p->finished) {
        return conclude(p, count, err);
    }
    if (!prg_tokenizer_is_special(p->tokenizer, id)) {
        size_t length;
        const unsigned char *bytes = prg_tokenizer_bytes(p->tokenizer, id, &length);
        prg_utf8_stream_feed(&p->stream, bytes, length, &p->chunk);
        deliver(p);
        return conclude(p, count, err);
    }
    if (is_end(p, id)) {
        p->ended = true;
        close_all(p);
        return conclude(p, count, err);
    }
    flush_text(p);
    if (p->format->xtml) {
        prg_parser_control_k3(p, id);
    } else {
        prg_parser_control_k2(p, id);
    }
    p->seen = true;
    return conclude(p, count, err);
}

perigee_status prg_parser_finish(perigee_parser *parser, size_t *count, perigee_error **err) {
    parser->deltas.length = 0;
    parser->delta_text.length = 0;
    if (!parser->failed && !parser->finished) {
        close_all(parser);
    }
    return conclude(parser, count, err);
}

size_t prg_parser_delta_count(const perigee_parser *parser) {
    return parser->deltas.length / sizeof(prg_parser_delta);
}

void prg_parser_get_delta(const perigee_parser *parser, size_t index, perigee_delta *out) {
    const prg_parser_delta *d = (const prg_parser_delta *)(const void *)parser->deltas.data + index;
    bool call = d->kind == PERIGEE_DELTA_CALL;
    *out = (perigee_delta){out->struct_size,
                           d->kind,
                           d->call,
                           (const char *)parser->delta_text.data + d->start,
                           d->length,
                           call ? parser->calls[d->call].name : "",
                           call ? parser->calls[d->call].id : ""};
}

static void put_member(prg_buffer *out, const char *name, const prg_buffer *text) {
    prg_buffer_puts(out, name);
    prg_json_write_string(out, (const char *)text->data, text->length);
}

perigee_status prg_parser_message(perigee_parser *parser, const char **json, size_t *length, perigee_error **err) {
    prg_buffer *out = &parser->json;
    if (parser->failed) {
        return prg_fail_memory(err);
    }
    prg_buffer_free(out);
    prg_buffer_puts(out, "{\"role\": \"assistant\"");
    if (parser->content.length > 0 || parser->call_count == 0) {
        put_member(out, ", \"content\": ", &parser->content);
    } else {
        prg_buffer_puts(out, ", \"content\": null");
    }
    if (parser->thinking.length > 0) {
        put_member(out, ", \"reasoning_content\": ", &parser->thinking);
    }
    for (size_t i = 0; i < parser->call_count; i++) {
        const prg_parsed_call *call = &parser->calls[i];
        prg_buffer_puts(out, i == 0 ? ", \"tool_calls\": [{\"id\": " : ", {\"id\": ");
        prg_json_write_string(out, call->id, strlen(call->id));
        prg_buffer_puts(out, ", \"type\": \"function\", \"function\": {\"name\": ");
        prg_json_write_string(out, call->name, strlen(call->name));
        put_member(out, ", \"arguments\": ", &call->arguments);
        prg_buffer_puts(out, "}}");
    }
    prg_buffer_puts(out, parser->call_count > 0 ? "]}" : "}");
    const char *text = prg_buffer_text(out);
    if (!text) {
        return prg_fail_memory(err);
    }
    *json = text;
    *length = out->length;
    return PERIGEE_OK;
}
