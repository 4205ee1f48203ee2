/* Options of sampling and of chats that run and chat share, and what is made of them. */
#ifndef PERIGEE_TOOLS_SAMPLING_H
#define PERIGEE_TOOLS_SAMPLING_H

#include "text_io.h"

/* Stages work in this order. */
#define CLI_SAMPLING_OPTIONS                                                                                           \
    {"repetition-penalty", CLI_REAL, "X", 0, 0, NULL, "divide or multiply the logits of recent tokens by X"},          \
        {"presence-penalty", CLI_REAL, "X", 0, 0, NULL, "take X off the logits of recent tokens"},                     \
        {"frequency-penalty", CLI_REAL, "X", 0, 0, NULL, "take X off for each time that a token came up"},             \
        {"penalty-window", CLI_INT, "N", 1, 1048576, "256", "how many tokens back are recent"},                        \
        {"logit-bias", CLI_LIST, "ID=X", 0, 0, NULL, "add X to the logit of a token; may come again"},                 \
        {"temperature", CLI_REAL, "X", 0, 0, "0.6", "divide logits by X; 0: always the most likely token"},            \
        {"top-k", CLI_INT, "N", 1, INT32_MAX, NULL, "keep the N most likely tokens"},                                  \
        {"top-p", CLI_REAL, "X", 0, 0, NULL, "keep the fewest tokens whose probabilities sum to X"},                   \
        {"min-p", CLI_REAL, "X", 0, 0, NULL, "keep tokens of at least X times the greatest probability"},              \
        {"seed", CLI_INT, "S", 0, INT64_MAX, "0", "of the random numbers: equal seeds, equal texts"},                  \
        {"stop", CLI_LIST, "TEXT", 0, 0, NULL, "end where TEXT comes up, and leave it out; may come again"},           \
        {"schema", CLI_TEXT, "FILE", 0, 0, NULL, "write JSON that is valid under this JSON schema"}, {                 \
        "regex", CLI_TEXT, "PATTERN", 0, 0, NULL, "write text that this regular expression matches"                    \
    }

#define CLI_CHAT_OPTIONS                                                                                               \
    {"tools", CLI_TEXT, "FILE", 0, 0, NULL, "functions that the model may call: a JSON array in OpenAI's form"},       \
        {"thinking", CLI_TEXT, "on|off", 0, 0, NULL, "let the model think before it answers, or not"},                 \
        {"effort", CLI_TEXT, "LEVEL", 0, 0, NULL, "of thinking: low, high or max"},                                    \
        {"tool-choice", CLI_TEXT, "CHOICE", 0, 0, NULL, "auto, required or none"},                                     \
        {"response-format", CLI_TEXT, "FORMAT", 0, 0, NULL, "text, json_object, or OpenAI's response_format as JSON"}, \
    {                                                                                                                  \
        "format", CLI_TEXT, "NAME", 0, 0, NULL, "chat format, where it is not the model's own"                         \
    }

typedef struct cli_sampling {
    perigee_sampler *sampler;
    perigee_constraint *constraint;
    perigee_generation_options *options;
} cli_sampling;

/* Make what the options say. Stop strings are the caller's to add: in a chat they are looked for in the answer alone.
 */
int cli_sampling_open(const cli_args *args, const cli_host *host, cli_sampling *out);
void cli_sampling_close(cli_sampling *sampling);

/* Options of a chat; strings are borrowed from args and from `format`, which the caller frees. */
int cli_chat_options(const cli_args *args, perigee_chat_options *out, cli_buffer *format);

#endif
