#include <math.h>

#include "base/error.h"
#include "base/float_mode.h"
#include "generate/sampler.h"
#include "generate/select.h"
#include "generate/softmax.h"
#include "model/model.h"

static perigee_status check_row(const float *logits, size_t count, perigee_error **err) {
    if (!logits || count == 0 || count > INT32_MAX) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "logits is NULL or their count is not in 1 … 2^31 - 1");
    }
    return PERIGEE_OK;
}

static perigee_status maximum_of(const float *logits, size_t count, float *maximum, perigee_error **err) {
    size_t where;
    perigee_status st = check_row(logits, count, err);
    if (st == PERIGEE_OK && !prg_softmax_maximum(logits, count, NULL, maximum, &where)) {
        return prg_fail(err, PERIGEE_E_NOT_FINITE, "logit %zu is not finite", where);
    }
    return st;
}

perigee_status perigee_argmax(const float *logits, size_t count, int32_t *id, perigee_error **err) {
    prg_clear(err);
    float maximum;
    if (!id) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "id is NULL");
    }
    perigee_status st = maximum_of(logits, count, &maximum, err);
    if (st == PERIGEE_OK) {
        size_t at = 0;
        while (logits[at] != maximum) {
            at++;
        }
        *id = (int32_t)at;
    }
    return st;
}

perigee_status perigee_top_k(perigee_context *context, const float *logits, size_t count, size_t k, int32_t *ids,
                             float *values, perigee_error **err) {
    prg_clear(err);
    float maximum;
    if (!context || !ids || k > count) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or ids is NULL, or k is greater than the count");
    }
    perigee_status st = maximum_of(logits, count, &maximum, err);
    if (st != PERIGEE_OK || k == 0) {
        return st;
    }
    uint64_t *keys = prg_calloc(context->allocator, 2 * k, sizeof *keys);
    if (!keys) {
        return prg_fail_memory(err);
    }
    prg_select_top(logits, count, k, keys);
    prg_select_sort(keys, k);
    for (size_t i = 0; i < k; i++) {
        ids[i] = (int32_t)prg_select_index(keys[i]);
        if (values) {
            values[i] = prg_select_value(keys[i]);
        }
    }
    prg_free(context->allocator, keys);
    return PERIGEE_OK;
}

static void subtract_log_sum(const float *logits, size_t count, float maximum, const int32_t *ids, size_t n,
                             double *out) {
    double sum = prg_softmax_log_sum(logits, count, maximum);
    for (size_t i = 0; i < n; i++) {
        out[i] = (double)logits[ids[i]] - sum;
    }
}

perigee_status perigee_log_probabilities(const float *logits, size_t count, const int32_t *ids, size_t n, double *out,
                                         perigee_error **err) {
    prg_clear(err);
    float maximum;
    if (n > 0 && (!ids || !out)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "ids or out is NULL");
    }
    perigee_status st = maximum_of(logits, count, &maximum, err);
    for (size_t i = 0; st == PERIGEE_OK && i < n; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= count) {
            st = prg_fail(err, PERIGEE_E_TOKEN, "token %d is outside the vocabulary of %zu", (int)ids[i], count);
        }
    }
    if (st == PERIGEE_OK && n > 0) {
        fenv_t host;
        prg_float_mode_enter(&host);
        subtract_log_sum(logits, count, maximum, ids, n, out);
        prg_float_mode_leave(&host);
    }
    return st;
}

perigee_status perigee_sampler_new(perigee_context *context, perigee_sampler **out, perigee_error **err) {
    prg_clear(err);
    if (!context || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context or out is NULL");
    }
    return prg_sampler_new(context->allocator, out, err);
}

perigee_status perigee_sampler_clone(const perigee_sampler *sampler, perigee_sampler **out, perigee_error **err) {
    prg_clear(err);
    if (!sampler || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler or out is NULL");
    }
    return prg_sampler_clone(sampler, out, err);
}

/* The bounds of every stage's value stand here, so that the header's words and the check can be compared. */
static perigee_status add(perigee_sampler *sampler, prg_stage_kind kind, double value, double least, double greatest,
                          size_t size, perigee_error **err) {
    prg_clear(err);
    if (!sampler) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler is NULL");
    }
    if (!(value >= least && value <= greatest)) {
        return prg_fail(err, PERIGEE_E_RANGE, "%g is not in %g … %g", value, least, greatest);
    }
    const prg_stage stage = {kind, value, (uint32_t)size, NULL, NULL};
    return prg_sampler_add(sampler, &stage, err);
}

