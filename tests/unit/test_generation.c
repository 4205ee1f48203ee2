/* Generations over a script: a source that answers each step with logits whose greatest is the script's next id. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "base/utf8.h"
#include "generate/generation.h"
#include "generate/random.h"
#include "support/json_validator.h"
#include "support/suite.h"
#include "support/text_fixtures.h"

enum { CONTEXT = 4000, CHUNK = 8, PROMPT = 20 };

static fixture text;
static size_t vocabulary;
static int32_t byte_ids[256], end_id;
static float *row;
static int32_t prompt[PROMPT];

typedef struct script {
    const int32_t *ids; /* NULL: random logits */
    size_t count;
    int64_t position, context;
    size_t calls, fail_at, cancel_at;
    perigee_cancel *cancel;
    bool bad_logits;
} script;

static perigee_status step(void *user, const int32_t *tokens, size_t n, perigee_logits which, const float **logits,
                           perigee_cancel *cancel, perigee_error **err) {
    script *s = user;
    s->calls++;
    if (s->calls == s->fail_at) {
        return prg_fail(err, PERIGEE_E_IO, "made to fail");
    }
    if (s->calls == s->cancel_at) {
        perigee_cancel_trigger(s->cancel);
    }
    if (perigee_cancel_triggered(cancel)) {
        return prg_fail(err, PERIGEE_E_CANCELLED, "cancelled");
    }
    ck_assert_uint_le(n, CHUNK);
    for (size_t i = 0; i < n; i++) { /* prompt and script come in order, each once */
        size_t at = (size_t)s->position + i;
        ck_assert(at < PROMPT ? tokens[i] == prompt[at] : !s->ids || tokens[i] == s->ids[at - PROMPT]);
    }
    s->position += (int64_t)n;
    if (which == PERIGEE_LOGITS_LAST) {
        size_t at = (size_t)s->position - PROMPT;
        for (size_t i = 0; i < vocabulary; i++) {
            row[i] = s->ids ? 0 : (float)(3 * prg_random_unit((uint64_t)s->position, i));
        }
        if (s->ids) {
            ck_assert_uint_lt(at, s->count);
            row[s->ids[at]] = 5;
        }
        if (s->bad_logits) {
            row[7] = NAN;
        }
        *logits = row;
    }
    return PERIGEE_OK;
}

static int64_t position(void *user) {
    return ((script *)user)->position;
}

static double no_clock(void) {
    return 1;
}

static void setup(void) {
    text = open_fixture("kimi_k2", 0, NULL);
    vocabulary = (size_t)prg_tokenizer_vocabulary(text.tokenizer);
    row = malloc(vocabulary * sizeof *row);
    end_id = text.tokenizer->end_ids[0];
    for (int32_t id = 0; id < text.tokenizer->ranks.count; id++) {
        size_t n = 0;
        const unsigned char *b = prg_tokenizer_bytes(text.tokenizer, id, &n);
        if (n == 1) {
            byte_ids[b[0]] = id;
        }
    }
    for (int32_t i = 0; i < PROMPT; i++) {
        prompt[i] = i;
    }
}

static void teardown(void) {
    free(row);
    close_fixture(&text);
}

static prg_logit_source source_of(script *s, bool with_text) {
    return (prg_logit_source){.user = s,
                              .step = step,
                              .position = position,
                              .context = s->context ? s->context : CONTEXT,
                              .vocabulary = vocabulary,
                              .chunk = CHUNK,
                              .tokenizer = with_text ? text.tokenizer : NULL,
                              .end_ids = with_text ? NULL : &end_id,
                              .end_count = with_text ? 0 : 1,
                              .clock = no_clock};
}

static perigee_generation_options *make_options(void) {
    perigee_generation_options *o = NULL;
    ck_assert_int_eq(prg_generation_options_new(text.allocator, &o, NULL), PERIGEE_OK);
    return o;
}

