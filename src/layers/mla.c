/* Multi-head latent attention with absorbed projections: what is cached is the latent and the shared key. */
#include "layers/layers.h"

static size_t q_width(const prg_mla_weights *w) {
    return w->heads * (w->nope + w->rope);
}

/* q [m, heads * (nope + rope)], latent [m, rank + rope] of x, norms done, nothing rotated. */
static perigee_status project(const prg_pass *pass, const prg_mla_weights *w, const float *x, float *q, float *latent,
                              perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, hidden = pass->hidden, width = w->rank + w->rope;
    const bool low = w->q_rank > 0;
    float *q_a = NULL;
    if (low) {
        q_a = prg_layer_take(exec, m * w->q_rank, sizeof *q_a, err);
        if (!q_a) {
            return PERIGEE_E_INTERNAL;
        }
    }
    const perigee_matrix first = prg_store_matrix(pass->store, low ? &w->q_a : &w->q);
    const perigee_matrix kv_a = prg_store_matrix(pass->store, &w->kv_a);
    const prg_input in = {x, hidden, m, hidden, NULL};
    const prg_matmul_job jobs[] = {
        {&first, 0, first.rows, in, low ? q_a : q, low ? w->q_rank : q_width(w)},
        {&kv_a, 0, kv_a.rows, in, latent, width},
    };
    perigee_status st = prg_matmul(exec, jobs, 2, err);
    if (st == PERIGEE_OK && low) {
        prg_rms_norm(exec, q_a, w->q_rank, w->q_a_norm, m, w->q_rank, w->inner_eps, q_a, w->q_rank);
        const perigee_matrix q_b = prg_store_matrix(pass->store, &w->q);
        const prg_matmul_job job = {&q_b, 0, q_b.rows, {q_a, w->q_rank, m, w->q_rank, NULL}, q, q_width(w)};
        st = prg_matmul(exec, &job, 1, err);
    }
    if (st == PERIGEE_OK) {
        /* the shared key behind the latent is not normed */
        prg_rms_norm(exec, latent, width, w->kv_a_norm, m, w->rank, w->inner_eps, latent, width);
    }
    return st;
}

static perigee_status attend(const prg_pass *pass, const prg_mla_weights *w, const float *q, float *out,
                             perigee_error **err) {
    prg_attention_part *parts = prg_layer_take(&pass->exec, pass->n, sizeof *parts, err);
    if (!parts) {
        return PERIGEE_E_INTERNAL;
    }
    for (size_t i = 0; i < pass->n; i++) {
        const prg_segment *s = &pass->segments[i];
        parts[i] = (prg_attention_part){s->row, s->m, s->first, s->cache};
    }
    const perigee_matrix kv_b = prg_store_matrix(pass->store, &w->kv_b);
    const prg_attention attention = {.heads = w->heads,
                                     .nope = w->nope,
                                     .value = w->value,
                                     .rank = w->rank,
                                     .rope = w->rope,
                                     .scale = w->scale,
                                     .kv_b = &kv_b,
                                     .q = q,
                                     .ldq = q_width(w),
                                     .out = out,
                                     .ldo = w->heads * w->value};
    return prg_attend(&pass->exec, &attention, parts, pass->n, err);
}

/* out *= sigmoid(gate x) */
static perigee_status gate(const prg_pass *pass, const prg_mla_weights *w, const float *x, float *out,
                           perigee_error **err) {
    const size_t m = pass->m, width = w->heads * w->value;
    float *g = prg_layer_take(&pass->exec, m * width, sizeof *g, err);
    if (!g) {
        return PERIGEE_E_INTERNAL;
    }
    const perigee_matrix matrix = prg_store_matrix(pass->store, &w->gate);
    const prg_matmul_job job = {&matrix, 0, matrix.rows, {x, pass->hidden, m, pass->hidden, NULL}, g, width};
    perigee_status st = prg_matmul(&pass->exec, &job, 1, err);
    if (st == PERIGEE_OK) {
        prg_sigmoid_gate(&pass->exec, g, width, m, width, out, width);
    }
    return st;
}

perigee_status prg_layer_mla(prg_pass *pass, const prg_mla_weights *w, const float *x, float *y, perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, width = w->rank + w->rope, values = w->heads * w->value, mark = exec->scratch->used;
    perigee_status st = PERIGEE_E_INTERNAL;
    float *out = prg_layer_take(exec, m * values, sizeof *out, err);
    const size_t behind_out = exec->scratch->used;
    float *q = out ? prg_layer_take(exec, m * q_width(w), sizeof *q, err) : NULL;
    float *latent = q ? prg_layer_take(exec, m * width, sizeof *latent, err) : NULL;
    const size_t behind_latent = exec->scratch->used;
    if (!latent) {
        goto done;
    }
    st = project(pass, w, x, q, latent, err);
    exec->scratch->used = behind_latent;
    if (st != PERIGEE_OK) {
        goto done;
    }
    if (w->rotary && w->rope > 0) {
        prg_rope_apply(exec, &w->rotation, q + w->nope, q_width(w), m, w->heads, w->nope + w->rope, pass->position);
        prg_rope_apply(exec, &w->rotation, latent + w->rank, width, m, 1, width, pass->position);
    }
    for (size_t i = 0; i < pass->n; i++) {
        const prg_segment *s = &pass->segments[i];
        prg_latents_put(exec, &s->cache, latent + s->row * width, width, s->first, s->m);
    }
    st = attend(pass, w, q, out, err);
    exec->scratch->used = behind_out; /* the gate takes the place of q */
    if (st == PERIGEE_OK && prg_weight_is_there(&w->gate)) {
        st = gate(pass, w, x, out, err);
        exec->scratch->used = behind_out;
    }
    if (st == PERIGEE_OK) {
        const perigee_matrix o = prg_store_matrix(pass->store, &w->out);
        const prg_weighted_job job = {&o, {out, values, m, values, NULL}, NULL, NULL};
        st = prg_weighted_matmul(exec, &job, 1, y, pass->hidden, err);
    }
done:
    exec->scratch->used = mark;
    return st;
}

size_t prg_layer_mla_scratch(const prg_sizing *sizing, const prg_mla_weights *w) {
    const prg_kernel_table *table = sizing->table;
    const size_t m = sizing->m, threads = sizing->threads, hidden = sizing->hidden, values = w->heads * w->value;
    const size_t out = prg_scratch_bytes(m * values, sizeof(float));
    const size_t projected =
        prg_scratch_bytes(m * q_width(w), sizeof(float)) + prg_scratch_bytes(m * (w->rank + w->rope), sizeof(float));
    const prg_attention attention = {
        .heads = w->heads, .nope = w->nope, .value = w->value, .rank = w->rank, .rope = w->rope};

    size_t products = prg_matmul_scratch(table, threads, 2, m, hidden);
    if (w->q_rank > 0) {
        const size_t second = prg_matmul_scratch(table, threads, 1, m, w->q_rank);
        products = prg_scratch_bytes(m * w->q_rank, sizeof(float)) + (products > second ? products : second);
    }
    const size_t attended = prg_scratch_bytes(sizing->segments, sizeof(prg_attention_part)) +
                            prg_attend_scratch(table, threads, &attention, m);
    size_t most = projected + (products > attended ? products : attended);
    if (prg_weight_is_there(&w->gate)) {
        const size_t gated =
            prg_scratch_bytes(m * values, sizeof(float)) + prg_matmul_scratch(table, threads, 1, m, hidden);
        most = most > gated ? most : gated;
    }
    const size_t back = prg_matmul_scratch(table, threads, 1, m, values);
    return out + (most > back ? most : back);
}
