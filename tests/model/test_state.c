/* Saved states: what comes back goes on with the same bits; what is damaged is refused and nothing changes. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "perigee/state.h"
#include "session/session.h"
#include "support/golden.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2 precision=exact");
}

static void teardown(void) {
    perigee_context_free(context);
}

static unsigned char *save(const perigee_session *session, const perigee_sampler *sampler, size_t *size) {
    golden_ok(perigee_state_size(session, sampler, size, NULL), NULL);
    unsigned char *bytes = malloc(*size);
    size_t written = 0;
    perigee_error *err = NULL;
    golden_ok(perigee_state_save(session, sampler, bytes, *size, &written, &err), err);
    ck_assert_uint_eq(written, *size);
    return bytes;
}

static void same_next(perigee_session *a, perigee_session *b, const int32_t *ids, size_t n, size_t vocabulary) {
    ck_assert_int_eq(perigee_session_position(a), perigee_session_position(b));
    for (size_t i = 0; i < n; i++) {
        const float *x = golden_step(a, ids + i, 1, PERIGEE_LOGITS_LAST);
        const float *y = golden_step(b, ids + i, 1, PERIGEE_LOGITS_LAST);
        ck_assert_msg(memcmp(x, y, vocabulary * sizeof *x) == 0, "other bits %zu tokens on", i);
    }
}

/* Every family, through a buffer, into a session of another chunk and of another thread count. */
START_TEST(comes_back) {
    perigee_context *other = golden_context("threads=1 precision=exact");
    for (size_t c = 0; c < GOLDEN_CASES; c++) {
        golden g = golden_read(golden_cases[c]);
        perigee_model *model = golden_model(context, golden_cases[c], NULL);
        perigee_model *again = golden_model(other, golden_cases[c], "weights=mapped");
        perigee_session *a = golden_session(model, NULL), *b = golden_session(again, "chunk=3");
        golden_step(a, g.ids, g.tokens - 8, PERIGEE_LOGITS_NONE);
        golden_step(b, g.ids + 5, 7, PERIGEE_LOGITS_NONE); /* what it held before must not show */
        size_t size;
        unsigned char *bytes = save(a, NULL, &size);
        perigee_error *err = NULL;
        golden_ok(perigee_state_load(b, NULL, bytes, size, &err), err);
        const int32_t *tokens = NULL;
        ck_assert_uint_eq(perigee_session_tokens(b, &tokens), g.tokens - 8);
        ck_assert(memcmp(tokens, g.ids, (g.tokens - 8) * sizeof *tokens) == 0);
        same_next(a, b, g.ids + g.tokens - 8, 8, g.vocabulary);
        free(bytes);
        perigee_session_free(a);
        perigee_session_free(b);
        perigee_model_free(model);
        perigee_model_free(again);
        free(g.file);
    }
    perigee_context_free(other);
}
END_TEST

/* Under another kernel table the state is the same, the numbers that follow nearly so. */
START_TEST(another_kernel_table) {
    perigee_context *scalar = golden_context("kernels=scalar precision=exact");
    golden g = golden_read("kimi_k3");
    perigee_model *model = golden_model(context, "kimi_k3", NULL), *plain = golden_model(scalar, "kimi_k3", NULL);
    perigee_session *a = golden_session(model, NULL), *b = golden_session(plain, NULL);
    golden_step(a, g.ids, g.tokens - 1, PERIGEE_LOGITS_NONE);
    size_t size;
    unsigned char *bytes = save(a, NULL, &size);
    golden_ok(perigee_state_load(b, NULL, bytes, size, NULL), NULL);
    const float *row = golden_step(b, g.ids + g.tokens - 1, 1, PERIGEE_LOGITS_LAST);
    ck_assert_double_lt(golden_distance(row, g.logits + (g.tokens - 1) * g.vocabulary, g.vocabulary), 2e-5);
    free(bytes);
    perigee_session_free(a);
    perigee_session_free(b);
    perigee_model_free(model);
    perigee_model_free(plain);
    perigee_context_free(scalar);
    free(g.file);
}
END_TEST

/* Size: the cache and the states, and at most 4 KB more. */
START_TEST(size_is_the_state) {
    golden g = golden_read("kimi_k3_long");
    perigee_model *model = golden_model(context, "kimi_k3_long", NULL);
    perigee_session *s = golden_session(model, NULL);
    size_t empty, full;
    golden_ok(perigee_state_size(s, NULL, &empty, NULL), NULL);
    golden_step(s, g.ids, 200, PERIGEE_LOGITS_NONE);
    golden_ok(perigee_state_size(s, NULL, &full, NULL), NULL);
    ck_assert_uint_eq(full - empty, 200 * (s->plan.token_bytes + sizeof(int32_t)));
    const size_t state = s->plan.kda_floats * s->plan.kda_layers * sizeof(float);
    ck_assert_uint_le(empty - state, 4096);
    size_t written = 0;
    unsigned char byte;
    perigee_error *err = NULL;
    ck_assert_int_eq(perigee_state_save(s, NULL, &byte, 1, &written, &err), PERIGEE_E_BUFFER);
    ck_assert_uint_eq(written, full);
    perigee_error_free(err);
    perigee_session_free(s);
    perigee_model_free(model);
    free(g.file);
}
END_TEST

