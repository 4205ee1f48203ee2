#include "text/bpe.h"

#include "base/checked_math.h"

enum { SMALL = 48 };

static const uint32_t NO_PAIR = UINT32_MAX;

/* Rank of the token from `from` up to `to`, as an unsigned number in which NO_PAIR is the greatest. */
static inline uint32_t rank_between(const prg_ranks *ranks, const unsigned char *piece, size_t from, size_t to) {
    return (uint32_t)prg_ranks_find(ranks, piece + from, to - from);
}

static void put_token(const prg_ranks *ranks, const unsigned char *piece, size_t from, size_t to, prg_ids *out) {
    prg_ids_put(out, to - from == 1 ? ranks->one_byte[piece[from]] : prg_ranks_find(ranks, piece + from, to - from));
}

/* Short pieces: look for the lowest of all pairs each time. */
static void merge_small(const prg_ranks *ranks, const unsigned char *piece, size_t length, prg_ids *out) {
    uint32_t pair[SMALL]; /* rank of part i joined with part i + 1 */
    uint8_t start[SMALL + 1];
    size_t parts = length;
    for (size_t i = 0; i < length; i++) {
        start[i] = (uint8_t)i;
        pair[i] = i + 1 < length ? rank_between(ranks, piece, i, i + 2) : NO_PAIR;
    }
    start[length] = (uint8_t)length;
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < parts; i++) {
            best = pair[i] < pair[best] ? i : best;
        }
        if (pair[best] == NO_PAIR) {
            break;
        }
        parts--;
        memmove(start + best + 1, start + best + 2, parts - best);
        memmove(pair + best + 1, pair + best + 2, (parts - best - 1) * sizeof *pair);
        pair[best] = best + 1 < parts ? rank_between(ranks, piece, start[best], start[best + 2]) : NO_PAIR;
        if (best > 0) {
            pair[best - 1] = rank_between(ranks, piece, start[best - 1], start[best + 1]);
        }
    }
    for (size_t i = 0; i < parts; i++) {
        put_token(ranks, piece, start[i], start[i + 1], out);
    }
}

/* A heap of (rank, start) pairs in one number each, so that the lowest is the leftmost of the lowest rank. Entries
 * whose pair has changed stay in it and are passed over. */
typedef struct merge_heap {
    uint64_t *keys;
    size_t count;
} merge_heap;

static void sift_down(merge_heap *h, size_t at, uint64_t key) {
    for (;;) {
        size_t child = 4 * at + 1;
        if (child >= h->count) {
            break;
        }
        size_t end = prg_min(child + 4, h->count);
        size_t least = child;
        for (size_t i = child + 1; i < end; i++) {
            least = h->keys[i] < h->keys[least] ? i : least;
        }
        if (h->keys[least] >= key) {
            break;
        }
        h->keys[at] = h->keys[least];
        at = least;
    }
    h->keys[at] = key;
}

