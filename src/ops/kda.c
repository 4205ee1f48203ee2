/* Heads over threads. The state is [heads, dim, dim], then what is pending of each head, [heads, 3, dim]. */
#include <assert.h>
#include <string.h>

#include "ops/parallel.h"

typedef struct kda_call {
    const perigee_kda_functions *functions;
    const prg_kda *kda;
    const prg_kda_input *in;
    const prg_kda_part *parts;
    size_t n;
    size_t tokens; /* of all parts, one more each for what a part costs without any */
} kda_call;

size_t prg_kda_state_floats(const prg_kda *kda) {
    return kda->heads * kda->dim * (kda->dim + 3);
}

size_t prg_kda_square_floats(const prg_kda *kda) {
    return kda->heads * kda->dim * kda->dim;
}

void prg_kda_take_back(const prg_kda *kda, float *state) {
    float *pending = state + prg_kda_square_floats(kda);
    for (size_t h = 0; h < kda->heads; h++, pending += 3 * kda->dim) {
        for (size_t i = 0; i < kda->dim; i++) {
            pending[i] = 0;
            pending[kda->dim + i] = 1;
            pending[2 * kda->dim + i] = -0.0f; /* 0 times it added to -0 is -0 still */
        }
    }
}

static void run_head(const kda_call *c, const prg_kda_part *part, size_t head, float *scratch) {
    const prg_kda *kda = c->kda;
    const prg_kda_input *in = c->in;
    size_t n = kda->dim, square = head * n * n, all = kda->heads * n * n;
    const float *pending = part->state + all + head * 3 * n;
    float *next_pending = (part->next_pending ? part->next_pending : part->next + all) + head * 3 * n;
    if (part->m == 0) {
        if (part->next != part->state) {
            memcpy(part->next + square, part->state + square, n * n * sizeof(float));
        }
        if (next_pending != pending) {
            memcpy(next_pending, pending, 3 * n * sizeof(float));
        }
        return;
    }
    size_t at = part->row * in->ld + head * n;
    perigee_kda_job job = {.dim = n,
                           .m = part->m,
                           .state = part->state + square,
                           .next = part->next + square,
                           .pending = pending,
                           .next_pending = next_pending,
                           .q = in->q + at,
                           .k = in->k + at,
                           .v = in->v + at,
                           .f = in->f + at,
                           .ld = in->ld,
                           .dt_bias = kda->dt_bias + head * n,
                           .rate = kda->rate[head],
                           .has_lower_bound = kda->has_lower_bound,
                           .lower_bound = kda->lower_bound,
                           .beta = in->beta + part->row * in->ldbeta + head,
                           .ldbeta = in->ldbeta,
                           .out = in->out + part->row * in->ldo + head * n,
                           .ldo = in->ldo,
                           .scratch = scratch};
    c->functions->run(&job);
}

/* Heads in order of parts; a thread takes those whose cost begins in its share of the whole. */
static void kda_part(void *argument, size_t index, size_t count) {
    const kda_call *c = argument;
    float scratch[7 * PRG_KDA_DIM_MOST + 4096];
    prg_share share = prg_share_of(c->tokens * c->kda->heads, index, count);
    size_t cost = 0;
    for (size_t p = 0; p < c->n; p++) {
        for (size_t h = 0; h < c->kda->heads; h++, cost += c->parts[p].m + 1) {
            if (cost >= share.first && cost < share.end) {
                run_head(c, &c->parts[p], h, scratch);
            }
        }
    }
}

void prg_kda_run(const prg_exec *exec, const prg_kda *kda, const prg_kda_input *in, const prg_kda_part *parts,
                 size_t n) {
    assert(kda->dim >= 1 && kda->dim <= PRG_KDA_DIM_MOST);
    kda_call c = {&prg_plain_row(exec, PERIGEE_OP_KDA)->run.kda, kda, in, parts, n, 0};
    for (size_t i = 0; i < n; i++) {
        c.tokens += parts[i].m + 1;
    }
    prg_parallel(exec, c.tokens * kda->heads * kda->dim * kda->dim / 16, kda_part, &c);
}
