/* The latent cache: what is written there; attention.c reads it. */
#include <string.h>

#include "ops/parallel.h"

typedef struct put_call {
    const prg_latents *cache;
    const float *rows;
    size_t ld, first, m;
} put_call;

static void put_part(void *argument, size_t index, size_t count) {
    const put_call *c = argument;
    prg_share share = prg_share_of(c->m, index, count);
    size_t width = c->cache->rank + c->cache->rope;
    for (size_t t = share.first; t < share.end; t++) {
        size_t at = c->first + t, place = (at & (c->cache->block - 1)) * width;
        void *block = c->cache->blocks[at / c->cache->block];
        const float *row = c->rows + t * c->ld;
        if (c->cache->bf16) {
            uint16_t *to = (uint16_t *)block + place;
            for (size_t i = 0; i < width; i++) {
                to[i] = prg_f32_to_bf16(row[i]);
            }
        } else {
            memcpy((float *)block + place, row, width * sizeof(float));
        }
    }
}

void prg_latents_put(const prg_exec *exec, const prg_latents *cache, const float *rows, size_t ld, size_t first,
                     size_t m) {
    put_call c = {cache, rows, ld, first, m};
    prg_parallel(exec, m * (cache->rank + cache->rope) / 4, put_part, &c);
}