/* A small state for the tests of damage. */
typedef struct small_state {
    golden g;
    perigee_model *model;
    perigee_session *from, *to;
    unsigned char *bytes;
    size_t size;
} small_state;

static small_state make_small(void) {
    small_state s = {.g = golden_read("kimi_linear")};
    s.model = golden_model(context, "kimi_linear", NULL);
    s.from = golden_session(s.model, NULL);
    s.to = golden_session(s.model, NULL);
    golden_step(s.from, s.g.ids, 3, PERIGEE_LOGITS_NONE);
    golden_step(s.to, s.g.ids + 3, 5, PERIGEE_LOGITS_NONE);
    s.bytes = save(s.from, NULL, &s.size);
    return s;
}

/* `to` still is what it was. */
static void free_small(small_state *s) {
    perigee_session *plain = golden_session(s->model, NULL);
    golden_step(plain, s->g.ids + 3, 5, PERIGEE_LOGITS_NONE);
    same_next(plain, s->to, s->g.ids + 8, 4, s->g.vocabulary);
    perigee_session_free(plain);
    perigee_session_free(s->from);
    perigee_session_free(s->to);
    perigee_model_free(s->model);
    free(s->bytes);
    free(s->g.file);
}

START_TEST(truncated_at_every_byte) {
    small_state s = make_small();
    for (size_t n = 0; n < s.size; n = n < 600 || n + 600 > s.size ? n + 1 : n + 97) {
        perigee_error *err = NULL;
        perigee_status st = perigee_state_load(s.to, NULL, s.bytes, n, &err);
        ck_assert_msg(st == PERIGEE_E_TRUNCATED, "cut at %zu: %s", n, perigee_status_name(st));
        ck_assert_ptr_nonnull(strstr(perigee_error_message(err), "too early"));
        perigee_error_free(err);
    }
    free_small(&s);
}
END_TEST

START_TEST(any_flipped_bit) {
    small_state s = make_small();
    for (size_t n = 0; n < s.size; n = n < 600 || n + 200 > s.size ? n + 1 : n + 61) {
        const unsigned char bit = (unsigned char)(1u << (n % 8));
        s.bytes[n] ^= bit;
        perigee_error *err = NULL;
        perigee_status st = perigee_state_load(s.to, NULL, s.bytes, s.size, &err);
        ck_assert_msg(st == (n < 8 ? PERIGEE_E_FORMAT : PERIGEE_E_CHECKSUM), "byte %zu: %s", n,
                      perigee_status_name(st));
        perigee_error_free(err);
        s.bytes[n] ^= bit;
    }
    free_small(&s);
}
END_TEST

/* A header that is whole but of another version or length. */
START_TEST(newer_versions_and_lies) {
    small_state s = make_small();
    static const struct {
        size_t at;
        unsigned char value;
        perigee_status status;
    } edits[] = {{8, 2, PERIGEE_E_VERSION},   {12, 72, PERIGEE_E_FORMAT}, {40, 6, PERIGEE_E_FORMAT},
                 {23, 1, PERIGEE_E_CHECKSUM}, {18, 0, PERIGEE_E_FORMAT},  {24, 0x5a, PERIGEE_E_MISMATCH}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        unsigned char *copy = malloc(s.size);
        memcpy(copy, s.bytes, s.size);
        copy[edits[i].at] = edits[i].value;
        if (edits[i].at == 18) {
            memset(copy + 16, 0, 8); /* the whole is said to be nothing */
        }
        const uint64_t checksum = XXH3_64bits(copy, 56);
        memcpy(copy + 56, &checksum, sizeof checksum);
        perigee_error *err = NULL;
        perigee_status st = perigee_state_load(s.to, NULL, copy, s.size, &err);
        ck_assert_msg(st == edits[i].status, "edit %zu: %s", i, perigee_status_name(st));
        perigee_error_free(err);
        free(copy);
    }
    free_small(&s);
}
END_TEST

