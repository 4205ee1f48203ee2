#include "generate/sampler.h"

#include <math.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "generate/random.h"
#include "generate/select.h"
#include "generate/softmax.h"

/* What is left of a row while the stages go over it. Ids ascend; `ids` NULL: value i is of token i. */
typedef struct row {
    float *values;
    uint32_t *ids;
    size_t n;
    size_t vocabulary;
    float maximum;      /* of the values */
    bool maximum_known; /* false after a stage that moves single values */
    bool weights_known; /* the sampler's weights are those of the values, or 0 for what was cut */
    bool last;          /* only the draw follows the stage at hand */
} row;

perigee_status prg_sampler_new(prg_allocator *allocator, perigee_sampler **out, perigee_error **err) {
    perigee_sampler *s = prg_calloc(allocator, 1, sizeof *s);
    if (!s) {
        return prg_fail_memory(err);
    }
    s->allocator = prg_allocator_hold(allocator);
    *out = s;
    return PERIGEE_OK;
}

static void drop_scratch(perigee_sampler *s) {
    prg_free(s->allocator, s->values);
    prg_free(s->allocator, s->weights);
    prg_free(s->allocator, s->scratch);
    prg_free(s->allocator, s->ids);
    prg_free(s->allocator, s->counts);
    prg_free(s->allocator, s->buckets);
    s->values = s->weights = s->scratch = NULL;
    s->ids = s->counts = NULL;
    s->buckets = NULL;
    s->capacity = 0;
}

void perigee_sampler_free(perigee_sampler *sampler) {
    if (sampler) {
        prg_allocator *a = sampler->allocator;
        drop_scratch(sampler);
        prg_free(a, sampler->keys);
        prg_free(a, sampler->history);
        for (size_t i = 0; i < sampler->stage_count; i++) {
            prg_free(a, sampler->stages[i].ids);
            prg_free(a, sampler->stages[i].biases);
        }
        prg_free(a, sampler);
        prg_allocator_drop(a);
    }
}

static bool is_penalty(prg_stage_kind kind) {
    return kind == PRG_STAGE_REPETITION || kind == PRG_STAGE_PRESENCE || kind == PRG_STAGE_FREQUENCY;
}

/* A longer ring with the same contents. */
static perigee_status widen(perigee_sampler *s, size_t window, perigee_error **err) {
    if (window <= s->window) {
        return PERIGEE_OK;
    }
    int32_t *wider = prg_calloc(s->allocator, window, sizeof *wider);
    if (!wider) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < s->history_count; i++) {
        wider[i] = s->history[(s->history_next + s->window - s->history_count + i) % s->window];
    }
    prg_free(s->allocator, s->history);
    s->history = wider;
    s->window = window;
    s->history_next = s->history_count % window;
    return PERIGEE_OK;
}

perigee_status prg_sampler_add(perigee_sampler *sampler, const prg_stage *stage, perigee_error **err) {
    prg_allocator *a = sampler->allocator;
    if (sampler->stage_count == PRG_SAMPLER_STAGES) {
        return prg_fail(err, PERIGEE_E_RANGE, "a sampler takes at most %d stages", PRG_SAMPLER_STAGES);
    }
    prg_stage copy = *stage;
    copy.ids = NULL;
    copy.biases = NULL;
    if (stage->kind == PRG_STAGE_BIAS) {
        copy.ids = prg_calloc(a, stage->size, sizeof *copy.ids);
        copy.biases = prg_calloc(a, stage->size, sizeof *copy.biases);
        if (!copy.ids || !copy.biases) {
            prg_free(a, copy.ids);
            prg_free(a, copy.biases);
            return prg_fail_memory(err);
        }
        memcpy(copy.ids, stage->ids, stage->size * sizeof *copy.ids);
        memcpy(copy.biases, stage->biases, stage->size * sizeof *copy.biases);
    }
    if (is_penalty(stage->kind)) {
        perigee_status st = widen(sampler, stage->size, err);
        if (st != PERIGEE_OK) {
            return st;
        }
    }
    sampler->stages[sampler->stage_count++] = copy;
    return PERIGEE_OK;
}

perigee_status prg_sampler_clone(const perigee_sampler *sampler, perigee_sampler **out, perigee_error **err) {
    perigee_sampler *s = NULL;
    perigee_status st = prg_sampler_new(sampler->allocator, &s, err);
    for (size_t i = 0; st == PERIGEE_OK && i < sampler->stage_count; i++) {
        st = prg_sampler_add(s, &sampler->stages[i], err);
    }
    if (st != PERIGEE_OK) {
        perigee_sampler_free(s);
        return st;
    }
    s->seed = sampler->seed;
    s->counter = sampler->counter;
    s->history_count = sampler->history_count;
    s->history_next = sampler->history_next;
    if (s->window > 0) {
        memcpy(s->history, sampler->history, s->window * sizeof *s->history);
    }
    *out = s;
    return PERIGEE_OK;
}

