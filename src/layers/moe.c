/* Mixture of experts: route, gather the tokens of each expert, compute experts in waves, add in ascending id. */
#include <string.h>

#include "layers/layers.h"

/* A wave holds as many experts as these allow, and any one expert whole: each is read once a pass. */
enum { WAVE_BYTES = 12 << 20, WAVE_EXPERTS = 64 };

static size_t wave_rows(size_t m, size_t top_k, size_t inner) {
    const size_t rows = WAVE_BYTES / sizeof(float) / (inner > 0 ? inner : 1);
    const size_t all = m * top_k;
    const size_t some = rows > m ? rows : m;
    return all < some ? all : some;
}

static size_t wave_experts(size_t m, const prg_moe_weights *w) {
    const size_t most = m * w->router.top_k < w->router.experts ? m * w->router.top_k : w->router.experts;
    return most < WAVE_EXPERTS ? most : WAVE_EXPERTS;
}

/* Slots (token, expert) in ascending expert id, then token. */
typedef struct slots {
    uint32_t *token;  /* [m * top_k] */
    float *weight;    /* [m * top_k] */
    uint32_t *expert; /* [used] */
    uint32_t *first;  /* [used + 1]: first slot of each used expert */
    uint32_t *group;  /* [used] */
    size_t used;
} slots;

static perigee_status take_slots(const prg_exec *exec, const prg_moe_weights *w, size_t m, slots *s,
                                 perigee_error **err) {
    const size_t all = m * w->router.top_k, experts = w->router.experts;
    s->token = prg_layer_take(exec, all, sizeof *s->token, err);
    s->weight = s->token ? prg_layer_take(exec, all, sizeof *s->weight, err) : NULL;
    s->expert = s->weight ? prg_layer_take(exec, experts, sizeof *s->expert, err) : NULL;
    s->first = s->expert ? prg_layer_take(exec, experts + 1, sizeof *s->first, err) : NULL;
    s->group = s->first ? prg_layer_take(exec, experts, sizeof *s->group, err) : NULL;
    return s->group ? PERIGEE_OK : PERIGEE_E_INTERNAL;
}

static size_t slots_scratch(const prg_moe_weights *w, size_t m) {
    const size_t all = m * w->router.top_k, experts = w->router.experts;
    return 2 * prg_scratch_bytes(all, sizeof(float)) + 2 * prg_scratch_bytes(experts, sizeof(uint32_t)) +
           prg_scratch_bytes(experts + 1, sizeof(uint32_t));
}

/* A counting sort: stable, so that the tokens of an expert ascend. */
static perigee_status sort_slots(const prg_exec *exec, const prg_moe_weights *w, size_t m, const uint32_t *chosen,
                                 const float *weight, slots *s, perigee_error **err) {
    const size_t top_k = w->router.top_k, all = m * top_k, experts = w->router.experts, mark = exec->scratch->used;
    uint32_t *next = prg_layer_take(exec, experts, sizeof *next, err);
    if (!next) {
        return PERIGEE_E_INTERNAL;
    }
    memset(next, 0, experts * sizeof *next);
    for (size_t i = 0; i < all; i++) {
        next[chosen[i]]++;
    }
    uint32_t begin = 0;
    s->used = 0;
    for (size_t e = 0; e < experts; e++) {
        const uint32_t count = next[e];
        next[e] = begin;
        if (count > 0) {
            s->expert[s->used] = (uint32_t)e;
            s->group[s->used] = w->first_group + (uint32_t)e;
            s->first[s->used++] = begin;
        }
        begin += count;
    }
    s->first[s->used] = begin;
    for (size_t i = 0; i < all; i++) {
        const uint32_t at = next[chosen[i]]++;
        s->token[at] = (uint32_t)(i / top_k);
        s->weight[at] = weight[i];
    }
    exec->scratch->used = mark;
    return PERIGEE_OK;
}

static perigee_status route(const prg_pass *pass, const prg_moe_weights *w, const float *x, slots *s,
                            perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, experts = w->router.experts, all = m * w->router.top_k, mark = exec->scratch->used;
    float *logits = prg_layer_take(exec, m * experts, sizeof *logits, err);
    uint32_t *chosen = logits ? prg_layer_take(exec, all, sizeof *chosen, err) : NULL;
    float *weight = chosen ? prg_layer_take(exec, all, sizeof *weight, err) : NULL;
    perigee_status st = PERIGEE_E_INTERNAL;
    if (weight) {
        const perigee_matrix matrix = prg_store_matrix(pass->store, &w->router_gate);
        const prg_matmul_job job = {&matrix, 0, matrix.rows, {x, pass->hidden, m, pass->hidden, NULL}, logits, experts};
        /* of two experts with nearly one score, an error in the last places picks the other */
        st = prg_matmul_exact(exec, &job, 1, err);
    }
    if (st == PERIGEE_OK) {
        prg_route(exec, &w->router, logits, m, chosen, weight);
        st = sort_slots(exec, w, m, chosen, weight, s, err);
    }
    exec->scratch->used = mark;
    return st;
}

