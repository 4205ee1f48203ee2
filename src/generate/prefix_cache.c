/* Forks of sessions, kept to begin the next prompt that starts alike. */
#include <string.h>

#include "base/error.h"
#include "perigee/state.h"
#include "session/session.h"

typedef struct entry {
    perigee_session *session;
    size_t bytes;
    uint64_t used; /* the cache's clock at the last use */
} entry;

struct perigee_prefix_cache {
    perigee_model *model;
    size_t limit, bytes;
    uint64_t clock;
    entry *entries;
    size_t count, room;
};

perigee_status perigee_prefix_cache_new(perigee_model *model, int64_t bytes, perigee_prefix_cache **out,
                                        perigee_error **err) {
    prg_clear(err);
    if (!model || !out || bytes < 0) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "model or out is NULL, or bytes is negative");
    }
    perigee_prefix_cache *cache = prg_calloc(model->context->allocator, 1, sizeof *cache);
    if (!cache) {
        return prg_fail_memory(err);
    }
    cache->model = prg_model_hold(model);
    cache->limit = (size_t)bytes;
    *out = cache;
    return PERIGEE_OK;
}

static void drop(perigee_prefix_cache *cache, size_t index) {
    prg_session_free(cache->entries[index].session);
    cache->bytes -= cache->entries[index].bytes;
    cache->entries[index] = cache->entries[--cache->count];
}

void perigee_prefix_cache_free(perigee_prefix_cache *cache) {
    if (!cache) {
        return;
    }
    while (cache->count > 0) {
        drop(cache, cache->count - 1);
    }
    perigee_model *model = cache->model;
    prg_allocator *allocator = model->context->allocator;
    prg_free(allocator, cache->entries);
    prg_free(allocator, cache);
    perigee_model_free(model);
}

int64_t perigee_prefix_cache_bytes(const perigee_prefix_cache *cache) {
    return cache ? (int64_t)cache->bytes : 0;
}

static size_t oldest(const perigee_prefix_cache *cache) {
    size_t found = 0;
    for (size_t i = 1; i < cache->count; i++) {
        if (cache->entries[i].used < cache->entries[found].used) {
            found = i;
        }
    }
    return found;
}

/* An entry that says nothing more than the session does, or as much. */
static void drop_prefixes(perigee_prefix_cache *cache, const perigee_session *session) {
    for (size_t i = cache->count; i > 0; i--) {
        const perigee_session *e = cache->entries[i - 1].session;
        /* a recurrent model can't come back from the longer one to where the shorter one stands */
        const bool covered = e->state.layers == 0 || e->position == session->position;
        if (covered && e->position <= session->position &&
            prg_session_common(session, e->tokens, e->position) == e->position) {
            drop(cache, i - 1);
        }
    }
}

perigee_status perigee_prefix_cache_put(perigee_prefix_cache *cache, perigee_session *session, perigee_error **err) {
    prg_clear(err);
    if (!cache || !session || session->model != cache->model) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "cache or session is NULL, or of another model");
    }
    if (session->position == 0) {
        return PERIGEE_OK;
    }
    prg_allocator *allocator = cache->model->context->allocator;
    if (cache->count == cache->room) {
        const size_t room = cache->room > 0 ? cache->room * 2 : 8;
        entry *grown = prg_realloc(allocator, cache->entries, room * sizeof *grown);
        if (!grown) {
            return prg_fail_memory(err);
        }
        cache->entries = grown;
        cache->room = room;
    }
    perigee_session *fork = NULL;
    perigee_status st = prg_session_fork(session, &fork, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    const size_t bytes = prg_session_bytes(fork);
    if (bytes > cache->limit) {
        prg_session_free(fork);
        return PERIGEE_OK;
    }
    drop_prefixes(cache, session);
    while (bytes > cache->limit - cache->bytes) {
        drop(cache, oldest(cache));
    }
    cache->entries[cache->count++] = (entry){fork, bytes, ++cache->clock};
    cache->bytes += bytes;
    return PERIGEE_OK;
}

perigee_status perigee_prefix_cache_get(perigee_prefix_cache *cache, const int32_t *tokens, size_t n,
                                        const perigee_options *options, perigee_session **out, perigee_error **err) {
    prg_clear(err);
    if (!cache || !tokens || n == 0 || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "cache, tokens or out is NULL, or there are no tokens");
    }
    entry *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < cache->count; i++) {
        const perigee_session *s = cache->entries[i].session;
        const size_t shared = prg_session_nearest(s, prg_session_common(s, tokens, n - 1));
        if (shared > longest) {
            longest = shared;
            best = &cache->entries[i];
        }
    }
    if (!best) {
        return perigee_session_new(cache->model, options, out, err);
    }
    perigee_session *fork = NULL;
    perigee_status st = prg_session_fork(best->session, &fork, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    size_t nearest;
    st = prg_session_rewind(fork, longest, &nearest, NULL, err);
    if (st != PERIGEE_OK) {
        prg_session_free(fork);
        return st;
    }
    best->used = ++cache->clock;
    *out = fork;
    return PERIGEE_OK;
}
