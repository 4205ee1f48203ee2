#include "answer.h"
#include "kernel_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"", "thinking", "content", "call", "arguments", "call_end", "end"};

static void put(cli_answer *a, const char *text, size_t length) {
    if (length) {
        fwrite(text, 1, length, stdout);
        a->last = text[length - 1];
    }
}

static void new_line(cli_answer *a) {
    if (a->last && a->last != '\n') {
        put(a, "\n", 1);
    }
}

/* Thoughts, answer and calls stand on lines of their own. */
static void turn_to(cli_answer *a, perigee_delta_kind kind) {
    if (a->open == kind) {
        return;
    }
    if (a->open == PERIGEE_DELTA_THINKING && a->dim) {
        fputs("\033[0m", stdout);
    }
    if (a->open) {
        new_line(a);
    }
    if (kind == PERIGEE_DELTA_THINKING && a->dim) {
        fputs("\033[2m", stdout);
    }
    a->open = kind;
}

static void note_delta(cli_answer *a, const perigee_delta *delta, const char *text, size_t length) {
    json_t *row = json_pack("{s:s}", "kind", kinds[delta->kind]);
    if (delta->kind >= PERIGEE_DELTA_CALL && delta->kind <= PERIGEE_DELTA_CALL_END) {
        json_object_set_new(row, "call", json_integer((json_int_t)delta->call));
    }
    if (delta->kind == PERIGEE_DELTA_CALL) {
        json_object_set_new(row, "name", json_string(delta->name));
        json_object_set_new(row, "id", json_string(delta->id));
    } else if (length) {
        json_object_set_new(row, "text", json_stringn(text, length));
    }
    json_array_append_new(a->deltas, row);
}

static void show_text(cli_answer *a, const perigee_delta *delta, const char *text, size_t length) {
    switch (delta->kind) {
    case PERIGEE_DELTA_THINKING:
        if (a->show_thinking && length) {
            turn_to(a, delta->kind);
            put(a, text, length);
        }
        break;
    case PERIGEE_DELTA_CONTENT:
        if (length) {
            turn_to(a, delta->kind);
            put(a, text, length);
        }
        break;
    case PERIGEE_DELTA_CALL:
        turn_to(a, delta->kind);
        new_line(a);
        put(a, delta->name, strlen(delta->name));
        put(a, "(", 1);
        break;
    case PERIGEE_DELTA_ARGUMENTS:
        put(a, text, length);
        break;
    case PERIGEE_DELTA_CALL_END:
        put(a, ")", 1);
        break;
    case PERIGEE_DELTA_END:
        break;
    }
    fflush(stdout);
}

static void show(cli_answer *a, const perigee_delta *delta, const char *text, size_t length) {
    if (a->show == CLI_SHOW_LINES) {
        note_delta(a, delta, text, length);
    } else if (a->show == CLI_SHOW_TEXT) {
        show_text(a, delta, text, length);
    }
}

/* How much of the held text can be shown: all before a stop string (*found), or all that cannot begin one. */
static size_t certain(const cli_answer *a, bool *found) {
    size_t complete = a->held.length;
    size_t begun = a->held.length;
    const char *stop = NULL;
    for (size_t i = 0; (stop = cli_item(a->args, "stop", i)) != NULL; i++) {
        size_t length = strlen(stop);
        for (size_t at = 0; at < a->held.length; at++) {
            size_t left = a->held.length - at;
            if (memcmp(a->held.data + at, stop, left < length ? left : length) == 0) {
                size_t *first = length <= left ? &complete : &begun;
                *first = at < *first ? at : *first;
            }
        }
    }
    *found = complete < a->held.length;
    return *found ? complete : begun;
}

static void take_content(cli_answer *a, const perigee_delta *delta) {
    if (a->stopped) {
        return;
    }
    a->failed = a->failed || !cli_append(&a->held, delta->text, delta->length);
    bool found = false;
    size_t length = certain(a, &found);
    if (a->failed || !cli_append(&a->text, a->held.data, length)) {
        a->failed = true;
        return;
    }
    show(a, delta, a->held.data, length);
    memmove(a->held.data, a->held.data + length, a->held.length - length);
    a->held.length -= length;
    a->stopped = found;
}

