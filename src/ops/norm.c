#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "ops/parallel.h"

typedef struct norm_call {
    const perigee_norm_functions *functions;
    const float *x, *gain, *gate;
    size_t ldx, ldg, m, groups, n;
    float eps;
    float *y;
    size_t ldy;
} norm_call;

/* Units are heads of rows. */
static void norm_part(void *argument, size_t index, size_t count) {
    const norm_call *c = argument;
    prg_share share = prg_share_of(c->m * c->groups, index, count);
    for (size_t i = share.first; i < share.end; i++) {
        size_t t = i / c->groups, at = i % c->groups * c->n;
        c->functions->rms_norm(c->x + t * c->ldx + at, c->gain, c->gate ? c->gate + t * c->ldg + at : NULL, c->n,
                               c->eps, c->y + t * c->ldy + at);
    }
}

void prg_rms_norm(const prg_exec *exec, const float *x, size_t ldx, const float *gain, size_t m, size_t n, float eps,
                  float *y, size_t ldy) {
    norm_call c = {&prg_plain_row(exec, PERIGEE_OP_RMS_NORM)->run.norm, x, gain, NULL, ldx, 0, m, 1, n, eps, y, ldy};
    prg_parallel(exec, m * n / 8, norm_part, &c);
}

void prg_rms_norm_gated(const prg_exec *exec, const float *x, size_t ldx, const float *gain, const float *gate,
                        size_t ldg, size_t m, size_t groups, size_t n, float eps, float *y, size_t ldy) {
    norm_call c = {
        &prg_plain_row(exec, PERIGEE_OP_RMS_NORM)->run.norm, x, gain, gate, ldx, ldg, m, groups, n, eps, y, ldy};
    prg_parallel(exec, m * groups * n / 2, norm_part, &c);
}

typedef struct row_call {
    const perigee_softmax_functions *functions;
    const float *x;
    size_t ldx, m, n;
    float *y;
    size_t ldy;
} row_call;

static void add_part(void *argument, size_t index, size_t count) {
    const row_call *c = argument;
    prg_share share = prg_share_of(c->m, index, count);
    for (size_t t = share.first; t < share.end; t++) {
        const float *x = c->x + t * c->ldx;
        float *y = c->y + t * c->ldy;
        for (size_t i = 0; i < c->n; i++) {
            y[i] += x[i];
        }
    }
}

void prg_add_rows(const prg_exec *exec, const float *x, size_t ldx, size_t m, size_t n, float *y, size_t ldy) {
    row_call c = {NULL, x, ldx, m, n, y, ldy};
    prg_parallel(exec, m * n / 8, add_part, &c);
}

static void gate_part(void *argument, size_t index, size_t count) {
    const row_call *c = argument;
    prg_share share = prg_share_of(c->m, index, count);
    for (size_t t = share.first; t < share.end; t++) {
        c->functions->sigmoid_gate(c->x + t * c->ldx, c->n, c->y + t * c->ldy);
    }
}

void prg_sigmoid_gate(const prg_exec *exec, const float *gate, size_t ldg, size_t m, size_t n, float *y, size_t ldy) {
    row_call c = {&prg_plain_row(exec, PERIGEE_OP_SOFTMAX)->run.softmax, gate, ldg, m, n, y, ldy};
    prg_parallel(exec, m > 1 ? m * n : 0, gate_part, &c);
}

/* Infinities and NaN have all bits of the exponent. */
static bool is_finite_row(const float *x, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !bad;
}

typedef struct finite_call {
    const float *x;
    size_t ldx, m, n;
    atomic_size_t first; /* bad row so far */
} finite_call;

static void finite_part(void *argument, size_t index, size_t count) {
    finite_call *c = argument;
    prg_share share = prg_share_of(c->m, index, count);
    size_t t = share.first;
    while (t < share.end && is_finite_row(c->x + t * c->ldx, c->n)) {
        t++;
    }
    size_t first = atomic_load(&c->first);
    while (t < share.end && t < first && !atomic_compare_exchange_weak(&c->first, &first, t)) {
    }
}

size_t prg_first_not_finite(const prg_exec *exec, const float *x, size_t ldx, size_t m, size_t n) {
    finite_call c = {.x = x, .ldx = ldx, .m = m, .n = n};
    atomic_init(&c.first, m);
    prg_parallel(exec, m > 1 ? m * n / 8 : 0, finite_part, &c);
    return atomic_load(&c.first);
}

typedef struct mix_call {
    const perigee_mix_functions *functions;
    const float *const *sources;
    size_t n, ld;
    const float *key;
    size_t m, width;
    float eps;
    float *y;
    size_t ldy;
} mix_call;

static void mix_part(void *argument, size_t index, size_t count) {
    const mix_call *c = argument;
    prg_share share = prg_share_of(c->m, index, count);
    float score[PRG_RESIDUAL_SOURCES_MOST];
    for (size_t t = share.first; t < share.end; t++) {
        c->functions->mix(c->sources, c->n, t * c->ld, c->key, c->width, c->eps, score, c->y + t * c->ldy);
    }
}

void prg_residual_mix(const prg_exec *exec, const float *const *sources, size_t n, size_t ld, const float *key,
                      size_t m, size_t width, float eps, float *y, size_t ldy) {
    assert(n <= PRG_RESIDUAL_SOURCES_MOST);
    mix_call c = {&prg_plain_row(exec, PERIGEE_OP_RESIDUAL_MIX)->run.mix, sources, n, ld, key, m, width, eps, y, ldy};
    prg_parallel(exec, m > 1 ? m * n * width / 4 : 0, mix_part, &c);
}
