#include <math.h>
#include <string.h>

#include "base/error.h"
#include "generate/sampler.h"

/* Little-endian: version, seed, counter, stage count; per stage kind, size, value and a bias's pairs; then the length
 * of the history and its ids from old to new. */
enum { VERSION = 1, FIXED = 4 + 8 + 8 + 4 + 4, STAGE = 4 + 4 + 8 };

static unsigned char *put(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        *at++ = (unsigned char)(value >> (8 * i));
    }
    return at;
}

size_t prg_sampler_save_size(const perigee_sampler *sampler) {
    size_t size = FIXED + sampler->history_count * 4;
    for (size_t i = 0; i < sampler->stage_count; i++) {
        const prg_stage *g = &sampler->stages[i];
        size += STAGE + (g->kind == PRG_STAGE_BIAS ? (size_t)g->size * 8 : 0);
    }
    return size;
}

void prg_sampler_save(const perigee_sampler *sampler, unsigned char *bytes) {
    const perigee_sampler *s = sampler;
    unsigned char *at = put(bytes, VERSION, 4);
    at = put(at, s->seed, 8);
    at = put(at, s->counter, 8);
    at = put(at, s->stage_count, 4);
    for (size_t i = 0; i < s->stage_count; i++) {
        const prg_stage *g = &s->stages[i];
        uint64_t value;
        memcpy(&value, &g->value, sizeof value);
        at = put(at, (uint64_t)g->kind, 4);
        at = put(at, g->size, 4);
        at = put(at, value, 8);
        for (uint32_t j = 0; g->kind == PRG_STAGE_BIAS && j < g->size; j++) {
            uint32_t bias;
            memcpy(&bias, &g->biases[j], sizeof bias);
            at = put(at, (uint32_t)g->ids[j], 4);
            at = put(at, bias, 4);
        }
    }
    at = put(at, s->history_count, 4);
    for (size_t i = s->history_count; i > 0; i--) {
        at = put(at, (uint32_t)s->history[(s->history_next + s->window - i) % s->window], 4);
    }
}

/* What is left to read; a read past the end gives 0 and remembers it. */
typedef struct reader {
    const unsigned char *at;
    size_t left;
    bool short_of;
} reader;

static uint64_t get(reader *r, unsigned bytes) {
    if (r->left < bytes) {
        r->short_of = true;
        r->left = 0;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += bytes;
    r->left -= bytes;
    return value;
}

static bool plausible(const prg_stage *g) {
    bool penalty = g->kind >= PRG_STAGE_REPETITION && g->kind <= PRG_STAGE_FREQUENCY;
    return g->kind >= PRG_STAGE_REPETITION && g->kind <= PRG_STAGE_GREEDY && isfinite(g->value) &&
           (!penalty || (g->size >= 1 && g->size <= PRG_SAMPLER_WINDOW)) &&
           (g->kind != PRG_STAGE_TOP_K || (g->size >= 1 && g->size <= INT32_MAX)) &&
           (g->kind != PRG_STAGE_REPETITION || g->value > 0) && (g->kind != PRG_STAGE_TEMPERATURE || g->value > 0) &&
           (g->kind < PRG_STAGE_TOP_P || (g->value >= 0 && g->value <= 1));
}

static perigee_status load_stage(perigee_sampler *s, reader *r, perigee_error **err) {
    prg_stage g = {(prg_stage_kind)get(r, 4), 0, (uint32_t)get(r, 4), NULL, NULL};
    uint64_t value = get(r, 8);
    memcpy(&g.value, &value, sizeof value);
    if (r->short_of || !plausible(&g) || (g.kind == PRG_STAGE_BIAS && r->left / 8 < g.size)) {
        return prg_fail(err, PERIGEE_E_FORMAT, "a stage of the saved sampler is damaged");
    }
    perigee_status st = PERIGEE_OK;
    if (g.kind == PRG_STAGE_BIAS) {
        g.ids = prg_calloc(s->allocator, g.size, sizeof *g.ids);
        g.biases = prg_calloc(s->allocator, g.size, sizeof *g.biases);
        if (!g.ids || !g.biases) {
            st = prg_fail_memory(err);
        }
        for (uint32_t j = 0; st == PERIGEE_OK && j < g.size; j++) {
            g.ids[j] = (int32_t)(uint32_t)get(r, 4);
            uint32_t bias = (uint32_t)get(r, 4);
            memcpy(&g.biases[j], &bias, sizeof bias);
            if (g.ids[j] < 0 || !isfinite(g.biases[j])) {
                st = prg_fail(err, PERIGEE_E_FORMAT, "a bias of the saved sampler is damaged");
            }
        }
    }
    if (st == PERIGEE_OK) {
        st = prg_sampler_add(s, &g, err);
    }
    prg_free(s->allocator, g.ids);
    prg_free(s->allocator, g.biases);
    return st;
}

perigee_status prg_sampler_load(prg_allocator *allocator, const unsigned char *bytes, size_t size,
                                perigee_sampler **out, perigee_error **err) {
    reader r = {bytes, size, false};
    perigee_sampler *s = NULL;
    perigee_status st = prg_sampler_new(allocator, &s, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    uint64_t version = get(&r, 4);
    s->seed = get(&r, 8);
    s->counter = get(&r, 8);
    uint64_t stages = get(&r, 4);
    if (version != VERSION) {
        st = prg_fail(err, PERIGEE_E_VERSION, "version %u of a saved sampler is unknown", (unsigned)version);
    }
    for (uint64_t i = 0; st == PERIGEE_OK && i < stages; i++) {
        st = load_stage(s, &r, err);
    }
    uint64_t history = st == PERIGEE_OK ? get(&r, 4) : 0;
    if (st == PERIGEE_OK && (r.short_of || history > s->window || r.left != history * 4)) {
        st = prg_fail(err, PERIGEE_E_FORMAT, "the saved sampler's history is damaged");
    }
    for (uint64_t i = 0; st == PERIGEE_OK && i < history; i++) {
        int32_t id = (int32_t)(uint32_t)get(&r, 4);
        prg_sampler_accept(s, &id, 1);
    }
    if (st != PERIGEE_OK) {
        perigee_sampler_free(s);
        return st;
    }
    *out = s;
    return PERIGEE_OK;
}

perigee_status prg_sampler_restore(perigee_sampler *sampler, const unsigned char *bytes, size_t size,
                                   perigee_error **err) {
    perigee_sampler *fresh = NULL;
    perigee_status st = prg_sampler_load(sampler->allocator, bytes, size, &fresh, err);
    if (st == PERIGEE_OK) {
        const perigee_sampler old = *sampler;
        *sampler = *fresh;
        *fresh = old;
        perigee_sampler_free(fresh);
    }
    return st;
}
