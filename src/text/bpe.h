/* Merging the bytes of a piece by rank. */
#ifndef PRG_TEXT_BPE_H
#define PRG_TEXT_BPE_H

#include "text/ranks.h"

/* Where ids go. Counts on when the room is used up. */
typedef struct prg_ids {
    int32_t *ids;
    size_t capacity;
    size_t count;
} prg_ids;

static inline void prg_ids_put(prg_ids *out, int32_t id) {
    if (out->count < out->capacity) {
        out->ids[out->count] = id;
    }
    out->count++;
}

/* Memory for long pieces, kept from piece to piece. Starts as zeros but for the allocator. */
typedef struct prg_bpe_scratch {
    prg_allocator *allocator;
    void *memory;
    size_t capacity; /* bytes of text that it serves */
} prg_bpe_scratch;

/* Append the ids of a piece of `length` >= 1 bytes: the whole piece if it is a token, else merge, again and again, the
 * adjacent pair whose concatenation has the lowest rank, the leftmost of equal ones. O(n log n). False: no memory. */
bool prg_bpe_encode(const prg_ranks *ranks, const unsigned char *piece, size_t length, prg_bpe_scratch *scratch,
                    prg_ids *out);
void prg_bpe_scratch_free(prg_bpe_scratch *scratch);

#endif
