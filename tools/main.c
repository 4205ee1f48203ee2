/* perigee: the library from a command line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs.h"

const cli_verb *const cli_verbs[] = {&verb_run,     &verb_chat,  &verb_eval,  &verb_tokenize, &verb_detokenize,
                                     &verb_inspect, &verb_bench, &verb_synth, &verb_kernels,  &verb_manual};
const size_t cli_verb_count = sizeof cli_verbs / sizeof *cli_verbs;

static void print_verbs(FILE *to) {
    fprintf(to, "Usage: perigee VERB …\n\n");
    for (size_t i = 0; i < cli_verb_count; i++) {
        if (cli_verbs[i]->hidden) {
            continue;
        }
        const char *end = strchr(cli_verbs[i]->help, '\n');
        int length = end ? (int)(end - cli_verbs[i]->help) : (int)strlen(cli_verbs[i]->help);
        fprintf(to, "  %-10s %-19s %.*s\n", cli_verbs[i]->name, cli_verbs[i]->words, length, cli_verbs[i]->help);
    }
    fprintf(to, "\nperigee VERB --help says the rest. Also: perigee --version, perigee --help.\n"
                "Exit status: 0 done, 1 failed, 2 usage.\n");
}

/* What could not be written counts as failed: a full disk behind a redirect. */
static int finish(int status) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    fprintf(stderr, "perigee: standard output could not be written%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return status == CLI_DONE ? CLI_FAILED : status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_verbs(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_verbs(stdout);
        return finish(CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("perigee %s (ABI %d)\n", perigee_version(), (int)perigee_abi_version());
        return finish(CLI_DONE);
    }
    for (size_t i = 0; i < cli_verb_count; i++) {
        if (strcmp(argv[1], cli_verbs[i]->name) == 0) {
            cli_args args;
            bool help = false;
            int status = cli_parse(cli_verbs[i], argc - 2, argv + 2, &args, &help);
            if (status == CLI_DONE && help) {
                cli_help(cli_verbs[i]);
            } else if (status == CLI_DONE) {
                status = cli_verbs[i]->run(&args);
            }
            cli_free(&args);
            return finish(status);
        }
    }
    fprintf(stderr, "perigee: no verb '%s'; try: perigee --help\n", argv[1]);
    return CLI_USAGE;
}