/* Another model's state, another cache type, a context that is too small, a sampler that isn't there. */
START_TEST(of_something_else) {
    small_state s = make_small();
    static const char *const names[] = {"moonlight", "kimi_k3"};
    perigee_error *err = NULL;
    for (size_t i = 0; i < 2; i++) {
        perigee_model *other = golden_model(context, names[i], NULL);
        perigee_session *t = golden_session(other, NULL);
        ck_assert_int_eq(perigee_state_load(t, NULL, s.bytes, s.size, &err), PERIGEE_E_MISMATCH);
        perigee_error_free(err);
        ck_assert_int_eq(perigee_session_position(t), 0);
        perigee_session_free(t);
        perigee_model_free(other);
    }
    /* the norms inside attention with another epsilon: other latents in the cache. The default by name is the same */
    static const struct {
        const char *options;
        perigee_status status;
    } eps[] = {{"inner_eps=1e-5", PERIGEE_E_MISMATCH},
               {"inner_eps=0.000001", PERIGEE_OK},
               {"trunk=q8_0", PERIGEE_E_MISMATCH},
               {"trunk=published", PERIGEE_OK}};
    for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
        perigee_model *other = golden_model(context, "kimi_linear", eps[i].options);
        perigee_session *t = golden_session(other, NULL);
        ck_assert_int_eq(perigee_state_load(t, NULL, s.bytes, s.size, &err), eps[i].status);
        perigee_error_free(err);
        perigee_session_free(t);
        perigee_model_free(other);
    }
    perigee_session *t = golden_session(s.model, "cache_type=bfloat16");
    ck_assert_int_eq(perigee_state_load(t, NULL, s.bytes, s.size, &err), PERIGEE_E_MISMATCH);
    perigee_error_free(err);
    perigee_session_free(t);
    t = golden_session(s.model, "context=2");
    ck_assert_int_eq(perigee_state_load(t, NULL, s.bytes, s.size, &err), PERIGEE_E_CONTEXT_FULL);
    perigee_error_free(err);
    perigee_session_free(t);
    perigee_sampler *sampler = NULL;
    golden_ok(perigee_sampler_new(context, &sampler, NULL), NULL);
    ck_assert_int_eq(perigee_state_load(s.to, sampler, s.bytes, s.size, &err), PERIGEE_E_NOT_FOUND);
    perigee_error_free(err);
    perigee_sampler_free(sampler);
    free_small(&s);
}
END_TEST

/* The sampler travels along: the same draws follow. */
START_TEST(with_a_sampler) {
    small_state s = make_small();
    perigee_sampler *a = NULL, *b = NULL;
    golden_ok(perigee_sampler_new(context, &a, NULL), NULL);
    golden_ok(perigee_sampler_new(context, &b, NULL), NULL);
    golden_ok(perigee_sampler_add_presence(a, 1.5, 8, NULL), NULL);
    golden_ok(perigee_sampler_add_temperature(a, 1.3, NULL), NULL);
    perigee_sampler_set_seed(a, 77);
    const float *row = golden_step(s.from, s.g.ids + 3, 1, PERIGEE_LOGITS_LAST);
    for (int i = 0; i < 5; i++) {
        int32_t id = -1;
        golden_ok(perigee_sampler_sample(a, row, s.g.vocabulary, &id, NULL), NULL);
        golden_ok(perigee_sampler_accept(a, &id, 1, NULL), NULL);
    }
    size_t size;
    unsigned char *bytes = save(s.from, a, &size);
    perigee_session *t = golden_session(s.model, NULL);
    golden_ok(perigee_state_load(t, b, bytes, size, NULL), NULL);
    for (int i = 0; i < 20; i++) {
        int32_t x = -1, y = -2;
        golden_ok(perigee_sampler_sample(a, row, s.g.vocabulary, &x, NULL), NULL);
        golden_ok(perigee_sampler_sample(b, row, s.g.vocabulary, &y, NULL), NULL);
        ck_assert_int_eq(x, y);
        golden_ok(perigee_sampler_accept(a, &x, 1, NULL), NULL);
        golden_ok(perigee_sampler_accept(b, &y, 1, NULL), NULL);
    }
    perigee_session_free(t);
    perigee_sampler_free(a);
    perigee_sampler_free(b);
    free(bytes);
    free_small(&s);
}
END_TEST

/* ---- files and callbacks ---- */

