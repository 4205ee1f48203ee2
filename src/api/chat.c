/* Exported calls on chats and parsers. */
#include <string.h>

#include "base/error.h"
#include "text/chat.h"
#include "text/parser.h"

static size_t length_of(const char *text, size_t length) {
    return length == SIZE_MAX ? (text ? strlen(text) : 0) : length;
}

perigee_status perigee_chat_render(const perigee_tokenizer *tokenizer, const char *messages, size_t messages_length,
                                   const char *tools, size_t tools_length, const perigee_chat_options *options,
                                   perigee_chat **out, perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !messages || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, messages or out is NULL");
    }
    if (options && options->struct_size < sizeof *options) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "options: struct_size is too small");
    }
    return prg_chat_render(tokenizer, messages, length_of(messages, messages_length), tools,
                           length_of(tools, tools_length), options, out, err);
}

const int32_t *perigee_chat_ids(const perigee_chat *chat, size_t *count) {
    if (count) {
        *count = chat ? chat->ids.length / sizeof(int32_t) : 0;
    }
    return chat ? (const int32_t *)(const void *)chat->ids.data : NULL;
}

const char *perigee_chat_text(const perigee_chat *chat, size_t *length) {
    if (length) {
        *length = chat ? chat->text.length : 0;
    }
    return chat ? (const char *)chat->text.data : NULL;
}

size_t perigee_chat_segment_count(const perigee_chat *chat) {
    return chat ? chat->spans.length / sizeof(prg_chat_span) : 0;
}

perigee_status perigee_chat_get_segment(const perigee_chat *chat, size_t index, perigee_chat_segment *out,
                                        perigee_error **err) {
    prg_clear(err);
    if (!chat || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "chat or out is NULL, or struct_size is too small");
    }
    if (index >= perigee_chat_segment_count(chat)) {
        return prg_fail(err, PERIGEE_E_RANGE, "segment %zu of %zu", index, perigee_chat_segment_count(chat));
    }
    const prg_chat_span *span = (const prg_chat_span *)(const void *)chat->spans.data + index;
    *out = (perigee_chat_segment){out->struct_size, (const char *)chat->text.data + span->start,
                                  span->length,     span->control >= 0,
                                  span->first,      span->count};
    return PERIGEE_OK;
}

void perigee_chat_free(perigee_chat *chat) {
    prg_chat_free(chat);
}

perigee_status perigee_parser_new(const perigee_tokenizer *tokenizer, const perigee_chat *chat, perigee_parser **out,
                                  perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer or out is NULL");
    }
    if (chat && chat->tokenizer != tokenizer) {
        return prg_fail(err, PERIGEE_E_MISMATCH, "the chat was rendered for another tokenizer");
    }
    return prg_parser_new(tokenizer, chat, out, err);
}

perigee_status perigee_parser_push(perigee_parser *parser, int32_t id, size_t *count, perigee_error **err) {
    prg_clear(err);
    if (!parser) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "parser is NULL");
    }
    if (id < 0 || id >= prg_tokenizer_vocabulary(parser->tokenizer)) {
        return prg_fail(err, PERIGEE_E_TOKEN, "token %ld is outside the vocabulary of %ld", (long)id,
                        (long)prg_tokenizer_vocabulary(parser->tokenizer));
    }
    return prg_parser_push(parser, id, count, err);
}

perigee_status perigee_parser_finish(perigee_parser *parser, size_t *count, perigee_error **err) {
    prg_clear(err);
    if (!parser) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "parser is NULL");
    }
    return prg_parser_finish(parser, count, err);
}

perigee_status perigee_parser_get_delta(const perigee_parser *parser, size_t index, perigee_delta *out,
                                        perigee_error **err) {
    prg_clear(err);
    if (!parser || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "parser or out is NULL, or struct_size is too small");
    }
    if (index >= prg_parser_delta_count(parser)) {
        return prg_fail(err, PERIGEE_E_RANGE, "delta %zu of %zu", index, prg_parser_delta_count(parser));
    }
    prg_parser_get_delta(parser, index, out);
    return PERIGEE_OK;
}

int32_t perigee_parser_ended(const perigee_parser *parser) {
    return parser ? parser->ended : 0;
}

perigee_status perigee_parser_message(perigee_parser *parser, const char **json, size_t *length, perigee_error **err) {
    prg_clear(err);
    if (!parser || !json || !length) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "parser, json or length is NULL");
    }
    return prg_parser_message(parser, json, length, err);
}

void perigee_parser_free(perigee_parser *parser) {
    prg_parser_free(parser);
}
