/* The stack of layers over the rows of a pass: embedding, layers with plain or attention residuals, final norm, head.
 */
#include <string.h>

#include "base/error.h"
#include "layers/layers.h"
#include "session/session.h"

/* What lives as long as a pass. */
typedef struct stack {
    perigee_model *model;
    prg_run *runs;
    perigee_cancel *cancel; /* NULL where a stop would lose state */
    prg_pass pass;
    float *x;              /* [m, hidden]: the running sum */
    float *normed;         /* what goes into a layer's half */
    float *y;              /* what comes out of a feed-forward half */
    const float **sources; /* attention residuals: the sums stored so far, and room for the running one */
    const float **shifted; /* the same from some row on */
    size_t banked;
    size_t mla, kda; /* layers of each kind passed */
    float *kept;     /* states of the KDA layers passed as they were, or NULL */
} stack;

static perigee_status begin(stack *s, size_t n, perigee_error **err) {
    prg_pass *pass = &s->pass;
    const prg_config *config = &s->model->config;
    size_t m = 0, banks = 0;
    for (size_t i = 0; i < n; i++) {
        m += s->runs[i].m;
    }
    if (config->residual_block > 0) {
        banks = (size_t)((config->layers + config->residual_block - 1) / config->residual_block);
    }
    pass->m = m;
    pass->n = n;
    pass->hidden = (size_t)config->hidden;
    int64_t *position = prg_layer_take(&pass->exec, m, sizeof *position, err);
    pass->segments = position ? prg_layer_take(&pass->exec, n, sizeof *pass->segments, err) : NULL;
    s->sources = pass->segments ? prg_layer_take(&pass->exec, banks + 1, sizeof *s->sources, err) : NULL;
    s->shifted = s->sources ? prg_layer_take(&pass->exec, banks + 1, sizeof *s->shifted, err) : NULL;
    s->x = s->shifted ? prg_layer_take(&pass->exec, m * pass->hidden, sizeof *s->x, err) : NULL;
    s->normed = s->x ? prg_layer_take(&pass->exec, m * pass->hidden, sizeof *s->normed, err) : NULL;
    s->y = s->normed ? prg_layer_take(&pass->exec, m * pass->hidden, sizeof *s->y, err) : NULL;
    if (!s->y) {
        return PERIGEE_E_INTERNAL;
    }
    size_t row = 0;
    for (size_t i = 0; i < n; i++) {
        const prg_run *run = &s->runs[i];
        pass->segments[i] = (prg_segment){.row = row, .m = run->m, .first = run->first};
        for (size_t t = 0; t < run->m; t++) {
            position[row++] = (int64_t)(run->first + t);
        }
    }
    pass->position = position;
    return PERIGEE_OK;
}

