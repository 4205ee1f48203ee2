/* perigee bench: rates of a model, as shares of what the machine can do in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernel_report.h"
#include "limits.h"
#include "verbs.h"

static const cli_option options[] = {
    {"prompt", CLI_INT, "N", 1, 1 << 20, "512", "tokens of the prompt"},
    {"gen", CLI_INT, "N", 1, 1 << 20, "64", "tokens to decode one by one"},
    {"repeat", CLI_INT, "R", 1, 1000, "5", "how often to do both"},
};

typedef struct series {
    double *values;
    size_t count;
} series;

/* What is measured in each round. Shares compare a rate with the mean of the limit before and after it. */
enum { PREFILL, DECODE, READ_LIMIT, FMA_LIMIT, INT8_LIMIT, READ_SHARE, FMA_SHARE, INT8_SHARE, TOKEN_BYTES, MEASURES };

typedef struct bench {
    const cli_args *args;
    cli_host *host;
    limits *limits;
    size_t threads, prompt, gen, repeat;
    int32_t *ids;
    double work;   /* multiply-adds with weights for each prompt token, the head apart */
    double before; /* bytes a second, one thread, first and last of all */
    double after;
    long faults; /* of pages, in all of the decoding */
    series measured[MEASURES];
} bench;

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void note(bench *b, int what, double value) {
    series *s = &b->measured[what];
    s->values[s->count++] = value;
}

/* Of a sorted series. */
static double median(const series *s) {
    return (s->values[(s->count - 1) / 2] + s->values[s->count / 2]) / 2;
}

static int step(bench *b, const int32_t *ids, size_t count) {
    perigee_error *error = NULL;
    const float *logits = NULL;
    if (perigee_decode_step(b->host->session, ids, count, PERIGEE_LOGITS_LAST, &logits, NULL, b->host->cancel,
                            &error) != PERIGEE_OK) {
        return cli_fail(b->args, error);
    }
    return CLI_DONE;
}

static int weight_bytes(bench *b, int64_t *out) {
    perigee_error *error = NULL;
    perigee_statistics statistics = {.struct_size = sizeof statistics};
    if (perigee_session_statistics(b->host->session, &statistics, &error) != PERIGEE_OK) {
        return cli_fail(b->args, error);
    }
    *out = statistics.weight_bytes;
    return CLI_DONE;
}

static int measure_prefill(bench *b) {
    double limit = limits_multiply_add(b->limits, b->threads);
    double int8 = limits_int8(b->limits, b->threads);
    double begun = cli_now();
    int status = step(b, b->ids, b->prompt);
    double seconds = cli_now() - begun;
    limit = (limit + limits_multiply_add(b->limits, b->threads)) / 2;
    int8 = (int8 + limits_int8(b->limits, b->threads)) / 2;
    double rate = b->work * (double)b->prompt / seconds;
    note(b, PREFILL, (double)b->prompt / seconds);
    note(b, FMA_LIMIT, limit);
    note(b, FMA_SHARE, rate / limit);
    note(b, INT8_LIMIT, int8);
    note(b, INT8_SHARE, int8 > 0 ? rate / int8 : 0);
    return status;
}

static long page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static int measure_decode(bench *b) {
    int64_t bytes_before = 0;
    int64_t bytes = 0;
    int status = weight_bytes(b, &bytes_before);
    double limit = limits_read(b->limits, b->threads);
    long faults = page_faults();
    double begun = cli_now();
    for (size_t i = 0; i < b->gen && status == CLI_DONE; i++) {
        status = step(b, b->ids + b->prompt + i, 1);
    }
    double seconds = cli_now() - begun;
    b->faults += page_faults() - faults;
    limit = (limit + limits_read(b->limits, b->threads)) / 2;
    if (status == CLI_DONE) {
        status = weight_bytes(b, &bytes);
    }
    note(b, DECODE, (double)b->gen / seconds);
    note(b, READ_LIMIT, limit);
    note(b, TOKEN_BYTES, (double)(bytes - bytes_before) / (double)b->gen);
    note(b, READ_SHARE, (double)(bytes - bytes_before) / seconds / limit);
    return status;
}

static int measure(bench *b) {
    /* once, unmeasured: pages, caches and threads are there after it */
    int status = step(b, b->ids, b->prompt < 16 ? b->prompt : 16);
    b->before = limits_read(b->limits, 1);
    for (size_t i = 0; i < b->repeat && status == CLI_DONE; i++) {
        perigee_session_reset(b->host->session);
        status = measure_prefill(b);
        if (status == CLI_DONE) {
            status = measure_decode(b);
        }
    }
    b->after = limits_read(b->limits, 1);
    return status;
}

/* Weights that a prompt token is multiplied with: what is active, but the embedding (looked up) and the head (computed
 * for the last position alone). Attention over what came before is not counted. */
static int count_work(bench *b) {
    perigee_error *error = NULL;
    perigee_description *description = NULL;
    if (perigee_model_describe(b->host->context, b->args->words[0], SIZE_MAX, &description, &error) != PERIGEE_OK) {
        return cli_fail(b->args, error);
    }
    for (size_t i = 0; i < perigee_description_count(description); i++) {
        perigee_component component = {.struct_size = sizeof component};
        if (perigee_description_component(description, i, &component, NULL) == PERIGEE_OK &&
            !strstr(component.name, "embed") && !strstr(component.name, "head")) {
            b->work += (double)component.active;
        }
    }
    perigee_description_free(description);
    return CLI_DONE;
}

static json_t *series_json(const series *s) {
    return json_pack("{s:f,s:f,s:f}", "median", median(s), "least", s->values[0], "most", s->values[s->count - 1]);
}