void prg_sampler_accept(perigee_sampler *sampler, const int32_t *ids, size_t count) {
    size_t window = sampler->window;
    if (window == 0) {
        return;
    }
    for (size_t i = count > window ? count - window : 0; i < count; i++) {
        sampler->history[sampler->history_next] = ids[i];
        sampler->history_next = (sampler->history_next + 1) % window;
        sampler->history_count += sampler->history_count < window;
    }
}

void prg_sampler_forget(perigee_sampler *sampler, size_t count) {
    const size_t gone = prg_min(count, sampler->history_count);
    if (gone > 0) {
        sampler->history_next = (sampler->history_next + sampler->window - gone) % sampler->window;
        sampler->history_count -= gone;
    }
}

static perigee_status reserve(perigee_sampler *s, size_t vocabulary, perigee_error **err) {
    if (s->capacity >= vocabulary) {
        return PERIGEE_OK;
    }
    prg_allocator *a = s->allocator;
    size_t padded = prg_round_up(vocabulary, 16);
    drop_scratch(s);
    s->values = prg_calloc(a, padded, sizeof *s->values);
    s->weights = prg_calloc(a, padded, sizeof *s->weights);
    s->scratch = prg_calloc(a, padded, sizeof *s->scratch);
    s->ids = prg_calloc(a, padded, sizeof *s->ids);
    s->counts = prg_calloc(a, padded, sizeof *s->counts);
    s->buckets = prg_calloc(a, 1, sizeof *s->buckets);
    if (!s->values || !s->weights || !s->scratch || !s->ids || !s->counts || !s->buckets) {
        drop_scratch(s);
        return prg_fail_memory(err);
    }
    s->capacity = padded;
    return PERIGEE_OK;
}

/* Index of a token in the row, or SIZE_MAX when it is no longer there. */
static size_t locate(const row *r, uint32_t id) {
    if (!r->ids) {
        return id < r->n ? id : SIZE_MAX;
    }
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->n && r->ids[low] == id ? low : SIZE_MAX;
}

/* Each token of the window once, with the number of times that it stands there. */
static void apply_penalty(perigee_sampler *s, const prg_stage *stage, row *r) {
    size_t n = prg_min(s->history_count, stage->size);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 1; i <= n; i++) {
            int32_t id = s->history[(s->history_next + s->window - i) % s->window];
            if (id < 0 || (size_t)id >= r->vocabulary) {
                continue;
            }
            if (pass == 0) {
                s->counts[id]++;
                continue;
            }
            uint32_t times = s->counts[id];
            s->counts[id] = 0;
            size_t at = times > 0 ? locate(r, (uint32_t)id) : SIZE_MAX;
            if (at == SIZE_MAX) {
                continue;
            }
            double v = (double)r->values[at];
            if (stage->kind == PRG_STAGE_REPETITION) {
                v = v > 0 ? v / stage->value : v * stage->value;
            } else {
                v -= stage->kind == PRG_STAGE_PRESENCE ? stage->value : stage->value * (double)times;
            }
            r->values[at] = (float)v + 0.0f;
        }
    }
}

static void apply_bias(const prg_stage *stage, row *r) {
    for (uint32_t i = 0; i < stage->size; i++) {
        size_t at = locate(r, (uint32_t)stage->ids[i]);
        if (at != SIZE_MAX) {
            r->values[at] += stage->biases[i];
        }
    }
}

/* Rounding keeps the order, so the maximum is scaled like any value. */
static void apply_temperature(const prg_stage *stage, row *r) {
    float factor = (float)(1.0 / stage->value);
    prg_softmax_scale(r->values, r->n, factor);
    r->maximum *= factor;
    r->maximum_known = r->maximum_known && isfinite(r->maximum);
}

static void keep(perigee_sampler *s, row *r, size_t to, size_t from) {
    s->ids[to] = r->ids ? r->ids[from] : (uint32_t)from;
    s->values[to] = r->values[from];
}

static void finish_keep(perigee_sampler *s, row *r, size_t n) {
    r->ids = s->ids;
    r->n = n;
}

