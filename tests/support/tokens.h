/* A vocabulary made up for tests: every byte, pieces that JSON texts are made of, random strings, and special tokens.
 */
#ifndef PRG_TESTS_TOKENS_H
#define PRG_TESTS_TOKENS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/random.h"
#include "generate/token_trie.h"

typedef struct tokens {
    size_t count;
    unsigned char (*bytes)[24];
    unsigned char *lengths;
    int32_t end_ids[2];
} tokens;

static inline const unsigned char *tokens_bytes_of(const void *user, int32_t id, size_t *length) {
    const tokens *t = user;
    *length = t->lengths[id];
    return t->lengths[id] ? t->bytes[id] : NULL;
}

static inline void tokens_add(tokens *t, const char *text, size_t length) {
    memcpy(t->bytes[t->count], text, length);
    t->lengths[t->count++] = (unsigned char)length;
}

/* `count` >= 512 ids, of which the last three are special: two that end a text and one that is reserved. */
static inline tokens tokens_make(size_t count) {
    static const char *const pieces[] = {"{\"",  "\":",   "\": ",  "\", \"",  "\",\"",   "\"}",   "\"]",     "},",
                                         "}]",   "]]",    "[[",    "{\"a\":", "true",    "false", "null",    "\\n",
                                         "\\\"", "\\u00", "00",    "12",      "1.5",     "-1",    "e+5",     "\n    ",
                                         "\n  ", " \"",   "name",  "value",   " the",    " of",   "ing",     "é",
                                         "中文", "日",    "😀",     "\": [",   "\":[{\"", "}}",    "\"},{\"", "0\n",
                                         "a\"b", "aa",    "ab",    "abc",     "ba",      "bb",    "\", ",    "\"\n",
                                         "[1,2", ",3",    "2024-", "-05",     "T12:",    ":30",   "\\ud83d", "\\ude00"};
    tokens t = {0, malloc(count * 24), calloc(count, 1), {0, 0}};
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        tokens_add(&t, &c, 1);
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        tokens_add(&t, pieces[i], strlen(pieces[i]));
    }
    static const char letters[] = "etaoinshrdlucmfwypvbgkjqxzETAOINSH 0123456789_\"";
    for (uint64_t draw = 0; t.count < count - 3;) {
        char text[24];
        size_t n = 2 + prg_random_bits(5, draw++) % 9, at = 0;
        if (prg_random_bits(5, draw++) % 3 == 0) {
            text[at++] = ' ';
        }
        bool han = prg_random_bits(5, draw++) % 4 == 0;
        for (; at < n; at++) {
            uint64_t r = prg_random_bits(5, draw++);
            if (han && at + 3 < sizeof text) {
                text[at] = (char)(0xE4 + r % 5);
                text[at + 1] = (char)(0x80 + r / 5 % 64);
                text[at + 2] = (char)(0x80 + r / 320 % 64);
                at += 2;
                n += at < 8 ? 2 : 0;
            } else {
                text[at] = letters[r % 300 == 0 ? sizeof letters - 2 : r % (sizeof letters - 2)];
            }
        }
        tokens_add(&t, text, at < sizeof text ? at : sizeof text);
    }
    t.end_ids[0] = (int32_t)t.count;
    t.end_ids[1] = (int32_t)t.count + 1;
    t.count = count;
    return t;
}

static inline void tokens_drop(tokens *t) {
    free(t->bytes);
    free(t->lengths);
}

static inline prg_vocabulary tokens_vocabulary(const tokens *t) {
    return (prg_vocabulary){t->count, t, tokens_bytes_of, t->end_ids, 2};
}

#endif
