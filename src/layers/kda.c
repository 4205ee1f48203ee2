/* Kimi Delta Attention: short convolutions, the recurrence in float32, a gated norm. */
#include <string.h>

#include "layers/layers.h"

static size_t width_of(const prg_kda_weights *w) {
    return w->op.heads * w->op.dim;
}

/* Floats of the last inputs of one convolution. */
static size_t history_floats(const prg_kda_weights *w) {
    return w->taps > 0 ? (w->taps - 1) * width_of(w) : 0;
}

size_t prg_layer_kda_floats(const prg_kda_weights *w) {
    return prg_kda_state_floats(&w->op) + 3 * history_floats(w);
}

size_t prg_layer_kda_square(const prg_kda_weights *w) {
    return prg_kda_square_floats(&w->op);
}

/* What the recurrence takes in, before convolution: each [m, heads * dim], beta [m, heads]. */
typedef struct kda_rows {
    float *q, *k, *v, *f, *beta, *out;
} kda_rows;

static perigee_status take_rows(const prg_pass *pass, const prg_kda_weights *w, kda_rows *rows, perigee_error **err) {
    const size_t count = pass->m * width_of(w);
    float **wide[] = {&rows->out, &rows->q, &rows->k, &rows->v, &rows->f};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        *wide[i] = prg_layer_take(&pass->exec, count, sizeof(float), err);
        if (!*wide[i]) {
            return PERIGEE_E_INTERNAL;
        }
    }
    rows->beta = prg_layer_take(&pass->exec, pass->m * w->op.heads, sizeof(float), err);
    return rows->beta ? PERIGEE_OK : PERIGEE_E_INTERNAL;
}

static perigee_status project(const prg_pass *pass, const prg_kda_weights *w, const float *x, const kda_rows *rows,
                              perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, width = width_of(w), low = w->f_a.rows;
    float *f_a = prg_layer_take(exec, m * low, sizeof *f_a, err);
    if (!f_a) {
        return PERIGEE_E_INTERNAL;
    }
    const perigee_matrix q = prg_store_matrix(pass->store, &w->q);
    const perigee_matrix k = prg_store_matrix(pass->store, &w->k);
    const perigee_matrix v = prg_store_matrix(pass->store, &w->v);
    const perigee_matrix a = prg_store_matrix(pass->store, &w->f_a);
    const perigee_matrix b = prg_store_matrix(pass->store, &w->f_b);
    const perigee_matrix beta = prg_store_matrix(pass->store, &w->beta);
    const prg_input in = {x, pass->hidden, m, pass->hidden, NULL};
    const prg_matmul_job jobs[] = {
        {&q, 0, q.rows, in, rows->q, width},
        {&k, 0, k.rows, in, rows->k, width},
        {&v, 0, v.rows, in, rows->v, width},
        {&a, 0, a.rows, in, f_a, low},
        {&beta, 0, beta.rows, in, rows->beta, w->op.heads},
    };
    perigee_status st = prg_matmul(exec, jobs, sizeof jobs / sizeof *jobs, err);
    if (st == PERIGEE_OK) {
        const prg_matmul_job job = {&b, 0, b.rows, {f_a, low, m, low, NULL}, rows->f, width};
        st = prg_matmul(exec, &job, 1, err);
    }
    return st;
}

/* Convolutions of one segment, in place. A second chunk of a step has its state before and after in one place, which
 * the convolution may not have: the few inputs before it are set aside. */
static void convolve(const prg_pass *pass, const prg_kda_weights *w, const prg_segment *s, const kda_rows *rows,
                     float *aside) {
    const size_t width = width_of(w), floats = history_floats(w), begin = prg_kda_state_floats(&w->op);
    const size_t tail = begin - prg_kda_square_floats(&w->op);
    float *u[] = {rows->q, rows->k, rows->v};
    for (size_t i = 0; i < 3; i++) {
        const float *history = s->state + begin + i * floats;
        float *next = s->next_tail + tail + i * floats;
        if (history == next && floats > 0) {
            history = memcpy(aside, history, floats * sizeof *aside);
        }
        float *row = u[i] + s->row * width;
        prg_short_conv(&pass->exec, w->conv[i], w->taps, history, next, row, width, s->m, width, row, width);
    }
}

