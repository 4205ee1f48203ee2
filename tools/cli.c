#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_library_options(unsigned scopes, bool (*each)(const perigee_option_description *, void *), void *user) {
    for (size_t i = 0; i < perigee_option_count(); i++) {
        perigee_option_description option = {.struct_size = sizeof option};
        if (perigee_option_describe(i, &option, NULL) == PERIGEE_OK && (scopes & (1U << option.scope)) &&
            !each(&option, user)) {
            return false;
        }
    }
    return true;
}

bool cli_is_switch(const perigee_option_description *option) {
    return option->type == PERIGEE_OPTION_TYPE_INT && option->minimum == 0 && option->maximum == 1;
}

/* Lists write names with underscores, hands write them with hyphens. */
static bool same_name(const char *name, const char *typed, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = typed[i] == '-' ? '_' : typed[i];
        char d = name[i] == '-' ? '_' : name[i];
        if (c != d) {
            return false;
        }
    }
    return name[length] == '\0';
}

typedef struct library_match {
    const char *typed;
    size_t length;
    perigee_option_description found;
    bool any;
} library_match;

static bool match_library(const perigee_option_description *option, void *user) {
    library_match *match = user;
    if (same_name(option->name, match->typed, match->length)) {
        match->found = *option;
        match->any = true;
    }
    return !match->any;
}

static int usage(const cli_verb *verb, const char *what, const char *about) {
    fprintf(stderr, "perigee %s: %s%s%s\nTry: perigee %s --help\n", verb->name, what, *about ? ": " : "", about,
            verb->name);
    return CLI_USAGE;
}

static int take_own(const cli_verb *verb, size_t index, const char *value, cli_args *args) {
    const cli_option *option = &verb->options[index];
    args->given[index] = true;
    args->texts[index] = value;
    if (option->kind == CLI_LIST) {
        if (args->item_count == CLI_MAX_ITEMS) {
            return usage(verb, "too many values of options that may come again", "");
        }
        args->items[args->item_count].option = index;
        args->items[args->item_count++].text = value;
    } else if (option->kind == CLI_REAL) {
        char *end = NULL;
        args->reals[index] = strtod(value, &end);
        if (end == value || *end || !isfinite(args->reals[index])) {
            char text[160];
            snprintf(text, sizeof text, "--%s takes a number, not '%s'", option->name, value);
            return usage(verb, text, "");
        }
    } else if (option->kind == CLI_INT) {
        char *end = NULL;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (errno || end == value || *end || number < option->minimum || number > option->maximum) {
            char text[160];
            snprintf(text, sizeof text, "--%s takes a number of %lld to %lld, not '%s'", option->name,
                     (long long)option->minimum, (long long)option->maximum, value);
            return usage(verb, text, "");
        }
        args->ints[index] = number;
    }
    return CLI_DONE;
}

static int take_library(const cli_verb *verb, const perigee_option_description *option, const char *value,
                        cli_args *args) {
    perigee_options *sets[2] = {args->context, NULL};
    if (option->scope != PERIGEE_SCOPE_CONTEXT) {
        sets[0] = option->scope == PERIGEE_SCOPE_MODEL ? args->model : args->session;
        sets[1] = args->plan;
    }
    for (size_t i = 0; i < 2 && sets[i]; i++) {
        perigee_error *error = NULL;
        if (perigee_options_set_text(sets[i], option->name, value, &error) != PERIGEE_OK) {
            usage(verb, perigee_error_message(error), "");
            perigee_error_free(error);
            return CLI_USAGE;
        }
    }
    return CLI_DONE;
}

