/* Decoding id by id: whole characters only, and in all the text that decoding at once gives. */
#include <string.h>

#include "support/suite.h"
#include "support/text_fixtures.h"
#include "text/decoder.h"

static fixture f;

static void setup(void) {
    f = open_fixture("kimi_k3", 0, NULL);
}

static void teardown(void) {
    close_fixture(&f);
}

/* Feed bytes as ids of single bytes; the text that comes, with | behind each push that gave some. */
static const char *feed(const char *bytes, size_t length) {
    static char out[256];
    size_t at = 0, n;
    const char *text;
    perigee_decoder *d = NULL;
    ck_assert_int_eq(perigee_decoder_new(f.tokenizer, 0, &d, NULL), PERIGEE_OK);
    for (size_t i = 0; i <= length; i++) {
        perigee_status st =
            i < length ? perigee_decoder_push(d, f.tokenizer->ranks.one_byte[(unsigned char)bytes[i]], &text, &n, NULL)
                       : perigee_decoder_flush(d, &text, &n, NULL);
        ck_assert_int_eq(st, PERIGEE_OK);
        ck_assert_int_eq(text[n], 0);
        ck_assert_uint_eq(prg_utf8_check((const unsigned char *)text, n), n);
        memcpy(out + at, text, n);
        at += n;
        if (n > 0) {
            out[at++] = '|';
        }
    }
    out[at] = 0;
    perigee_decoder_free(d);
    return out;
}

#define BAD "\xEF\xBF\xBD"

START_TEST(test_halves) {
    ck_assert_str_eq(feed("a\xC3\xA9z", 4), "a|\xC3\xA9|z|");
    ck_assert_str_eq(feed("\xF0\x9F\x98\x80", 4), "\xF0\x9F\x98\x80|");
    ck_assert_str_eq(feed("\xF0\x9F\x98", 3), BAD "|");
    ck_assert_str_eq(feed("\xE4\xBD"
                          "a",
                          3),
                     BAD "a|");
    ck_assert_str_eq(feed("\xE4\xE4\xBD\xA0", 4), BAD "|\xE4\xBD\xA0|");
    ck_assert_str_eq(feed("\xC0\xAF", 2), BAD "|" BAD "|");
    ck_assert_str_eq(feed("\xED\xA0\x80", 3), BAD BAD "|" BAD "|");
    ck_assert_str_eq(feed("\xF4\x90", 2), BAD BAD "|");
    ck_assert_str_eq(feed("\x80\xFF", 2), BAD "|" BAD "|");
}
END_TEST

START_TEST(test_special) {
    int32_t id = prg_tokenizer_special(f.tokenizer, "<|open|>");
    for (uint32_t flags = 0; flags < 2; flags++) {
        perigee_decoder *d = NULL;
        const char *text;
        size_t n;
        ck_assert_int_eq(perigee_decoder_new(f.tokenizer, flags, &d, NULL), PERIGEE_OK);
        ck_assert_int_eq(perigee_decoder_push(d, id, &text, &n, NULL), PERIGEE_OK);
        ck_assert_str_eq(text, flags ? "" : "<|open|>");
        ck_assert_int_eq(perigee_decoder_push(d, -1, &text, &n, NULL), PERIGEE_E_TOKEN);
        ck_assert_int_eq(perigee_decoder_push(d, prg_tokenizer_vocabulary(f.tokenizer), &text, &n, NULL),
                         PERIGEE_E_TOKEN);
        perigee_decoder_free(d);
    }
    perigee_decoder *d = NULL;
    ck_assert_int_eq(perigee_decoder_new(f.tokenizer, 8, &d, NULL), PERIGEE_E_ARGUMENT);
}
END_TEST

/* Any ids: what comes piece by piece is what replacing all bytes at once gives. */
START_TEST(test_any_ids) {
    uint64_t state = 3;
    for (int round = 0; round < 500; round++) {
        perigee_decoder *d = NULL;
        prg_buffer bytes, want, got;
        prg_buffer *all[] = {&bytes, &want, &got};
        for (size_t i = 0; i < 3; i++) {
            prg_buffer_init(all[i], f.allocator);
        }
        ck_assert_int_eq(perigee_decoder_new(f.tokenizer, 0, &d, NULL), PERIGEE_OK);
        const char *text;
        size_t n;
        for (int i = 0; i < 40; i++) {
            /* mostly the bytes above 0x7F, which have low ranks here */
            int32_t id = (int32_t)(split_mix(&state) % (round % 2 ? 256 : 3256));
            const unsigned char *token = prg_tokenizer_bytes(f.tokenizer, id, &n);
            prg_buffer_put(&bytes, token, n);
            ck_assert_int_eq(perigee_decoder_push(d, id, &text, &n, NULL), PERIGEE_OK);
            prg_buffer_put(&got, text, n);
        }
        ck_assert_int_eq(perigee_decoder_flush(d, &text, &n, NULL), PERIGEE_OK);
        prg_buffer_put(&got, text, n);
        prg_utf8_replace(&want, bytes.data, bytes.length);
        ck_assert_uint_eq(got.length, want.length);
        ck_assert(memcmp(got.data, want.data, got.length) == 0);
        for (size_t i = 0; i < 3; i++) {
            prg_buffer_free(all[i]);
        }
        perigee_decoder_free(d);
    }
}
END_TEST

PRG_SUITE("decoder", setup, teardown, test_halves, test_special, test_any_ids)