static perigee_generation *begin(script *s, const perigee_generation_options *o) {
    perigee_generation *g = NULL;
    perigee_error *e = NULL;
    const prg_logit_source source = source_of(s, true);
    perigee_status st = prg_generation_new(text.allocator, &source, prompt, PROMPT, o, &g, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    return g;
}

static perigee_generated next(perigee_generation *g) {
    perigee_generated out = {.struct_size = sizeof out};
    perigee_error *e = NULL;
    perigee_status st = prg_generation_next(g, false, &out, &e);
    ck_assert_msg(st == PERIGEE_OK, "%s", perigee_error_message(e));
    ck_assert_uint_eq(prg_utf8_check((const unsigned char *)out.text, out.text_length), out.text_length);
    ck_assert_int_eq(out.text[out.text_length], 0);
    return out;
}

/* A script that spells a text byte by byte, and ends. */
static size_t spell(const char *words, int32_t *ids) {
    size_t n = 0;
    for (; *words; words++) {
        ids[n++] = byte_ids[(unsigned char)*words];
    }
    ids[n++] = end_id;
    return n;
}

static perigee_finish run(perigee_generation *g, char *all, size_t *tokens) {
    perigee_generated out;
    size_t length = 0;
    *tokens = 0;
    do {
        out = next(g);
        memcpy(all + length, out.text, out.text_length);
        length += out.text_length;
        *tokens += out.id >= 0;
    } while (out.finish == PERIGEE_FINISH_NONE);
    all[length] = 0;
    for (int i = 0; i < 2; i++) {
        perigee_generated again = next(g);
        ck_assert(again.finish == out.finish && again.id == -1 && again.text_length == 0);
    }
    return out.finish;
}

START_TEST(test_plain) {
    int32_t ids[64];
    char all[256];
    size_t tokens;
    script s = {.ids = ids, .count = spell("H\xc3\xa9llo, \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80!", ids)};
    perigee_generation *g = begin(&s, NULL);
    perigee_generated first = next(g);
    ck_assert_int_eq(first.id, ids[0]);
    ck_assert_str_eq(first.text, "H");
    ck_assert(isnan(first.log_probability) && first.top_count == 0);
    ck_assert_int_eq(first.prompt_tokens, PROMPT);
    ck_assert_uint_eq(next(g).text_length, 0); /* half a character */
    ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_STOP);
    ck_assert_str_eq(all, "\xc3\xa9llo, \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80!");
    ck_assert_uint_eq(tokens, s.count - 2);
    ck_assert_int_eq(s.position, PROMPT + (int64_t)s.count - 1); /* the end token was not taken in */
    perigee_generation_free(g);
    perigee_generation_free(NULL);
}
END_TEST

/* Every part of a text as stop string, byte-wise tokens, with a decoy that begins alike. */
START_TEST(test_stop_strings) {
    static const char words[] = "aab aabaac \xe4\xb8\x96\xe7\x95\x8c\xe4\xb8\x96 ab\xc3\xa9!";
    int32_t ids[64];
    char all[256], stop[64];
    size_t tokens, n = sizeof words - 1;
    for (size_t from = 0; from < n; from++) {
        for (size_t to = from + 1; to <= n; to++) {
            if ((words[from] & 0xC0) == 0x80 || (to < n && (words[to] & 0xC0) == 0x80)) {
                continue;
            }
            script s = {.ids = ids, .count = spell(words, ids)};
            perigee_generation_options *o = make_options();
            memcpy(stop, words + from, to - from);
            stop[to - from] = 0;
            ck_assert_int_eq(prg_generation_options_add_string(o, stop, to - from, NULL), PERIGEE_OK);
            ck_assert_int_eq(prg_generation_options_add_string(o, "aabaab", 6, NULL), PERIGEE_OK);
            perigee_generation *g = begin(&s, o);
            ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_STOP_STRING);
            size_t expected = (size_t)(strstr(words, stop) - words);
            ck_assert_msg(strlen(all) == expected && memcmp(all, words, expected) == 0, "\"%s\": \"%s\"", stop, all);
            ck_assert_uint_eq(tokens, expected + (to - from)); /* not a token later than it was complete */
            perigee_generation_free(g);
            perigee_generation_options_free(o);
        }
    }
}
END_TEST

/* Held back is what may begin a stop string, and nothing else; at the end it is given out. */
START_TEST(test_held_back) {
    static const char words[] = "xxST STxSTOxx ST";
    static const char *const deltas[] = {"x", "x", "",     "",  "ST ", "", "", "STx", "",
                                         "",  "",  "STOx", "x", " ",   "", "", "ST"};
    int32_t ids[64];
    script s = {.ids = ids, .count = spell(words, ids)};
    perigee_generation_options *o = make_options();
    ck_assert_int_eq(prg_generation_options_add_string(o, "STOP", 4, NULL), PERIGEE_OK);
    perigee_generation *g = begin(&s, o);
    for (size_t i = 0; i < s.count; i++) {
        perigee_generated out = next(g);
        ck_assert_msg(strcmp(out.text, deltas[i]) == 0, "%zu: \"%s\"", i, out.text);
        ck_assert_int_eq(out.finish, i + 1 == s.count ? PERIGEE_FINISH_STOP : PERIGEE_FINISH_NONE);
    }
    perigee_generation_free(g);
    perigee_generation_options_free(o);
}
END_TEST

