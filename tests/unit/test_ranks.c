/* Rank files that are well-formed and that are not; opening of checkpoint folders. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/text_fixtures.h"

static prg_allocator *allocator;
static char text[1 << 16];
static char folder[64];

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    snprintf(folder, sizeof folder, "perigee_ranks_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
    static const char *const names[] = {"config.json", "tiktoken.model", "tokenizer_config.json"};
    char path[256];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* The 256 bytes in falling order, then `more`, each line ending in `end`. */
static size_t write_ranks(const char *end, const char *more) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t at = 0;
    for (int i = 0; i < 256; i++) {
        int b = 255 - i;
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%c%c== %d%s", digits[b >> 2], digits[(b & 3) << 4], i, end);
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "%s", more);
    return at;
}

static void check_bad(size_t length, int64_t offset, const char *what) {
    prg_ranks ranks;
    perigee_error *e = NULL;
    ck_assert_msg(prg_ranks_parse(allocator, text, length, "f", &ranks, &e) == PERIGEE_E_FORMAT, "%s", what);
    ck_assert_msg(strstr(perigee_error_message(e), what), "%s", perigee_error_message(e));
    ck_assert_str_eq(perigee_error_file(e), "f");
    if (offset >= 0) {
        ck_assert_int_eq(perigee_error_offset(e), offset);
    }
    perigee_error_free(e);
}

START_TEST(test_good) {
    static const char *const forms[][2] = {{"\n", "YWI= 256\nYWJj 257\n"}, {"\r\n", "YWI= 256\r\nYWJj 257"}};
    for (size_t i = 0; i < 2; i++) {
        prg_ranks ranks;
        perigee_error *e = NULL;
        ck_assert_msg(prg_ranks_parse(allocator, text, write_ranks(forms[i][0], forms[i][1]), "f", &ranks, &e) ==
                          PERIGEE_OK,
                      "%s", perigee_error_message(e));
        ck_assert_int_eq(ranks.count, 258);
        ck_assert_int_eq(ranks.one_byte['a'], 255 - 'a');
        ck_assert_int_eq(prg_ranks_find(&ranks, (const unsigned char *)"abc", 3), 257);
        ck_assert_int_eq(prg_ranks_find(&ranks, (const unsigned char *)"abcd", 4), PRG_NO_RANK);
        ck_assert_int_eq(prg_ranks_find(&ranks, (const unsigned char *)"b", 1), 255 - 'b');
        prg_ranks_free(&ranks);
    }
}
END_TEST

START_TEST(test_bad) {
    check_bad(0, 0, "fewer tokens than bytes");
    size_t bytes = write_ranks("\n", "");
    check_bad(bytes - 9, 0, "fewer tokens than bytes");
    size_t at = bytes;
#define MORE(more, offset, what) check_bad(write_ranks("\n", more), (offset) < 0 ? -1 : (int64_t)at + (offset), what)
    MORE("YWI= 257\n", 0, "not dense");
    MORE("YWI= 255\n", 0, "rank stands twice");
    MORE("YQ== 256\n", 0, "token stands twice");
    MORE("YWI= 256\nYWI= 257\n", 9, "token stands twice");
    MORE("YWI 256\n", 0, "not base64");
    MORE("YW!= 256\n", 0, "not base64");
    MORE("YWJ= 256\n", 0, "not base64"); /* bits left over: two spellings of one token */
    MORE("YWI=\n", 4, "no space");
    MORE("YWI=", 4, "no space");
    MORE(" 256\n", 0, "not base64");
    MORE("YWI= x\n", 5, "no decimal rank");
    MORE("YWI= 256x\n", 8, "no decimal rank");
    MORE("YWI= -1\n", 5, "no decimal rank");
    MORE("YWI= 99999999999999999999\n", 5, "rank too large");
    size_t length = write_ranks("\n", "YWI= 256\n");
    memcpy(text, "YWJj", 4); /* byte 255 is no token any more */
    check_bad(length, 0, "single byte");
}
END_TEST

static void write_file(const char *name, const char *data) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, strlen(data), f), strlen(data));
    fclose(f);
}

static perigee_status open_alone(perigee_tokenizer **out, perigee_error **e) {
    return prg_tokenizer_open_alone(allocator, folder, out, e);
}

