/* The command line: verbs, their options, and what all verbs share. A client of the public headers alone. */
#ifndef PERIGEE_TOOLS_CLI_H
#define PERIGEE_TOOLS_CLI_H

#include <jansson.h>
#include <perigee/perigee.h>
#include <stdbool.h>

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };
enum { CLI_MAX_OPTIONS = 48, CLI_MAX_WORDS = 4, CLI_MAX_ITEMS = 256 };

/* CLI_LIST may be given again and again. */
typedef enum cli_kind { CLI_FLAG, CLI_INT, CLI_REAL, CLI_TEXT, CLI_LIST } cli_kind;

/* One row makes the help and the parsing of an option. */
typedef struct cli_option {
    const char *name; /* without dashes */
    cli_kind kind;
    const char *value;        /* what stands for it in the help, as "N" */
    int64_t minimum, maximum; /* of CLI_INT */
    const char *fallback;     /* value where it is not given; NULL: none */
    const char *help;
} cli_option;

/* Scopes of the library's options that a verb takes, by the names that the library lists. */
enum { CLI_CONTEXT = 1, CLI_MODEL = 2, CLI_SESSION = 4, CLI_LOAD = CLI_CONTEXT | CLI_MODEL | CLI_SESSION };

typedef struct cli_args cli_args;

typedef struct cli_verb {
    const char *name;
    const char *words; /* what stands for them in the help, as "FAMILY OUT" */
    size_t word_count;
    size_t optional_words; /* how many of them may be left out, from the last on */
    unsigned scopes;
    const char *const *presets; /* pairs of name and value, then NULL: options of the library with another default */
    bool hidden;                /* left out of the list of verbs */
    const cli_option *options;
    size_t option_count;
    const char *help;
    int (*run)(const cli_args *args);
} cli_verb;

/* A command line as parsed. */
struct cli_args {
    const cli_verb *verb;
    const char *words[CLI_MAX_WORDS];
    const char *texts[CLI_MAX_OPTIONS]; /* as given, or the fallback, or NULL */
    int64_t ints[CLI_MAX_OPTIONS];
    double reals[CLI_MAX_OPTIONS];
    bool given[CLI_MAX_OPTIONS];
    struct {
        size_t option;
        const char *text;
    } items[CLI_MAX_ITEMS]; /* of every CLI_LIST, as they came */
    size_t item_count;
    bool json;
    perigee_options *context, *model, *session, *plan; /* plan: those of model and session together */
};

extern const cli_verb *const cli_verbs[];
extern const size_t cli_verb_count;

/* Parse what follows the verb. CLI_DONE, or CLI_USAGE after saying what is wrong; *help: it was asked for. */
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args, bool *help);
void cli_free(cli_args *args);
void cli_help(const cli_verb *verb);
/* Values by name; the name must be in the verb's table. */
int64_t cli_int(const cli_args *args, const char *name);
double cli_real(const cli_args *args, const char *name);
const char *cli_text(const cli_args *args, const char *name);
/* Value number `index` of a CLI_LIST; NULL behind the last. */
const char *cli_item(const cli_args *args, const char *name, size_t index);
bool cli_given(const cli_args *args, const char *name);

/* Say that the command line is wrong; always CLI_USAGE. */
int cli_usage(const cli_args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls `each` with the library's options of these scopes, until it returns false. */
bool cli_library_options(unsigned scopes, bool (*each)(const perigee_option_description *, void *), void *user);
/* An option of 0 or 1 needs no value: alone it means 1. */
bool cli_is_switch(const perigee_option_description *option);
/* The default of a library's option for a verb. */
const char *cli_library_default(const cli_verb *verb, const perigee_option_description *option);

/* Say an error of the library and free it; always CLI_FAILED. */
int cli_fail(const cli_args *args, perigee_error *error);
/* The same after a call that takes options of the library: CLI_USAGE if it calls a value bad. */
int cli_fail_option(const cli_args *args, perigee_error *error);
/* Say something else that went wrong; always CLI_FAILED. */
int cli_fail_text(const cli_args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print a JSON document, and drop it. */
int cli_print_json(json_t *document);
/* The same on one line, and out at once. */
int cli_print_json_line(json_t *document);

/* Context, model and session as the options say. What is made stands in the struct even after a failure. */
typedef struct cli_host {
    perigee_cancel *cancel;
    perigee_context *context;
    perigee_model *model;
    perigee_session *session;
    perigee_model_info info;
    double load_seconds;
} cli_host;

/* A second host opened beside a first one has no cancel handle of its own: an interrupt triggers the first one's. */
int cli_open_context(const cli_args *args, cli_host *host);
int cli_open_model(const cli_args *args, const char *path, cli_host *host);
int cli_open_session(const cli_args *args, cli_host *host);
void cli_close(cli_host *host);
/* From now on every interrupt triggers the handle, and none ends the process; calls that wait return. */
void cli_keep_interrupts(void);
/* The model that was named, or nano-k3 where it is installed or in the source tree; NULL after saying where it was
 * looked for. */
const char *cli_model_path(const cli_args *args);

/* A number with its thousands apart, in one of a few static buffers. */
const char *cli_number(int64_t value);
/* Bytes in the unit that fits, likewise. */
const char *cli_bytes(int64_t value);
double cli_now(void);

#endif