START_TEST(test_length) {
    int32_t ids[64];
    char all[64];
    size_t tokens;
    script s = {.ids = ids, .count = spell("abST\xe4\xb8\x96", ids)};
    for (int64_t most = 1; most <= 7; most++) {
        s.position = 0;
        perigee_generation_options *o = make_options();
        o->max_tokens = most;
        ck_assert_int_eq(prg_generation_options_add_string(o, "STOP", 4, NULL), PERIGEE_OK);
        perigee_generation *g = begin(&s, o);
        ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_LENGTH);
        ck_assert_uint_eq(tokens, (size_t)most);
        /* half a character becomes U+FFFD when no more can come */
        static const char *const expected[] = {
            "a", "ab", "abS", "abST", "abST\xef\xbf\xbd", "abST\xef\xbf\xbd", "abST\xe4\xb8\x96"};
        ck_assert_str_eq(all, expected[most - 1]);
        perigee_generation_free(g);
        perigee_generation_options_free(o);
    }
}
END_TEST

START_TEST(test_cancel) {
    int32_t ids[64];
    char all[64];
    size_t tokens;
    perigee_cancel *cancel = NULL;
    ck_assert_int_eq(perigee_cancel_new(&cancel, NULL), PERIGEE_OK);
    for (size_t call = 1; call <= 9; call++) { /* the prompt takes three calls */
        script s = {.ids = ids, .count = spell("abSTcdefghijkl", ids), .cancel_at = call, .cancel = cancel};
        perigee_cancel_reset(cancel);
        perigee_generation_options *o = make_options();
        o->cancel = cancel;
        ck_assert_int_eq(prg_generation_options_add_string(o, "STOP", 4, NULL), PERIGEE_OK);
        perigee_generation *g = begin(&s, o);
        ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_CANCELLED);
        ck_assert_uint_eq(tokens, call <= 3 ? 0 : call - 3);
        ck_assert(strncmp(all, "abSTcdefghijkl", tokens) == 0 && strlen(all) == tokens);
        ck_assert_int_eq(s.position, call <= 3 ? (int64_t)(call - 1) * CHUNK : PROMPT + (int64_t)tokens - 1);
        ck_assert_uint_eq(s.calls, call);
        o->cancel = NULL;
        perigee_generation_free(g);
        perigee_generation_options_free(o);
    }
    perigee_cancel_free(cancel);
}
END_TEST

START_TEST(test_context_full) {
    int32_t ids[64];
    char all[64];
    size_t tokens;
    script s = {.ids = ids, .count = spell("abcdefghijkl", ids), .context = PROMPT + 3};
    perigee_generation *g = begin(&s, NULL);
    ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_CONTEXT_FULL);
    ck_assert_str_eq(all, "abcd"); /* the fourth is known though there is no room to take it in */
    perigee_generation_free(g);
    s = (script){.ids = ids, .count = 3, .context = PROMPT - 1};
    const prg_logit_source source = source_of(&s, true);
    ck_assert_int_eq(prg_generation_new(text.allocator, &source, prompt, PROMPT, NULL, &g, NULL),
                     PERIGEE_E_CONTEXT_FULL);
}
END_TEST

/* A step that fails is repeated by the next call, with the same outcome as if it had not. */
START_TEST(test_repeated) {
    int32_t ids[64];
    for (size_t call = 1; call < 10; call++) {
        script s = {.ids = ids, .count = spell("abcdef", ids), .fail_at = call};
        perigee_generation *g = begin(&s, NULL);
        char all[64] = "";
        perigee_generated out = {.struct_size = sizeof out};
        int failures = 0;
        while (out.finish == PERIGEE_FINISH_NONE) {
            perigee_status st = prg_generation_next(g, false, &out, NULL);
            failures += st != PERIGEE_OK;
            ck_assert(st == PERIGEE_OK || (st == PERIGEE_E_IO && out.id == -1 && out.text_length == 0));
            strcat(all, out.text);
        }
        ck_assert_int_eq(failures, 1);
        ck_assert_str_eq(all, "abcdef");
        perigee_generation_free(g);
    }
    script s = {.ids = ids, .count = spell("abcdef", ids), .bad_logits = true};
    perigee_generation *g = begin(&s, NULL);
    perigee_generated out = {.struct_size = sizeof out};
    ck_assert_int_eq(prg_generation_next(g, false, &out, NULL), PERIGEE_E_NOT_FINITE);
    ck_assert_int_eq(out.id, -1);
    perigee_generation_free(g);
}
END_TEST