static void heap_push(merge_heap *h, uint64_t key) {
    size_t at = h->count++;
    while (at > 0 && h->keys[(at - 1) / 4] > key) {
        h->keys[at] = h->keys[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    h->keys[at] = key;
}

static uint64_t heap_pop(merge_heap *h) {
    uint64_t top = h->keys[0];
    h->count--;
    if (h->count > 0) {
        sift_down(h, 0, h->keys[h->count]);
    }
    return top;
}

/* The parts of a long piece as a list over their first bytes. */
typedef struct merge_list {
    const prg_ranks *ranks;
    const unsigned char *piece;
    uint32_t length;
    uint32_t *next;   /* start of the part behind, or `length` */
    uint32_t *before; /* start of the part before; undefined for the first */
    uint32_t *pair;   /* rank of the part joined with the next; NO_PAIR where there is no part any more */
    uint64_t *first;  /* pairs of the start where those are in order already (runs of one character); else none */
    uint64_t *first_end;
    merge_heap heap; /* all others */
} merge_list;

enum { LIST_BYTES = 3 * sizeof(uint32_t) + 3 * sizeof(uint64_t) }; /* for a byte of text: each merge adds two pairs */

static void renew_pair(merge_list *l, uint32_t start) {
    uint32_t middle = l->next[start];
    uint32_t rank = middle < l->length ? rank_between(l->ranks, l->piece, start, l->next[middle]) : NO_PAIR;
    l->pair[start] = rank;
    if (rank != NO_PAIR) {
        heap_push(&l->heap, (uint64_t)rank << 32 | start);
    }
}

static void merge_at(merge_list *l, uint32_t start) {
    uint32_t gone = l->next[start];
    uint32_t behind = l->next[gone];
    l->next[start] = behind;
    l->pair[gone] = NO_PAIR;
    if (behind < l->length) {
        l->before[behind] = start;
    }
    renew_pair(l, start);
    if (start > 0) {
        renew_pair(l, l->before[start]);
    }
}

static void list_bytes(merge_list *l) {
    bool ordered = true;
    uint64_t *keys = l->first;
    for (uint32_t i = 0; i < l->length; i++) {
        l->next[i] = i + 1;
        l->before[i] = i - 1;
        l->pair[i] = i + 1 < l->length ? rank_between(l->ranks, l->piece, i, i + 2) : NO_PAIR;
        if (l->pair[i] != NO_PAIR) {
            uint64_t key = (uint64_t)l->pair[i] << 32 | i;
            ordered = ordered && (keys == l->first || keys[-1] < key);
            *keys++ = key;
        }
    }
    if (ordered) {
        l->first_end = keys;
        l->heap = (merge_heap){keys, 0};
        return;
    }
    l->heap = (merge_heap){l->first, (size_t)(keys - l->first)};
    l->first_end = l->first;
    for (size_t i = l->heap.count / 4 + 1; i-- > 0;) {
        if (i < l->heap.count) {
            sift_down(&l->heap, i, l->heap.keys[i]);
        }
    }
}

static void merge_long(merge_list *l, prg_ids *out) {
    list_bytes(l);
    while (l->first < l->first_end || l->heap.count > 0) {
        bool from_first = l->first < l->first_end && (l->heap.count == 0 || *l->first < l->heap.keys[0]);
        uint64_t key = from_first ? *l->first++ : heap_pop(&l->heap);
        uint32_t start = (uint32_t)key;
        if (l->pair[start] == (uint32_t)(key >> 32)) {
            merge_at(l, start);
        }
    }
    for (uint32_t i = 0; i < l->length; i = l->next[i]) {
        put_token(l->ranks, l->piece, i, l->next[i], out);
    }
}

bool prg_bpe_encode(const prg_ranks *ranks, const unsigned char *piece, size_t length, prg_bpe_scratch *scratch,
                    prg_ids *out) {
    if (length == 1) {
        prg_ids_put(out, ranks->one_byte[piece[0]]);
        return true;
    }
    int32_t whole = prg_ranks_find(ranks, piece, length);
    if (whole != PRG_NO_RANK) {
        prg_ids_put(out, whole);
        return true;
    }
    if (length <= SMALL) {
        merge_small(ranks, piece, length, out);
        return true;
    }
    if (length > scratch->capacity) {
        size_t bytes;
        if (length >= UINT32_MAX || !prg_mul(length, LIST_BYTES, &bytes)) {
            return false;
        }
        prg_bpe_scratch_free(scratch);
        scratch->memory = prg_alloc(scratch->allocator, bytes);
        if (!scratch->memory) {
            return false;
        }
        scratch->capacity = length;
    }
    uint64_t *keys = scratch->memory;
    uint32_t *lists = (uint32_t *)(keys + 3 * length);
    merge_list l = {ranks, piece, (uint32_t)length, lists, lists + length, lists + 2 * length, keys, keys, {keys, 0}};
    merge_long(&l, out);
    return true;
}

void prg_bpe_scratch_free(prg_bpe_scratch *scratch) {
    prg_free(scratch->allocator, scratch->memory);
    scratch->memory = NULL;
    scratch->capacity = 0;
}
