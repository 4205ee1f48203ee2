/* What a model says, shown as it comes: as text, or as JSON. */
#ifndef PERIGEE_TOOLS_ANSWER_H
#define PERIGEE_TOOLS_ANSWER_H

#include "text_io.h"

typedef enum cli_show { CLI_SHOW_TEXT, CLI_SHOW_NOTHING, CLI_SHOW_LINES } cli_show;

typedef struct cli_answer {
    const cli_args *args;
    const perigee_tokenizer *tokenizer;
    perigee_parser *parser; /* NULL: the text is only text */
    cli_show show;
    bool show_thinking, dim; /* dim: escape sequences for thinking */
    bool stopped;            /* by a stop string in the answer of a chat */
    bool failed;             /* out of memory */
    int64_t prompt_tokens;
    int32_t *ids;
    size_t count, room;
    cli_buffer text; /* of the answer, without thoughts and calls */
    cli_buffer held; /* may turn out to be a stop string */
    json_t *deltas;  /* of the step, where lines are shown */
    json_t *log_probabilities;
    perigee_delta_kind open; /* what was shown last; 0: nothing */
    char last;               /* character shown last */
    cli_progress progress;
    double begun, first, ended;
    perigee_finish finish;
} cli_answer;

/* `chat`: the prompt is that conversation, and the answer is parsed; NULL: it is text. */
int cli_answer_begin(const cli_args *args, const perigee_tokenizer *tokenizer, const perigee_chat *chat,
                     size_t prompt_tokens, cli_show show, cli_answer *out);
/* A perigee_generate_fn over a cli_answer. */
int cli_answer_step(const perigee_generated *step, void *user);
/* Show what is left. */
int cli_answer_end(cli_answer *answer, perigee_finish finish);
const char *cli_answer_finish(const cli_answer *answer);
/* The message of a chat in OpenAI's form; NULL without memory. */
json_t *cli_answer_message(cli_answer *answer);
/* Everything about it, for machines. */
json_t *cli_answer_json(cli_answer *answer, const cli_host *host);
/* Rates, on a terminal or where they were asked for. */
void cli_answer_rates(const cli_answer *answer);
void cli_answer_free(cli_answer *answer);

#endif
