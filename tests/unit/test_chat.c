/* Chat formats against the segments of the published encoders (tests/fixtures/text). */
#include <stdio.h>

#include "support/suite.h"
#include "support/text_fixtures.h"
#include "text/chat.h"

static fixture k2, k25, k3, moonlight;

static void setup(void) {
    k2 = open_fixture("kimi_k2", 0, NULL);
    k25 = open_fixture("kimi_k25", 0, NULL);
    k3 = open_fixture("kimi_k3", 0, NULL);
    moonlight = open_fixture("deepseek_v3", 0, NULL);
}

static void teardown(void) {
    close_fixture(&k2);
    close_fixture(&k25);
    close_fixture(&k3);
    close_fixture(&moonlight);
}

static perigee_status try_render(fixture *f, const char *messages, const char *tools, perigee_chat_options o,
                                 perigee_chat **out, perigee_error **err) {
    o.struct_size = sizeof o;
    o.format_length = o.effort_length = o.tool_choice_length = o.response_format_length = SIZE_MAX;
    return perigee_chat_render(f->tokenizer, messages, SIZE_MAX, tools, SIZE_MAX, &o, out, err);
}

static perigee_chat *render(fixture *f, const char *messages, const char *tools, perigee_chat_options o) {
    perigee_chat *chat = NULL;
    perigee_error *e = NULL;
    ck_assert_msg(try_render(f, messages, tools, o, &chat, &e) == PERIGEE_OK, "%s", perigee_error_message(e));
    return chat;
}

static char *write_json(fixture *f, const prg_json *value) {
    if (!value) {
        return NULL;
    }
    prg_buffer out;
    prg_buffer_init(&out, f->allocator);
    prg_json_write(&out, value, PRG_JSON_SPACED);
    char *text = prg_arena_strndup(&f->arena, (const char *)out.data, out.length);
    prg_buffer_free(&out);
    return text;
}

/* Segments as wanted, each text encoded on its own, each control token by its id, and nothing else. */
static void check_segments(fixture *f, const perigee_chat *chat, const prg_json *want, const char *name) {
    size_t at = 0, index = 0, count;
    const int32_t *ids = perigee_chat_ids(chat, &count);
    for (const prg_json *w = want->first; w; w = w->next, index++) {
        const prg_json *text = w->first;
        bool control = text->next->kind == PRG_JSON_TRUE;
        perigee_chat_segment s = {.struct_size = sizeof s};
        ck_assert_msg(perigee_chat_get_segment(chat, index, &s, NULL) == PERIGEE_OK, "%s: segment %zu", name, index);
        ck_assert_msg(s.length == text->length && memcmp(s.text, text->text, s.length) == 0,
                      "%s: segment %zu is \"%.*s\", not \"%s\"", name, index, (int)s.length, s.text, text->text);
        ck_assert_int_eq(s.control, control);
        ck_assert_uint_eq(s.first, at);
        int32_t own[4096];
        size_t n = 1;
        if (control) {
            ck_assert_int_eq(perigee_token_id(f->tokenizer, text->text, text->length, own, NULL), PERIGEE_OK);
        } else {
            ck_assert_int_eq(perigee_encode_text(f->tokenizer, text->text, text->length, 0, own, 4096, &n, NULL),
                             PERIGEE_OK);
        }
        ck_assert_uint_eq(s.count, n);
        ck_assert(memcmp(ids + at, own, n * sizeof *own) == 0);
        at += n;
    }
    ck_assert_uint_eq(perigee_chat_segment_count(chat), index);
    ck_assert_uint_eq(count, at);
}

static const char *text_of(const prg_json *input, const char *name) {
    const prg_json *value = prg_json_get(input, name);
    return value && value->kind == PRG_JSON_STRING ? value->text : NULL;
}

START_TEST(test_xtml_cases) {
    const prg_json *root = parse_fixture(&k3, PRG_FIXTURES "/text/xtml_cases.json");
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "cases")->first; c; c = c->next, seen++) {
        const prg_json *input = prg_json_get(c, "input"), *thinking = prg_json_get(input, "thinking");
        perigee_chat_options o = {.thinking = thinking && thinking->kind == PRG_JSON_FALSE ? PERIGEE_THINKING_OFF
                                                                                           : PERIGEE_THINKING_DEFAULT,
                                  .effort = text_of(input, "thinking_effort"),
                                  .tool_choice = text_of(input, "tool_choice"),
                                  .response_format = write_json(&k3, prg_json_get(input, "response_format"))};
        perigee_chat *chat = render(&k3, write_json(&k3, prg_json_get(input, "messages")),
                                    write_json(&k3, prg_json_get(input, "tools")), o);
        check_segments(&k3, chat, prg_json_get(c, "segments"), prg_json_get(c, "name")->text);
        perigee_chat_free(chat);
    }
    ck_assert_uint_eq(seen, 23);
}
END_TEST

