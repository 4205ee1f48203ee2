/* A session: what one sequence holds over a model, and the passes that move it on. */
#ifndef PRG_SESSION_SESSION_H
#define PRG_SESSION_SESSION_H

#include "model/model.h"
#include "perigee/session.h"
#include "session/plan.h"

/* Latents of PRG_CACHE_BLOCK tokens, all layers: layer i at data + i * layer_bytes. Shared by forks until one writes.
 */
typedef struct prg_cache_block {
    atomic_size_t references;
    unsigned char pad[64 - sizeof(atomic_size_t)];
    unsigned char data[];
} prg_cache_block;

/* The latent cache of a session. A position is valid if it lies below the session's: nothing is ever cleared. */
typedef struct prg_cache {
    prg_allocator *allocator;
    size_t layers, rank, rope;
    bool bf16;
    size_t token_bytes, layer_bytes; /* of one layer: a token, a block */
    prg_cache_block **blocks;        /* [limit], `count` of them in use */
    void **view;                     /* [limit]: one layer's part of each */
    size_t count, limit;
} prg_cache;

perigee_status prg_cache_init(prg_cache *cache, prg_allocator *allocator, const prg_config *config,
                              const prg_session_plan *plan, perigee_error **err);
void prg_cache_free(prg_cache *cache);
/* Room for positions position … position + n - 1, none of them shared with another session. Of a block that was shared,
 * the positions below `valid` are kept. */
perigee_status prg_cache_reserve(prg_cache *cache, size_t position, size_t n, size_t valid, perigee_error **err);
/* Give back blocks that hold nothing below `position`. */
void prg_cache_trim(prg_cache *cache, size_t position);
/* The blocks that hold positions below `position`, into an empty cache of the same form. */
void prg_cache_share(prg_cache *to, const prg_cache *from, size_t position);
/* The cache of one layer, as attention takes it: valid until the next call for another layer. */
prg_latents prg_cache_layer(prg_cache *cache, size_t layer);
size_t prg_cache_bytes(const prg_cache *cache);

/* Recurrent and convolution state of all KDA layers, twice: a step reads `live` and writes the other, which takes its
 * place when the step is over. So a failed step has lost nothing. A step of one token goes on with S in place, and only
 * what is small, behind S, goes to the other copy: it is copied back when the step is over, or the token taken back. */
typedef struct prg_recurrent {
    size_t floats; /* of one layer */
    size_t layers;
    prg_kda sizes; /* heads and dim */
    float *copy[2];
    int live;
} prg_recurrent;

/* How a pass moves a session's state on. */
typedef enum prg_state_way {
    PRG_STATE_ACROSS,  /* from the live copy to the other */
    PRG_STATE_ONWARD,  /* in the other, where an earlier pass left it */
    PRG_STATE_IN_PLACE /* one token: S in the live copy, the rest from there to the other */
} prg_state_way;

/* Copies of the recurrent state at earlier positions, ascending, to rewind to. */
typedef struct prg_checkpoint {
    size_t position;
    float *state; /* all KDA layers, as in prg_recurrent */
} prg_checkpoint;

typedef struct prg_checkpoints {
    prg_checkpoint *list; /* [limit] */
    size_t count, limit, every;
} prg_checkpoints;

struct perigee_session {
    perigee_model *model;
    prg_session_plan plan;
    size_t position;
    int32_t *tokens; /* [plan.context]: what was taken in */
    prg_cache cache;
    prg_recurrent state;
    prg_checkpoints checkpoints;
    float *logits; /* [logits_rows, vocabulary] */
    size_t logits_rows;
    perigee_trace_fn trace;
    void *trace_user;
    perigee_release_fn trace_release;
    float *trace_values; /* [layers, trace_rows, hidden] */
    size_t trace_rows;
    perigee_statistics statistics;
};

perigee_status prg_session_new(perigee_model *model, const perigee_options *options, perigee_session **out,
                               perigee_error **err);
/* An empty session by a plan that was made for this model. */
perigee_status prg_session_make(perigee_model *model, const prg_session_plan *plan, perigee_session **out,
                                perigee_error **err);
void prg_session_free(perigee_session *session);
void prg_session_reset(perigee_session *session);
void prg_session_set_trace(perigee_session *session, perigee_trace_fn trace, void *user, perigee_release_fn release);
size_t prg_session_bytes(const perigee_session *session);
/* Floats of one copy of the recurrent state. */
size_t prg_state_floats(const prg_recurrent *state);
/* After a pass in place: the live copy becomes whole, */
void prg_state_commit(prg_recurrent *state);
/* or stands before the token again, where `moved` layers had taken it in. */
void prg_state_take_back(prg_recurrent *state, size_t moved);

