/* Golden cases: opening a model, what is expected of it, and comparing. */
#ifndef PRG_TESTS_GOLDEN_H
#define PRG_TESTS_GOLDEN_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perigee/perigee.h"

static const char *const golden_cases[] = {"kimi_k2",      "kimi_k25", "kimi_k2_fp8",           "kimi_k2_int4",
                                           "kimi_k2_long", "kimi_k3",  "kimi_k3_dense_experts", "kimi_k3_long",
                                           "kimi_linear",  "moonlight"};
enum { GOLDEN_CASES = sizeof golden_cases / sizeof *golden_cases };

/* expected.safetensors in memory. */
typedef struct golden {
    char *file;
    const int32_t *ids, *greedy;
    const float *logits, *trace; /* [tokens, vocabulary], [layers, tokens, hidden] */
    size_t tokens, greedy_count, vocabulary, layers, hidden;
} golden;

static inline void golden_ok(perigee_status status, perigee_error *err) {
    ck_assert_msg(status == PERIGEE_OK, "%s: %s", perigee_status_name(status), perigee_error_message(err));
}

/* Where a tensor's bytes begin; its first and its last two sizes. */
static inline const void *golden_tensor(const char *file, const char *name, size_t shape[3]) {
    uint64_t header;
    memcpy(&header, file, sizeof header);
    char key[64];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *entry = strstr(file + 8, key);
    ck_assert_ptr_nonnull(entry);
    const char *at = strstr(entry, "\"shape\"");
    at = strchr(at, '[') + 1;
    for (size_t i = 0; i < 3; i++) {
        char *end;
        shape[i] = strtoul(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    at = strchr(strstr(entry, "\"data_offsets\""), '[') + 1;
    return file + 8 + header + strtoul(at, NULL, 10);
}

static inline golden golden_read(const char *name) {
    golden g = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s/expected/expected.safetensors", PRG_FIXTURES, name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f), shape[3];
    rewind(f);
    g.file = malloc(size + 1);
    ck_assert_uint_eq(fread(g.file, 1, size, f), size);
    g.file[size] = 0;
    fclose(f);
    g.ids = golden_tensor(g.file, "ids", shape);
    g.tokens = shape[0];
    g.greedy = golden_tensor(g.file, "greedy", shape);
    g.greedy_count = shape[0];
    g.logits = golden_tensor(g.file, "logits", shape);
    g.vocabulary = shape[1];
    g.trace = golden_tensor(g.file, "trace", shape);
    g.layers = shape[0];
    g.hidden = shape[2];
    return g;
}

static inline const char *golden_path(const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/golden/%s", PRG_FIXTURES, name);
    return path;
}

/* Options from text, as "threads=2 kernels=scalar"; NULL or "" gives NULL. */
static inline perigee_options *golden_options(const char *text) {
    if (!text || !*text) {
        return NULL;
    }
    perigee_options *options = NULL;
    golden_ok(perigee_options_new(&options, NULL), NULL);
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *save = NULL, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        perigee_error *err = NULL;
        golden_ok(perigee_options_set_text(options, word, value, &err), err);
    }
    return options;
}

/* NULL if this machine can't run the kernels that are asked for. */
static inline perigee_context *golden_context(const char *text) {
    perigee_options *options = golden_options(text);
    perigee_context *context = NULL;
    perigee_error *err = NULL;
    perigee_status st = perigee_context_new(options, NULL, NULL, NULL, &context, &err);
    if (st != PERIGEE_E_UNSUPPORTED) {
        golden_ok(st, err);
    }
    perigee_error_free(err);
    perigee_options_free(options);
    return context;
}

static inline perigee_model *golden_model(perigee_context *context, const char *name, const char *text) {
    char path[512];
    perigee_options *options = golden_options(text);
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_model_load(context, golden_path(name, path, sizeof path), SIZE_MAX, options, NULL, NULL, NULL,
                                 &model, &err),
              err);
    perigee_options_free(options);
    return model;
}

static inline perigee_session *golden_session(perigee_model *model, const char *text) {
    perigee_options *options = golden_options(text);
    perigee_session *session = NULL;
    perigee_error *err = NULL;
    golden_ok(perigee_session_new(model, options, &session, &err), err);
    perigee_options_free(options);
    return session;
}

/* Logits of all `n` tokens, borrowed from the session. */
static inline const float *golden_step(perigee_session *session, const int32_t *ids, size_t n, perigee_logits which) {
    const float *logits = NULL;
    size_t rows = 0;
    perigee_error *err = NULL;
    golden_ok(perigee_decode_step(session, ids, n, which, &logits, &rows, NULL, &err), err);
    ck_assert_uint_eq(rows, which == PERIGEE_LOGITS_ALL ? n : which == PERIGEE_LOGITS_LAST);
    return logits;
}

/* Largest difference as a share of the largest expected value. */
static inline double golden_distance(const float *got, const float *expected, size_t n) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)expected[i]);
        difference = d > difference || isnan(d) ? d : difference;
        largest = fmax(largest, fabs((double)expected[i]));
    }
    return difference / largest;
}

static inline int32_t golden_argmax(const float *row, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = row[i] > row[best] ? i : best;
    }
    return (int32_t)best;
}

#endif
