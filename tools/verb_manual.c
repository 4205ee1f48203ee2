/* perigee manual: the manual page, and completion for bash, from the same tables as --help. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "verbs.h"

/* Text for roff: hyphens that can be copied, no requests by accident. */
static void put_roff(const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '-') {
            fputs("\\-", stdout);
        } else if (*c == '\\') {
            fputs("\\e", stdout);
        } else if (*c == '\n') {
            fputs("\n.br\n", stdout);
        } else if ((*c == '.' || *c == '\'') && (c == text || c[-1] == '\n')) {
            printf("\\&%c", *c);
        } else {
            putchar(*c);
        }
    }
}

static void put_option(const char *name, const char *value, const char *fallback, const char *help) {
    fputs(".TP\n.B \\-\\-", stdout);
    put_roff(name);
    if (value && *value) {
        fputs(" \\fI", stdout);
        put_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(help);
    if (fallback && *fallback) {
        fputs(" [", stdout);
        put_roff(fallback);
        putchar(']');
    }
    putchar('\n');
}

static bool put_library(const perigee_option_description *option, void *user) {
    static const char *const values[] = {"N", "X", "TEXT"};
    (void)user;
    bool alone = cli_is_switch(option);
    put_option(option->name, alone ? NULL : values[option->type], alone ? NULL : option->default_text, option->help);
    return true;
}

static void put_verb(const cli_verb *verb) {
    fputs(".SS perigee ", stdout);
    put_roff(verb->name);
    putchar(' ');
    put_roff(verb->words);
    putchar('\n');
    put_roff(verb->help);
    putchar('\n');
    if (verb->scopes) {
        fputs("Takes options of the library too.\n", stdout);
    }
    for (const char *const *preset = verb->presets; preset && *preset; preset += 2) {
        printf("Here the default of \\-\\-%s is %s.\n", preset[0], preset[1]);
    }
    for (size_t i = 0; i < verb->option_count; i++) {
        const cli_option *option = &verb->options[i];
        put_option(option->name, option->value, option->fallback, option->help);
    }
}

static int print_man(void) {
    printf(".TH PERIGEE 1 \"\" \"perigee %s\"\n.SH NAME\nperigee \\- run Kimi language models on a CPU\n"
           ".SH SYNOPSIS\n.B perigee\n.I VERB\n[words] [options]\n.br\n.B perigee \\-\\-version\n.br\n"
           ".B perigee \\-\\-help\n.SH DESCRIPTION\n"
           "Runs checkpoints of Kimi models as they are published. Each verb has options of its own; those of the "
           "library come from its own list. Every verb takes \\-\\-json, for one JSON document, and \\-\\-help.\n"
           ".SH VERBS\n",
           perigee_version());
    for (size_t i = 0; i < cli_verb_count; i++) {
        if (!cli_verbs[i]->hidden) {
            put_verb(cli_verbs[i]);
        }
    }
    printf(".SH OPTIONS OF THE LIBRARY\nHyphens and underscores in names are the same.\n");
    cli_library_options(CLI_LOAD, put_library, NULL);
    printf(".SH EXIT STATUS\n0 done, 1 failed, 2 usage.\n");
    return CLI_DONE;
}

static bool print_name(const perigee_option_description *option, void *user) {
    (void)user;
    printf(" --%s", option->name);
    return true;
}

/* The choices of an option of the library, separated by spaces: they stand in its help behind a colon, as single words
 * and commas. False if there are none. */
static bool choices_of(const perigee_option_description *option, char *out, size_t size) {
    const char *list = strchr(option->help, ':');
    size_t used = 0, words = 0;
    bool fits = option->type == PERIGEE_OPTION_TYPE_STRING && list;
    for (const char *c = fits ? list + 1 : ""; *c && fits; words++) {
        c += *c == ' ';
        const size_t length = strspn(c, "abcdefghijklmnopqrstuvwxyz0123456789_");
        fits = length > 0 && (c[length] == ',' || c[length] == '\0') && used + length + 2 < size;
        if (fits) {
            memcpy(out + used, c, length);
            used += length;
            out[used++] = ' ';
        }
        c += length + (c[length] == ',');
    }
    if (!fits || words < 2) {
        return false;
    }
    out[used - 1] = '\0';
    return true;
}

static bool print_values(const perigee_option_description *option, void *user) {
    char choices[256];
    (void)user;
    if (choices_of(option, choices, sizeof choices)) {
        printf("    *:--%s) COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n", option->name, choices);
    } else if (option->type != PERIGEE_OPTION_TYPE_STRING && !cli_is_switch(option)) {
        printf("    *:--%s) return ;;\n", option->name);
    }
    return true;
}

/* Options that take a file are completed by files. */
static bool takes_file(const cli_option *option) {
    return option->value && (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "MODEL") == 0);
}

static int print_bash(void) {
    printf("# completion of perigee for bash\n_perigee() {\n    local word=${COMP_WORDS[COMP_CWORD]} "
           "verb=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]} names=\n    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < cli_verb_count; i++) {
        if (!cli_verbs[i]->hidden) {
            printf("%s ", cli_verbs[i]->name);
        }
    }
    printf("--help --version\" -- \"$word\"))\n        return\n    fi\n    case $verb:$before in\n");
    for (size_t i = 0; i < cli_verb_count; i++) {
        for (size_t k = 0; k < cli_verbs[i]->option_count && !cli_verbs[i]->hidden; k++) {
            const cli_option *option = &cli_verbs[i]->options[k];
            if (option->kind != CLI_FLAG && strcmp(option->value, "on|off") == 0) {
                printf("    %s:--%s) COMPREPLY=($(compgen -W \"on off\" -- \"$word\")); return ;;\n",
                       cli_verbs[i]->name, option->name);
            } else if (option->kind != CLI_FLAG) {
                printf("    %s:--%s) %sreturn ;;\n", cli_verbs[i]->name, option->name,
                       takes_file(option) ? "COMPREPLY=($(compgen -f -- \"$word\")); " : "");
            }
        }
    }
    cli_library_options(CLI_LOAD, print_values, NULL);
    printf("    esac\n    case $verb in\n");
    for (size_t i = 0; i < cli_verb_count; i++) {
        const cli_verb *verb = cli_verbs[i];
        if (verb->hidden) {
            continue;
        }
        printf("    %s) names=\"--help --json", verb->name);
        for (size_t k = 0; k < verb->option_count; k++) {
            printf(" --%s", verb->options[k].name);
        }
        cli_library_options(verb->scopes, print_name, NULL);
        printf("\" ;;\n");
    }
    printf(
        "    esac\n    case $word in\n    -*) COMPREPLY=($(compgen -W \"$names\" -- \"$word\")) ;;\n"
        "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\ncomplete -o filenames -F _perigee perigee\n");
    return CLI_DONE;
}

static int run(const cli_args *args) {
    if (strcmp(args->words[0], "man") == 0) {
        return print_man();
    }
    if (strcmp(args->words[0], "bash") == 0) {
        return print_bash();
    }
    return cli_usage(args, "knows man and bash, not '%s'", args->words[0]);
}

const cli_verb verb_manual = {
    .name = "manual",
    .words = "man|bash",
    .word_count = 1,
    .hidden = true,
    .help = "print the manual page, or completion for bash",
    .run = run,
};