static size_t file_size(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

START_TEST(to_and_from_a_file) {
    small_state s = make_small();
    char folder[] = "state-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state", folder);
    perigee_error *err = NULL;
    golden_ok(perigee_state_save_file(s.from, NULL, path, SIZE_MAX, &err), err);
    ck_assert_uint_eq(file_size(path), s.size);
    perigee_session *t = golden_session(s.model, NULL);
    golden_ok(perigee_state_load_file(t, NULL, path, SIZE_MAX, &err), err);
    same_next(s.from, t, s.g.ids + 3, 4, s.g.vocabulary);
    /* a disk that fills up: the old file stays, and nothing lies beside it */
    struct rlimit limit, old;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = s.size / 2;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    const perigee_status st = perigee_state_save_file(s.from, NULL, path, SIZE_MAX, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, before);
    ck_assert_msg(st == PERIGEE_E_IO || st == PERIGEE_E_DISK_FULL, "%s", perigee_status_name(st));
    ck_assert_str_eq(perigee_error_file(err), path);
    perigee_error_free(err);
    ck_assert_uint_eq(file_size(path), s.size);
    golden_ok(perigee_state_load_file(s.to, NULL, path, SIZE_MAX, &err), err);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(perigee_state_load_file(t, NULL, path, SIZE_MAX, &err), PERIGEE_E_NOT_FOUND);
    perigee_error_free(err);
    ck_assert_int_eq(rmdir(folder), 0); /* only if it is empty */
    ck_assert_int_eq(perigee_state_save_file(s.from, NULL, path, SIZE_MAX, &err), PERIGEE_E_NOT_FOUND);
    perigee_error_free(err);
    perigee_session_free(t);
    /* `to` was loaded over: bring it back to what free_small() expects */
    perigee_session_reset(s.to);
    golden_step(s.to, s.g.ids + 3, 5, PERIGEE_LOGITS_NONE);
    free_small(&s);
}
END_TEST

typedef struct pipe_state {
    unsigned char *bytes;
    size_t size, at, limit;
} pipe_state;

static int take(const void *data, size_t size, void *user) {
    pipe_state *p = user;
    if (p->size + size > p->limit) {
        return 1;
    }
    memcpy(p->bytes + p->size, data, size);
    p->size += size;
    return 0;
}

/* A few bytes at a time. */
static int64_t give(void *data, size_t size, void *user) {
    pipe_state *p = user;
    size_t n = size < 7 ? size : 7;
    n = n < p->limit - p->at ? n : p->limit - p->at;
    memcpy(data, p->bytes + p->at, n);
    p->at += n;
    return (int64_t)n;
}

static int64_t give_up(void *data, size_t size, void *user) {
    (void)data;
    (void)size;
    (void)user;
    return -1;
}

START_TEST(through_callbacks) {
    small_state s = make_small();
    pipe_state p = {malloc(s.size), 0, 0, s.size};
    perigee_error *err = NULL;
    golden_ok(perigee_state_save_to(s.from, NULL, take, &p, &err), err);
    ck_assert_uint_eq(p.size, s.size);
    ck_assert(memcmp(p.bytes, s.bytes, s.size) == 0);
    perigee_session *t = golden_session(s.model, NULL);
    golden_ok(perigee_state_load_from(t, NULL, give, &p, &err), err);
    same_next(s.from, t, s.g.ids + 3, 2, s.g.vocabulary);
    p = (pipe_state){p.bytes, 0, 0, s.size / 2};
    ck_assert_int_eq(perigee_state_save_to(t, NULL, take, &p, &err), PERIGEE_E_CALLBACK);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_state_load_from(s.to, NULL, give, &p, &err), PERIGEE_E_TRUNCATED);
    perigee_error_free(err);
    ck_assert_int_eq(perigee_state_load_from(s.to, NULL, give_up, NULL, &err), PERIGEE_E_CALLBACK);
    perigee_error_free(err);
    perigee_session_free(t);
    free(p.bytes);
    free_small(&s);
}
END_TEST

/* Kept for good: every later version loads what this one wrote. */
START_TEST(state_of_the_first_version) {
    char path[512];
    snprintf(path, sizeof path, "%s/state/kimi_linear_v1.state", PRG_FIXTURES);
    golden g = golden_read("kimi_linear");
    perigee_context *first =
        golden_context("kernels=scalar precision=exact"); /* whose bits are the same on all machines */
    perigee_model *model = golden_model(first, "kimi_linear", NULL);
    perigee_session *s = golden_session(model, NULL), *t = golden_session(model, NULL);
    perigee_error *err = NULL;
    golden_ok(perigee_state_load_file(s, NULL, path, SIZE_MAX, &err), err);
    golden_step(t, g.ids, 3, PERIGEE_LOGITS_NONE);
    same_next(t, s, g.ids + 3, 4, g.vocabulary);
    perigee_session_free(s);
    perigee_session_free(t);
    perigee_model_free(model);
    perigee_context_free(first);
    free(g.file);
}
END_TEST

PRG_SUITE("state", setup, teardown, comes_back, another_kernel_table, size_is_the_state, truncated_at_every_byte,
          any_flipped_bit, newer_versions_and_lies, of_something_else, with_a_sampler, to_and_from_a_file,
          through_callbacks, state_of_the_first_version)