static void take_deltas(cli_answer *a, size_t count) {
    for (size_t i = 0; i < count && !a->failed; i++) {
        perigee_delta delta = {.struct_size = sizeof delta};
        if (perigee_parser_get_delta(a->parser, i, &delta, NULL) != PERIGEE_OK) {
            a->failed = true;
        } else if (delta.kind == PERIGEE_DELTA_CONTENT) {
            take_content(a, &delta);
        } else if (!a->stopped) {
            show(a, &delta, delta.text, delta.length);
        }
    }
}

int cli_answer_begin(const cli_args *args, const perigee_tokenizer *tokenizer, const perigee_chat *chat,
                     size_t prompt_tokens, cli_show how, cli_answer *out) {
    bool terminal = isatty(STDOUT_FILENO) != 0;
    *out = (cli_answer){.args = args, .tokenizer = tokenizer, .show = how, .prompt_tokens = (int64_t)prompt_tokens};
    out->dim = terminal;
    out->show_thinking = terminal || cli_given(args, "show-thinking");
    out->log_probabilities = json_array();
    out->begun = out->first = cli_now();
    cli_progress_begin(&out->progress, "prompt");
    perigee_error *error = NULL;
    if (chat && perigee_parser_new(tokenizer, chat, &out->parser, &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    return CLI_DONE;
}

static json_t *log_probability_json(const perigee_generated *step) {
    json_t *row =
        json_pack("{s:i,s:f,s:[]}", "id", (int)step->id, "log_probability", step->log_probability, "most_likely");
    for (size_t i = 0; i < step->top_count; i++) {
        json_array_append_new(
            json_object_get(row, "most_likely"),
            json_pack("{s:i,s:f}", "id", (int)step->top_ids[i], "log_probability", step->top_log_probabilities[i]));
    }
    return row;
}

static bool keep_id(cli_answer *a, int32_t id) {
    if (a->count == a->room) {
        size_t room = 2 * a->room + 64;
        int32_t *grown = realloc(a->ids, room * sizeof *grown);
        if (!grown) {
            return false;
        }
        a->ids = grown;
        a->room = room;
    }
    a->ids[a->count++] = id;
    return true;
}

static void print_line(cli_answer *a, const perigee_generated *step) {
    json_t *line = json_pack("{s:i}", "id", (int)step->id);
    if (a->parser) {
        json_object_set(line, "deltas", a->deltas);
    } else {
        json_object_set_new(line, "text", json_stringn(step->text, step->text_length));
    }
    size_t known = json_array_size(a->log_probabilities);
    if (known) {
        json_object_update(line, json_array_get(a->log_probabilities, known - 1));
    }
    cli_print_json_line(line);
}

int cli_answer_step(const perigee_generated *step, void *user) {
    cli_answer *a = user;
    if (step->id < 0 && step->finish == PERIGEE_FINISH_NONE) {
        cli_progress_show(&a->progress, step->prompt_tokens, a->prompt_tokens);
        return 0;
    }
    cli_progress_end(&a->progress);
    a->ended = cli_now();
    if (step->id >= 0) {
        if (a->count == 0) {
            a->first = a->ended;
        }
        a->failed = a->failed || !keep_id(a, step->id);
        if (step->log_probability <= 0) { /* not a number unless asked for */
            json_array_append_new(a->log_probabilities, log_probability_json(step));
        }
    }
    json_decref(a->deltas);
    a->deltas = json_array();
    if (a->parser) {
        size_t count = 0;
        a->failed =
            a->failed || (step->id >= 0 && perigee_parser_push(a->parser, step->id, &count, NULL) != PERIGEE_OK);
        take_deltas(a, a->failed ? 0 : count);
    } else {
        const perigee_delta plain = {.kind = PERIGEE_DELTA_CONTENT};
        a->failed = a->failed || !cli_append(&a->text, step->text, step->text_length);
        if (a->show == CLI_SHOW_TEXT) {
            show_text(a, &plain, step->text, step->text_length);
        }
    }
    if (a->show == CLI_SHOW_LINES && (step->id >= 0 || step->text_length)) {
        print_line(a, step);
    }
    return a->failed || a->stopped;
}

int cli_answer_end(cli_answer *a, perigee_finish finish) {
    cli_progress_end(&a->progress);
    a->finish = finish;
    if (a->ended < a->begun) {
        a->ended = cli_now();
    }
    json_decref(a->deltas);
    a->deltas = json_array();
    size_t count = 0;
    if (a->parser && !a->failed) {
        /* what was held back is no stop string: nothing follows it */
        a->failed = perigee_parser_finish(a->parser, &count, NULL) != PERIGEE_OK;
        take_deltas(a, a->failed ? 0 : count);
        if (a->held.length && !a->stopped && !a->failed) {
            const perigee_delta rest = {.kind = PERIGEE_DELTA_CONTENT};
            a->failed = !cli_append(&a->text, a->held.data, a->held.length);
            show(a, &rest, a->held.data, a->held.length);
        }
    }
    if (a->show == CLI_SHOW_TEXT) {
        turn_to(a, (perigee_delta_kind)0);
        new_line(a);
        fflush(stdout);
    }
    return a->failed ? cli_fail_text(a->args, "out of memory") : CLI_DONE;
}

const char *cli_answer_finish(const cli_answer *a) {
    return perigee_finish_name(a->stopped ? PERIGEE_FINISH_STOP_STRING : a->finish);
}

json_t *cli_answer_message(cli_answer *a) {
    const char *text = NULL;
    size_t length = 0;
    if (!a->parser || perigee_parser_message(a->parser, &text, &length, NULL) != PERIGEE_OK) {
        return NULL;
    }
    json_t *message = json_loadb(text, length, JSON_ALLOW_NUL, NULL);
    if (message && a->stopped) {
        json_object_set_new(message, "content", json_stringn(a->text.data ? a->text.data : "", a->text.length));
    }
    return message;
}

static double rate(int64_t count, double seconds) {
    return seconds > 0 ? (double)count / seconds : 0;
}

json_t *cli_answer_json(cli_answer *a, const cli_host *host) {
    double prefill = a->first - a->begun;
    double decode = a->ended - a->first;
    int64_t later = a->count ? (int64_t)a->count - 1 : 0;
    json_t *json =
        json_pack("{s:s,s:s,s:I,s:I,s:f,s:f,s:f,s:f,s:f}", "family", host->info.family, "finish", cli_answer_finish(a),
                  "prompt_tokens", (json_int_t)a->prompt_tokens, "tokens", (json_int_t)a->count, "load_seconds",
                  host->load_seconds, "prefill_seconds", prefill, "decode_seconds", decode, "prompt_tokens_per_second",
                  a->count ? rate(a->prompt_tokens, prefill) : 0.0, "tokens_per_second", rate(later, decode));
    kernel_report_json(host, json);
    if (a->show == CLI_SHOW_LINES) {
        if (json_array_size(a->deltas)) {
            json_object_set(json, "deltas", a->deltas);
        }
        return json;
    }
    json_object_set_new(json, "ids", cli_ids_json(a->ids, a->count));
    if (a->parser) {
        json_object_set_new(json, "message", cli_answer_message(a));
    } else if (a->tokenizer) {
        json_object_set_new(json, "text", json_stringn(a->text.data ? a->text.data : "", a->text.length));
    }
    if (json_array_size(a->log_probabilities)) {
        json_object_set(json, "log_probabilities", a->log_probabilities);
    }
    return json;
}

void cli_answer_rates(const cli_answer *a) {
    if (a->count == 0 || !(cli_given(a->args, "verbose") || isatty(STDERR_FILENO))) {
        return;
    }
    fprintf(stderr, "[prompt %s tokens, %.1f tokens/s; generated %s, %.1f tokens/s; %s]\n",
            cli_number(a->prompt_tokens), rate(a->prompt_tokens, a->first - a->begun), cli_number((int64_t)a->count),
            rate((int64_t)a->count - 1, a->ended - a->first), cli_answer_finish(a));
}

void cli_answer_free(cli_answer *a) {
    cli_progress_end(&a->progress);
    perigee_parser_free(a->parser);
    json_decref(a->deltas);
    json_decref(a->log_probabilities);
    free(a->ids);
    free(a->text.data);
    free(a->held.data);
}