START_TEST(test_k2_cases) {
    const prg_json *root = parse_fixture(&k2, PRG_FIXTURES "/text/k2_cases.json");
    size_t seen = 0;
    for (const prg_json *c = prg_json_get(root, "cases")->first; c; c = c->next, seen++) {
        bool thinks = prg_json_is(prg_json_get(c, "template"), "Kimi-K2-Thinking");
        fixture *f = thinks ? &k25 : &k2;
        const prg_json *input = prg_json_get(c, "input"), *text = prg_json_get(c, "text");
        perigee_chat_options o = {.format = thinks ? "kimi_k2_thinking" : NULL,
                                  .omit_generation_prompt =
                                      prg_json_get(input, "add_generation_prompt")->kind == PRG_JSON_FALSE};
        perigee_chat *chat = render(f, write_json(&k2, prg_json_get(input, "messages")),
                                    write_json(&k2, prg_json_get(input, "tools")), o);
        size_t length;
        ck_assert_str_eq(perigee_chat_text(chat, &length), text->text);
        ck_assert_uint_eq(length, text->length);
        if (prg_json_get(c, "segments")) {
            check_segments(f, chat, prg_json_get(c, "segments"), prg_json_get(c, "name")->text);
        } else {
            /* the forged turn is one text behind the user's header */
            perigee_chat_segment s = {.struct_size = sizeof s};
            size_t index = thinks ? 8 : 9;
            ck_assert_int_eq(perigee_chat_get_segment(chat, index, &s, NULL), PERIGEE_OK);
            const char *forged = prg_json_get(prg_json_get(input, "messages")->first, "content")->text;
            ck_assert(s.length == strlen(forged) && memcmp(s.text, forged, s.length) == 0 && s.control == 0);
            const int32_t *ids = perigee_chat_ids(chat, NULL);
            for (size_t i = s.first; i < s.first + s.count; i++) {
                ck_assert(!prg_tokenizer_is_special(f->tokenizer, ids[i]));
            }
        }
        perigee_chat_free(chat);
    }
    ck_assert_uint_eq(seen, 20);
}
END_TEST

static void check_text(fixture *f, const char *messages, const char *tools, perigee_chat_options o, const char *want) {
    perigee_chat *chat = render(f, messages, tools, o);
    ck_assert_str_eq(perigee_chat_text(chat, NULL), want);
    perigee_chat_free(chat);
}

#define ASK "[{\"role\": \"user\", \"content\": \"Hi\"}]"
#define ASKED "<|im_user|>user<|im_middle|>Hi<|im_end|>"
#define ANSWER "<|im_assistant|>assistant<|im_middle|>"

START_TEST(test_k25) {
    perigee_chat_options none = {0}, off = {.thinking = PERIGEE_THINKING_OFF}, on = {.thinking = PERIGEE_THINKING_ON};
    check_text(&k25, ASK, NULL, none, ASKED ANSWER "<think>");
    check_text(&k25, ASK, NULL, on, ASKED ANSWER "<think>");
    check_text(&k25, ASK, NULL, off, ASKED ANSWER "<think></think>");
    static const char turns[] =
        "[{\"role\": \"assistant\", \"content\": \"a\", \"reasoning_content\": \"r\"}, {\"role\": \"user\", \"name\": "
        "\"Bo\", \"content\": [{\"type\": \"text\", \"text\": \"x\"}, {\"type\": \"text\", \"text\": \"y\"}]}, "
        "{\"role\": \"assistant\", \"reasoning\": \"s\", \"tool_calls\": [{\"function\": {\"name\": \"f\", "
        "\"arguments\": {\"a\": [1, 2.0]}}}]}]";
    check_text(&k25, turns, NULL, none,
               ANSWER "<think></think>a<|im_end|><|im_user|>Bo<|im_middle|>xy<|im_end|>" ANSWER
                      "<think>s</think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
                      "<|tool_call_argument_begin|>{\"a\": [1, 2.0]}<|tool_call_end|><|tool_calls_section_end|>"
                      "<|im_end|>" ANSWER "<think>");
    check_text(&k25, turns, NULL, off,
               ANSWER "<think></think>a<|im_end|><|im_user|>Bo<|im_middle|>xy<|im_end|>" ANSWER
                      "<think></think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
                      "<|tool_call_argument_begin|>{\"a\": [1, 2.0]}<|tool_call_end|><|tool_calls_section_end|>"
                      "<|im_end|>" ANSWER "<think></think>");
}
END_TEST

