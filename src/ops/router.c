/* Which experts a token goes to: see models.md of the design, "Router". */
#include <math.h>

#include "ops/parallel.h"

typedef struct route_call {
    const perigee_softmax_functions *functions;
    const prg_router *router;
    float *logits;
    size_t m;
    uint32_t *chosen;
    float *weight;
} route_call;

/* What selects; the bias takes no part in the weights. */
static float choice(const prg_router *r, const float *score, size_t e) {
    return r->bias ? score[e] + r->bias[e] : score[e];
}

/* The sum of a group's two best. */
static float group_score(const prg_router *r, const float *score, size_t group) {
    size_t size = r->experts / r->groups;
    float best = -INFINITY, second = -INFINITY;
    for (size_t e = group * size; e < (group + 1) * size; e++) {
        float c = choice(r, score, e);
        if (c > best) {
            second = best;
            best = c;
        } else if (c > second) {
            second = c;
        }
    }
    return size > 1 ? best + second : best;
}

/* Is the group among the best `top_groups`, a tie going to the lower index? */
static bool group_kept(const prg_router *r, const float *score, size_t group) {
    if (r->groups <= 1 || r->top_groups >= r->groups) {
        return true;
    }
    float own = group_score(r, score, group);
    size_t before = 0;
    for (size_t g = 0; g < r->groups; g++) {
        float other = group_score(r, score, g);
        before += g < group ? other >= own : g > group && other > own;
    }
    return before < r->top_groups;
}

/* Keep expert e in the list of the best so far, largest first; of equals the one that came first stays before. */
static size_t insert(const prg_router *r, const float *score, uint32_t *list, size_t held, size_t e) {
    float c = choice(r, score, e);
    size_t at = held;
    while (at > 0 && c > choice(r, score, list[at - 1])) {
        at--;
    }
    if (at == r->top_k) {
        return held;
    }
    held += held < r->top_k;
    for (size_t i = held - 1; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = (uint32_t)e;
    return held;
}

static void select_experts(const prg_router *r, const float *score, uint32_t *list) {
    size_t size = r->groups > 1 ? r->experts / r->groups : r->experts, held = 0;
    for (size_t first = 0; first < r->experts; first += size) {
        if (group_kept(r, score, first / size)) {
            for (size_t e = first; e < first + size; e++) {
                held = insert(r, score, list, held, e);
            }
        }
    }
    /* the groups kept are smaller than top_k: the others count as minus infinity, so the lowest index goes first */
    for (size_t e = 0; e < r->experts && held < r->top_k; e++) {
        if (!group_kept(r, score, e / size)) {
            list[held++] = (uint32_t)e;
        }
    }
}

static void sort_ids(uint32_t *list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint32_t id = list[i];
        size_t at = i;
        for (; at > 0 && list[at - 1] > id; at--) {
            list[at] = list[at - 1];
        }
        list[at] = id;
    }
}

static void route_part(void *argument, size_t index, size_t count) {
    const route_call *c = argument;
    const prg_router *r = c->router;
    prg_share share = prg_share_of(c->m, index, count);
    for (size_t t = share.first; t < share.end; t++) {
        float *score = c->logits + t * r->experts, *weight = c->weight + t * r->top_k, sum = 0;
        uint32_t *chosen = c->chosen + t * r->top_k;
        (r->softmax ? c->functions->softmax : c->functions->sigmoid)(score, r->experts, score);
        select_experts(r, score, chosen);
        sort_ids(chosen, r->top_k);
        for (size_t i = 0; i < r->top_k; i++) {
            weight[i] = score[chosen[i]];
            sum += weight[i];
        }
        for (size_t i = 0; i < r->top_k; i++) {
            if (r->renormalise && r->top_k > 1) {
                weight[i] /= sum + 1e-20f;
            }
            weight[i] *= r->scale;
        }
    }
}

void prg_route(const prg_exec *exec, const prg_router *router, float *logits, size_t m, uint32_t *chosen,
               float *weight) {
    route_call c = {&prg_plain_row(exec, PERIGEE_OP_SOFTMAX)->run.softmax, router, logits, m, chosen, weight};
    prg_parallel(exec, m > 1 ? m * router->experts * 2 : 0, route_part, &c);
}
