/* Text side under arbitrary bytes. The first byte says what the rest is: a rank file, a tokenizer_config.json, text to
 * encode, messages to render (tools behind a NUL), or ids that a model gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

static void require(int holds) {
    if (!holds) {
        abort();
    }
}

static prg_allocator *allocator;
static char ranks[1 << 14];
static size_t ranks_length;
static perigee_tokenizer *tokenizers[3];

static perigee_tokenizer *make(const char *family, const char *config, size_t length) {
    perigee_tokenizer *t = NULL;
    perigee_status st =
        prg_tokenizer_make(allocator, family, 0, ranks, ranks_length, config, config ? length : 0, &t, NULL);
    require(st == PERIGEE_OK || (config && (st == PERIGEE_E_FORMAT || st == PERIGEE_E_MEMORY)));
    return t;
}

static void start(void) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char more[] = "YWE= 256\nYWFh 257\nYWFhYQ== 258\nICA= 259\nIGE= 260\nw6k= 261\n5Lg= 262\n4Lit 263\n";
    size_t at = 0;
    for (int b = 0; b < 256; b++) {
        at += (size_t)snprintf(ranks + at, sizeof ranks - at, "%c%c== %d\n", digits[b >> 2], digits[(b & 3) << 4], b);
    }
    at += (size_t)snprintf(ranks + at, sizeof ranks - at, "%s", more);
    ranks_length = at;
    require(prg_allocator_new(NULL, &allocator, NULL) == PERIGEE_OK);
    tokenizers[0] = make("kimi_k2", NULL, 0);
    tokenizers[1] = make("kimi_k25", NULL, 0);
    tokenizers[2] = make("kimi_k3", NULL, 0);
}

static void fuzz_encode(const char *text, size_t length, uint32_t flags) {
    int32_t *ids = malloc((3 * length + 1) * sizeof *ids);
    size_t count = 0, back;
    char *bytes = malloc(3 * length + 1);
    require(ids && bytes);
    perigee_status st = perigee_encode_text(tokenizers[0], text, length, flags, ids, 3 * length + 1, &count, NULL);
    require(st == PERIGEE_OK || (st == PERIGEE_E_TEXT && !flags));
    if (st == PERIGEE_OK) {
        require(perigee_decode(tokenizers[0], ids, count, 0, bytes, 3 * length + 1, &back, NULL) == PERIGEE_OK);
        require(flags || (back == length && memcmp(bytes, text, length) == 0));
        for (size_t i = 0; i < count; i++) {
            require(!prg_tokenizer_is_special(tokenizers[0], ids[i]));
        }
        require(perigee_encode_markup(tokenizers[2], text, length, flags, ids, 3 * length + 1, &count, NULL) ==
                PERIGEE_OK);
        require(perigee_decode(tokenizers[2], ids, count, 0, bytes, 3 * length + 1, &back, NULL) == PERIGEE_OK);
        require(flags || (back == length && memcmp(bytes, text, length) == 0));
    }
    free(ids);
    free(bytes);
}

static void fuzz_chat(const char *text, size_t length, unsigned choice) {
    const char *tools = memchr(text, 0, length);
    size_t messages = tools ? (size_t)(tools - text) : length;
    static const char *const efforts[] = {NULL, "low", "odd", "max"};
    perigee_chat_options o = {.struct_size = sizeof o,
                              .thinking = (perigee_thinking)(choice % 3),
                              .omit_generation_prompt = choice / 3 % 2,
                              .effort = efforts[choice / 8 % 4],
                              .effort_length = SIZE_MAX};
    for (size_t i = 0; i < 3; i++) {
        perigee_chat *chat = NULL;
        perigee_error *error = NULL;
        perigee_status st = perigee_chat_render(tokenizers[i], text, messages, tools ? tools + 1 : NULL,
                                                tools ? length - messages - 1 : 0, &o, &chat, &error);
        require((st == PERIGEE_OK) == (chat != NULL) && (st == PERIGEE_OK) == (error == NULL));
        perigee_error_free(error);
        perigee_chat_free(chat);
    }
}

static void fuzz_parser(const uint8_t *data, size_t length) {
    for (size_t i = 0; i < 3; i++) {
        perigee_parser *parser = NULL;
        size_t count = 0, ends = 0;
        require(perigee_parser_new(tokenizers[i], NULL, &parser, NULL) == PERIGEE_OK);
        for (size_t at = 0; at <= length; at++) {
            int32_t base = tokenizers[i]->ranks.count;
            /* the first control tokens, else the byte */
            int32_t id = at == length || data[at] >= 32 ? (at < length ? data[at] : 0) : base + data[at];
            require((at < length ? perigee_parser_push(parser, id, &count, NULL)
                                 : perigee_parser_finish(parser, &count, NULL)) == PERIGEE_OK);
            for (size_t n = 0; n < count; n++) {
                perigee_delta d = {.struct_size = sizeof d};
                require(perigee_parser_get_delta(parser, n, &d, NULL) == PERIGEE_OK);
                require(prg_utf8_check((const unsigned char *)d.text, d.length) == d.length);
                ends += d.kind == PERIGEE_DELTA_END;
            }
        }
        require(ends == 1);
        const char *json;
        prg_arena arena;
        prg_arena_init(&arena, allocator);
        const prg_json *root = NULL;
        require(perigee_parser_message(parser, &json, &count, NULL) == PERIGEE_OK);
        require(prg_json_parse(&arena, json, count, 8, NULL, &root, NULL) == PERIGEE_OK);
        prg_arena_free(&arena);
        perigee_parser_free(parser);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!allocator) {
        start();
    }
    if (size < 1) {
        return 0;
    }
    const char *rest = (const char *)data + 1;
    size_t length = size - 1;
    prg_ranks parsed;
    switch (data[0] & 7) {
    case 0:
        if (prg_ranks_parse(allocator, rest, length, NULL, &parsed, NULL) == PERIGEE_OK) {
            prg_ranks_free(&parsed);
        }
        break;
    case 1:
        prg_tokenizer_drop(make("kimi_k25", rest, length));
        break;
    case 2:
        fuzz_chat(rest, length, data[0] >> 3);
        break;
    case 3:
        fuzz_parser(data + 1, length);
        break;
    default:
        fuzz_encode(rest, length, data[0] >> 7);
    }
    return 0;
}