static perigee_status embed(stack *s, perigee_error **err) {
    const prg_pass *pass = &s->pass;
    const perigee_model *model = s->model;
    perigee_status st = prg_store_pin(pass->store, model->embed_group, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    const perigee_matrix table = prg_store_matrix(pass->store, &model->embed);
    for (size_t i = 0; i < pass->n; i++) {
        float *rows = s->x + pass->segments[i].row * pass->hidden;
        prg_embed(&pass->exec, &table, s->runs[i].tokens, s->runs[i].m, rows, pass->hidden);
    }
    prg_store_release(pass->store, model->embed_group);
    return PERIGEE_OK;
}

/* Point the segments at cache or state of the layer at hand. */
static void bind(stack *s, bool is_kda) {
    for (size_t i = 0; i < s->pass.n; i++) {
        perigee_session *session = s->runs[i].session;
        prg_segment *segment = &s->pass.segments[i];
        if (is_kda) {
            prg_recurrent *state = &session->state;
            const size_t at = s->kda * state->floats;
            float *live = state->copy[state->live] + at, *other = state->copy[!state->live] + at;
            segment->state = s->runs[i].way == PRG_STATE_ONWARD ? other : live;
            segment->next = s->runs[i].way == PRG_STATE_IN_PLACE ? live : other;
            segment->next_tail = other + prg_kda_square_floats(&state->sizes);
            if (s->kept) {
                memcpy(s->kept + at, segment->state, state->floats * sizeof *s->kept);
            }
        } else {
            segment->cache = prg_cache_layer(&session->cache, s->mla);
        }
    }
    *(is_kda ? &s->kda : &s->mla) += 1;
}

/* normed = what goes into half a layer: the running sum or, with attention residuals, a mix of it and the stored ones;
 * then its norm. */
static void prepare(stack *s, const float *mix, const float *norm) {
    const prg_pass *pass = &s->pass;
    const size_t m = pass->m, n = pass->hidden;
    const float eps = (float)s->model->config.eps;
    const float *in = s->x;
    if (mix && s->banked > 0) {
        s->sources[s->banked] = s->x;
        prg_residual_mix(&pass->exec, s->sources, s->banked + 1, n, mix, m, n, eps, s->normed, n);
        in = s->normed;
    }
    prg_rms_norm(&pass->exec, in, n, norm, m, n, eps, s->normed, n);
}

/* Store the running sum as it is (not the mix) and start anew. */
static perigee_status bank(stack *s, perigee_error **err) {
    const size_t count = s->pass.m * s->pass.hidden;
    float *fresh = prg_layer_take(&s->pass.exec, count, sizeof *fresh, err);
    if (!fresh) {
        return PERIGEE_E_INTERNAL;
    }
    s->sources[s->banked++] = s->x;
    s->x = memset(fresh, 0, count * sizeof *fresh);
    return PERIGEE_OK;
}

static perigee_status run_layer(stack *s, const prg_layer *layer, perigee_error **err) {
    prg_pass *pass = &s->pass;
    prepare(s, layer->attention_mix, layer->input_norm);
    perigee_status st = layer->bank ? bank(s, err) : PERIGEE_OK;
    if (st != PERIGEE_OK) {
        return st;
    }
    bind(s, layer->is_kda);
    st = layer->is_kda ? prg_layer_kda(pass, &layer->attention.kda, s->normed, s->x, err)
                       : prg_layer_mla(pass, &layer->attention.mla, s->normed, s->x, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    prepare(s, layer->ffn_mix, layer->ffn_norm);
    if (!layer->is_moe) {
        return prg_layer_mlp(pass, &layer->ffn.mlp, layer->act, s->normed, s->x, err);
    }
    st = prg_layer_moe(pass, &layer->ffn.moe, layer->act, s->normed, s->y, err);
    if (st == PERIGEE_OK) {
        prg_add_rows(&pass->exec, s->y, pass->hidden, pass->m, pass->hidden, s->x, pass->hidden);
    }
    return st;
}

/* Runs whose sum is not finite fail; their rows go on as zeros, so that they disturb nobody. Returns the number of runs
 * that are still well. */
static size_t check(stack *s, int64_t layer) {
    const prg_pass *pass = &s->pass;
    size_t well = 0;
    for (size_t i = 0; i < pass->n; i++) {
        prg_run *run = &s->runs[i];
        const prg_segment *segment = &pass->segments[i];
        float *rows = s->x + segment->row * pass->hidden;
        if (run->status == PERIGEE_OK) {
            const size_t bad = prg_first_not_finite(&pass->exec, rows, pass->hidden, run->m, pass->hidden);
            if (bad < run->m) {
                const prg_where where = {NULL, NULL, -1, layer};
                run->status = prg_fail_at(&run->error, PERIGEE_E_NOT_FINITE, where,
                                          "values are not finite after layer %lld, at position %zu", (long long)layer,
                                          run->first + bad);
            }
        }
        if (run->status != PERIGEE_OK) {
            memset(rows, 0, run->m * pass->hidden * sizeof *rows);
        } else {
            well++;
        }
    }
    return well;
}

static void trace(stack *s, size_t layer) {
    const size_t width = s->pass.hidden;
    for (size_t i = 0; i < s->pass.n; i++) {
        prg_run *run = &s->runs[i];
        if (run->trace && run->status == PERIGEE_OK) {
            memcpy(run->trace + layer * run->m * width, s->x + s->pass.segments[i].row * width,
                   run->m * width * sizeof(float));
            run->traced = layer + 1;
        }
    }
}

static perigee_status run_layers(stack *s, size_t *well, perigee_error **err) {
    const perigee_model *model = s->model;
    const size_t layers = (size_t)model->config.layers;
    for (size_t i = 0; i < layers; i++) {
        if (perigee_cancel_triggered(s->cancel)) {
            return prg_fail(err, PERIGEE_E_CANCELLED, "cancelled before layer %zu", i);
        }
        const uint32_t next = i + 1 < layers ? model->layers[i + 1].group : model->head_group;
        perigee_status st = prg_store_pin(s->pass.store, model->layers[i].group, err);
        if (st != PERIGEE_OK) {
            return st;
        }
        st = prg_store_want(s->pass.store, &next, 1, err);
        if (st == PERIGEE_OK) {
            st = run_layer(s, &model->layers[i], err);
        }
        prg_store_release(s->pass.store, model->layers[i].group);
        if (st != PERIGEE_OK) {
            return st;
        }
        *well = check(s, (int64_t)i);
        if (*well == 0) {
            return PERIGEE_OK;
        }
        trace(s, i);
    }
    return PERIGEE_OK;
}

/* normed = final norm of the rows that get logits, without gaps. Returns their number, and that of their runs. */
static size_t gather(stack *s, size_t *wanting) {
    const prg_pass *pass = &s->pass;
    const perigee_model *model = s->model;
    const size_t n = pass->hidden;
    const float eps = (float)model->config.eps;
    size_t count = 0;
    *wanting = 0;
    for (size_t i = 0; i < pass->n; i++) {
        const prg_run *run = &s->runs[i];
        if (run->status != PERIGEE_OK || run->logits_row >= run->m) {
            continue;
        }
        const size_t m = run->m - run->logits_row, at = (pass->segments[i].row + run->logits_row) * n;
        const float *in = s->x + at;
        float *out = s->normed + count * n;
        if (model->final_mix && s->banked > 0) {
            for (size_t j = 0; j < s->banked; j++) {
                s->shifted[j] = s->sources[j] + at;
            }
            s->shifted[s->banked] = in;
            prg_residual_mix(&pass->exec, s->shifted, s->banked + 1, n, model->final_mix, m, n, eps, out, n);
            in = out;
        }
        prg_rms_norm(&pass->exec, in, n, model->final_norm, m, n, eps, out, n);
        count += m;
        *wanting += 1;
    }
    return count;
}

static bool wants_logits(const prg_run *run) {
    return run->status == PERIGEE_OK && run->logits_row < run->m;
}

/* One run wants logits: they go where it wants them. */
static perigee_status head_of_one(stack *s, const perigee_matrix *head, size_t count, perigee_error **err) {
    const size_t n = s->pass.hidden;
    const prg_run *run = s->runs;
    while (!wants_logits(run)) {
        run++;
    }
    const prg_matmul_job job = {head, 0, head->rows, {s->normed, n, count, n, NULL}, run->logits, head->rows};
    return prg_matmul(&s->pass.exec, &job, 1, err);
}

/* Several do: the head is read once, in tiles of columns that are handed out. */
static perigee_status head_of_many(stack *s, const perigee_matrix *head, size_t count, perigee_error **err) {
    const prg_exec *exec = &s->pass.exec;
    const size_t n = s->pass.hidden, tile = prg_head_tile(count, head->rows), mark = exec->scratch->used;
    float *part = prg_layer_take(exec, count * tile, sizeof *part, err);
    perigee_status st = part ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    for (size_t first = 0; st == PERIGEE_OK && first < head->rows; first += tile) {
        const size_t columns = head->rows - first < tile ? head->rows - first : tile;
        const prg_matmul_job job = {head, first, columns, {s->normed, n, count, n, NULL}, part, tile};
        st = prg_matmul(exec, &job, 1, err);
        const float *from = part;
        for (size_t i = 0; st == PERIGEE_OK && i < s->pass.n; i++) {
            const prg_run *run = &s->runs[i];
            for (size_t t = wants_logits(run) ? run->logits_row : run->m; t < run->m; t++, from += tile) {
                memcpy(run->logits + (t - run->logits_row) * head->rows + first, from, columns * sizeof *from);
            }
        }
    }
    exec->scratch->used = mark;
    return st;
}

static void check_logits(const stack *s) {
    const size_t vocabulary = (size_t)s->model->config.vocabulary;
    for (size_t i = 0; i < s->pass.n; i++) {
        prg_run *run = &s->runs[i];
        if (wants_logits(run)) {
            const size_t rows = run->m - run->logits_row;
            const size_t bad = prg_first_not_finite(&s->pass.exec, run->logits, vocabulary, rows, vocabulary);
            if (bad < rows) {
                run->status = prg_fail(&run->error, PERIGEE_E_NOT_FINITE, "logits are not finite at position %zu",
                                       run->first + run->logits_row + bad);
            }
        }
    }
}

static perigee_status run_head(stack *s, perigee_error **err) {
    const perigee_model *model = s->model;
    size_t wanting = 0;
    const size_t count = gather(s, &wanting);
    if (count == 0) {
        return PERIGEE_OK;
    }
    perigee_status st = prg_store_pin(s->pass.store, model->head_group, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    const perigee_matrix head = prg_store_matrix(s->pass.store, &model->head);
    st = wanting == 1 ? head_of_one(s, &head, count, err) : head_of_many(s, &head, count, err);
    prg_store_release(s->pass.store, model->head_group);
    if (st == PERIGEE_OK) {
        check_logits(s);
    }
    return st;
}

/* A stop in the middle of a pass that goes on in place would lose the state that earlier passes of the step have made.
 * A lone run sets it aside, layer by layer; several, which would need a copy each, are not stopped. */
static perigee_status keep(stack *s, size_t n, perigee_error **err) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        any = any || (s->runs[i].keep && s->runs[i].session->state.layers > 0);
    }
    if (any && n == 1) {
        s->kept = prg_layer_take(&s->pass.exec, prg_state_floats(&s->runs->session->state), sizeof *s->kept, err);
        return s->kept ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    }
    s->cancel = any ? NULL : s->cancel;
    return PERIGEE_OK;
}

static void restore(const stack *s) {
    const prg_recurrent *state = &s->runs->session->state;
    memcpy(state->copy[!state->live], s->kept, s->kda * state->floats * sizeof *s->kept);
}

perigee_status prg_forward(perigee_model *model, prg_run *runs, size_t n, perigee_cancel *cancel,
                           prg_pass_statistics *statistics, perigee_error **err) {
    perigee_context *context = model->context;
    stack s = {.model = model, .runs = runs, .cancel = cancel};
    s.pass.exec = (prg_exec){context->table, context->pool, &context->scratch, &statistics->weight_bytes};
    s.pass.store = model->store;
    for (size_t i = 0; i < n; i++) {
        runs[i].status = PERIGEE_OK;
        runs[i].error = NULL;
        runs[i].traced = runs[i].moved = 0;
    }
    const size_t mark = context->scratch.used;
    perigee_status st = begin(&s, n, err);
    size_t well = n;
    if (st == PERIGEE_OK) {
        st = keep(&s, n, err);
    }
    if (st == PERIGEE_OK) {
        st = embed(&s, err);
    }
    if (st == PERIGEE_OK) {
        st = run_layers(&s, &well, err);
    }
    if (st == PERIGEE_OK && well > 0) {
        st = run_head(&s, err);
    }
    if (st == PERIGEE_E_CANCELLED && s.kept) {
        restore(&s);
    }
    for (size_t i = 0; i < n; i++) {
        runs[i].moved = s.pass.recurrences;
    }
    statistics->expert_reads += s.pass.expert_reads;
    context->scratch.used = mark;
    return st;
}
