/* Merging against the definition, with rank files in which nothing is in the order of any training. */
#include <stdio.h>
#include <string.h>

#include "support/suite.h"
#include "support/text_fixtures.h"
#include "text/bpe.h"

static prg_allocator *allocator;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
}

static void teardown(void) {
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

enum { TOKENS = 360, LONGEST = 7 };

typedef struct token {
    unsigned char bytes[LONGEST + 1];
    size_t length;
} token;

/* All bytes and random strings over a few letters, at random ranks. */
static prg_ranks random_ranks(uint64_t *state, unsigned letters) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static token tokens[TOKENS];
    size_t count = 0;
    while (count < TOKENS) {
        token t = {{(unsigned char)count}, 1};
        if (count >= 256) {
            t.length = 2 + split_mix(state) % (LONGEST - 1);
            for (size_t i = 0; i < t.length; i++) {
                t.bytes[i] = (unsigned char)('a' + split_mix(state) % letters);
            }
        }
        bool known = false;
        for (size_t i = 0; i < count; i++) {
            known = known || (tokens[i].length == t.length && memcmp(tokens[i].bytes, t.bytes, t.length) == 0);
        }
        if (!known) {
            tokens[count++] = t;
        }
    }
    for (size_t i = count; i-- > 1;) {
        size_t j = split_mix(state) % (i + 1);
        token t = tokens[i];
        tokens[i] = tokens[j];
        tokens[j] = t;
    }
    static char text[TOKENS * 32];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t from = 0; from < tokens[i].length; from += 3) {
            const unsigned char *b = tokens[i].bytes + from;
            size_t left = tokens[i].length - from;
            uint32_t bits = (uint32_t)b[0] << 16 | (left > 1 ? (uint32_t)b[1] << 8 : 0) | (left > 2 ? b[2] : 0u);
            for (size_t c = 0; c < 4; c++) {
                text[at++] = c > left ? '=' : digits[bits >> (18 - 6 * c) & 63];
            }
        }
        at += (size_t)snprintf(text + at, sizeof text - at, " %zu\n", i);
    }
    prg_ranks ranks;
    perigee_error *e = NULL;
    ck_assert_msg(prg_ranks_parse(allocator, text, at, NULL, &ranks, &e) == PERIGEE_OK, "%s", perigee_error_message(e));
    return ranks;
}

/* The definition: look through all pairs, merge the leftmost of the lowest rank, begin again. */
static size_t merge_by_definition(const prg_ranks *ranks, const unsigned char *piece, size_t length, int32_t *ids) {
    size_t starts[512], parts = length;
    if (prg_ranks_find(ranks, piece, length) != PRG_NO_RANK) {
        ids[0] = prg_ranks_find(ranks, piece, length);
        return 1;
    }
    for (size_t i = 0; i <= length; i++) {
        starts[i] = i;
    }
    for (;;) {
        int32_t lowest = PRG_NO_RANK;
        size_t where = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            int32_t rank = prg_ranks_find(ranks, piece + starts[i], starts[i + 2] - starts[i]);
            if (rank != PRG_NO_RANK && (lowest == PRG_NO_RANK || rank < lowest)) {
                lowest = rank;
                where = i;
            }
        }
        if (lowest == PRG_NO_RANK) {
            break;
        }
        memmove(starts + where + 1, starts + where + 2, (parts - where - 1) * sizeof *starts);
        parts--;
    }
    for (size_t i = 0; i < parts; i++) {
        ids[i] = prg_ranks_find(ranks, piece + starts[i], starts[i + 1] - starts[i]);
    }
    return parts;
}

START_TEST(test_definition) {
    uint64_t state = 11;
    prg_bpe_scratch scratch = {allocator, NULL, 0};
    for (int table = 0; table < 40; table++) {
        unsigned letters = 1 + (unsigned)table % 4;
        prg_ranks ranks = random_ranks(&state, letters == 1 ? 2 : letters);
        for (int round = 0; round < 60; round++) {
            unsigned char piece[400];
            int32_t want[400], got[400];
            /* about the length where one way of merging takes over from the other, and beyond */
            size_t length = 1 + split_mix(&state) % (round % 3 ? 60 : 400);
            for (size_t i = 0; i < length; i++) {
                piece[i] = (unsigned char)('a' + split_mix(&state) % letters);
            }
            prg_ids out = {got, 400, 0};
            ck_assert(prg_bpe_encode(&ranks, piece, length, &scratch, &out));
            size_t count = merge_by_definition(&ranks, piece, length, want);
            ck_assert_uint_eq(out.count, count);
            ck_assert(memcmp(got, want, count * sizeof *want) == 0);
        }
        prg_ranks_free(&ranks);
    }
    prg_bpe_scratch_free(&scratch);
}
END_TEST

PRG_SUITE("bpe", setup, teardown, test_definition)
