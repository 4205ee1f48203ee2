#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base/error.h"
#include "base/options.h"
#include "model/open.h"

enum { MOST_TENSORS = 1000, LARGEST_TENSOR = 4096, RECORD = 64 };

static int by_hash(const void *a, const void *b) {
    const prg_tensor *x = *(const prg_tensor *const *)a, *y = *(const prg_tensor *const *)b;
    return x->name < y->name ? -1 : x->name > y->name;
}

static unsigned char *put(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        *at++ = (unsigned char)(value >> (8 * i));
    }
    return at;
}

static void add_integer(XXH3_state_t *hash, int64_t value) {
    unsigned char bytes[8];
    put(bytes, (uint64_t)value);
    XXH3_128bits_update(hash, bytes, sizeof bytes);
}

static void add_real(XXH3_state_t *hash, double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_integer(hash, bits);
}

/* What changes the arithmetic. */
static void add_config(XXH3_state_t *hash, const prg_config *c) {
    const int64_t integers[] = {c->vocabulary,    c->hidden,         c->layers,
                                c->heads,         c->q_rank,         c->kv_rank,
                                c->nope,          c->rope,           c->value,
                                c->rotary,        c->mla_gate,       c->yarn,
                                c->kda_layers,    c->kda_heads,      c->kda_dim,
                                c->taps,          c->full_rank_gate, c->has_lower_bound,
                                c->act.kind,      c->intermediate,   c->first_dense,
                                c->moe_every,     c->experts,        c->top_k,
                                c->top_groups,    c->shared_experts, c->moe_intermediate,
                                c->expert_groups, c->expert_latent,  c->latent_norm,
                                c->renormalise,   c->softmax_router, c->residual_block,
                                c->yarn_original, c->tied_head};
    const double reals[] = {c->rope_theta,  c->yarn_factor,     c->yarn_beta_fast, c->yarn_beta_slow,
                            c->yarn_mscale, c->yarn_mscale_all, c->lower_bound,    c->act.beta,
                            c->eps,         c->routed_scale,    c->act.linear_beta};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        add_integer(hash, integers[i]);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        add_real(hash, reals[i]);
    }
    for (int64_t i = 0; i < c->layers; i++) {
        add_integer(hash, c->is_kda[i]);
    }
}

static void add_tensor(XXH3_state_t *hash, const prg_tensor *t) {
    unsigned char record[RECORD], *at = put(record, t->name);
    at = put(at, (uint64_t)t->type << 32 | t->rank);
    for (size_t i = 0; i < PRG_TENSOR_KEPT_RANK; i++) {
        at = put(at, t->shape[i]);
    }
    XXH3_128bits_update(hash, record, (size_t)(at - record));
}

/* Bytes of small tensors in the order of their hashes: spread over the whole model, and the same wherever they lie. */
static perigee_status add_bytes(XXH3_state_t *hash, const prg_checkpoint *c, const prg_tensor *const *sorted,
                                size_t count, perigee_error **err) {
    unsigned char bytes[LARGEST_TENSOR];
    prg_file file = {NULL, -1, 0, NULL};
    int64_t open = -1;
    size_t taken = 0;
    perigee_status st = PERIGEE_OK;
    for (size_t i = 0; i < count && taken < MOST_TENSORS && st == PERIGEE_OK; i++) {
        const prg_tensor *t = sorted[i];
        if (t->size > LARGEST_TENSOR) {
            continue;
        }
        if (open != (int64_t)t->file) {
            prg_file_close(&file);
            st = prg_file_open(c->paths[t->file], c->io, &file, err);
            open = t->file;
        }
        if (st == PERIGEE_OK) {
            st = prg_file_read(&file, t->offset, bytes, (size_t)t->size, err);
        }
        if (st == PERIGEE_OK) {
            XXH3_128bits_update(hash, bytes, (size_t)t->size);
        }
        taken++;
    }
    prg_file_close(&file);
    return st;
}

perigee_status prg_fingerprint(prg_checkpoint *checkpoint, double inner_eps, prg_trunk trunk, uint64_t out[2],
                               perigee_error **err) {
    const prg_tensors *tensors = &checkpoint->tensors;
    const prg_tensor **sorted = prg_calloc(checkpoint->allocator, tensors->count, sizeof *sorted);
    XXH3_state_t *hash = prg_alloc(checkpoint->allocator, sizeof *hash);
    perigee_status st = sorted && hash ? PERIGEE_OK : prg_fail_memory(err);
    if (st == PERIGEE_OK) {
        size_t count = 0;
        for (size_t i = 0; i < tensors->count; i++) {
            if (tensors->items[i].used) {
                sorted[count++] = &tensors->items[i];
            }
        }
        qsort(sorted, count, sizeof *sorted, by_hash);
        XXH3_INITSTATE(hash);
        XXH3_128bits_reset(hash);
        add_config(hash, &checkpoint->config);
        if (inner_eps != prg_options_float(NULL, PERIGEE_OPTION_INNER_EPS)) {
            add_real(hash, inner_eps); /* the default adds nothing: states that were saved before it counted load */
        }
        for (size_t i = 0; i < count; i++) {
            add_tensor(hash, sorted[i]);
        }
        if (trunk != PRG_TRUNK_PUBLISHED) { /* other weights, so another model; as published it leaves no mark */
            add_integer(hash, (int64_t)trunk);
        }
        st = add_bytes(hash, checkpoint, sorted, count, err);
        XXH128_hash_t value = XXH3_128bits_digest(hash);
        out[0] = value.low64;
        out[1] = value.high64;
    }
    prg_free(checkpoint->allocator, hash);
    prg_free(checkpoint->allocator, sorted);
    return st;
}
