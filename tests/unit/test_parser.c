/* The parser of a model's output: whole messages, malformed ones, and what a streaming client sees. */
#include <stdio.h>

#include "support/suite.h"
#include "support/text_fixtures.h"
#include "text/parser.h"

static fixture k2, k25, k3;

static void setup(void) {
    k2 = open_fixture("kimi_k2", 0, NULL);
    k25 = open_fixture("kimi_k25", 0, NULL);
    k3 = open_fixture("kimi_k3", 0, NULL);
}

static void teardown(void) {
    close_fixture(&k2);
    close_fixture(&k25);
    close_fixture(&k3);
}

static perigee_chat *render(fixture *f, const char *messages, perigee_chat_options o) {
    perigee_chat *chat = NULL;
    perigee_error *e = NULL;
    o.struct_size = sizeof o;
    o.format_length = SIZE_MAX;
    ck_assert_msg(perigee_chat_render(f->tokenizer, messages, SIZE_MAX, NULL, 0, &o, &chat, &e) == PERIGEE_OK, "%s",
                  perigee_error_message(e));
    return chat;
}

/* Deltas as text: T…, C…, <name id>, A…, >, E. Also checks that they add up to the message. */
typedef struct transcript {
    char text[4096];
    char message[4096];
    int32_t ended;
} transcript;

static void note(transcript *t, const perigee_parser *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        perigee_delta d = {.struct_size = sizeof d};
        ck_assert_int_eq(perigee_parser_get_delta(p, i, &d, NULL), PERIGEE_OK);
        ck_assert_int_eq(d.text[d.length], 0);
        ck_assert_uint_eq(prg_utf8_check((const unsigned char *)d.text, d.length), d.length);
        size_t at = strlen(t->text), room = sizeof t->text - at;
        switch (d.kind) {
        case PERIGEE_DELTA_THINKING:
            snprintf(t->text + at, room, "T%s|", d.text);
            break;
        case PERIGEE_DELTA_CONTENT:
            snprintf(t->text + at, room, "C%s|", d.text);
            break;
        case PERIGEE_DELTA_CALL:
            snprintf(t->text + at, room, "<%zu %s %s|", d.call, d.name, d.id);
            break;
        case PERIGEE_DELTA_ARGUMENTS:
            snprintf(t->text + at, room, "A%s|", d.text);
            break;
        case PERIGEE_DELTA_CALL_END:
            snprintf(t->text + at, room, "%zu>|", d.call);
            break;
        case PERIGEE_DELTA_END:
            snprintf(t->text + at, room, "E");
            break;
        }
    }
}

static transcript *parse_ids(fixture *f, const perigee_chat *chat, const int32_t *ids, size_t count) {
    static transcript t;
    memset(&t, 0, sizeof t);
    perigee_parser *p = NULL;
    size_t n;
    ck_assert_int_eq(perigee_parser_new(f->tokenizer, chat, &p, NULL), PERIGEE_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(perigee_parser_push(p, ids[i], &n, NULL), PERIGEE_OK);
        note(&t, p, n);
    }
    ck_assert_int_eq(perigee_parser_finish(p, &n, NULL), PERIGEE_OK);
    note(&t, p, n);
    ck_assert_int_eq(perigee_parser_finish(p, &n, NULL), PERIGEE_OK);
    ck_assert_uint_eq(n, 0);
    const char *json;
    ck_assert_int_eq(perigee_parser_message(p, &json, &n, NULL), PERIGEE_OK);
    ck_assert_uint_lt(n, sizeof t.message);
    memcpy(t.message, json, n + 1);
    t.ended = perigee_parser_ended(p);
    perigee_parser_free(p);
    return &t;
}

/* Output as text with markup: "…" between control tokens is one call of the tokenizer each. */
static transcript *parse_text(fixture *f, const perigee_chat *chat, const char *output) {
    int32_t ids[2048];
    size_t count;
    ck_assert_int_eq(perigee_encode_markup(f->tokenizer, output, SIZE_MAX, 0, ids, 2048, &count, NULL), PERIGEE_OK);
    return parse_ids(f, chat, ids, count);
}

/* Adjacent deltas of one kind joined, so that a test does not depend on where tokens end. */
static const char *joined(transcript *t) {
    static char out[4096];
    char *to = out;
    char kind = 0;
    for (const char *at = t->text; *at;) {
        const char *end = strchr(at, '|');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        bool same = *at == kind && strchr("TCA", kind);
        if (!same && to != out) {
            *to++ = '|';
        }
        memcpy(to, at + same, length - same);
        to += length - same;
        kind = *at;
        at += length + (end != NULL);
    }
    *to = 0;
    return out;
}

