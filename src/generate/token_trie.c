#include "generate/token_trie.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"

typedef struct entry {
    uint64_t prefix; /* the first eight bytes, most significant first */
    uint32_t id;
} entry;

static int compare(const prg_token_trie *t, const entry *a, const entry *b) {
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    const unsigned char *x = t->bytes + t->offsets[a->id], *y = t->bytes + t->offsets[b->id];
    size_t m = t->offsets[a->id + 1] - t->offsets[a->id], n = t->offsets[b->id + 1] - t->offsets[b->id];
    int order = memcmp(x, y, prg_min(m, n));
    if (order != 0) {
        return order;
    }
    return m != n ? (m < n ? -1 : 1) : a->id < b->id ? -1 : a->id > b->id;
}

/* Merge sort from `from` with `spare` of the same size; the result is in the one that is returned. */
static entry *sort(const prg_token_trie *t, entry *from, entry *spare, size_t n) {
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t i = at, middle = prg_min(at + width, n), j = middle, end = prg_min(at + 2 * width, n);
            for (size_t k = at; k < end; k++) {
                bool left = i < middle && (j == end || compare(t, &from[i], &from[j]) <= 0);
                spare[k] = left ? from[i++] : from[j++];
            }
        }
        entry *swap = from;
        from = spare;
        spare = swap;
    }
    return from;
}

static perigee_status copy_bytes(prg_token_trie *t, const prg_vocabulary *v, perigee_error **err) {
    size_t total = 0;
    for (size_t id = 0; id < v->count; id++) {
        size_t n = 0;
        const unsigned char *b = v->bytes_of(v->user, (int32_t)id, &n);
        total += b && n <= PRG_TRIE_LONGEST ? n : 0;
    }
    if (total >= UINT32_MAX / 2) {
        return prg_fail(err, PERIGEE_E_UNSUPPORTED, "the vocabulary's tokens are too long");
    }
    t->offsets = prg_calloc(t->allocator, v->count + 1, sizeof *t->offsets);
    t->bytes = prg_alloc(t->allocator, total + 1);
    t->end_ids = prg_calloc(t->allocator, v->end_count + 1, sizeof *t->end_ids);
    if (!t->offsets || !t->bytes || !t->end_ids) {
        return prg_fail_memory(err);
    }
    size_t at = 0;
    for (size_t id = 0; id < v->count; id++) {
        size_t n = 0;
        const unsigned char *b = v->bytes_of(v->user, (int32_t)id, &n);
        t->offsets[id] = (uint32_t)at;
        if (b && n > 0 && n <= PRG_TRIE_LONGEST) {
            memcpy(t->bytes + at, b, n);
            at += n;
        }
    }
    t->offsets[v->count] = (uint32_t)at;
    if (v->end_count > 0) {
        memcpy(t->end_ids, v->end_ids, v->end_count * sizeof *t->end_ids);
    }
    t->end_count = v->end_count;
    return PERIGEE_OK;
}

/* Nodes of the sorted entries; with `nodes` NULL only counts them. `open` holds the nodes of the present path. */
static size_t lay_out(prg_token_trie *t, const entry *sorted, size_t n, uint32_t *open) {
    size_t count = 0, depth = 0;
    const unsigned char *before = NULL;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *b = t->bytes + t->offsets[sorted[i].id];
        size_t length = t->offsets[sorted[i].id + 1] - t->offsets[sorted[i].id], common = 0;
        while (common < depth && common < length && before[common] == b[common]) {
            common++;
        }
        for (; t->nodes && depth > common; depth--) {
            t->nodes[open[depth]].skip = (uint32_t)count;
        }
        if (t->nodes && common == length) { /* the same bytes again */
            t->same[sorted[i].id] = t->nodes[open[length]].token;
            t->nodes[open[length]].token = sorted[i].id;
        }
        for (depth = common; depth < length; depth++) {
            if (t->nodes) {
                t->nodes[count] = (prg_trie_node){PRG_TRIE_NO_TOKEN, 0, (uint16_t)(depth + 1), b[depth]};
                t->nodes[count].token = depth + 1 == length ? sorted[i].id : PRG_TRIE_NO_TOKEN;
                open[depth + 1] = (uint32_t)count;
            }
            count++;
        }
        t->deepest = prg_max(t->deepest, length);
        before = b;
    }
    for (; t->nodes && depth > 0; depth--) {
        t->nodes[open[depth]].skip = (uint32_t)count;
    }
    return count;
}

static perigee_status build(prg_token_trie *t, perigee_error **err) {
    entry *entries = prg_calloc(t->allocator, t->vocabulary, sizeof *entries);
    entry *spare = prg_calloc(t->allocator, t->vocabulary, sizeof *spare);
    uint32_t *open = prg_calloc(t->allocator, PRG_TRIE_LONGEST + 1, sizeof *open);
    t->same = prg_calloc(t->allocator, t->vocabulary, sizeof *t->same);
    perigee_status st = entries && spare && open && t->same ? PERIGEE_OK : prg_fail_memory(err);
    if (st == PERIGEE_OK) {
        size_t n = 0;
        for (size_t id = 0; id < t->vocabulary; id++) {
            size_t length = t->offsets[id + 1] - t->offsets[id];
            t->same[id] = PRG_TRIE_NO_TOKEN;
            if (length > 0) {
                uint64_t prefix = 0;
                for (size_t k = 0; k < 8; k++) {
                    prefix = prefix << 8 | (k < length ? t->bytes[t->offsets[id] + k] : 0);
                }
                entries[n++] = (entry){prefix, (uint32_t)id};
            }
        }
        const entry *sorted = sort(t, entries, spare, n);
        t->node_count = lay_out(t, sorted, n, open);
        t->nodes = prg_calloc(t->allocator, t->node_count + 1, sizeof *t->nodes);
        if (t->nodes) {
            lay_out(t, sorted, n, open);
        } else {
            st = prg_fail_memory(err);
        }
    }
    prg_free(t->allocator, entries);
    prg_free(t->allocator, spare);
    prg_free(t->allocator, open);
    return st;
}

perigee_status prg_token_trie_new(prg_allocator *allocator, const prg_vocabulary *vocabulary, prg_token_trie **out,
                                  perigee_error **err) {
    if (vocabulary->count == 0 || vocabulary->count > INT32_MAX) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "a vocabulary of %zu tokens", vocabulary->count);
    }
    prg_token_trie *t = prg_calloc(allocator, 1, sizeof *t);
    if (!t) {
        return prg_fail_memory(err);
    }
    atomic_init(&t->references, 1);
    t->allocator = prg_allocator_hold(allocator);
    t->vocabulary = vocabulary->count;
    perigee_status st = copy_bytes(t, vocabulary, err);
    if (st == PERIGEE_OK) {
        st = build(t, err);
    }
    if (st != PERIGEE_OK) {
        prg_token_trie_drop(t);
        return st;
    }
    *out = t;
    return PERIGEE_OK;
}

prg_token_trie *prg_token_trie_hold(prg_token_trie *trie) {
    atomic_fetch_add_explicit(&trie->references, 1, memory_order_relaxed);
    return trie;
}

void prg_token_trie_drop(prg_token_trie *trie) {
    if (!trie || atomic_fetch_sub_explicit(&trie->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    prg_allocator *a = trie->allocator;
    prg_free(a, trie->nodes);
    prg_free(a, trie->same);
    prg_free(a, trie->offsets);
    prg_free(a, trie->bytes);
    prg_free(a, trie->end_ids);
    prg_free(a, trie);
    prg_allocator_drop(a);
}
