/* perigee run --ids: ids in, ids of the greedy continuation out; logits and traces to files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_report.h"
#include "run_ids.h"
#include "writer/safetensors_writer.h"

/* The residual stream of a prompt: float32 [layers, tokens, hidden]. */
typedef struct trace_buffer {
    float *values;
    size_t layers, tokens, hidden;
} trace_buffer;

static int keep_trace(int64_t layer, int64_t position, size_t rows, size_t hidden, const float *values, void *user) {
    trace_buffer *trace = user;
    if (layer < 0 || (size_t)layer >= trace->layers || hidden != trace->hidden || position < 0 ||
        (size_t)position + rows > trace->tokens) {
        return 1;
    }
    float *to = trace->values + ((size_t)layer * trace->tokens + (size_t)position) * hidden;
    memcpy(to, values, rows * hidden * sizeof *to);
    return 0;
}

typedef struct output_tensor {
    const char *name, *dtype;
    size_t rank;
    uint64_t shape[3];
    const void *data;
} output_tensor;

static int write_tensors(const cli_args *args, const char *path, const output_tensor *tensors, size_t count) {
    writer_file *file = writer_open(path);
    if (!file) {
        return cli_fail_text(args, "out of memory");
    }
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        good = writer_add(file, tensors[i].name, tensors[i].dtype, tensors[i].shape, tensors[i].rank);
    }
    good = good && writer_begin(file);
    for (size_t i = 0; i < count && good; i++) {
        size_t bytes = 4; /* both dtypes in use */
        for (size_t k = 0; k < tensors[i].rank; k++) {
            bytes *= (size_t)tensors[i].shape[k];
        }
        good = writer_data(file, tensors[i].data, bytes);
    }
    int status = good ? CLI_DONE : cli_fail_text(args, "%s", writer_error(file));
    if (!writer_close(file, good) && good) {
        status = cli_fail_text(args, "%s: could not be written", path);
    }
    return status;
}

static int32_t most_likely(const float *logits, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        if (logits[i] > logits[best]) {
            best = i;
        }
    }
    return (int32_t)best;
}

static int print_result(const cli_args *args, const cli_host *host, const cli_ids *prompt, const cli_ids *out,
                        double prefill, double decode) {
    if (args->json) {
        json_t *json =
            json_pack("{s:s,s:o,s:I,s:f,s:f,s:f}", "family", host->info.family, "ids",
                      cli_ids_json(out->ids, out->count), "prompt_tokens", (json_int_t)prompt->count, "load_seconds",
                      host->load_seconds, "prefill_seconds", prefill, "decode_seconds", decode);
        kernel_report_json(host, json);
        return cli_print_json(json);
    }
    cli_print_ids(out->ids, out->count);
    return CLI_DONE;
}

static int prefill(const cli_args *args, cli_host *host, const cli_ids *prompt, const float **logits) {
    const char *logits_file = cli_text(args, "logits");
    perigee_error *error = NULL;
    size_t rows = 0;
    if (perigee_decode_step(host->session, prompt->ids, prompt->count,
                            logits_file ? PERIGEE_LOGITS_ALL : PERIGEE_LOGITS_LAST, logits, &rows, host->cancel,
                            &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    perigee_session_set_trace(host->session, NULL, NULL, NULL);
    int status = CLI_DONE;
    if (logits_file) {
        uint64_t vocabulary = (uint64_t)host->info.vocabulary;
        const output_tensor tensors[] = {{"ids", "I32", 1, {prompt->count}, prompt->ids},
                                         {"logits", "F32", 2, {rows, vocabulary}, *logits}};
        status = write_tensors(args, logits_file, tensors, 2);
    }
    *logits += (rows - 1) * (size_t)host->info.vocabulary;
    return status;
}

static int decode(const cli_args *args, cli_host *host, const float *logits, cli_ids *out, size_t wanted) {
    while (out->count < wanted) {
        int32_t id = most_likely(logits, host->info.vocabulary);
        out->ids[out->count++] = id;
        perigee_error *error = NULL;
        if (out->count < wanted && perigee_decode_step(host->session, &id, 1, PERIGEE_LOGITS_LAST, &logits, NULL,
                                                       host->cancel, &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
    }
    return CLI_DONE;
}

int run_ids(const cli_args *args, cli_host *host, const cli_ids *prompt) {
    const char *trace_file = cli_text(args, "trace");
    size_t wanted = (size_t)cli_int(args, "greedy");
    trace_buffer trace = {NULL, (size_t)host->info.layers, prompt->count, (size_t)host->info.hidden};
    cli_ids out = {calloc(wanted + 1, sizeof *out.ids), 0};
    int status = CLI_FAILED;
    if (trace_file) {
        trace.values = calloc(trace.layers * trace.tokens, trace.hidden * sizeof *trace.values);
        perigee_session_set_trace(host->session, keep_trace, &trace, NULL);
    }
    if (!out.ids || (trace_file && !trace.values)) {
        status = cli_fail_text(args, "out of memory");
        goto done;
    }
    const float *logits = NULL;
    double begun = cli_now();
    status = prefill(args, host, prompt, &logits);
    double middle = cli_now();
    if (status == CLI_DONE && trace_file) {
        const output_tensor tensor = {"trace", "F32", 3, {trace.layers, trace.tokens, trace.hidden}, trace.values};
        status = write_tensors(args, trace_file, &tensor, 1);
    }
    if (status == CLI_DONE) {
        status = decode(args, host, logits, &out, wanted);
    }
    if (status == CLI_DONE) {
        status = print_result(args, host, prompt, &out, middle - begun, cli_now() - middle);
    }
done:
    free(trace.values);
    free(out.ids);
    return status;
}
