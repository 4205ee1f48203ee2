/* Time to find the allowed tokens of a constrained text, over a vocabulary of 163,840: made up, or with a rank file as
 * argument (lines of base64 and rank) its tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "generate/constraint.h"
#include "generate/random.h"

enum { VOCABULARY = 163840, MOST = 20000 };

typedef struct words {
    unsigned char *bytes[VOCABULARY];
    size_t lengths[VOCABULARY];
} words;

static words vocabulary;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const unsigned char *bytes_of(const void *user, int32_t id, size_t *length) {
    const words *w = user;
    *length = w->lengths[id];
    return w->bytes[id];
}

static size_t read_ranks(const char *path) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *f = fopen(path, "r");
    char line[4096];
    size_t count = 0;
    while (f && count < VOCABULARY - 256 && fgets(line, sizeof line, f)) {
        unsigned bits = 0, value = 0;
        size_t n = 0;
        unsigned char *out = malloc(strlen(line));
        for (const char *c = line, *at; *c && *c != '=' && (at = strchr(letters, *c)); c++) {
            value = value << 6 | (unsigned)(at - letters);
            bits += 6;
            if (bits >= 8) {
                bits -= 8;
                out[n++] = (unsigned char)(value >> bits);
            }
        }
        vocabulary.bytes[count] = out;
        vocabulary.lengths[count++] = n;
    }
    if (f) {
        fclose(f);
    }
    return count;
}

/* Words that grow from one another, as merges do: each is a former one with a piece of another behind. */
static size_t make_up(void) {
    for (size_t b = 0; b < 256; b++) {
        vocabulary.bytes[b] = malloc(1);
        vocabulary.bytes[b][0] = (unsigned char)b;
        vocabulary.lengths[b] = 1;
    }
    size_t count = 256;
    for (uint64_t draw = 0; count < VOCABULARY - 256; draw += 2) {
        uint64_t r = prg_random_bits(1, draw), q = prg_random_bits(1, draw + 1);
        size_t a = r % 10 < 3 ? (r >> 8) % count : 32 + (r >> 8) % 95,
               b = q % 10 < 5 ? (q >> 8) % count : 97 + (q >> 8) % 26;
        size_t n = vocabulary.lengths[a] + vocabulary.lengths[b];
        if (n > 20) {
            continue;
        }
        vocabulary.bytes[count] = malloc(n);
        memcpy(vocabulary.bytes[count], vocabulary.bytes[a], vocabulary.lengths[a]);
        memcpy(vocabulary.bytes[count] + vocabulary.lengths[a], vocabulary.bytes[b], vocabulary.lengths[b]);
        vocabulary.lengths[count++] = n;
    }
    return count;
}

static int32_t pick(const uint64_t *allowed, uint64_t r) {
    size_t n = 0;
    for (size_t i = 0; i < VOCABULARY / 64; i++) {
        n += (size_t)__builtin_popcountll(allowed[i]);
    }
    size_t want = r % n;
    for (int32_t id = 0;; id++) {
        if (allowed[id / 64] >> (id % 64) & 1 && want-- == 0) {
            return id;
        }
    }
}

static void run(prg_allocator *allocator, prg_token_trie *trie, const char *name, const char *text, bool schema) {
    static double times[MOST];
    perigee_constraint *start = NULL, *c = NULL;
    size_t count = 0;
    double begin = now();
    if ((schema ? prg_constraint_from_schema : prg_constraint_from_regex)(allocator, trie, text, strlen(text), &start,
                                                                          NULL) != PERIGEE_OK) {
        exit(1);
    }
    double compiled = now() - begin;
    for (uint64_t draw = 0; count < 2000;) {
        if (prg_constraint_clone(start, &c, NULL) != PERIGEE_OK) {
            exit(1);
        }
        for (size_t taken = 0; !c->ended && count < 2000; taken++) {
            const uint64_t *allowed;
            begin = now();
            if (prg_constraint_allowed(c, &allowed, NULL) != PERIGEE_OK) {
                exit(1);
            }
            times[count++] = now() - begin;
            int32_t id = pick(allowed, prg_random_bits(2, draw++));
            if (allowed['"' / 64] >> ('"' % 64) & 1 && prg_random_bits(2, draw++) % 4 == 0) {
                id = '"'; /* strings of about four tokens */
            }
            id = c->complete ? trie->end_ids[0] : id;
            if (prg_constraint_accept(c, id, NULL) != PERIGEE_OK) {
                exit(1);
            }
        }
        perigee_constraint_free(c);
    }
    double first = times[0];
    qsort(times, count, sizeof *times, by_value);
    printf("%-28s compile %6.2f ms  first %6.3f  median %.4f ms  99%% %.3f  most %.3f  cache %.1f MB\n", name, compiled,
           first, times[count / 2], times[count * 99 / 100], times[count - 1],
           (double)(prg_automaton_bytes(&start->grammar->automaton) + start->grammar->mask_bytes) / 1e6);
    perigee_constraint_free(start);
}

int main(int argc, char **argv) {
    prg_allocator *allocator = NULL;
    prg_token_trie *trie = NULL;
    size_t count = argc > 1 ? read_ranks(argv[1]) : make_up();
    const int32_t end = VOCABULARY - 1;
    prg_vocabulary v = {VOCABULARY, &vocabulary, bytes_of, &end, 1};
    double begin = now();
    if (count < 256 || prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK ||
        prg_token_trie_new(allocator, &v, &trie, NULL) != PERIGEE_OK) {
        return 1;
    }
    printf("%zu tokens, %zu nodes, %.1f ms\n", count, trie->node_count, now() - begin);
    run(allocator, trie, "any JSON", "true", true);
    run(allocator, trie, "record",
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\",\"minimum\":"
        "0,\"maximum\":150},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"address\":{\"type\":"
        "\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}},\"required\":["
        "\"street\",\"city\"],\"additionalProperties\":false}},\"required\":[\"name\",\"age\",\"tags\",\"address\"],"
        "\"additionalProperties\":false}",
        true);
    run(allocator, trie, "string, maxLength 200", "{\"type\":\"string\",\"maxLength\":200}", true);
    run(allocator, trie, "recursive list",
        "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"string\"},\"next\":{\"anyOf\":[{\"$ref\":\"#\"},{"
        "\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"],\"additionalProperties\":false}",
        true);
    run(allocator, trie, "regex, words", "([A-Z][a-z]+ ){3,40}[a-z]+\\.", false);
    run(allocator, trie, "regex, any text", "(.|\\n){100,2000}", false);
    prg_token_trie_drop(trie);
    for (size_t i = 0; i < count; i++) {
        free(vocabulary.bytes[i]);
    }
    prg_allocator_drop(allocator);
    return 0;
}
