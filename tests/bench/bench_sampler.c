/* Time of one sample from 163,840 logits: median and 99th percentile over many rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "generate/random.h"
#include "generate/sampler.h"

enum { VOCABULARY = 163840, ROWS = 4, ROUNDS = 400 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t draws;

static double normal(void) {
    double u = prg_random_unit(1, draws++), v = prg_random_unit(1, draws++);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static void run(prg_allocator *allocator, const char *name, const prg_stage *stages, size_t count, double spread,
                bool peaked) {
    perigee_sampler *s = NULL;
    static float logits[ROWS][VOCABULARY];
    static double times[ROUNDS];
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < VOCABULARY; i++) {
            logits[r][i] = (float)(spread * normal());
        }
        for (int i = 0; i < 64 && peaked; i++) { /* a few plausible tokens far above the rest */
            logits[r][(r + 1) * 2557 * (i + 1) % VOCABULARY] = (float)(18 - 2 * log(i + 1) + normal());
        }
    }
    if (prg_sampler_new(allocator, &s, NULL) != PERIGEE_OK) {
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        if (prg_sampler_add(s, &stages[i], NULL) != PERIGEE_OK) {
            exit(1);
        }
    }
    for (int i = -ROWS; i < ROUNDS; i++) {
        int32_t id;
        double start = now();
        if (prg_sampler_sample(s, logits[(i + ROWS) % ROWS], VOCABULARY, NULL, 0, &id, NULL) != PERIGEE_OK) {
            exit(1);
        }
        if (i >= 0) {
            times[i] = now() - start;
        }
        prg_sampler_accept(s, &id, 1);
    }
    qsort(times, ROUNDS, sizeof *times, by_value);
    printf("%-44s %s %.1f  median %.3f ms  99%% %.3f ms\n", name, peaked ? "peaked" : "normal", spread,
           times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    perigee_sampler_free(s);
}

int main(void) {
    prg_allocator *allocator = NULL;
    if (prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK) {
        return 1;
    }
    const prg_stage temperature = {PRG_STAGE_TEMPERATURE, 0.6, 0, NULL, NULL};
    const prg_stage top_p = {PRG_STAGE_TOP_P, 0.95, 0, NULL, NULL};
    const prg_stage top_k = {PRG_STAGE_TOP_K, 0, 40, NULL, NULL};
    const prg_stage repetition = {PRG_STAGE_REPETITION, 1.1, 256, NULL, NULL};
    const prg_stage chain[] = {repetition, temperature, top_k, top_p};
    static const double spreads[] = {2.5, 0.1, 1, 3};
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++) {
        run(allocator, "greedy", NULL, 0, spreads[i], i == 0);
        run(allocator, "temperature 0.6", &temperature, 1, spreads[i], i == 0);
        run(allocator, "top-p 0.95", &top_p, 1, spreads[i], i == 0);
        run(allocator, "temperature 0.6, top-p 0.95", (const prg_stage[]){temperature, top_p}, 2, spreads[i], i == 0);
        run(allocator, "repetition, temperature, top-k 40, top-p", chain, 4, spreads[i], i == 0);
    }
    prg_allocator_drop(allocator);
    return 0;
}