static size_t route_scratch(const prg_sizing *sizing, const prg_moe_weights *w) {
    const size_t m = sizing->m, experts = w->router.experts, all = m * w->router.top_k;
    const size_t product = prg_matmul_scratch(sizing->table, sizing->threads, 1, m, sizing->hidden);
    const size_t sort = prg_scratch_bytes(experts, sizeof(uint32_t));
    return prg_scratch_bytes(m * experts, sizeof(float)) + 2 * prg_scratch_bytes(all, sizeof(float)) +
           (product > sort ? product : sort);
}

/* What a wave is made of. */
typedef struct wave {
    perigee_matrix *matrices; /* [3 * experts] */
    prg_gated_job *in;        /* [experts] */
    prg_weighted_job *out;    /* [experts] */
    float *mid;               /* [rows, inner] */
} wave;

static perigee_status take_wave(const prg_exec *exec, size_t experts, size_t rows, size_t inner, wave *v,
                                perigee_error **err) {
    v->matrices = prg_layer_take(exec, 3 * experts, sizeof *v->matrices, err);
    v->in = v->matrices ? prg_layer_take(exec, experts, sizeof *v->in, err) : NULL;
    v->out = v->in ? prg_layer_take(exec, experts, sizeof *v->out, err) : NULL;
    v->mid = v->out ? prg_layer_take(exec, rows * inner, sizeof *v->mid, err) : NULL;
    return v->mid ? PERIGEE_OK : PERIGEE_E_INTERNAL;
}

/* Experts [begin, end) of the used ones, all pinned: y[token] += weight * expert(h[token]). */
static perigee_status run_wave(const prg_pass *pass, const prg_moe_weights *w, prg_gate act, const slots *s,
                               size_t begin, size_t end, const wave *v, const float *h, float *y, perigee_error **err) {
    const size_t base = s->first[begin];
    for (size_t i = begin; i < end; i++) {
        const prg_mlp_weights *e = &w->experts[s->expert[i]];
        const size_t j = i - begin, first = s->first[i], count = s->first[i + 1] - first;
        perigee_matrix *matrices = v->matrices + 3 * j;
        matrices[0] = prg_store_matrix(pass->store, &e->gate);
        matrices[1] = prg_store_matrix(pass->store, &e->up);
        matrices[2] = prg_store_matrix(pass->store, &e->down);
        float *mid = v->mid + (first - base) * w->inner;
        v->in[j] = (prg_gated_job){
            &matrices[0], &matrices[1], {h, w->latent, count, w->latent, s->token + first}, mid, w->inner};
        v->out[j] = (prg_weighted_job){
            &matrices[2], {mid, w->inner, count, w->inner, NULL}, s->token + first, s->weight + first};
    }
    perigee_status st = prg_gated_matmul(&pass->exec, v->in, end - begin, act, err);
    if (st == PERIGEE_OK) {
        st = prg_weighted_matmul(&pass->exec, v->out, end - begin, y, w->latent, err);
    }
    return st;
}

/* y [m, latent] += the routed experts of h [m, latent]. */
static perigee_status run_experts(prg_pass *pass, const prg_moe_weights *w, prg_gate act, const slots *s,
                                  const float *h, float *y, perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t mark = exec->scratch->used, rows = wave_rows(pass->m, w->router.top_k, w->inner);
    const size_t experts = wave_experts(pass->m, w);
    wave v;
    perigee_status st = take_wave(exec, experts, rows, w->inner, &v, err);
    if (st == PERIGEE_OK) {
        st = prg_store_want(pass->store, s->group, s->used, err);
    }
    for (size_t begin = 0; st == PERIGEE_OK && begin < s->used;) {
        size_t end = begin, pinned = begin;
        while (end < s->used && end - begin < experts && s->first[end + 1] - s->first[begin] <= rows) {
            end++;
        }
        while (st == PERIGEE_OK && pinned < end) {
            st = prg_store_pin(pass->store, s->group[pinned], err);
            pinned += st == PERIGEE_OK;
        }
        if (st == PERIGEE_OK) {
            st = run_wave(pass, w, act, s, begin, end, &v, h, y, err);
        }
        for (size_t i = begin; i < pinned; i++) {
            prg_store_release(pass->store, s->group[i]);
        }
        pass->expert_reads += (int64_t)(end - begin);
        begin = end;
    }
    exec->scratch->used = mark;
    return st;
}