/* Written by hand after the rules of K2.5's encoder. */
START_TEST(test_typescript) {
    perigee_chat_options none = {0};
    static const char tools[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Weather.\\n\\nOf a "
        "city.\", \"parameters\": {\"type\": \"object\", \"required\": [\"city\"], \"properties\": {\"units\": "
        "{\"type\": \"string\", \"enum\": [\"c\", \"f\"], \"description\": \"Units\", \"default\": \"c\"}, \"city\": "
        "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 9}, \"days\": {\"type\": \"array\", \"items\": "
        "{\"type\": \"integer\", \"minimum\": 1}}, \"tags\": {\"type\": \"array\", \"items\": {\"type\": "
        "\"string\"}}, \"deep\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": [\"number\", "
        "\"null\"]}}, \"additionalProperties\": false}, \"any\": {}, \"either\": {\"anyOf\": [{\"type\": "
        "\"boolean\"}, {\"$ref\": \"#/$defs/D\"}], \"default\": true}}, \"$defs\": {\"D\": {\"type\": \"object\", "
        "\"description\": \"A D.\"}}}}}, {\"type\": \"_plugin\"}, {\"type\": \"function\", \"function\": {\"name\": "
        "\"ping\"}}]";
    check_text(&k25, ASK, tools, none,
               "<|im_system|>tool_declare<|im_middle|># Tools\n\n## functions\nnamespace functions {\n"
               "// A D.\ninterface D {}\n// Weather.\n\n// Of a city.\ntype get_weather = (_: {\n"
               "  // maxLength: 9, minLength: 1\n  city: string,\n  any?: any,\n  days?: Array<\n    // minimum: 1\n"
               "    number\n  >,\n  deep?: {\n    x?: number | null,\n    [k: string]: never\n  },\n"
               "  // Default: True\n  either?: boolean | D,\n  tags?: Array<string>,\n"
               "  // Units\n  // Default: \"c\"\n  units?: \"c\" | \"f\"\n}) => any;\n"
               "type ping = (_: {}) => any;\n}\n<|im_end|>" ASKED ANSWER "<think>");
    /* what the encoder cannot write is declared as JSON, with keys in order */
    static const char *const odd[][2] = {
        {"[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": "
         "{\"oneOf\": []}}}}}]",
         "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"x\":{\"oneOf\":[]}}}},\"type\":\"function\"}"
         "]"},
        {"[{\"type\": \"function\", \"function\": {\"parameters\": {\"properties\": {\"x\": {\"type\": [\"string\", "
         "\"null\"], \"enum\": [\"a\", null, 1]}}}}}]",
         "[{\"function\":{\"parameters\":{\"properties\":{\"x\":{\"enum\":[\"a\",null,1],\"type\":[\"string\","
         "\"null\"]}}}},\"type\":\"function\"}]"},
        {"[{\"type\": \"_plugin\"}]", "[{\"type\":\"_plugin\"}]"},
        {"[{\"type\": \"function\", \"function\": {\"parameters\": {\"properties\": {\"x\": {\"type\": [\"string\", "
         "\"null\"], \"enum\": [\"a\", null]}, \"me\": {\"$ref\": \"#\"}}}}}]",
         "# Tools\n\n## functions\nnamespace functions {\ninterface parameters {\n  me?: parameters,\n  x?: \"a\" | "
         "None\n}\ntype function = (_: parameters) => any;\n}\n"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char want[1024];
        snprintf(want, sizeof want, "<|im_system|>tool_declare<|im_middle|>%s<|im_end|>" ASKED ANSWER "<think>",
                 odd[i][1]);
        check_text(&k25, ASK, odd[i][0], none, want);
    }
}
END_TEST

START_TEST(test_moonlight_and_linear) {
    perigee_chat_options none = {0}, linear = {.format = "kimi_linear"};
    check_text(&moonlight, ASK, NULL, none,
               "<|im_system|>system<|im_middle|>You are a helpful assistant<|im_end|>" ASKED ANSWER);
    check_text(&moonlight, "[{\"role\": \"system\", \"content\": \"S\"}]", NULL, none,
               "<|im_system|>system<|im_middle|>S<|im_end|>" ANSWER);
    check_text(&moonlight, ASK, NULL, linear,
               "<|im_system|>system<|im_middle|>You are a helpful assistant<|im_end|>" ASKED ANSWER);
}
END_TEST

/* Rules of K3's encoder that its cases do not show. */
START_TEST(test_xtml_rules) {
    perigee_chat_options none = {.omit_generation_prompt = 1, .thinking = PERIGEE_THINKING_OFF};
#define M(x) "<|open|>message role=\"" x "<|sep|>"
#define END "<|close|>message<|sep|><|end_of_msg|>"
#define CALLS                                                                                                          \
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a\", \"function\": {\"name\": \"f\", "   \
    "\"arguments\": \"{\\\"x\\\":1.50,\\\"y\\\":[1e5,{\\\"é\\\":\\\"\\\\u0007\\\"}]}\"}}, {\"id\": \"b\", "           \
    "\"function\": {\"name\": \"g\", \"arguments\": \"{nonsense\"}}]}"
#define CALLED                                                                                                         \
    M("assistant\"")                                                                                                   \
    "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>"    \
    "<|open|>argument key=\"x\" type=\"number\"<|sep|>1.5<|close|>argument<|sep|><|open|>argument key=\"y\" "          \
    "type=\"array\"<|sep|>[100000.0, {\"é\": \"\\u0007\"}]<|close|>argument<|sep|><|close|>call<|sep|>"               \
    "<|open|>call tool=\"g\" index=\"2\"<|sep|><|open|>json type=\"object\"<|sep|>{nonsense<|close|>json<|sep|>"       \
    "<|close|>call<|sep|><|close|>tools<|sep|>" END
    /* results in the order of the calls, by the name of the call */
    check_text(&k3,
               "[" CALLS ", {\"role\": \"tool\", \"tool_call_id\": \"b\", \"name\": \"h\", \"content\": \"2\"}, "
               "{\"role\": \"tool\", \"tool_call_id\": \"a\", \"content\": \"1\"}]",
               NULL, none,
               CALLED M("tool\" tool=\"f\" index=\"1\"") "1" END M("tool\" tool=\"g\" index=\"2\"") "2" END);
    /* one that answers no call: the order stays */
    check_text(&k3,
               "[" CALLS ", {\"role\": \"tool\", \"tool_call_id\": \"b\", \"content\": \"2\"}, {\"role\": \"tool\", "
               "\"name\": \"q&\\\"\", \"content\": \"1\"}]",
               NULL, none,
               CALLED M("tool\" tool=\"g\" index=\"1\"") "2" END M("tool\" tool=\"q&amp;&quot;\" index=\"2\"") "1" END);
    check_text(&k3,
               "[{\"role\": \"tool\", \"tool\": \"q\", \"content\": \"1\"}, {\"role\": \"tool\", \"name\": \"r\", "
               "\"content\": \"2\"}]",
               NULL, none, M("tool\" tool=\"q\" index=\"1\"") "1" END M("tool\" tool=\"r\" index=\"2\"") "2" END);
    check_text(&k3,
               "[{\"role\": \"system\", \"content\": \"x\", \"tools\": [{\"type\": \"function\", \"b\": {\"z\": 1, "
               "\"a\": \"é\"}}]}]",
               NULL, none,
               M("system\" type=\"tool-declare\"") "## New Tools Available\nThe system dynamically extends the toolset "
                                                   "via lazy-loading.\nYou have access to all existing and extended "
                                                   "tools.\nHere are the specs for the "
                                                   "extended "
                                                   "tools.\n\n```json\n[{\"b\":{\"a\":\"é\",\"z\":1},\"type\":"
                                                   "\"function\"}]\n```" END);
}
END_TEST

static void refused(fixture *f, const char *messages, const char *tools, perigee_chat_options o, perigee_status want) {
    perigee_chat *chat = (perigee_chat *)&k2;
    perigee_error *e = NULL;
    perigee_status st = try_render(f, messages, tools, o, &chat, &e);
    ck_assert_msg(st == want, "%s: %s, %s", messages, perigee_status_name(st), perigee_error_message(e));
    ck_assert_ptr_eq(chat, (perigee_chat *)&k2);
    ck_assert_ptr_nonnull(e);
    perigee_error_free(e);
}

START_TEST(test_refusals) {
    perigee_chat_options none = {0};
    static const struct {
        const char *messages;
        perigee_status status;
    } bad[] = {
        {"", PERIGEE_E_FORMAT},
        {"[{]", PERIGEE_E_FORMAT},
        {"{}", PERIGEE_E_ARGUMENT},
        {"[1]", PERIGEE_E_ARGUMENT},
        {"[{\"content\": \"x\"}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": 1}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"user\", \"content\": 1}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"user\", \"content\": [\"x\"]}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"user\", \"name\": 1}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"assistant\", \"tool_calls\": {}}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {}}]}]", PERIGEE_E_ARGUMENT},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": \"u\"}}]}]",
         PERIGEE_E_UNSUPPORTED},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]", PERIGEE_E_UNSUPPORTED},
    };
    fixture *all[] = {&k2, &k25, &k3};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (size_t f = 0; f < 3; f++) {
            refused(all[f], bad[i].messages, NULL, none, bad[i].status);
        }
    }
    refused(&k3, "[{\"role\": \"tool\", \"content\": \"x\"}]", NULL, none, PERIGEE_E_ARGUMENT);
    refused(&k2, "[{\"role\": \"tool\", \"content\": \"x\"}]", NULL, none, PERIGEE_E_ARGUMENT);
    refused(&k3, "[{\"role\": \"wizard\", \"content\": \"x\"}]", NULL, none, PERIGEE_E_UNSUPPORTED);
    refused(&k3,
            "[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"[1]\"}}]}]",
            NULL, none, PERIGEE_E_ARGUMENT);
    refused(&moonlight, ASK, "[{\"type\": \"function\"}]", none, PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, "{}", none, PERIGEE_E_ARGUMENT);
    refused(&k2, ASK, NULL, (perigee_chat_options){.thinking = PERIGEE_THINKING_ON}, PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.effort = "low"}, PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.tool_choice = "none"}, PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.response_format = "{\"type\": \"json_object\"}"},
            PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.format = "kimi_k3"}, PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.format = "kimi_k2_thinking", .thinking = PERIGEE_THINKING_OFF},
            PERIGEE_E_UNSUPPORTED);
    refused(&k2, ASK, NULL, (perigee_chat_options){.format = "kimi"}, PERIGEE_E_ARGUMENT);
    refused(&k3, ASK, NULL, (perigee_chat_options){.effort = "medium"}, PERIGEE_E_ARGUMENT);
    refused(&k3, ASK, NULL, (perigee_chat_options){.tool_choice = "f"}, PERIGEE_E_UNSUPPORTED);
    refused(&k3, ASK, NULL, (perigee_chat_options){.response_format = "{}"}, PERIGEE_E_ARGUMENT);
    refused(&k3, ASK, NULL, (perigee_chat_options){.response_format = "{\"type\": \"grammar\"}"},
            PERIGEE_E_UNSUPPORTED);
}
END_TEST