static void check(fixture *f, const char *output, const char *want) {
    ck_assert_str_eq(joined(parse_text(f, NULL, output)), want);
}

#define SECTION(x) "<|tool_calls_section_begin|>" x "<|tool_calls_section_end|>"
#define CALL(id, arguments) "<|tool_call_begin|>" id "<|tool_call_argument_begin|>" arguments "<|tool_call_end|>"

START_TEST(test_k2) {
    check(&k2, "Hello.<|im_end|>", "CHello.|E");
    check(&k2, "Hello.<|im_end|>more", "CHello.|E");
    check(&k2, "Hello.", "CHello.|E");
    check(&k2, "", "E");
    check(&k2, "a[EOS]", "Ca|E");
    check(&k2,
          "Look." SECTION(CALL("functions.get_weather:0", "{\"city\": \"Oslo\"}")
                              CALL(" functions.b:12 ", "")) "<|im_end|>",
          "CLook.|<0 get_weather functions.get_weather:0|A{\"city\": \"Oslo\"}|0>|<1 b functions.b:12|A{}|1>|E");
}
END_TEST

START_TEST(test_k2_malformed) {
    /* no closers */
    check(&k2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\"",
          "<0 f functions.f:0|A{\"a\"|0>|E");
    check(&k2,
          "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_begin|>functions.g:1<|im_end|>",
          "<0 f functions.f:0|A{}|0>|<1 g functions.g:1|A{}|1>|E");
    /* no header, odd ids, an argument marker alone */
    check(&k2, SECTION(CALL("", "{}")), "<0  call_0|A{}|0>|E");
    check(&k2, SECTION(CALL("plain", "{}")), "<0 plain plain|A{}|0>|E");
    check(&k2, SECTION(CALL("functions.a:b:3", "1")), "<0 a:b functions.a:b:3|A1|0>|E");
    check(&k2, "x<|tool_call_argument_begin|>y<|tool_call_end|>z", "Cxyz|E");
    /* blank tokens between calls are nothing, other text is not lost */
    check(&k2,
          "<|tool_calls_section_begin|>\n " CALL("f", "{}") "\n hm " CALL("g", "{}") "<|tool_calls_section_end|>ok",
          "<0 f f|A{}|0>|C hm|<1 g g|A{}|1>|Cok|E");
    /* markers never leak, and a turn of somebody else ends the message */
    check(&k2, "a[PAD]<media_x>b<|im_middle|>c<|im_user|>user<|im_middle|>d", "Ca<media_x>bc|E");
    ck_assert_int_eq(parse_text(&k2, NULL, "a<|im_user|>")->ended, 0);
    ck_assert_int_eq(parse_text(&k2, NULL, "a<|im_end|>")->ended, 1);
    /* the prompt did not open the answer */
    check(&k2, "<|im_assistant|>assistant<|im_middle|>Hi<|im_end|>", "CHi|E");
}
END_TEST

START_TEST(test_k2_thinking) {
    /* K2.5 opens thinking in the prompt */
    check(&k25, "hm</think>Yes.<|im_end|>", "Thm|CYes.|E");
    check(&k25, "hm<|im_end|>", "Thm|E");
    check(&k25, "hm" SECTION(CALL("functions.f:0", "{}")) "<|im_end|>", "Thm|<0 f functions.f:0|A{}|0>|E");
    check(&k25, "<think>a</think>b<think>c</think>d", "Ta|Cb|Tc|Cd|E");
    perigee_chat *off = render(&k25, "[]", (perigee_chat_options){.thinking = PERIGEE_THINKING_OFF});
    ck_assert_str_eq(joined(parse_text(&k25, off, "Yes.")), "CYes.|E");
    perigee_chat_free(off);
    /* K2 Thinking opens it itself */
    perigee_chat *own = render(&k25, "[]", (perigee_chat_options){.format = "kimi_k2_thinking"});
    ck_assert_str_eq(joined(parse_text(&k25, own, "<think>a</think>b")), "Ta|Cb|E");
    perigee_chat_free(own);
}
END_TEST

#define O(tag) "<|open|>" tag "<|sep|>"
#define C(tag) "<|close|>" tag "<|sep|>"
#define DONE C("message") "<|end_of_msg|>"