static perigee_status add_penalty(perigee_sampler *sampler, prg_stage_kind kind, double value, double least,
                                  size_t window, perigee_error **err) {
    prg_clear(err);
    if (window < 1 || window > PRG_SAMPLER_WINDOW) {
        return prg_fail(err, PERIGEE_E_RANGE, "a window of %zu is not in 1 … %d", window, PRG_SAMPLER_WINDOW);
    }
    return add(sampler, kind, value, least, 1000, window, err);
}

perigee_status perigee_sampler_add_repetition(perigee_sampler *sampler, double penalty, size_t window,
                                              perigee_error **err) {
    return add_penalty(sampler, PRG_STAGE_REPETITION, penalty, 0.001, window, err);
}

perigee_status perigee_sampler_add_presence(perigee_sampler *sampler, double penalty, size_t window,
                                            perigee_error **err) {
    return add_penalty(sampler, PRG_STAGE_PRESENCE, penalty, -1000, window, err);
}

perigee_status perigee_sampler_add_frequency(perigee_sampler *sampler, double penalty, size_t window,
                                             perigee_error **err) {
    return add_penalty(sampler, PRG_STAGE_FREQUENCY, penalty, -1000, window, err);
}

perigee_status perigee_sampler_add_bias(perigee_sampler *sampler, const int32_t *ids, const float *biases, size_t count,
                                        perigee_error **err) {
    prg_clear(err);
    if (!sampler || count > INT32_MAX || (count > 0 && (!ids || !biases))) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler, ids or biases is NULL, or there are too many");
    }
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || !isfinite(biases[i])) {
            return prg_fail(err, PERIGEE_E_RANGE, "bias %zu is of a negative id or not finite", i);
        }
    }
    const prg_stage stage = {PRG_STAGE_BIAS, 0, (uint32_t)count, (int32_t *)(uintptr_t)ids, (float *)(uintptr_t)biases};
    return prg_sampler_add(sampler, &stage, err);
}

perigee_status perigee_sampler_add_temperature(perigee_sampler *sampler, double temperature, perigee_error **err) {
    if (temperature == 0) {
        return perigee_sampler_add_greedy(sampler, err);
    }
    return add(sampler, PRG_STAGE_TEMPERATURE, temperature, 0.001, 1000, 0, err);
}

perigee_status perigee_sampler_add_top_k(perigee_sampler *sampler, size_t k, perigee_error **err) {
    prg_clear(err);
    if (k < 1 || k > INT32_MAX) {
        return prg_fail(err, PERIGEE_E_RANGE, "k is not in 1 … 2^31 - 1");
    }
    return add(sampler, PRG_STAGE_TOP_K, 0, 0, 0, k, err);
}

perigee_status perigee_sampler_add_top_p(perigee_sampler *sampler, double p, perigee_error **err) {
    return add(sampler, PRG_STAGE_TOP_P, p, 0, 1, 0, err);
}

perigee_status perigee_sampler_add_min_p(perigee_sampler *sampler, double p, perigee_error **err) {
    return add(sampler, PRG_STAGE_MIN_P, p, 0, 1, 0, err);
}

perigee_status perigee_sampler_add_greedy(perigee_sampler *sampler, perigee_error **err) {
    return add(sampler, PRG_STAGE_GREEDY, 0, 0, 0, 0, err);
}

void perigee_sampler_set_seed(perigee_sampler *sampler, uint64_t seed) {
    if (sampler) {
        sampler->seed = seed;
        sampler->counter = 0;
    }
}

perigee_status perigee_sampler_sample(perigee_sampler *sampler, const float *logits, size_t count, int32_t *id,
                                      perigee_error **err) {
    prg_clear(err);
    if (!sampler || !id) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler or id is NULL");
    }
    perigee_status st = check_row(logits, count, err);
    return st == PERIGEE_OK ? prg_sampler_sample(sampler, logits, count, NULL, 0, id, err) : st;
}

perigee_status perigee_sampler_accept(perigee_sampler *sampler, const int32_t *ids, size_t count, perigee_error **err) {
    prg_clear(err);
    if (!sampler || (count > 0 && !ids)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "sampler or ids is NULL");
    }
    prg_sampler_accept(sampler, ids, count);
    return PERIGEE_OK;
}

void perigee_sampler_reset(perigee_sampler *sampler) {
    if (sampler) {
        sampler->counter = 0;
        sampler->history_count = 0;
        sampler->history_next = 0;
    }
}
