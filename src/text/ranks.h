/* The rank file: byte strings of tokens, and the way from bytes to id. Immutable after load. */
#ifndef PRG_TEXT_RANKS_H
#define PRG_TEXT_RANKS_H

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"

enum { PRG_NO_RANK = -1 };

typedef struct prg_rank_slot {
    uint32_t tag; /* upper half of the hash */
    int32_t rank; /* PRG_NO_RANK: free */
} prg_rank_slot;

typedef struct prg_ranks {
    prg_allocator *allocator;
    int32_t count;
    size_t longest;        /* bytes of the longest token */
    unsigned char *pool;   /* all tokens, by rank */
    uint32_t *offset;      /* count + 1 */
    prg_rank_slot *slots;  /* open addressing, linear */
    size_t mask;           /* slots - 1 */
    int32_t one_byte[256]; /* ranks of the single bytes */
} prg_ranks;

/* Parse lines of `<base64> <rank>`. Ranks must be 0 … n-1, each once, tokens not empty and each once, and every single
 * byte a token: else PERIGEE_E_FORMAT with the offset. `file` is for messages. */
perigee_status prg_ranks_parse(prg_allocator *allocator, const char *text, size_t length, const char *file,
                               prg_ranks *out, perigee_error **err);
void prg_ranks_free(prg_ranks *ranks);

static inline const unsigned char *prg_ranks_bytes(const prg_ranks *ranks, int32_t rank, size_t *length) {
    *length = ranks->offset[rank + 1] - ranks->offset[rank];
    return ranks->pool + ranks->offset[rank];
}

/* Rank of the token of these bytes, or PRG_NO_RANK. */
static inline int32_t prg_ranks_find(const prg_ranks *ranks, const unsigned char *bytes, size_t length) {
    if (length > ranks->longest) {
        return PRG_NO_RANK;
    }
    uint64_t hash = XXH3_64bits(bytes, length);
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = (size_t)hash & ranks->mask;; i = (i + 1) & ranks->mask) {
        prg_rank_slot slot = ranks->slots[i];
        if (slot.rank == PRG_NO_RANK) {
            return PRG_NO_RANK;
        }
        if (slot.tag == tag) {
            size_t size;
            const unsigned char *token = prg_ranks_bytes(ranks, slot.rank, &size);
            if (size == length && memcmp(token, bytes, length) == 0) {
                return slot.rank;
            }
        }
    }
}

#endif