START_TEST(test_k3) {
    check(&k3, "hm" C("think") O("response") "Hi" C("response") DONE, "Thm|CHi|E");
    check(
        &k3,
        "hm" C("think") O("response") C("response") O("tools") O("call tool=\"a&quot;&amp;b\" index=\"1\"")
            O("argument key=\"s\" type=\"string\"") "x\"y\n" C("argument")
                O("argument key=\"n\" type=\"number\"") "4.50" C("argument")
                    O("argument key=\"o\" type=\"object\"") "{\"k\": [1, null]}" C("argument") C("call")
                        O("call tool=\"none\" index=\"2\"") C("call") O("call tool=\"raw\" index=\"3\"")
                            O("json type=\"object\"") "{oops" C("json") C("call") C("tools") DONE,
        "Thm|<0 a\"&b call_0|A{\"s\": \"x\\\"y\\n\", \"n\": 4.50, \"o\": {\"k\": [1, null]}}|0>|<1 none call_1|A{}|1>|"
        "<2 raw call_2|A{oops|2>|E");
    perigee_chat *off = render(&k3, "[]", (perigee_chat_options){.thinking = PERIGEE_THINKING_OFF});
    ck_assert_str_eq(joined(parse_text(&k3, off, "Hi" C("response") DONE)), "CHi|E");
    perigee_chat_free(off);
}
END_TEST

START_TEST(test_k3_malformed) {
    check(&k3, "hm", "Thm|E");
    check(&k3, "hm<|end_of_msg|>", "Thm|E");
    /* the closer of the channel was skipped, or has another name, or its <|sep|> is missing */
    check(&k3, "hm" O("response") "Hi<|end_of_msg|>", "Thm|CHi|E");
    check(&k3, "hm" C("thought") "Hi", "Thm|CHi|E");
    check(&k3, "hm<|close|>think<|open|>response<|sep|>Hi<|close|>response<|end_of_msg|>", "Thm|CHi|E");
    check(&k3, "hm" O("message role=\"user\"") "x", "Thm|E");
    check(&k3, "hm" C("think") "\n" O("response") "a<|sep|>b[PAD]c" C("response") "\n" DONE, "Thm|Cabc|E");
    /* unknown elements, and text of no channel */
    check(&k3, "hm" C("think") O("mystery a=\"b\"") "text" C("mystery"), "Thm|Ctext|E");
    /* calls without closers; a value that is not what its type says; arguments of no call */
    check(&k3,
          C("think") O("tools") O("call tool=\"f\"") O("argument key=\"a\" type=\"string\"") "x" O(
              "argument key=\"b\" type=\"number\"") "four" O("argument key=\"c\"") "7" O("call tool=\"g\""),
          "<0 f call_0|A{\"a\": \"x\", \"b\": \"four\", \"c\": 7}|0>|<1 g call_1|A{}|1>|E");
    check(&k3, C("think") O("tools") O("argument key=\"a\" type=\"string\"") "lost" C("argument") C("tools") DONE, "E");
    check(&k3, C("think") O("call") O("argument") "x" C("argument"), "<0  call_0|A{\"\": \"x\"}|0>|E");
    check(&k3, C("think") O("call tool=\"f") C("call"), "<0 f call_0|A{}|0>|E");
    check(&k3, "<|open|><|open|><|close|><|close|><|sep|><|sep|>", "E");
    /* the prompt did not open the answer */
    perigee_chat *bare = render(&k3, "[]", (perigee_chat_options){.omit_generation_prompt = 1});
    ck_assert_str_eq(joined(parse_text(&k3, bare,
                                       O("message role=\"assistant\"") O("think") "t" C("think")
                                           O("response") "r" C("response") DONE)),
                     "Tt|Cr|E");
    perigee_chat_free(bare);
}
END_TEST