static size_t experts_scratch(const prg_sizing *sizing, const prg_moe_weights *w) {
    const size_t rows = wave_rows(sizing->m, w->router.top_k, w->inner), experts = wave_experts(sizing->m, w);
    const size_t widest = w->latent > w->inner ? w->latent : w->inner;
    return prg_scratch_bytes(3 * experts, sizeof(perigee_matrix)) + prg_scratch_bytes(experts, sizeof(prg_gated_job)) +
           prg_scratch_bytes(experts, sizeof(prg_weighted_job)) + prg_scratch_bytes(rows * w->inner, sizeof(float)) +
           prg_matmul_scratch(sizing->table, sizing->threads, experts, rows, widest);
}

/* The routed experts at a narrower width: down, experts, norm, up. y is overwritten. */
static perigee_status run_latent(prg_pass *pass, const prg_moe_weights *w, prg_gate act, const slots *s, const float *x,
                                 float *y, perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, latent = w->latent, mark = exec->scratch->used;
    float *h = prg_layer_take(exec, m * latent, sizeof *h, err);
    float *sum = h ? prg_layer_take(exec, m * latent, sizeof *sum, err) : NULL;
    perigee_status st = PERIGEE_E_INTERNAL;
    if (sum) {
        const perigee_matrix down = prg_store_matrix(pass->store, &w->latent_down);
        const prg_matmul_job job = {&down, 0, down.rows, {x, pass->hidden, m, pass->hidden, NULL}, h, latent};
        memset(sum, 0, m * latent * sizeof *sum);
        st = prg_matmul(exec, &job, 1, err);
    }
    if (st == PERIGEE_OK) {
        st = run_experts(pass, w, act, s, h, sum, err);
    }
    if (st == PERIGEE_OK) {
        if (w->latent_norm) {
            prg_rms_norm(exec, sum, latent, w->latent_norm, m, latent, w->eps, sum, latent);
        }
        const perigee_matrix up = prg_store_matrix(pass->store, &w->latent_up);
        const prg_matmul_job job = {&up, 0, up.rows, {sum, latent, m, latent, NULL}, y, pass->hidden};
        st = prg_matmul(exec, &job, 1, err);
    }
    exec->scratch->used = mark;
    return st;
}

perigee_status prg_layer_moe(prg_pass *pass, const prg_moe_weights *w, prg_gate act, const float *x, float *y,
                             perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t mark = exec->scratch->used;
    slots s = {0};
    perigee_status st = take_slots(exec, w, pass->m, &s, err);
    if (st == PERIGEE_OK) {
        st = route(pass, w, x, &s, err);
    }
    if (st == PERIGEE_OK) {
        if (prg_weight_is_there(&w->latent_down)) {
            st = run_latent(pass, w, act, &s, x, y, err);
        } else {
            memset(y, 0, pass->m * pass->hidden * sizeof *y);
            st = run_experts(pass, w, act, &s, x, y, err);
        }
    }
    if (st == PERIGEE_OK && w->has_shared) {
        st = prg_layer_mlp(pass, &w->shared, act, x, y, err);
    }
    exec->scratch->used = mark;
    return st;
}

size_t prg_layer_moe_scratch(const prg_sizing *sizing, const prg_moe_weights *w) {
    const size_t m = sizing->m;
    size_t most = route_scratch(sizing, w);
    size_t routed = experts_scratch(sizing, w);
    if (prg_weight_is_there(&w->latent_down)) {
        const size_t down = prg_matmul_scratch(sizing->table, sizing->threads, 1, m, sizing->hidden);
        const size_t up = prg_matmul_scratch(sizing->table, sizing->threads, 1, m, w->latent);
        const size_t products = down > up ? down : up;
        routed = 2 * prg_scratch_bytes(m * w->latent, sizeof(float)) + (routed > products ? routed : products);
    }
    most = most > routed ? most : routed;
    if (w->has_shared) {
        const size_t shared = prg_layer_mlp_scratch(sizing, w->shared.gate.rows);
        most = most > shared ? most : shared;
    }
    return slots_scratch(w, m) + most;
}
