/* perigee kernels: the table in use. */
#include <perigee/sys/kernel_watch.h>
#include <stdio.h>

#include "verbs.h"

static const cli_option options[] = {
    {"all", CLI_FLAG, NULL, 0, 0, NULL, "list the rows that another goes before, too"},
    {"bench", CLI_FLAG, NULL, 0, 0, NULL, "time each row on one thread, for 1 and for 64 rows of activations"},
};

static json_t *row_json(const perigee_kernel_info *row) {
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:f,s:b,s:b}", "name", row->name, "op", row->op, "weight",
                     row->weight, "isa", row->isa, "origin", row->origin, "numerics", row->numerics, "precision",
                     row->precision, "error_bound", row->error_bound, "deterministic", (int)row->deterministic,
                     "in_use", (int)row->in_use);
}

/* GB/s, and multiply-adds a second in 10^9, 0 where there are none. False after an error that is more than a row that
 * can't be timed. */
static bool measure(const cli_host *host, size_t index, size_t tokens, double *bytes, double *products) {
    perigee_kernel_timing timing = {.struct_size = sizeof timing};
    *bytes = *products = 0;
    perigee_status status = perigee_context_time_kernel(host->context, index, tokens, &timing, NULL);
    if (status == PERIGEE_OK) {
        *bytes = 1e-9 * (double)timing.bytes / timing.seconds;
        *products = 1e-9 * (double)timing.multiply_adds / timing.seconds;
    }
    return status == PERIGEE_OK || status == PERIGEE_E_UNSUPPORTED;
}

static bool bench(const cli_args *args, const cli_host *host, size_t index, json_t *row) {
    static const size_t tokens[] = {1, 64};
    for (size_t i = 0; i < 2; i++) {
        double bytes;
        double products;
        if (!measure(host, index, tokens[i], &bytes, &products)) {
            return false;
        }
        if (args->json) {
            json_array_append_new(json_object_get(row, "bench"),
                                  json_pack("{s:I,s:f,s:f}", "tokens", (json_int_t)tokens[i], "bytes_per_second",
                                            1e9 * bytes, "multiply_adds_per_second", 1e9 * products));
        } else if (products > 0) {
            printf(" %8.2f %9.2f", bytes, products);
        } else if (bytes > 0) {
            printf(" %8.2f %9s", bytes, "-");
        } else {
            printf(" %8s %9s", "-", "-");
        }
    }
    return true;
}

static int show(const cli_args *args, const cli_host *host, size_t index, const perigee_kernel_info *row,
                json_t *rows) {
    bool timed = cli_given(args, "bench");
    json_t *object = NULL;
    if (args->json) {
        object = row_json(row);
        if (!object) { /* a row's own words were looked at by the library */
            return cli_fail_text(args, "kernel %s: the name of the file that it is from is not UTF-8", row->name);
        }
        json_array_append_new(rows, object);
        if (timed) {
            json_object_set_new(object, "bench", json_array());
        }
    } else {
        printf("%-32s %-17s %-7s %-12s %-9s", row->name, row->op, row->weight, row->isa, row->precision);
    }
    if (timed && !bench(args, host, index, object)) {
        printf("\n");
        return cli_fail_text(args, "kernel %s could not be timed", row->name);
    }
    if (!args->json) {
        printf(" %s%s\n", row->origin, row->in_use ? "" : " (not in use)");
        fflush(stdout);
    }
    return CLI_DONE;
}

static int list(const cli_args *args, const cli_host *host) {
    bool all = cli_given(args, "all");
    json_t *rows = json_array();
    if (!args->json) {
        printf("%-32s %-17s %-7s %-12s %-9s", "kernel", "op", "weights", "isa", "precision");
        printf(cli_given(args, "bench") ? " 1: GB/s     GMA/s 64: GB/s    GMA/s origin\n" : " origin\n");
    }
    int status = CLI_DONE;
    for (size_t i = 0; i < perigee_context_kernel_count(host->context); i++) {
        perigee_error *error = NULL;
        perigee_kernel_info row = {.struct_size = sizeof row};
        if (perigee_context_kernel(host->context, i, &row, &error) != PERIGEE_OK) {
            json_decref(rows);
            return cli_fail(args, error);
        }
        if (!all && !row.in_use) {
            continue;
        }
        status = show(args, host, i, &row, rows);
        if (status != CLI_DONE) {
            break;
        }
    }
    if (args->json && status == CLI_DONE) {
        return cli_print_json(
            json_pack("{s:I,s:o}", "threads", (json_int_t)perigee_context_threads(host->context), "kernels", rows));
    }
    json_decref(rows);
    return status;
}

static int run(const cli_args *args) {
    cli_host host;
    int status = cli_open_context(args, &host);
    if (status == CLI_DONE) {
        status = list(args, &host);
    }
    cli_close(&host);
    return status;
}

const cli_verb verb_kernels = {
    .name = "kernels",
    .words = "",
    .scopes = CLI_CONTEXT,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "list the kernel table in use",
    .run = run,
};