static perigee_status recur(prg_pass *pass, const prg_kda_weights *w, const kda_rows *rows, perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t width = width_of(w);
    float *aside = prg_layer_take(exec, history_floats(w), sizeof *aside, err);
    prg_kda_part *parts = aside ? prg_layer_take(exec, pass->n, sizeof *parts, err) : NULL;
    if (!parts) {
        return PERIGEE_E_INTERNAL;
    }
    for (size_t i = 0; i < pass->n; i++) {
        const prg_segment *s = &pass->segments[i];
        convolve(pass, w, s, rows, aside);
        parts[i] = (prg_kda_part){s->row, s->m, s->state, s->next, s->next_tail};
    }
    const prg_kda_input in = {.q = rows->q,
                              .k = rows->k,
                              .v = rows->v,
                              .f = rows->f,
                              .ld = width,
                              .beta = rows->beta,
                              .ldbeta = w->op.heads,
                              .out = rows->out,
                              .ldo = width};
    prg_kda_run(exec, &w->op, &in, parts, pass->n);
    pass->recurrences++;
    return PERIGEE_OK;
}

/* gate [m, heads * dim] of x, full rank or low. */
static perigee_status gate(const prg_pass *pass, const prg_kda_weights *w, const float *x, float *out,
                           perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, width = width_of(w);
    const prg_input in = {x, pass->hidden, m, pass->hidden, NULL};
    if (prg_weight_is_there(&w->gate)) {
        const perigee_matrix full = prg_store_matrix(pass->store, &w->gate);
        const prg_matmul_job job = {&full, 0, full.rows, in, out, width};
        return prg_matmul(exec, &job, 1, err);
    }
    const size_t low = w->gate_a.rows;
    float *mid = prg_layer_take(exec, m * low, sizeof *mid, err);
    if (!mid) {
        return PERIGEE_E_INTERNAL;
    }
    const perigee_matrix a = prg_store_matrix(pass->store, &w->gate_a);
    const perigee_matrix b = prg_store_matrix(pass->store, &w->gate_b);
    const prg_matmul_job first = {&a, 0, a.rows, in, mid, low};
    const prg_matmul_job second = {&b, 0, b.rows, {mid, low, m, low, NULL}, out, width};
    perigee_status st = prg_matmul(exec, &first, 1, err);
    return st == PERIGEE_OK ? prg_matmul(exec, &second, 1, err) : st;
}

perigee_status prg_layer_kda(prg_pass *pass, const prg_kda_weights *w, const float *x, float *y, perigee_error **err) {
    const prg_exec *exec = &pass->exec;
    const size_t m = pass->m, width = width_of(w), mark = exec->scratch->used;
    kda_rows rows;
    perigee_status st = take_rows(pass, w, &rows, err);
    const size_t behind_rows = exec->scratch->used;
    if (st != PERIGEE_OK) {
        goto done;
    }
    st = project(pass, w, x, &rows, err);
    exec->scratch->used = behind_rows;
    if (st == PERIGEE_OK) {
        st = recur(pass, w, &rows, err);
        exec->scratch->used = behind_rows;
    }
    if (st == PERIGEE_OK) {
        st = gate(pass, w, x, rows.q, err); /* q is done with */
        exec->scratch->used = behind_rows;
    }
    if (st == PERIGEE_OK) {
        prg_rms_norm_gated(exec, rows.out, width, w->norm, rows.q, width, m, w->op.heads, w->op.dim, w->eps, rows.out,
                           width);
        const perigee_matrix o = prg_store_matrix(pass->store, &w->out);
        const prg_weighted_job job = {&o, {rows.out, width, m, width, NULL}, NULL, NULL};
        st = prg_weighted_matmul(exec, &job, 1, y, pass->hidden, err);
    }
done:
    exec->scratch->used = mark;
    return st;
}

size_t prg_layer_kda_scratch(const prg_sizing *sizing, const prg_kda_weights *w) {
    const prg_kernel_table *table = sizing->table;
    const size_t m = sizing->m, threads = sizing->threads, hidden = sizing->hidden, width = width_of(w);
    const bool full = prg_weight_is_there(&w->gate);
    const size_t low = full || w->f_a.rows > w->gate_a.rows ? w->f_a.rows : w->gate_a.rows;
    const size_t rows =
        5 * prg_scratch_bytes(m * width, sizeof(float)) + prg_scratch_bytes(m * w->op.heads, sizeof(float));

    const size_t in = prg_matmul_scratch(table, threads, 5, m, hidden);
    const size_t mid = prg_matmul_scratch(table, threads, 1, m, low);
    const size_t products = prg_scratch_bytes(m * low, sizeof(float)) + (in > mid ? in : mid);
    const size_t recurrence =
        prg_scratch_bytes(history_floats(w), sizeof(float)) + prg_scratch_bytes(sizing->segments, sizeof(prg_kda_part));
    const size_t back = prg_matmul_scratch(table, threads, 1, m, width);
    size_t most = products > recurrence ? products : recurrence;
    return rows + (most > back ? most : back);
}