/* Values and weights are cut down to weights of at least `floor`, of equal ones to the first `equal`. */
static void cut_weights(perigee_sampler *s, row *r, float floor, size_t equal) {
    enum { GROUP = 16 }; /* the weights are padded with zeros to it */
    size_t n = 0;
    for (size_t i = 0; i < r->n; i += GROUP) {
        if (prg_softmax_all_below(s->weights + i, floor)) {
            continue;
        }
        size_t end = prg_min(i + GROUP, r->n);
        for (size_t j = i; j < end; j++) { /* no branch on the weight: half of the guesses would be wrong */
            float w = s->weights[j];
            bool tie = w == floor, stays = w > floor || (tie && equal > 0);
            keep(s, r, n, j);
            s->weights[n] = w;
            equal -= tie && stays;
            n += stays;
        }
    }
    for (size_t i = n; i % GROUP != 0; i++) {
        s->weights[i] = 0;
    }
    finish_keep(s, r, n);
}

static double weigh(perigee_sampler *s, row *r) {
    r->weights_known = true;
    return prg_softmax_weights(r->values, r->n, r->maximum, s->weights);
}

static perigee_status apply_top_k(perigee_sampler *s, const prg_stage *stage, row *r, perigee_error **err) {
    size_t k = stage->size;
    if (k >= r->n) {
        return PERIGEE_OK;
    }
    if (s->key_capacity < 2 * k) {
        prg_free(s->allocator, s->keys);
        s->keys = prg_calloc(s->allocator, 2 * k, sizeof *s->keys);
        s->key_capacity = s->keys ? 2 * k : 0;
        if (!s->keys) {
            return prg_fail_memory(err);
        }
    }
    prg_select_top(r->values, r->n, k, s->keys);
    uint64_t least = s->keys[0];
    for (size_t i = 1; i < k; i++) {
        least = s->keys[i] < least ? s->keys[i] : least;
    }
    float floor = prg_select_value(least);
    size_t last = prg_select_index(least), n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->values[i] > floor || (r->values[i] == floor && i <= last)) {
            keep(s, r, n++, i);
        }
    }
    finish_keep(s, r, n);
    return PERIGEE_OK;
}

/* As cut_weights() where nothing but the draw follows: tokens that are cut stay, with a weight of 0. */
static void drop_weights(perigee_sampler *s, row *r, float floor, size_t equal) {
    prg_softmax_zero_below(s->weights, r->n, floor);
    for (size_t i = 0; i < r->n && equal != SIZE_MAX; i++) {
        if (s->weights[i] == floor && equal-- == 0) {
            s->weights[i] = 0;
            equal = 0;
        }
    }
}

/* The weights of at least `floor`, to `out`. */
static size_t gather_weights(const float *weights, size_t n, float floor, float *out) {
    enum { GROUP = 16 };
    size_t held = 0;
    for (size_t i = 0; i < n; i += GROUP) {
        if (prg_softmax_all_below(weights + i, floor)) {
            continue;
        }
        size_t end = prg_min(i + GROUP, n);
        for (size_t j = i; j < end; j++) {
            out[held] = weights[j];
            held += weights[j] >= floor;
        }
    }
    return held;
}

/* All further down sum to less than (1 - p) of the whole if each is below `safe`, so the search may leave them out. */
static void apply_top_p(perigee_sampler *s, const prg_stage *stage, row *r) {
    double total = weigh(s, r);
    float safe = (float)((1.0 - stage->value) * total / (double)r->n * 0.999);
    size_t n = gather_weights(s->weights, r->n, safe, s->scratch);
    float floor;
    size_t equal = prg_select_mass(s->scratch, n, stage->value * total, s->buckets, s->scratch, &floor);
    if (r->last) {
        drop_weights(s, r, floor, equal);
    } else {
        cut_weights(s, r, floor, equal);
    }
}

static void apply_min_p(perigee_sampler *s, const prg_stage *stage, row *r) {
    weigh(s, r);
    cut_weights(s, r, (float)stage->value, SIZE_MAX);
}

static void apply_greedy(perigee_sampler *s, row *r) {
    for (size_t i = 0; i < r->n; i++) {
        if (r->values[i] == r->maximum) {
            keep(s, r, 0, i);
            finish_keep(s, r, 1);
            return;
        }
    }
}

static perigee_status not_finite(const row *r, size_t where, perigee_error **err) {
    return prg_fail(err, PERIGEE_E_NOT_FINITE, "the logit of token %u is not finite",
                    r->ids ? r->ids[where] : (unsigned)where);
}

static perigee_status find_maximum(row *r, perigee_error **err) {
    size_t where = 0;
    if (!r->maximum_known && !prg_softmax_maximum(r->values, r->n, NULL, &r->maximum, &where)) {
        return not_finite(r, where, err);
    }
    r->maximum_known = true;
    return PERIGEE_OK;
}

