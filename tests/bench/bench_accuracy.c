/* How far each table and precision is from expected logits, as Kullback-Leibler divergence.
 *
 *     bench_accuracy MODEL EXPECTED [PEER_LOGITS]
 *     bench_accuracy --ids EXPECTED OUT
 *
 * EXPECTED is a safetensors file with `ids` I32 [tokens] and `logits` F32 [tokens, vocabulary], computed in float64.
 * PEER_LOGITS holds float32 of the same shape, as another engine computes them from the same weights. --ids writes the
 * ids as they are, for that engine. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perigee/perigee.h"

typedef struct expected {
    const int32_t *ids;
    const float *logits;
    size_t tokens, vocabulary;
} expected;

static void die(const char *what) {
    fprintf(stderr, "bench_accuracy: %s\n", what);
    exit(1);
}

static void check(perigee_status status, perigee_error *error) {
    if (status != PERIGEE_OK) {
        die(error ? perigee_error_message(error) : perigee_status_name(status));
    }
}

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        die(path);
    }
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, f) != *size) {
        die(path);
    }
    data[*size] = 0;
    fclose(f);
    return data;
}

/* Data of a tensor and its first two sizes, of a header without surprises. */
static const void *find(const char *file, const char *name, size_t shape[2]) {
    char key[32];
    uint64_t header;
    memcpy(&header, file, sizeof header);
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *entry = strstr(file + 8, key);
    if (!entry) {
        die("EXPECTED lacks ids or logits");
    }
    const char *at = strchr(strstr(entry, "\"shape\""), '[') + 1;
    for (size_t i = 0; i < 2; i++) {
        char *end;
        shape[i] = strtoul(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    at = strchr(strstr(entry, "\"data_offsets\""), '[') + 1;
    return file + 8 + header + strtoul(at, NULL, 10);
}

static expected read_expected(const char *path) {
    size_t size, shape[2];
    const char *file = read_file(path, &size);
    expected e = {.ids = find(file, "ids", shape)};
    e.logits = find(file, "logits", shape);
    e.tokens = shape[0];
    e.vocabulary = shape[1];
    return e;
}

static double log_sum(const float *x, size_t n) {
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) {
        top = fmax(top, (double)x[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)x[i] - top);
    }
    return top + log(sum);
}

static size_t first_choice(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

static void report(const char *what, const expected *e, const float *logits) {
    double mean = 0, worst = 0;
    size_t same = 0;
    for (size_t t = 0; t < e->tokens; t++) {
        const float *p = e->logits + t * e->vocabulary, *q = logits + t * e->vocabulary;
        const double log_p = log_sum(p, e->vocabulary), log_q = log_sum(q, e->vocabulary);
        double sum = 0;
        for (size_t i = 0; i < e->vocabulary; i++) {
            const double log_pi = (double)p[i] - log_p;
            sum += exp(log_pi) * (log_pi - ((double)q[i] - log_q));
        }
        mean += sum / (double)e->tokens;
        worst = fmax(worst, sum);
        same += first_choice(p, e->vocabulary) == first_choice(q, e->vocabulary);
    }
    printf("%-34s %10.2e %10.2e %9.2f %%\n", what, mean, worst, 100 * (double)same / (double)e->tokens);
}

static void set(perigee_options *options, const char *name, const char *value) {
    perigee_error *error = NULL;
    check(perigee_options_set_text(options, name, value, &error), error);
}

static void measure(const char *path, const expected *e, const char *kernels, const char *precision,
                    const char *trunk) {
    perigee_options *options = NULL, *load = NULL;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    perigee_session *session = NULL;
    perigee_error *error = NULL;
    const float *logits = NULL;
    char what[64];
    check(perigee_options_new(&options, &error), error);
    check(perigee_options_new(&load, &error), error);
    set(options, "kernels", kernels);
    set(options, "precision", precision);
    set(load, "trunk", trunk);
    const perigee_status st = perigee_context_new(options, NULL, NULL, NULL, &context, &error);
    if (st == PERIGEE_E_UNSUPPORTED) {
        perigee_error_free(error); /* a table that this processor can't run */
    } else {
        check(st, error);
        check(perigee_model_load(context, path, SIZE_MAX, load, NULL, NULL, NULL, &model, &error), error);
        check(perigee_session_new(model, NULL, &session, &error), error);
        check(perigee_decode_step(session, e->ids, e->tokens, PERIGEE_LOGITS_ALL, &logits, NULL, NULL, &error), error);
        snprintf(what, sizeof what, "%-8s %-10s trunk %s", kernels, precision, trunk);
        report(what, e, logits);
    }
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    perigee_options_free(options);
    perigee_options_free(load);
}

static int write_ids(const char *path, const char *to) {
    const expected e = read_expected(path);
    FILE *f = fopen(to, "wb");
    if (!f || fwrite(e.ids, sizeof *e.ids, e.tokens, f) != e.tokens || fclose(f) != 0) {
        die(to);
    }
    return 0;
}

int main(int argc, char **argv) {
    static const char *const tables[] = {"auto", "avx512", "avx2", "neon", "scalar"};
    static const char *const precisions[] = {"exact", "balanced", "fast"};
    if (argc == 4 && strcmp(argv[1], "--ids") == 0) {
        return write_ids(argv[2], argv[3]);
    }
    if (argc < 3 || argc > 4) {
        fprintf(stderr,
                "usage: bench_accuracy MODEL EXPECTED [PEER_LOGITS]\n       bench_accuracy --ids EXPECTED OUT\n");
        return 2;
    }
    const expected e = read_expected(argv[2]);
    printf("%s, %zu positions\n%-34s %10s %10s %11s\n", argv[1], e.tokens, "divergence in nats", "mean", "worst",
           "same first");
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 3; j++) {
            measure(argv[1], &e, tables[i], precisions[j], "published");
        }
    }
    for (size_t j = 0; j < 3; j++) {
        measure(argv[1], &e, "auto", precisions[j], "q8_0");
    }
    if (argc == 4) {
        size_t size;
        const char *logits = read_file(argv[3], &size);
        if (size != e.tokens * e.vocabulary * sizeof(float)) {
            die("PEER_LOGITS has not the shape of the expected ones");
        }
        report("peer", &e, (const float *)(const void *)logits);
    }
    return 0;
}
