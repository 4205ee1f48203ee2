/* What every verb does alike: open and close, say errors, print numbers. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

double cli_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int cli_print_json(json_t *document) {
    char *text = document ? json_dumps(document, JSON_INDENT(2)) : NULL;
    json_decref(document);
    if (!text) {
        fprintf(stderr, "perigee: out of memory\n");
        return CLI_FAILED;
    }
    printf("%s\n", text);
    free(text);
    return CLI_DONE;
}

int cli_print_json_line(json_t *document) {
    char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    json_decref(document);
    if (!text) {
        fprintf(stderr, "perigee: out of memory\n");
        return CLI_FAILED;
    }
    printf("%s\n", text);
    fflush(stdout);
    free(text);
    return CLI_DONE;
}

int cli_fail(const cli_args *args, perigee_error *error) {
    const char *name = perigee_status_name(perigee_error_status(error));
    const char *message = perigee_error_message(error);
    const char *tensor = perigee_error_tensor(error);
    const char *file = perigee_error_file(error);
    long long offset = perigee_error_offset(error);
    long long layer = perigee_error_layer(error);
    fprintf(stderr, "perigee: %s: %s\n", name, message);
    if (tensor) {
        fprintf(stderr, "  tensor: %s\n", tensor);
    }
    if (file) {
        fprintf(stderr, "  file: %s\n", file);
    }
    if (offset >= 0) {
        fprintf(stderr, "  offset: %lld\n", offset);
    }
    if (layer >= 0) {
        fprintf(stderr, "  layer: %lld\n", layer);
    }
    if (args->json) {
        cli_print_json(json_pack("{s:{s:s,s:i,s:s,s:s*,s:s*,s:I,s:I}}", "error", "status", name, "code",
                                 (int)perigee_error_status(error), "message", message, "tensor", tensor, "file", file,
                                 "offset", (json_int_t)offset, "layer", (json_int_t)layer));
    }
    perigee_error_free(error);
    return CLI_FAILED;
}

int cli_fail_text(const cli_args *args, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "perigee: %s\n", text);
    if (args->json) {
        cli_print_json(json_pack("{s:{s:s}}", "error", "message", text));
    }
    return CLI_FAILED;
}

/* The one handle that an interrupt triggers; triggering is safe in a handler. A second interrupt ends the process,
 * unless a verb keeps them. */
static perigee_cancel *interrupted;

static void on_interrupt(int number) {
    (void)number;
    perigee_cancel_trigger(interrupted);
}

typedef struct load_shown {
    double last;
    bool visible;
} load_shown;

static int show_progress(int64_t done, int64_t total, void *user) {
    load_shown *shown = user;
    double now = cli_now();
    if (now - shown->last > 0.5) {
        *shown = (load_shown){now, true};
        fprintf(stderr, "\rloading %3d %%", (int)(100.0 * (double)done / (double)total));
    }
    return 0;
}

int cli_fail_option(const cli_args *args, perigee_error *error) {
    const perigee_status status = perigee_error_status(error);
    cli_fail(args, error);
    return status == PERIGEE_E_ARGUMENT || status == PERIGEE_E_RANGE ? CLI_USAGE : CLI_FAILED;
}

int cli_open_context(const cli_args *args, cli_host *host) {
    *host = (cli_host){.info = {.struct_size = sizeof host->info}};
    perigee_error *error = NULL;
    if ((!interrupted && perigee_cancel_new(&host->cancel, &error) != PERIGEE_OK) ||
        perigee_context_new(args->context, NULL, NULL, NULL, &host->context, &error) != PERIGEE_OK) {
        return cli_fail_option(args, error);
    }
    if (host->cancel) {
        interrupted = host->cancel;
        struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
        sigaction(SIGINT, &action, NULL);
    }
    return CLI_DONE;
}

void cli_keep_interrupts(void) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
}

int cli_open_model(const cli_args *args, const char *path, cli_host *host) {
    int status = cli_open_context(args, host);
    if (status != CLI_DONE) {
        return status;
    }
    perigee_error *error = NULL;
    double begun = cli_now();
    load_shown shown = {begun, false};
    perigee_status loaded =
        perigee_model_load(host->context, path, SIZE_MAX, args->model, isatty(STDERR_FILENO) ? show_progress : NULL,
                           &shown, interrupted, &host->model, &error);
    if (shown.visible) {
        fprintf(stderr, "\r\033[K");
    }
    if (loaded != PERIGEE_OK || perigee_model_get_info(host->model, &host->info, &error) != PERIGEE_OK) {
        return cli_fail_option(args, error);
    }
    host->load_seconds = cli_now() - begun;
    return CLI_DONE;
}

int cli_open_session(const cli_args *args, cli_host *host) {
    perigee_error *error = NULL;
    if (perigee_session_new(host->model, args->session, &host->session, &error) != PERIGEE_OK) {
        return cli_fail_option(args, error);
    }
    return CLI_DONE;
}

const char *cli_model_path(const cli_args *args) {
    enum { LONGEST = 4096 };
    static char installed[LONGEST + 64];
    static const char source[] = PERIGEE_SOURCE_MODELS "/nano-k3";
    if (args->words[0]) {
        return args->words[0];
    }
    ssize_t length = readlink("/proc/self/exe", installed, LONGEST);
    while (length > 0 && installed[length - 1] != '/') {
        length--;
    }
    snprintf(installed + (length > 0 ? length : 0), 64, "%s/perigee/models/nano-k3", PERIGEE_SHARE);
    const char *const places[] = {installed, source};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (access(places[i], R_OK) == 0) {
            return places[i];
        }
    }
    cli_fail_text(args, "no MODEL named, and no nano-k3 in %s or %s", installed, source);
    return NULL;
}

void cli_close(cli_host *host) {
    if (host->cancel) {
        signal(SIGINT, SIG_DFL);
        interrupted = NULL;
    }
    perigee_session_free(host->session);
    perigee_model_free(host->model);
    perigee_context_free(host->context);
    perigee_cancel_free(host->cancel);
}

enum { BUFFERS = 8, BUFFER_SIZE = 48 };

static char *next_buffer(void) {
    static char buffers[BUFFERS][BUFFER_SIZE];
    static size_t next;
    next = (next + 1) % BUFFERS;
    return buffers[next];
}

const char *cli_number(int64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    char *out = next_buffer();
    size_t length = strlen(digits);
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *cli_bytes(int64_t value) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double scaled = (double)value;
    size_t unit = 0;
    while (scaled >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        scaled /= 1024;
        unit++;
    }
    char *out = next_buffer();
    snprintf(out, BUFFER_SIZE, unit ? "%.2f %s" : "%.0f %s", scaled, units[unit]);
    return out;
}
