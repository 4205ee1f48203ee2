/* perigee chat: a conversation, line by line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "kernel_report.h"
#include "sampling.h"
#include "verbs.h"

static const cli_option options[] = {
    {"system", CLI_TEXT, "TEXT", 0, 0, NULL, "system message to begin with"},
    {"max-tokens", CLI_INT, "N", 1, INT32_MAX, "1024", "tokens of an answer at most"},
    {"verbose", CLI_FLAG, NULL, 0, 0, NULL, "say the rates, not on a terminal alone"},
    {"show-thinking", CLI_FLAG, NULL, 0, 0, NULL, "show thoughts, not on a terminal alone"},
    CLI_SAMPLING_OPTIONS,
    CLI_CHAT_OPTIONS,
};

/* Going back over an answer that is rendered otherwise than it was generated takes checkpoints of recurrent state. */
static const char *const presets[] = {"checkpoints", "268435456", NULL};

typedef struct talk {
    const cli_args *args;
    cli_host *host;
    const perigee_tokenizer *tokenizer;
    cli_sampling sampling;
    perigee_chat_options chat;
    cli_buffer tools, format;
    json_t *messages;
    uint64_t turns;
    bool terminal;
} talk;

static const char help[] =
    "/reset       begin anew\n"
    "/save FILE   write the conversation to FILE, as messages in JSON, and the session to FILE.state\n"
    "/load FILE   read them again\n"
    "/help        this\n"
    "A line that ends in \\ goes on with the next one. Ctrl-C stops an answer, Ctrl-D ends the program.\n";

static void begin_messages(talk *t) {
    json_decref(t->messages);
    t->messages = json_array();
    const char *system = cli_text(t->args, "system");
    if (system) {
        json_array_append_new(t->messages, json_pack("{s:s,s:s}", "role", "system", "content", system));
    }
    perigee_session_reset(t->host->session);
}

/* Rewind the session to what it has in common with the prompt; the rest is taken in by the generation. */
static int rewind_to(talk *t, const int32_t *ids, size_t count, perigee_error **error) {
    perigee_session *session = t->host->session;
    const int32_t *held = NULL;
    size_t there = perigee_session_tokens(session, &held);
    size_t common = 0;
    while (common < there && common + 1 < count && held[common] == ids[common]) {
        common++;
    }
    int64_t nearest = 0;
    perigee_status status = PERIGEE_OK;
    if (common < there) {
        status = perigee_session_rewind(session, (int64_t)common, &nearest, t->host->cancel, error);
    }
    if (status == PERIGEE_E_STATE && nearest > 0) {
        perigee_error_free(*error);
        status = perigee_session_rewind(session, nearest, NULL, t->host->cancel, error);
    } else if (status == PERIGEE_E_STATE) {
        perigee_error_free(*error);
        *error = NULL;
        perigee_session_reset(session);
        status = PERIGEE_OK;
    }
    return status == PERIGEE_OK;
}

/* Stop words, seeds and the like go with the turn: the same conversation gives the same answers. */
static int answer(talk *t, const perigee_chat *chat) {
    size_t count = 0;
    const int32_t *ids = perigee_chat_ids(chat, &count);
    perigee_error *error = NULL;
    perigee_finish finish = PERIGEE_FINISH_NONE;
    cli_answer said;
    perigee_sampler_set_seed(t->sampling.sampler, (uint64_t)cli_int(t->args, "seed") + t->turns);
    int status =
        cli_answer_begin(t->args, t->tokenizer, chat, count, t->args->json ? CLI_SHOW_NOTHING : CLI_SHOW_TEXT, &said);
    if (status == CLI_DONE &&
        perigee_generation_options_set_sampler(t->sampling.options, t->sampling.sampler, &error) == PERIGEE_OK &&
        rewind_to(t, ids, count, &error)) {
        size_t kept = (size_t)perigee_session_position(t->host->session);
        said.prompt_tokens = (int64_t)(count - kept);
        perigee_generate(t->host->session, ids + kept, count - kept, t->sampling.options, cli_answer_step, &said,
                         &finish, &error);
    }
    int shown = cli_answer_end(&said, finish);
    status = status == CLI_DONE ? shown : status;
    bool full = finish == PERIGEE_FINISH_CONTEXT_FULL || perigee_error_status(error) == PERIGEE_E_CONTEXT_FULL;
    if (error) {
        bool cancelled = perigee_error_status(error) == PERIGEE_E_CANCELLED;
        if (cancelled) {
            perigee_error_free(error);
        }
        status = cancelled ? CLI_DONE : cli_fail(t->args, error);
    } else if (status == CLI_DONE && said.count > 0) {
        json_t *message = cli_answer_message(&said);
        status = message && json_array_append_new(t->messages, message) == 0 ? CLI_DONE
                                                                             : cli_fail_text(t->args, "out of memory");
        t->turns++;
        if (t->args->json) {
            cli_print_json_line(cli_answer_json(&said, t->host));
        }
        cli_answer_rates(&said);
    }
    if (full) {
        fprintf(stderr, "[the context is full; /reset begins anew]\n");
    }
    cli_answer_free(&said);
    return status;
}