static void print_series(const char *what, const series *s, double scale, const char *unit) {
    printf("%-36s %10.2f  [%.2f … %.2f] %s\n", what, median(s) * scale, s->values[0] * scale,
           s->values[s->count - 1] * scale, unit);
}

static int report(bench *b) {
    series *m = b->measured;
    for (size_t i = 0; i < MEASURES; i++) {
        qsort(m[i].values, m[i].count, sizeof *m[i].values, compare_doubles);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (b->args->json) {
        json_t *out = json_pack(
            "{s:s,s:s,s:I,s:I,s:I,s:I,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:I,s:I}", "family", b->host->info.family,
            "isa", limits_isa(), "threads", (json_int_t)b->threads, "prompt", (json_int_t)b->prompt, "gen",
            (json_int_t)b->gen, "repeat", (json_int_t)b->repeat, "load_seconds", b->host->load_seconds,
            "prefill_tokens_per_second", series_json(&m[PREFILL]), "decode_tokens_per_second", series_json(&m[DECODE]),
            "weight_bytes_per_token", series_json(&m[TOKEN_BYTES]), "read_limit_bytes_per_second",
            series_json(&m[READ_LIMIT]), "decode_share_of_read_limit", series_json(&m[READ_SHARE]),
            "multiply_add_limit_per_second", series_json(&m[FMA_LIMIT]), "prefill_share_of_multiply_add_limit",
            series_json(&m[FMA_SHARE]), "one_thread_read_before", b->before, "one_thread_read_after", b->after,
            "peak_memory_bytes", (json_int_t)usage.ru_maxrss * 1024, "decode_page_faults", (json_int_t)b->faults);
        if (median(&m[INT8_LIMIT]) > 0) {
            json_object_set_new(out, "int8_multiply_add_limit_per_second", series_json(&m[INT8_LIMIT]));
            json_object_set_new(out, "prefill_share_of_int8_limit", series_json(&m[INT8_SHARE]));
        }
        return cli_print_json(out);
    }
    printf("%s, %zu threads; median of %zu [least … most]; limits measured with %s before and after each\n\n",
           b->host->info.family, b->threads, b->repeat, limits_isa());
    printf("%-36s %10.2f  s\n", "load", b->host->load_seconds);
    char what[64];
    snprintf(what, sizeof what, "prefill of %zu tokens", b->prompt);
    print_series(what, &m[PREFILL], 1, "tokens/s");
    print_series("  float32 multiply-add limit", &m[FMA_LIMIT], 1e-9, "G/s");
    print_series("  share of it, weights alone", &m[FMA_SHARE], 100, "%");
    if (median(&m[INT8_LIMIT]) > 0) {
        print_series("  int8 multiply-add limit", &m[INT8_LIMIT], 1e-9, "G/s");
        print_series("  share of it, weights alone", &m[INT8_SHARE], 100, "%");
    }
    snprintf(what, sizeof what, "decode of %zu tokens", b->gen);
    print_series(what, &m[DECODE], 1, "tokens/s");
    print_series("  weights read for a token", &m[TOKEN_BYTES], 1e-6, "MB");
    print_series("  read limit", &m[READ_LIMIT], 1e-9, "GB/s");
    print_series("  share of it", &m[READ_SHARE], 100, "%");
    printf("%-36s %10ld  in all %zu\n", "  page faults", b->faults, b->gen * b->repeat);
    printf("%-36s %10.2f  before, %.2f after, GB/s\n", "read limit, one thread", b->before * 1e-9, b->after * 1e-9);
    printf("%-36s %10.2f  GiB\n", "peak memory", (double)usage.ru_maxrss / (1 << 20));
    return CLI_DONE;
}

static int bench_open(bench *b) {
    size_t tokens = b->prompt + b->gen;
    b->ids = calloc(tokens, sizeof *b->ids);
    bool memory = b->ids != NULL;
    for (size_t i = 0; i < MEASURES; i++) {
        b->measured[i].values = calloc(b->repeat, sizeof *b->measured[i].values);
        memory = memory && b->measured[i].values;
    }
    b->limits = limits_new(b->threads);
    int status = memory && b->limits ? CLI_DONE : cli_fail_text(b->args, "out of memory");
    if (status == CLI_DONE) {
        /* ids without a pattern, so that routing meets all experts */
        uint64_t state = 88172645463325252U;
        for (size_t i = 0; i < tokens; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b->ids[i] = (int32_t)(state % (uint64_t)b->host->info.vocabulary);
        }
        status = count_work(b);
    }
    if (status == CLI_DONE) {
        status = measure(b);
    }
    if (status == CLI_DONE) {
        status = report(b);
    }
    limits_free(b->limits);
    for (size_t i = 0; i < MEASURES; i++) {
        free(b->measured[i].values);
    }
    free(b->ids);
    return status;
}

static int run(const cli_args *args) {
    cli_host host;
    bench b = {.args = args, .host = &host};
    b.prompt = (size_t)cli_int(args, "prompt");
    b.gen = (size_t)cli_int(args, "gen");
    b.repeat = (size_t)cli_int(args, "repeat");
    int status = cli_open_model(args, args->words[0], &host);
    if (status == CLI_DONE) {
        status = cli_open_session(args, &host);
    }
    if (status == CLI_DONE) {
        b.threads = perigee_context_threads(host.context);
        status = bench_open(&b);
    }
    status = kernel_report(args, &host, status);
    cli_close(&host);
    return status;
}

const cli_verb verb_bench = {
    .name = "bench",
    .words = "MODEL",
    .word_count = 1,
    .scopes = CLI_LOAD,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "measure prefill and decode against the limits of this machine",
    .run = run,
};