/* What a user writes gives no special token, in any place and any format. */
START_TEST(test_forged) {
    fixture *all[] = {&k2, &k25, &k3, &moonlight};
    for (size_t f = 0; f < 4; f++) {
        for (int32_t slot = 0; slot < 256; slot++) {
            const char *name = all[f]->tokenizer->specials.slots[slot].name;
            char forged[512], plain[512];
            static const char form[] = "[{\"role\": \"system\", \"content\": \"%s\"}, {\"role\": \"user\", \"name\": "
                                       "\"%s\", \"content\": \"a%sb\"}]";
            snprintf(forged, sizeof forged, form, name, name, name);
            snprintf(plain, sizeof plain, form, "x", "y", "z");
            perigee_chat *a = render(all[f], forged, NULL, (perigee_chat_options){0});
            perigee_chat *b = render(all[f], plain, NULL, (perigee_chat_options){0});
            size_t counts[2] = {0, 0}, n;
            const int32_t *ids = perigee_chat_ids(a, &n);
            for (size_t i = 0; i < n; i++) {
                counts[0] += prg_tokenizer_is_special(all[f]->tokenizer, ids[i]);
            }
            ids = perigee_chat_ids(b, &n);
            for (size_t i = 0; i < n; i++) {
                counts[1] += prg_tokenizer_is_special(all[f]->tokenizer, ids[i]);
            }
            ck_assert_uint_eq(counts[0], counts[1]);
            perigee_chat_free(a);
            perigee_chat_free(b);
        }
    }
}
END_TEST

PRG_SUITE("chat", setup, teardown, test_xtml_cases, test_k2_cases, test_k25, test_typescript, test_moonlight_and_linear,
          test_xtml_rules, test_refusals, test_forged)
