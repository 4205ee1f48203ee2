/* A chain of stages that turns a row of logits into a token. */
#ifndef PRG_GENERATE_SAMPLER_H
#define PRG_GENERATE_SAMPLER_H

#include "base/alloc.h"
#include "perigee/generate.h"

typedef enum prg_stage_kind { /* numbers are stored in saved samplers: append only */
                              PRG_STAGE_REPETITION = 1,
                              PRG_STAGE_PRESENCE = 2,
                              PRG_STAGE_FREQUENCY = 3,
                              PRG_STAGE_BIAS = 4,
                              PRG_STAGE_TEMPERATURE = 5,
                              PRG_STAGE_TOP_K = 6,
                              PRG_STAGE_TOP_P = 7,
                              PRG_STAGE_MIN_P = 8,
                              PRG_STAGE_GREEDY = 9
} prg_stage_kind;

enum { PRG_SAMPLER_STAGES = 32, PRG_SAMPLER_WINDOW = 1 << 20 };

typedef struct prg_stage {
    prg_stage_kind kind;
    double value;
    uint32_t size; /* window of a penalty, k of top-k, entries of a bias */
    int32_t *ids;  /* of a bias */
    float *biases;
} prg_stage;

struct perigee_sampler {
    prg_allocator *allocator;
    prg_stage stages[PRG_SAMPLER_STAGES];
    size_t stage_count;
    uint64_t seed, counter;
    int32_t *history; /* a ring of the newest ids, as long as the longest window */
    size_t window, history_count, history_next;
    /* Scratch, grown to the vocabulary at the first sample. */
    size_t capacity;
    float *values, *weights, *scratch;
    uint32_t *ids;
    uint64_t *keys;
    size_t key_capacity;
    uint32_t *counts; /* per token, zero between calls */
    struct prg_mass_buckets *buckets;
};

perigee_status prg_sampler_new(prg_allocator *allocator, perigee_sampler **out, perigee_error **err);
/* A copy with chain, seed, counter and history. */
perigee_status prg_sampler_clone(const perigee_sampler *sampler, perigee_sampler **out, perigee_error **err);
/* Sample among the tokens whose bit in `allowed` is set (NULL: all), which has `allowed_count` bits. The history is
 * left alone. */
perigee_status prg_sampler_sample(perigee_sampler *sampler, const float *logits, size_t count, const uint64_t *allowed,
                                  size_t allowed_count, int32_t *id, perigee_error **err);
void prg_sampler_accept(perigee_sampler *sampler, const int32_t *ids, size_t count);
/* Take the newest `count` ids out of the history again. Accepted once more, they make it what it was. */
void prg_sampler_forget(perigee_sampler *sampler, size_t count);

/* The whole sampler as bytes, the same on every machine. `size` first, then save into that many. */
size_t prg_sampler_save_size(const perigee_sampler *sampler);
void prg_sampler_save(const perigee_sampler *sampler, unsigned char *bytes);
perigee_status prg_sampler_load(prg_allocator *allocator, const unsigned char *bytes, size_t size,
                                perigee_sampler **out, perigee_error **err);
/* Load into a sampler that is there; unchanged on failure. */
perigee_status prg_sampler_restore(perigee_sampler *sampler, const unsigned char *bytes, size_t size,
                                   perigee_error **err);

/* Adds a checked stage; the arrays are copied. */
perigee_status prg_sampler_add(perigee_sampler *sampler, const prg_stage *stage, perigee_error **err);

#endif