START_TEST(test_folder) {
    perigee_tokenizer *t = NULL;
    perigee_error *e = NULL;
    ck_assert_int_eq(open_alone(&t, &e), PERIGEE_E_NOT_FOUND);
    perigee_error_free(e);
    write_file("config.json", "{\"model_type\": \"kimi_k25\", \"text_config\": {\"vocab_size\": 300}}");
    ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_E_NOT_FOUND);
    ck_assert_int_eq(prg_tokenizer_open(allocator, folder, "kimi_k25", 300, &t, NULL), PERIGEE_OK);
    ck_assert_ptr_null(t); /* a checkpoint need not have one */
    write_ranks("\n", "YWI= 256\n");
    write_file("tiktoken.model", text);
    ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_OK);
    /* special tokens stop where the vocabulary does */
    ck_assert_int_eq(prg_tokenizer_vocabulary(t), 300);
    ck_assert_str_eq(t->family, "kimi_k25");
    ck_assert_str_eq(t->format->name, "kimi_k25");
    ck_assert_int_eq(prg_tokenizer_special(t, "<think>"), 257 + 22);
    ck_assert_int_eq(prg_tokenizer_special(t, "<|reserved_token_265|>"), 265);
    ck_assert_int_eq(prg_tokenizer_special(t, "[PAD]"), -1);
    ck_assert_uint_eq(t->end_count, 3);
    ck_assert_int_eq(t->end_ids[0], 259);
    prg_tokenizer_drop(t);
    /* names of the checkpoint go before those of the family */
    static const char named[] =
        "{\"added_tokens_decoder\": {\"257\": {\"content\": \"<a>\"}, \"260\": {\"content\": "
        "\"<b>\", \"special\": true}, \"261\": {\"content\": \"<a>b\"}, \"300\": {\"content\": \"<past>\"}}}";
    write_file("tokenizer_config.json", named);
    ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_OK);
    int32_t ids[4];
    size_t count;
    ck_assert_int_eq(perigee_encode_markup(t, "<a>b<a>", 7, 0, ids, 4, &count, NULL), PERIGEE_OK);
    ck_assert(count == 2 && ids[0] == 261 && ids[1] == 257); /* of two names that fit, the longer */
    ck_assert_int_eq(prg_tokenizer_special(t, "<a>"), 257);
    ck_assert_int_eq(prg_tokenizer_special(t, "<b>"), 260);
    ck_assert_int_eq(prg_tokenizer_special(t, "<think>"), -1);
    ck_assert_int_eq(prg_tokenizer_special(t, "<past>"), -1);
    ck_assert_int_eq(prg_tokenizer_special(t, "<|reserved_token_258|>"), 258);
    prg_tokenizer_drop(t);
    static const char *const bad[] = {"{",
                                      "{\"added_tokens_decoder\": []}",
                                      "{\"added_tokens_decoder\": {\"x\": {\"content\": \"a\"}}}",
                                      "{\"added_tokens_decoder\": {\"258\": {}}}",
                                      "{\"added_tokens_decoder\": {\"258\": {\"content\": \"\"}}}",
                                      "{\"added_tokens_decoder\": {\"256\": {\"content\": \"a\"}}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("tokenizer_config.json", bad[i]);
        ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_E_FORMAT);
    }
    write_file("tokenizer_config.json", "{}");
    write_file("config.json", "{\"model_type\": \"deepseek_v3\", \"vocab_size\": 256}");
    ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_E_MISMATCH);
    write_file("config.json", "{\"model_type\": \"other\"}");
    ck_assert_int_eq(open_alone(&t, NULL), PERIGEE_E_UNSUPPORTED);
}
END_TEST

/* Handles hold what they need, so that they may be freed in any order. */
START_TEST(test_public_open) {
    perigee_context *context = NULL;
    perigee_tokenizer *t = NULL;
    perigee_decoder *d = NULL;
    perigee_parser *p = NULL;
    perigee_chat *chat = NULL;
    perigee_error *e = NULL;
    ck_assert_int_eq(perigee_context_new(NULL, NULL, NULL, NULL, &context, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_tokenizer_open(context, "no/such/folder", SIZE_MAX, &t, &e), PERIGEE_E_NOT_FOUND);
    perigee_error_free(e);
    ck_assert_int_eq(perigee_tokenizer_open(context, "a\0b", 3, &t, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_tokenizer_open(NULL, folder, SIZE_MAX, &t, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_ptr_null(t);
    write_file("config.json", "{\"model_type\": \"kimi_k3\"}");
    write_ranks("\n", "YWI= 256\n");
    write_file("tiktoken.model", text);
    char path[128];
    snprintf(path, sizeof path, "%s and more", folder);
    ck_assert_int_eq(perigee_tokenizer_open(context, path, strlen(folder), &t, &e), PERIGEE_OK);
    ck_assert_ptr_null(e);
    perigee_context_free(context);
    ck_assert_int_eq(perigee_decoder_new(t, 0, &d, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_chat_render(t, "[]", 2, NULL, 0, NULL, &chat, NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_parser_new(t, chat, &p, NULL), PERIGEE_OK);
    perigee_tokenizer_free(t);
    const char *out;
    size_t n;
    ck_assert_int_eq(perigee_decoder_push(d, 256, &out, &n, NULL), PERIGEE_OK);
    ck_assert_str_eq(out, "ab");
    perigee_decoder_free(d);
    const int32_t *ids = perigee_chat_ids(chat, &n);
    ck_assert_uint_gt(n, 3);
    ck_assert_int_eq(ids[0], 257 + 3);
    perigee_chat_free(chat);
    ck_assert_int_eq(perigee_parser_push(p, 256, &n, NULL), PERIGEE_OK);
    ck_assert_uint_eq(n, 1);
    perigee_parser_free(p);
    perigee_tokenizer_free(NULL);
    perigee_decoder_free(NULL);
    perigee_chat_free(NULL);
    perigee_parser_free(NULL);
}
END_TEST

PRG_SUITE("ranks", setup, teardown, test_good, test_bad, test_folder, test_public_open)
