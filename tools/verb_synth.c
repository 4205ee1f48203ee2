/* perigee synth: a random checkpoint of a family. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"
#include "writer/synth.h"

static const cli_option options[] = {
    {"layers", CLI_INT, "N", 1, 100000, NULL, "layers; published number where not given"},
    {"experts", CLI_INT, "N", 1, 100000, NULL, "routed experts of a layer; published number where not given"},
    {"vocab", CLI_INT, "N", 2, 10000000, NULL, "vocabulary; published size where not given"},
    {"shrink", CLI_INT, "N", 1, 4096, "1", "divide the widths by this"},
    {"sparse", CLI_FLAG, NULL, 0, 0, NULL, "data are holes: all names, no disk, all weights zero"},
    {"seed", CLI_INT, "S", 0, INT64_MAX, "1", "of the random numbers"},
};

static bool show(size_t done, size_t total, void *user) {
    (void)user;
    fprintf(stderr, "\rwriting file %zu of %zu%s", done, total, done == total ? "\n" : "");
    return true;
}

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* The first one ends the writing, which takes back its files; a second one ends the process. */
static void heed_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
        }
    }
}

static int run(const cli_args *args) {
    bool known = false;
    for (const char *const *name = synth_families(); *name; name++) {
        known = known || strcmp(*name, args->words[0]) == 0;
    }
    if (!known) {
        fprintf(stderr, "perigee synth: no family '%s'; there are:", args->words[0]);
        for (const char *const *name = synth_families(); *name; name++) {
            fprintf(stderr, " %s", *name);
        }
        fprintf(stderr, "\n");
        return CLI_USAGE;
    }
    synth_request request = {
        .family = args->words[0],
        .folder = args->words[1],
        .layers = cli_int(args, "layers"),
        .experts = cli_int(args, "experts"),
        .vocabulary = cli_int(args, "vocab"),
        .shrink = cli_int(args, "shrink"),
        .seed = (uint64_t)cli_int(args, "seed"),
        .sparse = cli_given(args, "sparse"),
        .stop = &stop,
        .progress = isatty(STDERR_FILENO) ? show : NULL,
    };
    synth_report report;
    heed_signals();
    double begun = cli_now();
    if (!synth_write(&request, &report)) {
        return cli_fail_text(args, "%s", report.error);
    }
    double seconds = cli_now() - begun;
    if (args->json) {
        return cli_print_json(json_pack("{s:s,s:I,s:I,s:I,s:f}", "family", request.family, "tensors",
                                        (json_int_t)report.tensors, "files", (json_int_t)report.files, "data_bytes",
                                        (json_int_t)report.data_bytes, "seconds", seconds));
    }
    printf("%s: %s tensors in %s files, %s bytes%s, %.2f s\n", request.family, cli_number((int64_t)report.tensors),
           cli_number((int64_t)report.files), cli_number((int64_t)report.data_bytes), request.sparse ? " as holes" : "",
           seconds);
    return CLI_DONE;
}

const cli_verb verb_synth = {
    .name = "synth",
    .words = "FAMILY OUT",
    .word_count = 2,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "write a random checkpoint with published names, dtypes and widths\nFAMILY: kimi_k3, kimi_linear, kimi_k2 "
            "(FP8), kimi_k2_int4, kimi_k25, moonlight. OUT is an empty or a new folder.",
    .run = run,
};
