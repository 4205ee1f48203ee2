/* A tokenizer over the small rank file of tests/fixtures/text. */
#ifndef PRG_TESTS_TEXT_FIXTURES_H
#define PRG_TESTS_TEXT_FIXTURES_H

#include <check.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

typedef struct fixture {
    prg_allocator *allocator;
    prg_arena arena;
    perigee_tokenizer *tokenizer;
} fixture;

/* `config`: text of a tokenizer_config.json, or NULL. */
static inline fixture open_fixture(const char *family, int64_t vocabulary, const char *config) {
    fixture f = {NULL, {NULL, NULL, 0}, NULL};
    ck_assert_int_eq(prg_allocator_new(NULL, &f.allocator, NULL), PERIGEE_OK);
    prg_arena_init(&f.arena, f.allocator);
    char *ranks;
    size_t length;
    perigee_error *e = NULL;
    ck_assert_int_eq(prg_file_load(&f.arena, PRG_FIXTURES "/text/tiktoken.model", NULL, 1 << 24, &ranks, &length, &e),
                     PERIGEE_OK);
    perigee_status st = prg_tokenizer_make(f.allocator, family, vocabulary, ranks, length, config,
                                           config ? strlen(config) : 0, &f.tokenizer, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return f;
}

static inline void close_fixture(fixture *f) {
    prg_tokenizer_drop(f->tokenizer);
    prg_arena_free(&f->arena);
    ck_assert_uint_eq(f->allocator->bytes, 0);
    prg_allocator_drop(f->allocator);
}

/* `path` is the whole path of a JSON file. */
static inline const prg_json *parse_fixture(fixture *f, const char *path) {
    perigee_error *e = NULL;
    const prg_json *root = NULL;
    char *text;
    size_t length;
    ck_assert_int_eq(prg_file_load(&f->arena, path, NULL, 1 << 24, &text, &length, &e), PERIGEE_OK);
    perigee_status st = prg_json_parse(&f->arena, text, length, 64, path, &root, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return root;
}

/* The generator of tools/text_oracle/corpus.py. */
static inline uint64_t split_mix(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline size_t put_code(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length; i-- > 1; code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3F));
    }
    out[0] = (char)(leads[length] | code);
    return length;
}

#endif