/* After a pass that ends at `position` with `state`: keep a copy if the last one lies far enough back. No memory for it
 * is no failure. */
void prg_checkpoints_note(perigee_session *session, size_t position, const float *state);
/* Forget those above `position`. */
void prg_checkpoints_trim(perigee_session *session, size_t position);
/* The newest that is not above `position`, or NULL. */
const prg_checkpoint *prg_checkpoints_find(const perigee_session *session, size_t position);

/* A second session at the same position. */
perigee_status prg_session_fork(const perigee_session *session, perigee_session **out, perigee_error **err);
/* Back to `position`; *nearest the greatest position not above it that can be had. */
perigee_status prg_session_rewind(perigee_session *session, size_t position, size_t *nearest, perigee_cancel *cancel,
                                  perigee_error **err);
/* The greatest position not above `position` that a rewind reaches. */
size_t prg_session_nearest(const perigee_session *session, size_t position);
/* How many of `n` tokens the session holds from its start on. */
size_t prg_session_common(const perigee_session *session, const int32_t *tokens, size_t n);

/* What a host's bytes come from or go to. Either returns OK or a status with *err filled in. */
typedef struct prg_state_sink {
    perigee_status (*write)(void *user, const void *data, size_t size, perigee_error **err);
    void *user;
} prg_state_sink;

typedef struct prg_state_source {
    /* Exactly `size` bytes; PERIGEE_E_TRUNCATED where there are fewer. */
    perigee_status (*read)(void *user, void *data, size_t size, perigee_error **err);
    void *user;
    const char *file; /* for messages; may be NULL */
} prg_state_source;

/* Saved states: docs/state-format.md. `extra` is carried along: what a sampler needs. */
size_t prg_snapshot_size(const perigee_session *session, size_t extra);
perigee_status prg_snapshot_save(const perigee_session *session, const void *extra, size_t extra_size,
                                 const prg_state_sink *sink, perigee_error **err);
/* A state that was read and checked, not yet the session's. */
typedef struct prg_loaded {
    size_t position;
    int32_t *tokens;
    prg_cache cache;
    unsigned char *extra;
    size_t extra_size;
} prg_loaded;

/* On success prg_snapshot_commit() or prg_snapshot_drop() must follow. The session is unchanged until the commit, which
 * can't fail. */
perigee_status prg_snapshot_load(perigee_session *session, const prg_state_source *source, prg_loaded *out,
                                 perigee_error **err);
void prg_snapshot_commit(perigee_session *session, prg_loaded *loaded);
void prg_snapshot_drop(perigee_session *session, prg_loaded *loaded);

/* One session's part of a pass. */
typedef struct prg_run {
    perigee_session *session;
    const int32_t *tokens;
    size_t m;
    size_t first; /* position of the first token */
    prg_state_way way;
    bool keep;         /* ONWARD: a pass that is stopped leaves the state as it found it */
    size_t logits_row; /* of the m rows, the first that gets logits; m: none */
    float *logits;     /* [m - logits_row, vocabulary] */
    float *trace;      /* [layers, m, hidden], or NULL */
    size_t traced;     /* out: layers whose trace is there */
    size_t moved;      /* out: KDA layers whose state has taken the tokens in */
    perigee_status status;
    perigee_error *error; /* out: owned by the caller */
} prg_run;

typedef struct prg_pass_statistics {
    int64_t weight_bytes, expert_reads;
} prg_pass_statistics;

/* All tokens of all runs through the model, once. The pool is entered and the scratch reserved. A status other than OK
 * concerns all runs; a run that alone fails says so itself and takes nobody along. Positions are left to the caller. */
perigee_status prg_forward(perigee_model *model, prg_run *runs, size_t n, perigee_cancel *cancel,
                           prg_pass_statistics *statistics, perigee_error **err);

/* One session's part of a step. */
typedef struct prg_item {
    perigee_session *session;
    const int32_t *tokens;
    size_t n;
    perigee_logits which;
    bool again;            /* the tokens stand at `start`, below the session's position, and the state there in the copy
                              that is not live: nothing of the session changes unless a pass is finished */
    size_t start;          /* position of the first token; set by prg_decode() unless `again` */
    size_t rows;           /* out: rows of session->logits */
    perigee_status status; /* out */
    perigee_error *error;  /* out: owned by the caller */
    size_t done;           /* tokens that passes have taken in */
    size_t scheduled;      /* tokens in the pass at hand */
} prg_item;

/* Whether there are tokens, all of the vocabulary, and room for them from `start` on. */
perigee_status prg_item_check(const prg_item *item, perigee_error **err);
/* Take tokens into different sessions of one model. A pass takes some of every session, at most its chunk. */
void prg_decode(perigee_model *model, prg_item *items, size_t n, perigee_cancel *cancel);

#endif
