/* perigee kernels: the table in use. */
#include <stdio.h>

#include "verbs.h"

static const cli_option options[] = {
    {"all", CLI_FLAG, NULL, 0, 0, NULL, "list the rows that another goes before, too"},
};

static json_t *row_json(const perigee_kernel_info *row) {
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:f,s:b,s:b}", "name", row->name, "op", row->op, "weight",
                     row->weight, "isa", row->isa, "origin", row->origin, "numerics", row->numerics, "precision",
                     row->precision, "error_bound", row->error_bound, "deterministic", (int)row->deterministic,
                     "in_use", (int)row->in_use);
}

static int list(const cli_args *args, const cli_host *host) {
    bool all = cli_given(args, "all");
    json_t *rows = json_array();
    if (!args->json) {
        printf("%-32s %-14s %-8s %-12s %-10s %s\n", "kernel", "op", "weights", "isa", "precision", "origin");
    }
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
        if (args->json) {
            json_array_append_new(rows, row_json(&row));
        } else {
            printf("%-32s %-14s %-8s %-12s %-10s %s%s\n", row.name, row.op, row.weight, row.isa, row.precision,
                   row.origin, row.in_use ? "" : " (not in use)");
        }
    }
    if (args->json) {
        return cli_print_json(
            json_pack("{s:I,s:o}", "threads", (json_int_t)perigee_context_threads(host->context), "kernels", rows));
    }
    json_decref(rows);
    return CLI_DONE;
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