static int say(talk *t, const char *line, size_t length) {
    json_t *content = json_stringn(line, length);
    if (!content) {
        return cli_fail_text(t->args, "the line is not valid UTF-8");
    }
    json_array_append_new(t->messages, json_pack("{s:s,s:o}", "role", "user", "content", content));
    size_t before = json_array_size(t->messages);
    char *text = json_dumps(t->messages, JSON_COMPACT);
    perigee_chat *chat = NULL;
    perigee_error *error = NULL;
    int status = CLI_FAILED;
    if (!text) {
        cli_fail_text(t->args, "out of memory");
    } else if (perigee_chat_render(t->tokenizer, text, SIZE_MAX, t->tools.data, t->tools.length, &t->chat, &chat,
                                   &error) != PERIGEE_OK) {
        cli_fail(t->args, error);
    } else {
        status = answer(t, chat);
    }
    if (json_array_size(t->messages) == before) {
        json_array_remove(t->messages, before - 1); /* a question without an answer is forgotten */
    }
    perigee_chat_free(chat);
    free(text);
    return status;
}

static bool state_path(char *out, size_t size, const char *path) {
    int length = snprintf(out, size, "%s.state", path);
    return length > 0 && (size_t)length < size;
}

static int save(talk *t, const char *path) {
    char state[4096];
    perigee_error *error = NULL;
    if (!state_path(state, sizeof state, path) ||
        json_dump_file(t->messages, path, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0) {
        return cli_fail_text(t->args, "%s: %s", path, strerror(errno));
    }
    if (perigee_state_save_file(t->host->session, NULL, state, SIZE_MAX, &error) != PERIGEE_OK) {
        return cli_fail(t->args, error);
    }
    fprintf(stderr, "[saved %s and %s]\n", path, state);
    return CLI_DONE;
}

static int load(talk *t, const char *path) {
    char state[4096];
    json_error_t wrong;
    json_t *messages = state_path(state, sizeof state, path) ? json_load_file(path, JSON_ALLOW_NUL, &wrong) : NULL;
    if (!json_is_array(messages)) {
        json_decref(messages);
        return cli_fail_text(t->args, "%s: not a conversation", path);
    }
    json_decref(t->messages);
    t->messages = messages;
    t->turns = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
        t->turns += role && strcmp(role, "assistant") == 0;
    }
    perigee_error *error = NULL;
    if (perigee_state_load_file(t->host->session, NULL, state, SIZE_MAX, &error) != PERIGEE_OK) {
        fprintf(stderr, "[%s: %s; the conversation will be taken in anew]\n", state, perigee_error_message(error));
        perigee_error_free(error);
        perigee_session_reset(t->host->session);
    }
    fprintf(stderr, "[loaded %s: %zu messages]\n", path, json_array_size(messages));
    return CLI_DONE;
}

