#include "sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add_biases(const cli_args *args, perigee_sampler *sampler) {
    int32_t ids[CLI_MAX_ITEMS];
    float biases[CLI_MAX_ITEMS];
    size_t count = 0;
    const char *text = NULL;
    for (; (text = cli_item(args, "logit-bias", count)) != NULL; count++) {
        char *end = NULL;
        errno = 0;
        long id = strtol(text, &end, 10);
        bool good = !errno && end != text && (*end == '=' || *end == ':') && id >= 0 && id <= INT32_MAX;
        const char *number = good ? end + 1 : text;
        biases[count] = strtof(number, &end);
        if (!good || end == number || *end || !isfinite(biases[count])) {
            return cli_usage(args, "--logit-bias takes ID=X, not '%s'", text);
        }
        ids[count] = (int32_t)id;
    }
    perigee_error *error = NULL;
    return count == 0 || perigee_sampler_add_bias(sampler, ids, biases, count, &error) == PERIGEE_OK
               ? CLI_DONE
               : cli_fail(args, error);
}

static int add_penalties(const cli_args *args, perigee_sampler *sampler) {
    static const struct {
        const char *name;
        perigee_status (*add)(perigee_sampler *, double, size_t, perigee_error **);
    } penalties[] = {{"repetition-penalty", perigee_sampler_add_repetition},
                     {"presence-penalty", perigee_sampler_add_presence},
                     {"frequency-penalty", perigee_sampler_add_frequency}};
    size_t window = (size_t)cli_int(args, "penalty-window");
    for (size_t i = 0; i < sizeof penalties / sizeof *penalties; i++) {
        perigee_error *error = NULL;
        if (cli_given(args, penalties[i].name) &&
            penalties[i].add(sampler, cli_real(args, penalties[i].name), window, &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
    }
    return CLI_DONE;
}

static int add_draws(const cli_args *args, perigee_sampler *sampler) {
    perigee_error *error = NULL;
    if (perigee_sampler_add_temperature(sampler, cli_real(args, "temperature"), &error) != PERIGEE_OK ||
        (cli_given(args, "top-k") &&
         perigee_sampler_add_top_k(sampler, (size_t)cli_int(args, "top-k"), &error) != PERIGEE_OK) ||
        (cli_given(args, "top-p") &&
         perigee_sampler_add_top_p(sampler, cli_real(args, "top-p"), &error) != PERIGEE_OK) ||
        (cli_given(args, "min-p") &&
         perigee_sampler_add_min_p(sampler, cli_real(args, "min-p"), &error) != PERIGEE_OK)) {
        return cli_fail(args, error);
    }
    perigee_sampler_set_seed(sampler, (uint64_t)cli_int(args, "seed"));
    return CLI_DONE;
}

static int make_constraint(const cli_args *args, const perigee_tokenizer *tokenizer, perigee_constraint **out) {
    const char *schema = cli_text(args, "schema");
    const char *pattern = cli_text(args, "regex");
    if (!schema && !pattern) {
        return CLI_DONE;
    }
    if (schema && pattern) {
        return cli_usage(args, "--schema and --regex exclude one another");
    }
    if (!tokenizer) {
        return cli_fail_text(args, "a constraint needs the tiktoken.model of the checkpoint");
    }
    perigee_error *error = NULL;
    if (pattern) {
        return perigee_constraint_from_regex(tokenizer, pattern, SIZE_MAX, out, &error) == PERIGEE_OK
                   ? CLI_DONE
                   : cli_fail(args, error);
    }
    cli_buffer text = {NULL, 0, 0};
    int status = cli_read_file(args, schema, &text);
    if (status == CLI_DONE &&
        perigee_constraint_from_schema(tokenizer, text.data, text.length, out, &error) != PERIGEE_OK) {
        status = cli_fail(args, error);
    }
    free(text.data);
    return status;
}

int cli_sampling_open(const cli_args *args, const cli_host *host, cli_sampling *out) {
    *out = (cli_sampling){NULL, NULL, NULL};
    perigee_error *error = NULL;
    const char *stop = NULL;
    for (size_t i = 0; (stop = cli_item(args, "stop", i)) != NULL; i++) {
        if (!*stop) {
            return cli_usage(args, "--stop takes a text that is not empty");
        }
    }
    if (perigee_sampler_new(host->context, &out->sampler, &error) != PERIGEE_OK ||
        perigee_generation_options_new(host->context, &out->options, &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    int status = add_penalties(args, out->sampler);
    if (status == CLI_DONE) {
        status = add_biases(args, out->sampler);
    }
    if (status == CLI_DONE) {
        status = add_draws(args, out->sampler);
    }
    if (status == CLI_DONE) {
        status = make_constraint(args, perigee_model_tokenizer(host->model), &out->constraint);
    }
    if (status != CLI_DONE) {
        return status;
    }
    if (perigee_generation_options_set_sampler(out->options, out->sampler, &error) != PERIGEE_OK ||
        perigee_generation_options_set_constraint(out->options, out->constraint, &error) != PERIGEE_OK ||
        perigee_generation_options_set_max_tokens(out->options, cli_int(args, "max-tokens"), &error) != PERIGEE_OK ||
        perigee_generation_options_set_cancel(out->options, host->cancel, &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    return CLI_DONE;
}

void cli_sampling_close(cli_sampling *sampling) {
    perigee_generation_options_free(sampling->options);
    perigee_constraint_free(sampling->constraint);
    perigee_sampler_free(sampling->sampler);
}

int cli_chat_options(const cli_args *args, perigee_chat_options *out, cli_buffer *format) {
    *out = (perigee_chat_options){.struct_size = sizeof *out,
                                  .format = cli_text(args, "format"),
                                  .format_length = SIZE_MAX,
                                  .effort = cli_text(args, "effort"),
                                  .effort_length = SIZE_MAX,
                                  .tool_choice = cli_text(args, "tool-choice"),
                                  .tool_choice_length = SIZE_MAX,
                                  .response_format = cli_text(args, "response-format"),
                                  .response_format_length = SIZE_MAX};
    const char *thinking = cli_text(args, "thinking");
    bool constrained = cli_text(args, "schema") || cli_text(args, "regex");
    if (thinking && strcmp(thinking, "on") != 0 && strcmp(thinking, "off") != 0) {
        return cli_usage(args, "--thinking takes on or off, not '%s'", thinking);
    }
    if (thinking && constrained && strcmp(thinking, "on") == 0) {
        return cli_usage(args, "--thinking on excludes --schema and --regex, which begin with the first token");
    }
    if (thinking || constrained) {
        out->thinking = thinking && strcmp(thinking, "on") == 0 ? PERIGEE_THINKING_ON : PERIGEE_THINKING_OFF;
    }
    /* a bare word stands for {"type":"word"} */
    const char *word = out->response_format;
    if (word && *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyz_")] == '\0') {
        if (!cli_append(format, "{\"type\":\"", 9) || !cli_append(format, word, strlen(word)) ||
            !cli_append(format, "\"}", 2)) {
            return cli_fail_text(args, "out of memory");
        }
        out->response_format = format->data;
    }
    return CLI_DONE;
}
