/* Sessions that decode together, against what the bytes of weights allow:
 *     bench_batch MODEL [sessions] [threads] [rounds] [prompt]
 * The limit is sessions × (bytes that one token alone reads ÷ bytes that all read together), counted by the statistics;
 * what is reached is the throughput together ÷ that of a session alone. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perigee/perigee.h"

enum { MOST = 256 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void require(perigee_status status, perigee_error *err) {
    if (status != PERIGEE_OK) {
        fprintf(stderr, "%s: %s\n", perigee_status_name(status), perigee_error_message(err));
        exit(1);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

static int32_t next_token(size_t vocabulary) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((state >> 33) % vocabulary);
}

static int64_t bytes_of(const perigee_session *session) {
    perigee_statistics s = {.struct_size = sizeof s};
    require(perigee_session_statistics(session, &s, NULL), NULL);
    return s.weight_bytes;
}

/* Seconds of a step of the first `n` sessions, each with a token of its own; *bytes what it read. */
static double step(perigee_session **sessions, size_t n, int64_t *bytes) {
    perigee_batch_item items[MOST];
    int32_t tokens[MOST];
    perigee_error *err = NULL;
    for (size_t i = 0; i < n; i++) {
        tokens[i] = next_token(perigee_session_vocabulary(sessions[i]));
        items[i] = (perigee_batch_item){.struct_size = sizeof *items,
                                        .session = sessions[i],
                                        .tokens = &tokens[i],
                                        .n = 1,
                                        .which = PERIGEE_LOGITS_LAST};
    }
    const int64_t before = bytes_of(sessions[0]);
    const double began = now();
    require(perigee_decode_batch(items, n, NULL, &err), err);
    const double seconds = now() - began;
    *bytes = bytes_of(sessions[0]) - before;
    return seconds;
}

static size_t number(int argc, char **argv, int at, size_t otherwise) {
    return argc > at ? strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    const size_t n = number(argc, argv, 2, 8), rounds = number(argc, argv, 4, 15), prompt = number(argc, argv, 5, 16);
    if (argc < 2 || n < 1 || n > MOST || rounds < 1 || prompt < 1) {
        fprintf(stderr, "usage: bench_batch MODEL [sessions] [threads] [rounds] [prompt]\n");
        return 2;
    }
    perigee_options *options = NULL;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    require(perigee_options_new(&options, NULL), NULL);
    require(perigee_options_set_text(options, "threads", argc > 3 ? argv[3] : "2", &err), err);
    require(perigee_context_new(options, NULL, NULL, NULL, &context, &err), err);
    require(perigee_model_load(context, argv[1], SIZE_MAX, NULL, NULL, NULL, NULL, &model, &err), err);
    perigee_session *sessions[MOST];
    int32_t *ids = malloc(prompt * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        require(perigee_session_new(model, NULL, &sessions[i], &err), err);
        for (size_t t = 0; t < prompt; t++) {
            ids[t] = next_token(perigee_session_vocabulary(sessions[i]));
        }
        require(perigee_decode_step(sessions[i], ids, prompt, PERIGEE_LOGITS_NONE, NULL, NULL, NULL, &err), err);
    }
    double *alone = malloc(rounds * sizeof *alone), *together = malloc(rounds * sizeof *together);
    double *share = malloc(rounds * sizeof *share), bytes_alone = 0, bytes_together = 0;
    int64_t bytes = 0;
    step(sessions, n, &bytes); /* memory and caches get warm */
    for (size_t r = 0; r < rounds; r++) {
        int64_t one = 0, all = 0;
        alone[r] = step(sessions, 1, &one);
        together[r] = step(sessions, n, &all);
        /* n × alone ÷ together, over n × one ÷ all */
        share[r] = alone[r] / together[r] * (double)all / (double)one;
        bytes_alone += (double)one / (double)rounds;
        bytes_together += (double)all / (double)rounds;
    }
    const double share_median = median(share, rounds), a = median(alone, rounds), t = median(together, rounds);
    printf("alone:       %7.2f ms a token, %.3f GB, %5.1f GB/s\n", a * 1e3, bytes_alone * 1e-9, bytes_alone * 1e-9 / a);
    printf("%3zu together: %6.2f ms a step,  %.3f GB, %5.1f GB/s\n", n, t * 1e3, bytes_together * 1e-9,
           bytes_together * 1e-9 / t);
    printf("throughput: %.2f × alone; limit by bytes %.2f ×; share %.3f (quartiles %.3f … %.3f)\n", (double)n * a / t,
           (double)n * bytes_alone / bytes_together, share_median, share[rounds / 4], share[rounds * 3 / 4]);
    for (size_t i = 0; i < n; i++) {
        perigee_session_free(sessions[i]);
    }
    free(ids);
    free(alone);
    free(together);
    free(share);
    perigee_model_free(model);
    perigee_context_free(context);
    perigee_options_free(options);
    return 0;
}