/* A character that comes in pieces is never half given; what never ends is one U+FFFD. */
START_TEST(test_halves) {
    perigee_parser *p = NULL;
    ck_assert_int_eq(perigee_parser_new(k2.tokenizer, NULL, &p, NULL), PERIGEE_OK);
    static const unsigned char bytes[] = {0xF0, 0x9F, 0x98, 0x80, 0xE4, 0xBD};
    static const size_t want[] = {0, 0, 0, 1, 0, 0};
    size_t n;
    perigee_delta d = {.struct_size = sizeof d};
    for (size_t i = 0; i < sizeof bytes; i++) {
        ck_assert_int_eq(perigee_parser_push(p, k2.tokenizer->ranks.one_byte[bytes[i]], &n, NULL), PERIGEE_OK);
        ck_assert_uint_eq(n, want[i]);
    }
    ck_assert_int_eq(perigee_parser_push(p, prg_tokenizer_special(k2.tokenizer, "<|tool_call_begin|>"), &n, NULL),
                     PERIGEE_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(perigee_parser_get_delta(p, 0, &d, NULL), PERIGEE_OK);
    ck_assert_str_eq(d.text, "\xEF\xBF\xBD");
    ck_assert_int_eq(perigee_parser_push(p, -1, &n, NULL), PERIGEE_E_TOKEN);
    perigee_parser_free(p);
}
END_TEST

/* What the renderer writes for an assistant's message, the parser reads back as that message. */
START_TEST(test_round_trip) {
    static const char ask[] = "{\"role\": \"user\", \"content\": \"go\"}";
    static const char *const answers[] = {
        "{\"role\": \"assistant\", \"content\": \"Hello — 你好 <|im_end|> <|open|>\"}",
        ("{\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"why\", \"tool_calls\": [{\"id\": "
         "\"call_0\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"s\\\": "
         "\\\"\\u0001\\\\\\\"quoted\\\\\\\"\\\", \\\"n\\\": -1, \\\"deep\\\": [{\\\"a\\\": true}, null]}\"}}, {\"id\": "
         "\"call_1\", \"type\": \"function\", \"function\": {\"name\": \"g\", \"arguments\": \"{}\"}}]}"),
        "{\"role\": \"assistant\", \"content\": \"\", \"reasoning_content\": \"why\"}",
        ("{\"role\": \"assistant\", \"content\": \"Look.\", \"tool_calls\": [{\"id\": \"functions.f:0\", \"type\": "
         "\"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"s\\\":   [1]}\"}}]}"),
    };
    fixture *all[] = {&k2, &k25, &k3};
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
            /* K2 drops reasoning of answers, and the ids of its calls hold their names; K3 has no ids */
            if ((f < 2 && i == 1) || (f < 2 && i == 2) || (f == 2 && i == 3)) {
                continue;
            }
            char before[256], after[2048];
            snprintf(before, sizeof before, "[%s]", ask);
            snprintf(after, sizeof after, "[%s, %s]", ask, answers[i]);
            perigee_chat *prompt = render(all[f], before, (perigee_chat_options){0});
            perigee_chat *whole = render(all[f], after, (perigee_chat_options){.omit_generation_prompt = 1});
            size_t n, m;
            const int32_t *head = perigee_chat_ids(prompt, &n), *ids = perigee_chat_ids(whole, &m);
            ck_assert_uint_gt(m, n);
            ck_assert(memcmp(head, ids, n * sizeof *ids) == 0);
            transcript *t = parse_ids(all[f], prompt, ids + n, m - n);
            ck_assert_str_eq(t->message, answers[i]);
            ck_assert_int_eq(t->ended, 1);
            perigee_chat_free(prompt);
            perigee_chat_free(whole);
        }
    }
}
END_TEST

/* Any ids whatever: no failure, valid UTF-8, one end, and arguments of K3 that are JSON. */
START_TEST(test_any_ids) {
    fixture *all[] = {&k2, &k25, &k3};
    uint64_t state = 7;
    for (size_t round = 0; round < 600; round++) {
        fixture *f = all[round % 3];
        int32_t ids[60];
        for (size_t i = 0; i < 60; i++) {
            uint64_t value = split_mix(&state);
            int32_t base = f->tokenizer->ranks.count;
            ids[i] = value % 3 ? base + (int32_t)(value >> 8) % 26 : (int32_t)((value >> 8) % (uint64_t)base);
            ids[i] = ids[i] < base + 2 && ids[i] >= base ? base + 3 : ids[i];
        }
        transcript *t = parse_ids(f, NULL, ids, 60);
        ck_assert(t->text[strlen(t->text) - 1] == 'E');
        const prg_json *root = NULL;
        ck_assert_int_eq(prg_json_parse(&f->arena, t->message, strlen(t->message), 64, NULL, &root, NULL), PERIGEE_OK);
    }
}
END_TEST

PRG_SUITE("parser", setup, teardown, test_k2, test_k2_malformed, test_k2_thinking, test_k3, test_k3_malformed,
          test_halves, test_round_trip, test_any_ids)
