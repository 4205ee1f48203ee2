#include <string.h>

#include "base/error.h"
#include "session/session.h"

static size_t blocks_for(size_t tokens) {
    return (tokens + PRG_CACHE_BLOCK - 1) / PRG_CACHE_BLOCK;
}

perigee_status prg_cache_init(prg_cache *cache, prg_allocator *allocator, const prg_config *config,
                              const prg_session_plan *plan, perigee_error **err) {
    const size_t limit = plan->mla_layers > 0 ? blocks_for(plan->context) : 0;
    *cache = (prg_cache){.allocator = allocator,
                         .layers = plan->mla_layers,
                         .rank = (size_t)config->kv_rank,
                         .rope = (size_t)config->rope,
                         .bf16 = plan->bf16,
                         .token_bytes = plan->latent_bytes,
                         .layer_bytes = plan->latent_bytes * PRG_CACHE_BLOCK,
                         .limit = limit};
    cache->blocks = prg_calloc(allocator, limit, sizeof(prg_cache_block *));
    cache->view = prg_calloc(allocator, limit, sizeof(void *));
    return cache->blocks && cache->view ? PERIGEE_OK : prg_fail_memory(err);
}

static prg_cache_block *new_block(const prg_cache *cache) {
    prg_cache_block *b = prg_alloc(cache->allocator, sizeof *b + cache->layers * cache->layer_bytes);
    if (b) {
        atomic_init(&b->references, 1);
    }
    return b;
}

static void drop_block(const prg_cache *cache, prg_cache_block *block) {
    if (block && atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel) == 1) {
        prg_free(cache->allocator, block);
    }
}

void prg_cache_free(prg_cache *cache) {
    if (cache->blocks) {
        prg_cache_trim(cache, 0);
    }
    prg_free(cache->allocator, cache->blocks);
    prg_free(cache->allocator, cache->view);
    cache->blocks = NULL;
    cache->view = NULL;
}

/* A copy of the block's first `tokens` tokens for this session alone. */
static perigee_status unshare(prg_cache *cache, size_t index, size_t tokens, perigee_error **err) {
    prg_cache_block *shared = cache->blocks[index];
    if (atomic_load_explicit(&shared->references, memory_order_acquire) == 1) {
        return PERIGEE_OK;
    }
    prg_cache_block *own = new_block(cache);
    if (!own) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < cache->layers; i++) {
        memcpy(own->data + i * cache->layer_bytes, shared->data + i * cache->layer_bytes, tokens * cache->token_bytes);
    }
    cache->blocks[index] = own;
    drop_block(cache, shared);
    return PERIGEE_OK;
}

perigee_status prg_cache_reserve(prg_cache *cache, size_t position, size_t n, size_t valid, perigee_error **err) {
    if (cache->layers == 0) {
        return PERIGEE_OK;
    }
    const size_t before = cache->count, need = blocks_for(position + n);
    perigee_status st = PERIGEE_OK;
    /* a block that begins above the position holds nothing, whoever shares it */
    for (size_t i = position / PRG_CACHE_BLOCK; st == PERIGEE_OK && i < before && i < need; i++) {
        const size_t begin = i * PRG_CACHE_BLOCK;
        const size_t kept = valid > begin ? valid - begin : 0;
        st = unshare(cache, i, kept < PRG_CACHE_BLOCK ? kept : PRG_CACHE_BLOCK, err);
    }
    while (st == PERIGEE_OK && cache->count < need) {
        cache->blocks[cache->count] = new_block(cache);
        if (!cache->blocks[cache->count]) {
            st = prg_fail_memory(err);
            break;
        }
        cache->count++;
    }
    while (st != PERIGEE_OK && cache->count > before) {
        drop_block(cache, cache->blocks[--cache->count]);
    }
    return st;
}

void prg_cache_trim(prg_cache *cache, size_t position) {
    const size_t keep = blocks_for(position);
    while (cache->count > keep) {
        drop_block(cache, cache->blocks[--cache->count]);
        cache->blocks[cache->count] = NULL;
    }
}

void prg_cache_share(prg_cache *to, const prg_cache *from, size_t position) {
    const size_t shared = from->layers > 0 ? blocks_for(position) : 0;
    for (size_t i = 0; i < shared; i++) {
        atomic_fetch_add_explicit(&from->blocks[i]->references, 1, memory_order_relaxed);
        to->blocks[i] = from->blocks[i];
    }
    to->count = shared;
}

prg_latents prg_cache_layer(prg_cache *cache, size_t layer) {
    for (size_t i = 0; i < cache->count; i++) {
        cache->view[i] = cache->blocks[i]->data + layer * cache->layer_bytes;
    }
    return (prg_latents){cache->view, PRG_CACHE_BLOCK, cache->rank, cache->rope, cache->bf16};
}

size_t prg_cache_bytes(const prg_cache *cache) {
    return cache->count * (sizeof(prg_cache_block) + cache->layers * cache->layer_bytes) +
           cache->limit * (sizeof *cache->blocks + sizeof *cache->view);
}
