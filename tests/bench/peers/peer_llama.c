/* A client of llama.cpp that measures as `perigee bench` does, or writes the logits of given tokens.
 *
 *     peer_llama bench MODEL BACKENDS THREADS PROMPT GEN REPEAT [mmap] [plain]
 *     peer_llama logits MODEL BACKENDS THREADS IDS OUT [plain]
 *
 * BACKENDS is the folder of ggml's libraries. IDS holds int32, OUT receives float32 [tokens, vocabulary]. All else is
 * llama.cpp's default; weights are read into memory unless mmap is given. plain: weights stay as they are, where
 * its re-laid forms fail. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-backend.h"
#include "llama.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "peer_llama: %s\n", what);
    exit(1);
}

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

static bool given(int argc, char **argv, const char *word) {
    for (int i = 7; i < argc; i++) {
        if (strcmp(argv[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static struct llama_model *open_model(int argc, char **argv) {
    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(argv[3]);
    llama_backend_init();
    struct llama_model_params params = llama_model_default_params();
    params.load_mode = given(argc, argv, "mmap") ? LLAMA_LOAD_MODE_MMAP : LLAMA_LOAD_MODE_NONE;
    params.use_extra_bufts = !given(argc, argv, "plain");
    struct llama_model *model = llama_model_load_from_file(argv[2], params);
    if (!model) {
        die("the model can't be loaded");
    }
    return model;
}

static struct llama_context *open_context(struct llama_model *model, int threads, size_t tokens) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)((tokens + 255) / 256 * 256);
    params.n_batch = (uint32_t)tokens;
    params.n_threads = params.n_threads_batch = threads;
    struct llama_context *context = llama_init_from_model(model, params);
    if (!context) {
        die("no context");
    }
    return context;
}

static void step(struct llama_context *context, int32_t *ids, size_t n) {
    if (llama_decode(context, llama_batch_get_one(ids, (int32_t)n)) != 0) {
        die("a step failed");
    }
    llama_synchronize(context);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static int bench(int argc, char **argv) {
    const int threads = atoi(argv[4]);
    const size_t prompt = strtoul(argv[5], NULL, 10), gen = strtoul(argv[6], NULL, 10);
    const size_t repeat = strtoul(argv[7], NULL, 10), tokens = prompt + gen;
    struct llama_model *model = open_model(argc, argv);
    const int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_context *context = open_context(model, threads, tokens);
    int32_t *ids = calloc(tokens, sizeof *ids);
    double *rates = calloc(2 * repeat, sizeof *rates);
    if (!ids || !rates || repeat == 0) {
        die("no memory, or nothing to do");
    }
    uint64_t state = 88172645463325252U; /* the ids of perigee bench */
    for (size_t i = 0; i < tokens; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ids[i] = (int32_t)(state % (uint64_t)vocabulary);
    }
    step(context, ids, prompt < 16 ? prompt : 16);
    for (size_t r = 0; r < repeat; r++) {
        llama_memory_clear(llama_get_memory(context), true);
        double begun = now();
        step(context, ids, prompt);
        rates[r] = (double)prompt / (now() - begun);
        begun = now();
        for (size_t i = 0; i < gen; i++) {
            step(context, ids + prompt + i, 1);
        }
        rates[repeat + r] = (double)gen / (now() - begun);
    }
    printf("prefill of %zu tokens %.3f tokens/s\ndecode of %zu tokens %.3f tokens/s\n", prompt, median(rates, repeat),
           gen, median(rates + repeat, repeat));
    free(rates);
    free(ids);
    llama_free(context);
    llama_model_free(model);
    return 0;
}

static int32_t *read_ids(const char *path, size_t *count) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        die("the ids can't be read");
    }
    *count = (size_t)ftell(f) / sizeof(int32_t);
    rewind(f);
    int32_t *ids = malloc(*count * sizeof *ids);
    if (!ids || fread(ids, sizeof *ids, *count, f) != *count) {
        die("the ids can't be read");
    }
    fclose(f);
    return ids;
}

/* The tokens are one sequence, in one batch. */
static int logits(int argc, char **argv) {
    size_t count;
    int32_t *ids = read_ids(argv[5], &count);
    struct llama_model *model = open_model(argc, argv);
    const int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_context *context = open_context(model, atoi(argv[4]), count);
    struct llama_batch batch = llama_batch_init((int32_t)count, 0, 1);
    FILE *f = fopen(argv[6], "wb");
    for (size_t i = 0; i < count; i++) {
        batch.token[i] = ids[i];
        batch.pos[i] = (llama_pos)i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    batch.n_tokens = (int32_t)count;
    if (!f || llama_decode(context, batch) != 0) {
        die("a step failed, or the output can't be written");
    }
    for (size_t i = 0; i < count; i++) {
        const float *row = llama_get_logits_ith(context, (int32_t)i);
        if (!row || fwrite(row, sizeof *row, (size_t)vocabulary, f) != (size_t)vocabulary) {
            die("the output can't be written");
        }
    }
    if (fclose(f) != 0) {
        die("the output can't be written");
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    free(ids);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 8 && strcmp(argv[1], "bench") == 0) {
        return bench(argc, argv);
    }
    if (argc >= 7 && strcmp(argv[1], "logits") == 0) {
        return logits(argc, argv);
    }
    fprintf(stderr, "usage: peer_llama bench MODEL BACKENDS THREADS PROMPT GEN REPEAT [mmap] [plain]\n"
                    "       peer_llama logits MODEL BACKENDS THREADS IDS OUT [plain]\n");
    return 2;
}