/* One `--name`, `--name value` or `--name=value`; *index moves over what it took. */
static int take_option(const cli_verb *verb, int argc, char **argv, int *index, cli_args *args) {
    const char *typed = argv[*index] + 2;
    const char *equals = strchr(typed, '=');
    size_t length = equals ? (size_t)(equals - typed) : strlen(typed);
    const char *value = equals ? equals + 1 : NULL;
    if (same_name("json", typed, length) && !value) {
        args->json = true;
        return CLI_DONE;
    }
    size_t own = 0;
    while (own < verb->option_count && !same_name(verb->options[own].name, typed, length)) {
        own++;
    }
    if (own < verb->option_count && verb->options[own].kind == CLI_FLAG) {
        args->given[own] = true;
        return value ? usage(verb, "takes no value", argv[*index]) : CLI_DONE;
    }
    library_match match = {.typed = typed, .length = length};
    if (own == verb->option_count) {
        cli_library_options(verb->scopes, match_library, &match);
        if (!match.any) {
            return usage(verb, "unknown option", argv[*index]);
        }
    }
    if (!value && match.any && cli_is_switch(&match.found)) {
        value = "1";
    }
    if (!value) {
        if (*index + 1 >= argc) {
            return usage(verb, "needs a value", argv[*index]);
        }
        value = argv[++*index];
    }
    return match.any ? take_library(verb, &match.found, value, args) : take_own(verb, own, value, args);
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *args, bool *help) {
    *args = (cli_args){.verb = verb};
    *help = false;
    for (size_t i = 0; i < verb->option_count; i++) {
        args->texts[i] = verb->options[i].fallback;
        args->ints[i] = args->texts[i] ? strtoll(args->texts[i], NULL, 10) : 0;
        args->reals[i] = args->texts[i] ? strtod(args->texts[i], NULL) : 0;
    }
    perigee_options **sets[] = {&args->context, &args->model, &args->session, &args->plan};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        perigee_error *error = NULL;
        if (perigee_options_new(sets[i], &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
    }
    for (const char *const *preset = verb->presets; preset && *preset; preset += 2) {
        library_match match = {.typed = preset[0], .length = strlen(preset[0])};
        cli_library_options(verb->scopes, match_library, &match);
        if (match.any && take_library(verb, &match.found, preset[1], args) != CLI_DONE) {
            return CLI_FAILED;
        }
    }
    size_t words = 0;
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        int status = CLI_DONE;
        if (!only_words && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            *help = true;
            return CLI_DONE;
        }
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            status =
                argv[i][1] == '-' ? take_option(verb, argc, argv, &i, args) : usage(verb, "unknown option", argv[i]);
        } else if (words < verb->word_count) {
            args->words[words++] = argv[i];
        } else {
            status = usage(verb, "one word too many", argv[i]);
        }
        if (status != CLI_DONE) {
            return status;
        }
    }
    return words + verb->optional_words < verb->word_count ? usage(verb, "needs", verb->words) : CLI_DONE;
}

void cli_free(cli_args *args) {
    perigee_options_free(args->context);
    perigee_options_free(args->model);
    perigee_options_free(args->session);
    perigee_options_free(args->plan);
}

const char *cli_library_default(const cli_verb *verb, const perigee_option_description *option) {
    for (const char *const *preset = verb->presets; preset && *preset; preset += 2) {
        if (same_name(preset[0], option->name, strlen(option->name))) {
            return preset[1];
        }
    }
    return option->default_text;
}

static bool print_library(const perigee_option_description *option, void *user) {
    const char *value = cli_library_default(user, option);
    static const char *const values[] = {"N", "X", "TEXT"};
    char left[80];
    bool alone = cli_is_switch(option);
    snprintf(left, sizeof left, "--%s %s", option->name, alone ? "" : values[option->type]);
    printf("  %-26s %s", left, option->help);
    if (value[0] && !alone) {
        printf(" [%s]", value);
    }
    printf("\n");
    return true;
}

void cli_help(const cli_verb *verb) {
    printf("Usage: perigee %s %s%s[options]\n\n%s\n\nOptions:\n", verb->name, verb->words, *verb->words ? " " : "",
           verb->help);
    for (size_t i = 0; i < verb->option_count; i++) {
        const cli_option *option = &verb->options[i];
        char left[80];
        snprintf(left, sizeof left, "--%s %s", option->name, option->kind == CLI_FLAG ? "" : option->value);
        printf("  %-26s %s", left, option->help);
        if (option->fallback) {
            printf(" [%s]", option->fallback);
        }
        printf("\n");
    }
    printf("  %-26s %s\n", "--json", "for machines: one JSON document");
    printf("  %-26s %s\n", "--help", "this");
    if (verb->scopes) {
        printf("\nOptions of the library:\n");
        cli_library_options(verb->scopes, print_library, (void *)(uintptr_t)verb);
    }
}

static size_t option_index(const cli_args *args, const char *name) {
    for (size_t i = 0; i < args->verb->option_count; i++) {
        if (strcmp(args->verb->options[i].name, name) == 0) {
            return i;
        }
    }
    fprintf(stderr, "perigee: option %s is not in the table of %s\n", name, args->verb->name);
    abort();
}

int64_t cli_int(const cli_args *args, const char *name) {
    return args->ints[option_index(args, name)];
}

double cli_real(const cli_args *args, const char *name) {
    return args->reals[option_index(args, name)];
}

const char *cli_text(const cli_args *args, const char *name) {
    return args->texts[option_index(args, name)];
}

bool cli_given(const cli_args *args, const char *name) {
    return args->given[option_index(args, name)];
}

const char *cli_item(const cli_args *args, const char *name, size_t index) {
    size_t option = option_index(args, name);
    for (size_t i = 0; i < args->item_count; i++) {
        if (args->items[i].option == option && index-- == 0) {
            return args->items[i].text;
        }
    }
    return NULL;
}

int cli_usage(const cli_args *args, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return usage(args->verb, text, "");
}