START_TEST(test_without_tokenizer) {
    int32_t ids[64];
    script s = {.ids = ids, .count = spell("abc", ids)};
    const prg_logit_source source = source_of(&s, false);
    perigee_generation *g = NULL;
    perigee_generation_options *o = make_options();
    ck_assert_int_eq(prg_generation_options_add_string(o, "x", 1, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_generation_new(text.allocator, &source, prompt, PROMPT, o, &g, NULL), PERIGEE_E_UNSUPPORTED);
    ck_assert_int_eq(prg_generation_new(text.allocator, &source, prompt, PROMPT, NULL, &g, NULL), PERIGEE_OK);
    for (size_t i = 0; i < 4; i++) {
        perigee_generated out = next(g);
        ck_assert(out.id == ids[i] && out.text_length == 0);
        ck_assert_int_eq(out.finish, i == 3 ? PERIGEE_FINISH_STOP : PERIGEE_FINISH_NONE);
    }
    perigee_generation_free(g);
    const int32_t outside = (int32_t)vocabulary;
    ck_assert_int_eq(prg_generation_new(text.allocator, &source, &outside, 1, NULL, &g, NULL), PERIGEE_E_TOKEN);
    perigee_generation_options_free(o);
}
END_TEST

START_TEST(test_stop_ids) {
    int32_t ids[64];
    char all[64];
    size_t tokens;
    script s = {.ids = ids, .count = spell("abcd", ids)};
    perigee_generation_options *o = make_options();
    ck_assert_int_eq(prg_generation_options_add_id(o, byte_ids['c'], NULL), PERIGEE_OK);
    perigee_generation *g = begin(&s, o);
    ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_STOP);
    ck_assert_str_eq(all, "ab"); /* a stop id gives no text */
    perigee_generation_free(g);
    s.position = 0;
    o->default_stops = false;
    o->stop_id_count = 0;
    o->max_tokens = 5;
    g = begin(&s, o);
    ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_LENGTH); /* the end token is one like others */
    perigee_generation_free(g);
    perigee_generation_options_free(o);
}
END_TEST

