/* Layers: what a pass over the model does with the rows of its segments. A layer reads its weights through the store,
 * takes its buffers from the scratch and gives them back; state and cache belong to the session, which hands them in.
 *
 * Rows of all segments go through products together; what mixes positions (attention, convolution, recurrence) goes by
 * segment. x and y are [m, hidden] without gaps. The group of the layer is pinned by the caller, routed experts here.
 */
#ifndef PRG_LAYERS_LAYERS_H
#define PRG_LAYERS_LAYERS_H

#include "layers/weights.h"
#include "ops/ops.h"
#include "store/store.h"

/* Consecutive tokens of one sequence: rows [row, row + m) of the pass, at positions first … . The last four are those
 * of the layer at hand. */
typedef struct prg_segment {
    size_t row, m;
    size_t first;
    prg_latents cache;  /* MLA: holds positions below `first` and has room for m more */
    const float *state; /* KDA: prg_layer_kda_floats() before these tokens */
    float *next;        /* KDA: after them; may be `state` */
    float *next_tail;   /* KDA: where all but S goes then: prg_layer_kda_square() floats behind `next`, or elsewhere */
} prg_segment;

typedef struct prg_pass {
    prg_exec exec;
    prg_store *store;
    size_t hidden, m;
    const int64_t *position; /* [m] */
    prg_segment *segments;
    size_t n;
    int64_t expert_reads; /* routed experts pinned */
    size_t recurrences;   /* KDA layers whose states have moved on */
} prg_pass;

/* y += attention(x). */
perigee_status prg_layer_mla(prg_pass *pass, const prg_mla_weights *w, const float *x, float *y, perigee_error **err);
perigee_status prg_layer_kda(prg_pass *pass, const prg_kda_weights *w, const float *x, float *y, perigee_error **err);
/* Floats of state of one sequence: the recurrence, then the last inputs of the convolutions of q, k and v. */
size_t prg_layer_kda_floats(const prg_kda_weights *w);
/* Floats of S, which come first. What is behind them is small: a token may leave it in another place, so that it can be
 * taken back (prg_kda_take_back()). */
size_t prg_layer_kda_square(const prg_kda_weights *w);

/* y += mlp(x), for the m rows of the pass. */
perigee_status prg_layer_mlp(prg_pass *pass, const prg_mlp_weights *w, prg_gate act, const float *x, float *y,
                             perigee_error **err);
/* y = routed experts + shared experts of x. */
perigee_status prg_layer_moe(prg_pass *pass, const prg_moe_weights *w, prg_gate act, const float *x, float *y,
                             perigee_error **err);

/* Of whom scratch is asked. */
typedef struct prg_sizing {
    const prg_kernel_table *table;
    size_t threads;
    size_t hidden;
    size_t m;        /* rows of a pass */
    size_t segments; /* of them */
} prg_sizing;

/* Most scratch that each of the above takes; of the weights, only sizes and dtypes of optional matrices are read. */
size_t prg_layer_mla_scratch(const prg_sizing *sizing, const prg_mla_weights *w);
size_t prg_layer_kda_scratch(const prg_sizing *sizing, const prg_kda_weights *w);
size_t prg_layer_mlp_scratch(const prg_sizing *sizing, size_t inner);
size_t prg_layer_moe_scratch(const prg_sizing *sizing, const prg_moe_weights *w);

/* `count` items of scratch; NULL with PERIGEE_E_INTERNAL in *err where the plan left too little. */
void *prg_layer_take(const prg_exec *exec, size_t count, size_t size, perigee_error **err);

static inline bool prg_weight_is_there(const prg_weight *weight) {
    return weight->dtype != PERIGEE_DTYPE_NONE;
}

#endif
