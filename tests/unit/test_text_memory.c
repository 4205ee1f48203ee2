/* The text side when memory is short: each allocation in turn fails, and the call fails with it, leaving nothing. */
#include <stdio.h>
#include <string.h>

#include "support/suite.h"
#include "support/text_fixtures.h"

static size_t countdown = SIZE_MAX; /* allocations that still succeed */

static void *allocate(size_t size, size_t alignment, void *user) {
    (void)user;
    if (countdown == 0) {
        return NULL;
    }
    countdown -= countdown != SIZE_MAX;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void deallocate(void *pointer, size_t size, void *user) {
    (void)size;
    (void)user;
    free(pointer);
}

static prg_allocator *allocator;
static prg_allocator *plain;
static prg_arena arena;
static perigee_tokenizer *tokenizer;
static char *ranks;
static size_t ranks_length;

static perigee_status make(perigee_tokenizer **out, perigee_error **err) {
    static const char config[] = "{\"added_tokens_decoder\": {\"3010\": {\"content\": \"<a>\"}}}";
    return prg_tokenizer_make(allocator, "kimi_k3", 0, ranks, ranks_length, out == &tokenizer ? NULL : config,
                              out == &tokenizer ? 0 : sizeof config - 1, out, err);
}

static void setup(void) {
    perigee_allocator host = {sizeof host, allocate, deallocate, NULL, NULL};
    ck_assert_int_eq(prg_allocator_new(&host, &allocator, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_allocator_new(NULL, &plain, NULL), PERIGEE_OK);
    prg_arena_init(&arena, plain);
    ck_assert_int_eq(
        prg_file_load(&arena, PRG_FIXTURES "/text/tiktoken.model", NULL, 1 << 24, &ranks, &ranks_length, NULL),
        PERIGEE_OK);
    ck_assert_int_eq(make(&tokenizer, NULL), PERIGEE_OK);
}

static void teardown(void) {
    prg_tokenizer_drop(tokenizer);
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
    prg_arena_free(&arena);
    prg_allocator_drop(plain);
}

/* Run `work` with 0, 1, 2 … allocations until it succeeds; gives how many it takes. */
static size_t starve(perigee_status (*work)(perigee_error **)) {
    size_t before = allocator->bytes;
    for (size_t n = 0;; n++) {
        perigee_error *e = NULL;
        countdown = n;
        perigee_status st = work(&e);
        countdown = SIZE_MAX;
        ck_assert_uint_eq(allocator->bytes, before);
        if (st == PERIGEE_OK) {
            return n;
        }
        ck_assert_msg(st == PERIGEE_E_MEMORY, "with %zu: %s", n, perigee_error_message(e));
        ck_assert_int_eq(perigee_error_status(e), PERIGEE_E_MEMORY);
        perigee_error_free(e);
    }
}

static perigee_status open_one(perigee_error **e) {
    perigee_tokenizer *t = NULL;
    perigee_status st = make(&t, e);
    prg_tokenizer_drop(t);
    return st;
}

static perigee_status encode_long(perigee_error **e) {
    static char text[3000];
    int32_t ids[4000];
    size_t count;
    memset(text, 'q', sizeof text);
    text[2999] = (char)0xFF; /* replaced: another buffer */
    return perigee_encode_text(tokenizer, text, sizeof text, PERIGEE_ENCODE_REPLACE, ids, 4000, &count, e);
}

static perigee_status decode_some(perigee_error **e) {
    perigee_decoder *d = NULL;
    const char *text;
    size_t n;
    perigee_status st = perigee_decoder_new(tokenizer, 0, &d, e);
    /* a push that fails takes nothing: it is repeated until there is memory */
    for (int i = 0; st == PERIGEE_OK && i < 3; i++) {
        static const unsigned char bytes[] = {0xE4, 0xBD, 0xA0};
        st = perigee_decoder_push(d, tokenizer->ranks.one_byte[bytes[i]], &text, &n, e);
        if (st == PERIGEE_E_MEMORY) {
            size_t left = countdown;
            countdown = SIZE_MAX;
            ck_assert_int_eq(perigee_decoder_push(d, tokenizer->ranks.one_byte[bytes[i]], &text, &n, NULL), PERIGEE_OK);
            ck_assert_uint_eq(n, i == 2 ? 3 : 0);
            countdown = left;
        }
    }
    perigee_decoder_free(d);
    return st;
}

static perigee_status chat_and_parse(perigee_error **e) {
    static const char messages[] =
        "[{\"role\": \"user\", \"name\": \"a&b\", \"content\": \"x\"}, {\"role\": \"assistant\", \"reasoning\": "
        "\"r\", \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": [1.5], "
        "\\\"s\\\": \\\"t\\\"}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"y\"}]";
    static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]";
    perigee_chat *chat = NULL;
    perigee_parser *parser = NULL;
    perigee_chat_options o = {.struct_size = sizeof o, .effort = "low", .effort_length = 3};
    perigee_status st =
        perigee_chat_render(tokenizer, messages, sizeof messages - 1, tools, sizeof tools - 1, &o, &chat, e);
    if (st == PERIGEE_OK) {
        st = perigee_parser_new(tokenizer, chat, &parser, e);
    }
    size_t count;
    const int32_t *ids = perigee_chat_ids(chat, &count);
    for (size_t i = 0; st == PERIGEE_OK && i < count; i++) {
        if (ids[i] != tokenizer->end_ids[0]) {
            st = perigee_parser_push(parser, ids[i], NULL, e);
        }
    }
    const char *json;
    if (st == PERIGEE_OK) {
        st = perigee_parser_finish(parser, NULL, e);
    }
    if (st == PERIGEE_OK) {
        st = perigee_parser_message(parser, &json, &count, e);
    }
    perigee_parser_free(parser);
    perigee_chat_free(chat);
    return st;
}

START_TEST(test_open) {
    ck_assert_uint_gt(starve(open_one), 5);
}
END_TEST

START_TEST(test_encode) {
    ck_assert_uint_gt(starve(encode_long), 1);
}
END_TEST

START_TEST(test_decode) {
    ck_assert_uint_gt(starve(decode_some), 1);
}
END_TEST

START_TEST(test_chat) {
    ck_assert_uint_gt(starve(chat_and_parse), 20);
}
END_TEST

PRG_SUITE("text_memory", setup, teardown, test_open, test_encode, test_decode, test_chat)
