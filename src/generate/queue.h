/* Requests that share passes over one model. */
#ifndef PRG_GENERATE_QUEUE_H
#define PRG_GENERATE_QUEUE_H

#include "generate/generation.h"
#include "perigee/queue.h"
#include "session/session.h"

typedef struct prg_request {
    struct prg_request *next;
    int64_t number;
    int32_t *prompt;
    size_t count;
    perigee_generation_options *options;
    perigee_queue_fn callback;
    void *user;
    perigee_release_fn release;
    bool cancelled;
    /* while it is active: */
    perigee_session *session;
    perigee_generation *generation;
    size_t taken; /* tokens in the pass at hand */
} prg_request;

struct perigee_queue {
    perigee_model *model;
    prg_allocator *allocator;
    prg_session_plan plan;     /* of the sessions of requests */
    perigee_cancel *triggered; /* what a cancelled request is given */
    size_t active_limit, active, waiting;
    double step_seconds;
    double row_seconds; /* of a row of a pass, as the last passes went; 0: unknown */
    int64_t numbers;
    prg_request *first; /* in their order: active ones stand before waiting ones */
    prg_item *items;    /* [active_limit] */
    bool stepping;
};

perigee_status prg_queue_submit(perigee_queue *queue, const int32_t *prompt, size_t count,
                                const perigee_generation_options *options, prg_request **out, perigee_error **err);
perigee_status prg_queue_step(perigee_queue *queue, perigee_error **err);
/* Take a request out and release it. */
void prg_queue_remove(perigee_queue *queue, prg_request *request);

#endif