static int command(talk *t, const char *line) {
    if (strcmp(line, "/help") == 0) {
        fputs(help, stderr);
        return CLI_DONE;
    }
    if (strcmp(line, "/reset") == 0) {
        begin_messages(t);
        t->turns = 0;
        return CLI_DONE;
    }
    if (strncmp(line, "/save ", 6) == 0 && line[6]) {
        return save(t, line + 6);
    }
    if (strncmp(line, "/load ", 6) == 0 && line[6]) {
        return load(t, line + 6);
    }
    return cli_fail_text(t->args, "no such command; /help lists them");
}

/* A line, with the ones that it goes on with. False at the end. An interrupt drops what was typed. */
static bool read_line(talk *t, cli_buffer *out) {
    char *line = NULL;
    size_t room = 0;
    bool more = true;
    bool first = true;
    out->length = 0;
    while (more) {
        if (t->terminal) {
            fputs(first ? "> " : ". ", stderr);
        }
        errno = 0;
        ssize_t length = getline(&line, &room, stdin);
        if (length < 0 && errno == EINTR) {
            clearerr(stdin);
            perigee_cancel_reset(t->host->cancel);
            out->length = 0;
            first = true;
            fputs("\n", stderr);
            continue;
        }
        if (length < 0) {
            break;
        }
        first = false;
        size_t kept = (size_t)length;
        kept -= kept > 0 && line[kept - 1] == '\n';
        more = kept > 0 && line[kept - 1] == '\\';
        if (more) {
            line[kept - 1] = '\n';
        }
        if (!cli_append(out, line, kept)) {
            break;
        }
    }
    free(line);
    return !first;
}

static int converse(talk *t) {
    cli_buffer line = {NULL, 0, 0};
    int status = CLI_DONE;
    if (t->terminal) {
        fprintf(stderr, "%s. Ctrl-C stops an answer, Ctrl-D ends, /help says the rest.\n", t->host->info.family);
    }
    while (read_line(t, &line)) {
        if (line.length == 0) {
            continue;
        }
        perigee_cancel_reset(t->host->cancel);
        int result = line.data[0] == '/' ? command(t, line.data) : say(t, line.data, line.length);
        perigee_cancel_reset(t->host->cancel);
        /* on a terminal a turn that fails is no end; in a pipe it shows in the exit status */
        status = t->terminal || status != CLI_DONE ? status : result;
    }
    if (t->terminal) {
        fputs("\n", stderr);
    }
    free(line.data);
    return status;
}

static int set_up(talk *t) {
    t->tokenizer = perigee_model_tokenizer(t->host->model);
    if (!t->tokenizer) {
        return cli_fail_text(t->args, "the checkpoint has no tiktoken.model");
    }
    int status = cli_chat_options(t->args, &t->chat, &t->format);
    if (status == CLI_DONE) {
        status = cli_sampling_open(t->args, t->host, &t->sampling);
    }
    if (status == CLI_DONE && cli_text(t->args, "tools")) {
        status = cli_read_file(t->args, cli_text(t->args, "tools"), &t->tools);
    }
    return status;
}

static int run(const cli_args *args) {
    cli_host host = {NULL, NULL, NULL, NULL, {0}, 0};
    talk t = {.args = args, .host = &host, .terminal = isatty(STDIN_FILENO) != 0};
    const char *path = cli_model_path(args);
    int status = path ? cli_open_model(args, path, &host) : CLI_FAILED;
    if (status == CLI_DONE) {
        status = cli_open_session(args, &host);
    }
    if (status == CLI_DONE) {
        status = set_up(&t);
    }
    if (status == CLI_DONE) {
        cli_keep_interrupts();
        begin_messages(&t);
        status = converse(&t);
    }
    json_decref(t.messages);
    free(t.tools.data);
    free(t.format.data);
    cli_sampling_close(&t.sampling);
    status = kernel_report(args, &host, status);
    cli_close(&host);
    return status;
}

const cli_verb verb_chat = {
    .name = "chat",
    .words = "[MODEL]",
    .word_count = 1,
    .optional_words = 1,
    .scopes = CLI_LOAD,
    .presets = presets,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "talk with a model\nEach line is a message; /help lists the commands. Ctrl-C stops an answer, Ctrl-D ends. "
            "In a pipe only answers are written, with --json a line for each. MODEL as for run.",
    .run = run,
};
