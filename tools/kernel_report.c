/* What kernels did in a run: calls, shapes and times; the first difference from the scalar rows. */
#include "kernel_report.h"

#include <perigee/sys/kernel_watch.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct traces {
    perigee_kernel_trace *rows;
    size_t count;
} traces;

static int by_seconds(const void *a, const void *b) {
    double x = ((const perigee_kernel_trace *)a)->seconds;
    double y = ((const perigee_kernel_trace *)b)->seconds;
    return (x < y) - (x > y);
}

static traces take_traces(const perigee_context *context) {
    size_t most = perigee_context_trace_count(context);
    traces out = {calloc(most + 1, sizeof *out.rows), 0};
    while (out.rows && out.count < most) {
        out.rows[out.count].struct_size = sizeof *out.rows;
        if (perigee_context_trace(context, out.count, &out.rows[out.count], NULL) != PERIGEE_OK) {
            break;
        }
        out.count++;
    }
    if (out.rows) {
        qsort(out.rows, out.count, sizeof *out.rows, by_seconds);
    }
    return out;
}

static bool take_check(const perigee_context *context, perigee_kernel_check *out) {
    *out = (perigee_kernel_check){.struct_size = sizeof *out};
    return perigee_context_check(context, out, NULL) == PERIGEE_OK;
}

static void print_traces(const traces *t) {
    double whole = 0;
    for (size_t i = 0; i < t->count; i++) {
        whole += t->rows[i].seconds;
    }
    fprintf(stderr, "%-32s %-12s %8s %8s %8s %10s %12s %6s\n", "kernel", "function", "rows", "columns", "tokens",
            "calls", "us a call", "share");
    for (size_t i = 0; i < t->count; i++) {
        const perigee_kernel_trace *row = &t->rows[i];
        fprintf(stderr, "%-32s %-12s %8zu %8zu %8zu %10lld %12.2f %5.1f%%\n", row->kernel, row->function, row->rows,
                row->cols, row->tokens, (long long)row->calls, 1e6 * row->seconds / (double)row->calls,
                whole > 0 ? 100 * row->seconds / whole : 0.0);
    }
}

static void print_check(const perigee_kernel_check *check) {
    fprintf(stderr, "kernels: %lld calls compared with scalar rows, %lld of them different", (long long)check->calls,
            (long long)check->different);
    if (check->skipped) {
        fprintf(stderr, ", %lld skipped for want of memory", (long long)check->skipped);
    }
    if (check->largest > 0) {
        fprintf(stderr, "; at most %.3g of what bounds allow", check->largest);
    }
    fprintf(stderr, "\n");
    if (check->kernel) {
        fprintf(stderr,
                "first difference: %s (%s, %s) of %zu rows, %zu columns, %zu tokens\n"
                "  %s[%zu, %zu] is %.9g, with %s %.9g; allowed: %.3g\n",
                check->kernel, check->op, check->function, check->rows, check->cols, check->tokens, check->output,
                check->index / check->width, check->index % check->width, check->value, check->reference,
                check->expected, check->allowed);
    }
}

int kernel_report(const cli_args *args, const cli_host *host, int status) {
    perigee_kernel_check check;
    if (!host->context) {
        return status;
    }
    if (perigee_context_trace_count(host->context) && !args->json) {
        traces t = take_traces(host->context);
        print_traces(&t);
        free(t.rows);
    }
    if (take_check(host->context, &check)) {
        print_check(&check);
        return check.different || check.skipped ? CLI_FAILED : status;
    }
    return status;
}

void kernel_report_json(const cli_host *host, json_t *document) {
    perigee_kernel_check check;
    if (perigee_context_trace_count(host->context)) {
        traces t = take_traces(host->context);
        json_t *rows = json_array();
        for (size_t i = 0; i < t.count; i++) {
            const perigee_kernel_trace *row = &t.rows[i];
            json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:f}", "kernel", row->kernel, "op",
                                                  row->op, "function", row->function, "rows", (json_int_t)row->rows,
                                                  "columns", (json_int_t)row->cols, "tokens", (json_int_t)row->tokens,
                                                  "calls", (json_int_t)row->calls, "seconds", row->seconds));
        }
        json_object_set_new(document, "kernel_trace", rows);
        free(t.rows);
    }
    if (!take_check(host->context, &check)) {
        return;
    }
    json_t *object =
        json_pack("{s:I,s:I,s:I,s:f}", "calls", (json_int_t)check.calls, "skipped", (json_int_t)check.skipped,
                  "different", (json_int_t)check.different, "largest", check.largest);
    if (check.kernel) {
        /* JSON has no NaN */
        char value[32];
        char expected[32];
        snprintf(value, sizeof value, "%.9g", check.value);
        snprintf(expected, sizeof expected, "%.9g", check.expected);
        json_object_set_new(object, "first",
                            json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:f}", "kernel", check.kernel,
                                      "reference", check.reference, "op", check.op, "function", check.function,
                                      "output", check.output, "rows", (json_int_t)check.rows, "columns",
                                      (json_int_t)check.cols, "tokens", (json_int_t)check.tokens, "index",
                                      (json_int_t)check.index, "width", (json_int_t)check.width, "value", value,
                                      "expected", expected, "allowed", check.allowed));
    }
    json_object_set_new(document, "kernel_check", object);
}
