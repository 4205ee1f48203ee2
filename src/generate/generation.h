/* A generation: prompt, then token by token sample, decode, stop. */
#ifndef PRG_GENERATE_GENERATION_H
#define PRG_GENERATE_GENERATION_H

#include "generate/constraint.h"
#include "generate/sampler.h"
#include "generate/stop.h"

enum { PRG_STOP_STRINGS = 64, PRG_STOP_LENGTH = 4096, PRG_TOP_LIMIT = 1000 };

struct perigee_generation_options {
    prg_allocator *allocator;
    perigee_sampler *sampler;       /* NULL: greedy */
    perigee_constraint *constraint; /* or NULL */
    int32_t *stop_ids;
    size_t stop_id_count;
    bool default_stops;
    prg_stop_text stops[PRG_STOP_STRINGS];
    size_t stop_count;
    int64_t max_tokens; /* -1: no limit */
    int32_t top;        /* log-probabilities: -1 none */
    perigee_cancel *cancel;
};

perigee_status prg_generation_options_new(prg_allocator *allocator, perigee_generation_options **out,
                                          perigee_error **err);
perigee_status prg_generation_options_copy(prg_allocator *allocator, const perigee_generation_options *from,
                                           perigee_generation_options **out, perigee_error **err);
perigee_status prg_generation_options_add_id(perigee_generation_options *options, int32_t id, perigee_error **err);
perigee_status prg_generation_options_add_string(perigee_generation_options *options, const char *text, size_t length,
                                                 perigee_error **err);

/* What a generation runs on: a session, or in tests anything that answers with logits. */
typedef perigee_status (*prg_logit_step)(void *user, const int32_t *tokens, size_t n, perigee_logits which,
                                         const float **logits, perigee_cancel *cancel, perigee_error **err);

typedef struct prg_logit_source {
    void *user;
    prg_logit_step step;
    int64_t (*position)(void *user);
    int64_t context;
    size_t vocabulary, chunk;
    const perigee_tokenizer *tokenizer; /* or NULL */
    const int32_t *end_ids;             /* of config and generation config */
    size_t end_count;
    double (*clock)(void);
} prg_logit_source;

/* `step` takes the session. */
prg_logit_source prg_logit_source_of(perigee_session *session, prg_logit_step step);

struct perigee_generation {
    prg_allocator *allocator;
    prg_logit_source source;
    perigee_generation_options *options; /* own copy, with all stop ids */
    perigee_decoder *decoder;            /* NULL: no text */
    prg_stop_filter filter;
    int32_t *pending; /* not taken in yet: the prompt, later one token */
    size_t pending_count, pending_done;
    int64_t prompt_tokens, tokens;
    const float *logits; /* of the next token, once all that is pending is in */
    int32_t chosen;      /* sampled and not handed out yet, or -1 */
    bool decoded;        /* the text of `chosen` is in the filter */
    bool flushed;        /* and what the decoder held back too */
    perigee_finish finish;
    double log_probability;
    int32_t *top_ids;
    double *top_values;
    uint64_t *keys; /* [2 * top] */
};

/* `prompt` is copied; `count` >= 1. */
perigee_status prg_generation_new(prg_allocator *allocator, const prg_logit_source *source, const int32_t *prompt,
                                  size_t count, const perigee_generation_options *options, perigee_generation **out,
                                  perigee_error **err);
/* As perigee_generation_next(); `by_chunk`: comes back behind each chunk of the prompt too. */
perigee_status prg_generation_next(perigee_generation *generation, bool by_chunk, perigee_generated *out,
                                   perigee_error **err);
/* As perigee_generation_sampler(). */
perigee_status prg_generation_sampler(const perigee_generation *generation, perigee_sampler **out, perigee_error **err);

#endif