START_TEST(test_log_probabilities) {
    script s = {.ids = NULL};
    perigee_generation_options *o = make_options();
    o->top = 5;
    const prg_stage stages[] = {{PRG_STAGE_TEMPERATURE, 0.5, 0, NULL, NULL}, {PRG_STAGE_TOP_K, 0, 3, NULL, NULL}};
    ck_assert_int_eq(prg_sampler_new(text.allocator, &o->sampler, NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_sampler_add(o->sampler, &stages[0], NULL), PERIGEE_OK);
    ck_assert_int_eq(prg_sampler_add(o->sampler, &stages[1], NULL), PERIGEE_OK);
    perigee_generation *g = begin(&s, o);
    for (int i = 0; i < 10; i++) {
        perigee_generated out = next(g);
        double sum = 0, best = 0;
        for (size_t k = 0; k < vocabulary; k++) {
            sum += exp((double)row[k]);
            best = fmax(best, (double)row[k]);
        }
        ck_assert_double_eq_tol(out.log_probability, (double)row[out.id] - log(sum), 1e-11);
        ck_assert_uint_eq(out.top_count, 5);
        ck_assert_double_eq_tol(out.top_log_probabilities[0], best - log(sum), 1e-11);
        bool among = false;
        for (size_t k = 0; k < 5; k++) {
            among = among || (k < 3 && out.top_ids[k] == out.id);
            ck_assert_double_eq_tol(out.top_log_probabilities[k], (double)row[out.top_ids[k]] - log(sum), 1e-11);
            ck_assert(k == 0 || row[out.top_ids[k]] <= row[out.top_ids[k - 1]]);
        }
        ck_assert(among);
    }
    perigee_generation_free(g);
    perigee_generation_options_free(o);
}
END_TEST

START_TEST(test_constraint) {
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"x\",\"y\"]},\"b\":{\"type\":"
                                 "\"integer\",\"maximum\":99,\"minimum\":1}},\"required\":[\"a\",\"b\"],"
                                 "\"additionalProperties\":false}";
    perigee_constraint *c = NULL;
    ck_assert_int_eq(perigee_constraint_from_schema(text.tokenizer, schema, SIZE_MAX, &c, NULL), PERIGEE_OK);
    for (int round = 0; round < 20; round++) {
        char all[4096];
        size_t tokens;
        script s = {.position = 0};
        perigee_generation_options *o = make_options();
        const prg_stage hot = {PRG_STAGE_TEMPERATURE, 2, 0, NULL, NULL};
        ck_assert_int_eq(prg_sampler_new(text.allocator, &o->sampler, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_sampler_add(o->sampler, &hot, NULL), PERIGEE_OK);
        perigee_sampler_set_seed(o->sampler, (uint64_t)round);
        ck_assert_int_eq(prg_constraint_clone(c, &o->constraint, NULL), PERIGEE_OK);
        perigee_generation *g = begin(&s, o);
        ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_STOP);
        const prg_json *v = NULL, *w = NULL;
        ck_assert_int_eq(prg_json_parse(&text.arena, all, strlen(all), 64, NULL, &v, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_json_parse(&text.arena, schema, strlen(schema), 64, NULL, &w, NULL), PERIGEE_OK);
        ck_assert_msg(json_valid(w, w, v), "%s", all);
        perigee_generation_free(g);
        perigee_generation_options_free(o);
    }
    perigee_constraint_free(c);
}
END_TEST

/* A stop id that is a token of the text ends it where it is complete and nowhere else. */
START_TEST(test_constrained_stop_id) {
    int32_t ids[64];
    char all[64];
    size_t tokens;
    script s = {.ids = ids, .count = spell("a;b;", ids)};
    perigee_generation_options *o = make_options();
    ck_assert_int_eq(prg_generation_options_add_id(o, byte_ids[';'], NULL), PERIGEE_OK);
    ck_assert_int_eq(perigee_constraint_from_regex(text.tokenizer, "a;b(;c)?", SIZE_MAX, &o->constraint, NULL),
                     PERIGEE_OK);
    perigee_generation *g = begin(&s, o);
    ck_assert_int_eq(run(g, all, &tokens), PERIGEE_FINISH_STOP);
    ck_assert_str_eq(all, "a;b");
    ck_assert_uint_eq(tokens, 4);
    perigee_generation_free(g);
    perigee_generation_options_free(o);
}
END_TEST

typedef struct host {
    size_t left; /* allocations that succeed before one fails */
    bool spent;
} host;

static void *allocate(size_t size, size_t alignment, void *user) {
    host *h = user;
    void *p = NULL;
    if (h->left == 0 && !h->spent) {
        h->spent = true;
        return NULL;
    }
    h->left -= h->left > 0;
    return posix_memalign(&p, alignment, size) == 0 ? p : NULL;
}

static void deallocate(void *pointer, size_t size, void *user) {
    (void)size;
    (void)user;
    free(pointer);
}

/* Each allocation fails once; the call is repeated and nothing of the text is lost or comes twice. */
START_TEST(test_memory) {
    int32_t ids[64];
    bool done = false;
    for (size_t n = 1; !done; n++) {
        host h = {n, false};
        const perigee_allocator interface = {sizeof interface, allocate, deallocate, &h, NULL};
        prg_allocator *a = NULL;
        ck_assert_int_eq(prg_allocator_new(&interface, &a, NULL), PERIGEE_OK);
        script s = {.ids = ids, .count = spell("abSTcd\xe4\xb8\x96 long text that makes the buffer grow ST", ids)};
        perigee_generation_options *o = make_options();
        ck_assert_int_eq(prg_generation_options_add_string(o, "STOP", 4, NULL), PERIGEE_OK);
        o->top = 2;
        o->max_tokens = 50;
        perigee_generation *g = NULL;
        const prg_logit_source source = source_of(&s, true);
        char all[256] = "";
        while (!g) {
            perigee_status st = prg_generation_new(a, &source, prompt, PROMPT, o, &g, NULL);
            ck_assert(st == PERIGEE_OK || (st == PERIGEE_E_MEMORY && !g));
        }
        perigee_generated out = {.struct_size = sizeof out};
        size_t tokens = 0;
        while (out.finish == PERIGEE_FINISH_NONE) {
            perigee_status st = prg_generation_next(g, false, &out, NULL);
            ck_assert(st == PERIGEE_OK || st == PERIGEE_E_MEMORY);
            strcat(all, out.text);
            tokens += out.id >= 0;
        }
        ck_assert_uint_eq(tokens, s.count < 50 ? s.count : 50);
        ck_assert_str_eq(all, "abSTcd\xe4\xb8\x96 long text that makes the buffer grow ST");
        done = !h.spent;
        perigee_generation_free(g);
        perigee_generation_options_free(o);
        ck_assert_uint_eq(a->bytes, 0);
        prg_allocator_drop(a);
    }
}
END_TEST

PRG_SUITE("generation", setup, teardown, test_plain, test_stop_strings, test_held_back, test_length, test_cancel,
          test_context_full, test_repeated, test_without_tokenizer, test_stop_ids, test_log_probabilities,
          test_constraint, test_constrained_stop_id, test_memory)
