/* perigee run: a prompt in, the continuation or the answer out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "kernel_report.h"
#include "run_ids.h"
#include "sampling.h"
#include "verbs.h"

static const cli_option options[] = {
    {"prompt", CLI_TEXT, "TEXT", 0, 0, NULL, "text to go on from"},
    {"prompt-file", CLI_TEXT, "FILE", 0, 0, NULL, "the same from a file; - reads standard input"},
    {"messages", CLI_TEXT, "FILE", 0, 0, NULL, "conversation to answer: a JSON array in OpenAI's form"},
    {"ids", CLI_TEXT, "1,2,3", 0, 0, NULL,
     "token ids to go on from; ids are printed, greedy ones without other options"},
    {"greedy", CLI_INT, "N", 0, INT32_MAX, "16", "with --ids: ids to generate, each the most likely one"},
    {"logits", CLI_TEXT, "FILE", 0, 0, NULL, "with --ids: write ids and logits of the prompt, as safetensors"},
    {"trace", CLI_TEXT, "FILE", 0, 0, NULL, "with --ids: write the residual stream after each layer, likewise"},
    {"markup", CLI_FLAG, NULL, 0, 0, NULL, "names of special tokens in the prompt are those tokens"},
    {"no-bos", CLI_FLAG, NULL, 0, 0, NULL, "do not put the model's first token in front of a prompt"},
    {"max-tokens", CLI_INT, "N", 1, INT32_MAX, "256", "tokens to generate at most"},
    {"log-probabilities", CLI_INT, "N", 0, 1000, NULL, "with JSON: of each token and of the N most likely"},
    {"verbose", CLI_FLAG, NULL, 0, 0, NULL, "say the rates, not on a terminal alone"},
    {"show-thinking", CLI_FLAG, NULL, 0, 0, NULL, "show thoughts, not on a terminal alone"},
    {"stream-json", CLI_FLAG, NULL, 0, 0, NULL, "for machines: a line of JSON for each token, and one at the end"},
    CLI_SAMPLING_OPTIONS,
    CLI_CHAT_OPTIONS,
};

static bool any_given(const cli_args *args, const char *const *names) {
    for (; *names; names++) {
        if (cli_given(args, *names)) {
            return true;
        }
    }
    return false;
}

static int check(const cli_args *args, bool *plain_ids) {
    static const char *const of_ids[] = {"greedy", "logits", "trace", NULL};
    static const char *const of_chats[] = {"tools",           "thinking", "effort", "tool-choice",
                                           "response-format", "format",   NULL};
    static const char *const of_generation[] = {"max-tokens",
                                                "log-probabilities",
                                                "stream-json",
                                                "repetition-penalty",
                                                "presence-penalty",
                                                "frequency-penalty",
                                                "penalty-window",
                                                "logit-bias",
                                                "temperature",
                                                "top-k",
                                                "top-p",
                                                "min-p",
                                                "seed",
                                                "stop",
                                                "schema",
                                                "regex",
                                                NULL};
    bool ids = cli_given(args, "ids");
    int sources = ids + cli_given(args, "prompt") + cli_given(args, "prompt-file") + cli_given(args, "messages");
    if (sources != 1) {
        return cli_usage(args, "needs one of --prompt, --prompt-file, --messages and --ids");
    }
    if (!cli_given(args, "messages") && any_given(args, of_chats)) {
        return cli_usage(args, "--tools, --thinking, --effort, --tool-choice, --response-format and --format go with "
                               "--messages");
    }
    if (any_given(args, of_ids) && (!ids || any_given(args, of_generation))) {
        return cli_usage(args, "--greedy, --logits and --trace go with --ids and without options of generation");
    }
    *plain_ids = ids && !any_given(args, of_generation);
    return CLI_DONE;
}

typedef struct prompt {
    perigee_chat *chat;
    cli_ids own;
    const int32_t *ids;
    size_t count;
} prompt;

static int render(const cli_args *args, const perigee_tokenizer *tokenizer, prompt *out) {
    cli_buffer messages = {NULL, 0, 0};
    cli_buffer tools = {NULL, 0, 0};
    cli_buffer format = {NULL, 0, 0};
    perigee_chat_options chat;
    int status = cli_chat_options(args, &chat, &format);
    if (status == CLI_DONE) {
        status = cli_read_file(args, cli_text(args, "messages"), &messages);
    }
    if (status == CLI_DONE && cli_text(args, "tools")) {
        status = cli_read_file(args, cli_text(args, "tools"), &tools);
    }
    perigee_error *error = NULL;
    if (status == CLI_DONE && perigee_chat_render(tokenizer, messages.data, messages.length, tools.data, tools.length,
                                                  &chat, &out->chat, &error) != PERIGEE_OK) {
        status = cli_fail(args, error);
    }
    if (status == CLI_DONE) {
        out->ids = perigee_chat_ids(out->chat, &out->count);
    }
    free(messages.data);
    free(tools.data);
    free(format.data);
    return status;
}

static int make_prompt(const cli_args *args, const cli_host *host, prompt *out) {
    const perigee_tokenizer *tokenizer = perigee_model_tokenizer(host->model);
    if (out->own.ids) {
        return CLI_DONE;
    }
    if (!tokenizer) {
        return cli_fail_text(args, "the checkpoint has no tiktoken.model; --ids takes token ids");
    }
    if (cli_given(args, "messages")) {
        return render(args, tokenizer, out);
    }
    cli_buffer text = {NULL, 0, 0};
    const char *given = cli_text(args, "prompt");
    int status = CLI_DONE;
    if (!given) {
        status = cli_read_file(args, cli_text(args, "prompt-file"), &text);
    } else if (!cli_append(&text, given, strlen(given))) {
        status = cli_fail_text(args, "out of memory");
    }
    if (status == CLI_DONE) {
        status = cli_encode(args, tokenizer, &text, cli_given(args, "markup"),
                            cli_given(args, "no-bos") ? -1 : host->info.bos, &out->own);
    }
    free(text.data);
    out->ids = out->own.ids;
    out->count = out->own.count;
    return status == CLI_DONE && out->count == 0 ? cli_fail_text(args, "the prompt is empty") : status;
}

static int set_up(const cli_args *args, const prompt *from, const cli_sampling *sampling) {
    perigee_error *error = NULL;
    const char *stop = NULL;
    /* in a chat they are looked for in the answer alone, by the one who shows it */
    for (size_t i = 0; !from->chat && (stop = cli_item(args, "stop", i)) != NULL; i++) {
        if (perigee_generation_options_add_stop_string(sampling->options, stop, SIZE_MAX, &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
    }
    if (cli_given(args, "log-probabilities") &&
        perigee_generation_options_set_log_probabilities(sampling->options, (int32_t)cli_int(args, "log-probabilities"),
                                                         &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    return CLI_DONE;
}

static int generate(const cli_args *args, cli_host *host, const prompt *from, const cli_sampling *sampling) {
    bool ids = cli_given(args, "ids");
    bool lines = cli_given(args, "stream-json");
    cli_show how = lines ? CLI_SHOW_LINES : args->json || ids ? CLI_SHOW_NOTHING : CLI_SHOW_TEXT;
    cli_answer answer;
    int status = cli_answer_begin(args, perigee_model_tokenizer(host->model), from->chat, from->count, how, &answer);
    perigee_finish finish = PERIGEE_FINISH_NONE;
    perigee_error *error = NULL;
    if (status == CLI_DONE && perigee_generate(host->session, from->ids, from->count, sampling->options,
                                               cli_answer_step, &answer, &finish, &error) != PERIGEE_OK) {
        cli_answer_end(&answer, finish);
        status = cli_fail(args, error);
    } else if (status == CLI_DONE) {
        status = cli_answer_end(&answer, finish);
    }
    if (status == CLI_DONE && lines) {
        status = cli_print_json_line(cli_answer_json(&answer, host));
    } else if (status == CLI_DONE && args->json) {
        status = cli_print_json(cli_answer_json(&answer, host));
    } else if (status == CLI_DONE && ids) {
        cli_print_ids(answer.ids, answer.count);
    }
    if (status == CLI_DONE) {
        cli_answer_rates(&answer);
        status = finish == PERIGEE_FINISH_CANCELLED ? CLI_FAILED : CLI_DONE;
    }
    cli_answer_free(&answer);
    return status;
}

static int run_open(const cli_args *args, cli_host *host, prompt *from, bool plain_ids) {
    if (plain_ids) {
        return run_ids(args, host, &from->own);
    }
    cli_sampling sampling;
    int status = cli_sampling_open(args, host, &sampling);
    if (status == CLI_DONE) {
        status = make_prompt(args, host, from);
    }
    if (status == CLI_DONE) {
        status = set_up(args, from, &sampling);
    }
    if (status == CLI_DONE) {
        status = generate(args, host, from, &sampling);
    }
    cli_sampling_close(&sampling);
    return status;
}

static int run(const cli_args *args) {
    prompt from = {NULL, {NULL, 0}, NULL, 0};
    bool plain_ids = false;
    int status = check(args, &plain_ids);
    if (status != CLI_DONE) {
        return status;
    }
    if (cli_given(args, "ids")) {
        if (!cli_parse_ids(cli_text(args, "ids"), &from.own)) {
            return cli_usage(args, "--ids takes token ids, as 1,2,3");
        }
        from.ids = from.own.ids;
        from.count = from.own.count;
    }
    const char *path = cli_model_path(args);
    cli_host host = {NULL, NULL, NULL, NULL, {0}, 0};
    status = path ? cli_open_model(args, path, &host) : CLI_FAILED;
    if (status == CLI_DONE) {
        status = cli_open_session(args, &host);
    }
    if (status == CLI_DONE) {
        status = run_open(args, &host, &from, plain_ids);
    }
    status = kernel_report(args, &host, status);
    perigee_chat_free(from.chat);
    cli_close(&host);
    free(from.own.ids);
    return status;
}

const cli_verb verb_run = {
    .name = "run",
    .words = "[MODEL]",
    .word_count = 1,
    .optional_words = 1,
    .scopes = CLI_LOAD,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "go on from a prompt, or answer a conversation\nThe text is shown as it comes. MODEL is a folder in the "
            "published layout; without it, nano-k3. A conversation is put into the model's chat format; thoughts are "
            "shown on a terminal, the answer everywhere.",
    .run = run,
};