static perigee_status apply(perigee_sampler *s, const prg_stage *stage, row *r, perigee_error **err) {
    perigee_status st = stage->kind >= PRG_STAGE_TOP_K ? find_maximum(r, err) : PERIGEE_OK;
    if (st != PERIGEE_OK) {
        return st;
    }
    r->weights_known = false;
    switch (stage->kind) {
    case PRG_STAGE_REPETITION:
    case PRG_STAGE_PRESENCE:
    case PRG_STAGE_FREQUENCY:
        apply_penalty(s, stage, r);
        r->maximum_known = false;
        break;
    case PRG_STAGE_BIAS:
        apply_bias(stage, r);
        r->maximum_known = false;
        break;
    case PRG_STAGE_TEMPERATURE:
        apply_temperature(stage, r);
        break;
    case PRG_STAGE_TOP_K:
        return apply_top_k(s, stage, r, err);
    case PRG_STAGE_TOP_P:
        apply_top_p(s, stage, r);
        break;
    case PRG_STAGE_MIN_P:
        apply_min_p(s, stage, r);
        break;
    case PRG_STAGE_GREEDY:
        apply_greedy(s, r);
        break;
    }
    return PERIGEE_OK;
}

enum { DRAW_BLOCKS = 4096 };

/* The token at u of the whole weight, in the order of ids. `sums` holds DRAW_BLOCKS numbers. */
static size_t draw(const float *weights, size_t n, double u, double *sums) {
    double total = 0;
    const size_t size = prg_round_up(prg_max(256, n / DRAW_BLOCKS + 1), 16), blocks = (n + size - 1) / size;
    size_t block = 0, last = 0;
    for (size_t b = 0; b < blocks; b++) {
        sums[b] = prg_softmax_sum(weights + b * size, prg_min(size, n - b * size));
        total += sums[b];
    }
    double target = u * total;
    for (; block < blocks && sums[block] <= target; block++) {
        target -= sums[block];
        last = sums[block] > 0 ? block : last;
    }
    if (block == blocks) { /* rounding took the target past the end: the last token that can be drawn */
        block = last;
        target = total;
    }
    size_t end = prg_min((block + 1) * size, n), found = block * size;
    for (size_t i = found; i < end; i++) {
        if (weights[i] > 0) {
            found = i;
            target -= (double)weights[i];
            if (target < 0) {
                break;
            }
        }
    }
    return found;
}

/* The allowed tokens' values, to the front. */
static perigee_status mask_row(perigee_sampler *s, const uint64_t *allowed, size_t count, row *r, perigee_error **err) {
    size_t n = 0;
    for (size_t word = 0; word * 64 < count; word++) {
        for (uint64_t bits = allowed[word]; bits != 0; bits &= bits - 1) {
            size_t id = word * 64 + (size_t)__builtin_ctzll(bits);
            if (id < count) {
                keep(s, r, n++, id);
            }
        }
    }
    finish_keep(s, r, n);
    r->maximum_known = false;
    return n > 0 ? PERIGEE_OK : prg_fail(err, PERIGEE_E_STATE, "no token is allowed");
}

static perigee_status sample(perigee_sampler *sampler, const float *logits, size_t count, const uint64_t *allowed,
                             size_t allowed_count, int32_t *id, perigee_error **err) {
    perigee_sampler *s = sampler;
    perigee_status st = reserve(s, count, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    row r = {s->values, NULL, count, count, 0, true, false, false};
    size_t where = 0;
    if (!prg_softmax_maximum(logits, count, s->values, &r.maximum, &where)) {
        return not_finite(&r, where, err);
    }
    if (allowed) {
        st = mask_row(s, allowed, prg_min(allowed_count, count), &r, err);
    }
    for (size_t i = 0; st == PERIGEE_OK && i < s->stage_count; i++) {
        r.last = i + 1 == s->stage_count;
        st = apply(s, &s->stages[i], &r, err);
    }
    if (st == PERIGEE_OK && s->stage_count == 0) {
        const prg_stage greedy = {PRG_STAGE_GREEDY, 0, 0, NULL, NULL};
        st = apply(s, &greedy, &r, err);
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    size_t at = 0;
    if (r.n > 1) {
        st = find_maximum(&r, err);
        if (st != PERIGEE_OK) {
            return st;
        }
        if (!r.weights_known) {
            weigh(s, &r);
        }
        at = draw(s->weights, r.n, prg_random_unit(s->seed, s->counter), s->buckets->mass);
    }
    s->counter++; /* also where there was no choice: the position in the stream is the number of samples */
    *id = r.ids ? (int32_t)r.ids[at] : (int32_t)at;
    return PERIGEE_OK;
}

perigee_status prg_sampler_sample(perigee_sampler *sampler, const float *logits, size_t count, const uint64_t *allowed,
                                  size_t allowed_count, int32_t *id, perigee_error **err) {
    fenv_t host;
    prg_float_mode_enter(&host);
    perigee_status st = sample(sampler, logits, count, allowed, allowed_count, id, err);
    prg_float_mode_leave(&host);
    return st;
}
