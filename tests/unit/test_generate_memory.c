/* Every allocation fails once: the call says so, and nothing is lost or left half done. */
#include <check.h>

#include "base/error.h"
#include "generate/constraint.h"
#include "generate/sampler.h"
#include "support/suite.h"
#include "support/tokens.h"

typedef struct host {
    size_t left; /* allocations that succeed */
} host;

static void *allocate(size_t size, size_t alignment, void *user) {
    host *h = user;
    void *p = NULL;
    if (h->left == 0) {
        return NULL;
    }
    h->left--;
    return posix_memalign(&p, alignment, size) == 0 ? p : NULL;
}

static void deallocate(void *pointer, size_t size, void *user) {
    (void)size;
    (void)user;
    free(pointer);
}

static tokens words;

static void setup(void) {
    words = tokens_make(600);
}

static void teardown(void) {
    tokens_drop(&words);
}

static void no_more(perigee_status st) {
    ck_assert_msg(st == PERIGEE_OK || st == PERIGEE_E_MEMORY, "%s", perigee_status_name(st));
}

static perigee_status use_constraint(prg_allocator *a, const char *text, bool schema, perigee_error **err) {
    static const char good[] = "{\"a\":[1,{\"b\":\"x\"}]}";
    prg_token_trie *trie = NULL;
    perigee_constraint *c = NULL, *copy = NULL;
    const uint64_t *allowed;
    const prg_vocabulary v = tokens_vocabulary(&words);
    perigee_status st = prg_token_trie_new(a, &v, &trie, err);
    if (st == PERIGEE_OK) {
        st = (schema ? prg_constraint_from_schema : prg_constraint_from_regex)(a, trie, text, strlen(text), &c, err);
    }
    for (size_t i = 0; st == PERIGEE_OK && i < sizeof good - 1; i++) {
        bool before = c->complete;
        st = prg_constraint_allowed(c, &allowed, err);
        if (st == PERIGEE_OK) {
            st = prg_constraint_accept_bytes(c, (const unsigned char *)good + i, 1, err);
        }
        if (st == PERIGEE_E_MEMORY) { /* then it works again, as if nothing had been */
            host *h = a->host.user;
            h->left = SIZE_MAX;
            ck_assert(c->complete == before);
            if (prg_constraint_allowed(c, &allowed, NULL) == PERIGEE_OK) {
                ck_assert(allowed[(unsigned char)good[i] / 64] >> ((unsigned char)good[i] % 64) & 1);
            }
            ck_assert_int_eq(prg_constraint_accept_bytes(c, (const unsigned char *)good + i, 1, NULL), PERIGEE_OK);
        }
    }
    if (st == PERIGEE_OK) {
        st = prg_constraint_clone(c, &copy, err);
    }
    perigee_constraint_free(copy);
    perigee_constraint_free(c);
    prg_token_trie_drop(trie);
    return st;
}

static perigee_status use_sampler(prg_allocator *a, perigee_error **err) {
    static const int32_t ids[] = {1, 2};
    static const float biases[] = {1, 2}, logits[100] = {3};
    static unsigned char bytes[1000];
    const prg_stage stages[] = {{PRG_STAGE_REPETITION, 1.1, 64, NULL, NULL},
                                {PRG_STAGE_BIAS, 0, 2, (int32_t *)(uintptr_t)ids, (float *)(uintptr_t)biases},
                                {PRG_STAGE_TOP_K, 0, 40, NULL, NULL},
                                {PRG_STAGE_TOP_P, 0.9, 0, NULL, NULL}};
    perigee_sampler *s = NULL, *copy = NULL, *loaded = NULL;
    perigee_status st = prg_sampler_new(a, &s, err);
    for (size_t i = 0; st == PERIGEE_OK && i < 4; i++) {
        st = prg_sampler_add(s, &stages[i], err);
    }
    int32_t id = 0;
    if (st == PERIGEE_OK) {
        st = prg_sampler_sample(s, logits, 100, NULL, 0, &id, err);
    }
    if (st == PERIGEE_OK) {
        prg_sampler_accept(s, &id, 1);
        st = prg_sampler_clone(s, &copy, err);
    }
    if (st == PERIGEE_OK) {
        prg_sampler_save(s, bytes);
        st = prg_sampler_load(a, bytes, prg_sampler_save_size(s), &loaded, err);
    }
    perigee_sampler_free(s);
    perigee_sampler_free(copy);
    perigee_sampler_free(loaded);
    return st;
}

static void sweep(int what) {
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"integer\","
        "\"minimum\":1},{\"$ref\":\"#/$defs/b\"}]}}},\"$defs\":{\"b\":{\"type\":\"object\",\"properties\":{\"b\":{"
        "\"type\":\"string\",\"pattern\":\"[x-z]\"}},\"required\":[\"b\"]}}}";
    perigee_status st = PERIGEE_E_MEMORY;
    for (size_t n = 0; st != PERIGEE_OK; n++) {
        host h = {n + 1};
        const perigee_allocator interface = {sizeof interface, allocate, deallocate, &h, NULL};
        prg_allocator *a = NULL;
        perigee_error *e = NULL;
        ck_assert_int_eq(prg_allocator_new(&interface, &a, NULL), PERIGEE_OK);
        st = what == 0   ? use_sampler(a, &e)
             : what == 1 ? use_constraint(a, schema, true, &e)
                         : use_constraint(a, "\\{(\"[a-z]\":|[\\[\\]\\d,{}]|\"\\w\")+", false, &e);
        no_more(st);
        ck_assert((st == PERIGEE_OK) == (e == NULL));
        perigee_error_free(e);
        ck_assert_uint_eq(a->bytes, 0);
        prg_allocator_drop(a);
        ck_assert_uint_lt(n, 5000);
    }
}

START_TEST(test_sampler) {
    sweep(0);
}
END_TEST

START_TEST(test_schema) {
    sweep(1);
}
END_TEST

START_TEST(test_regex) {
    sweep(2);
}
END_TEST

PRG_SUITE("generate_memory", setup, teardown, test_sampler, test_schema, test_regex)
