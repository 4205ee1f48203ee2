/* Saved states: a header and sections, each with a checksum, in one pass from front to back. docs/state-format.md. */
#include <string.h>

/* inlined, so that the state of a running checksum can lie on the stack */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "session/session.h"

enum { VERSION = 1, HEADER_BYTES = 64, SECTION_BYTES = 16, GEOMETRY_FIELDS = 8 };
enum { SECTION_GEOMETRY = 1, SECTION_TOKENS = 2, SECTION_CACHE = 3, SECTION_RECURRENT = 4, SECTION_EXTRA = 5 };
enum { SECTIONS = 5 };

static const unsigned char magic[8] = {'P', 'R', 'G', 'S', 'T', 'A', 'T', 'E'};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a state holds numbers as little-endian memory has them");

/* Sizes of what a state of this session holds, in the order of the sections. */
static void section_sizes(const perigee_session *s, size_t position, size_t extra, uint64_t sizes[SECTIONS]) {
    sizes[0] = GEOMETRY_FIELDS * sizeof(uint64_t);
    sizes[1] = position * sizeof(int32_t);
    sizes[2] = (uint64_t)s->cache.layers * position * s->cache.token_bytes;
    sizes[3] = prg_state_floats(&s->state) * sizeof(float);
    sizes[4] = extra;
}

static void geometry_of(const perigee_session *s, size_t position, uint64_t fields[GEOMETRY_FIELDS]) {
    const uint64_t all[GEOMETRY_FIELDS] = {
        position,      s->cache.layers, s->cache.rank,   s->cache.rope,
        s->cache.bf16, s->state.layers, s->state.floats, (uint64_t)s->model->config.vocabulary};
    memcpy(fields, all, sizeof all);
}

static uint64_t total_size(const uint64_t sizes[SECTIONS]) {
    uint64_t total = HEADER_BYTES;
    for (int i = 0; i < SECTIONS; i++) {
        total += SECTION_BYTES + sizes[i] + sizeof(uint64_t);
    }
    return total;
}

size_t prg_snapshot_size(const perigee_session *session, size_t extra) {
    uint64_t sizes[SECTIONS];
    section_sizes(session, session->position, extra, sizes);
    return (size_t)total_size(sizes);
}

typedef struct state_header {
    unsigned char magic[8];
    uint32_t version, bytes;
    uint64_t total;
    uint64_t fingerprint[2];
    uint32_t sections, reserved;
    uint64_t zero;
    uint64_t checksum; /* of what stands before it */
} state_header;

typedef struct section_header {
    uint32_t kind, reserved;
    uint64_t size;
} section_header;

_Static_assert(sizeof(state_header) == HEADER_BYTES && sizeof(section_header) == SECTION_BYTES, "no padding");

/* ---- saving ---- */

typedef struct writer {
    const prg_state_sink *sink;
    XXH3_state_t *hash;
} writer;

static perigee_status put(writer *w, const void *data, size_t size, perigee_error **err) {
    XXH3_64bits_update(w->hash, data, size);
    return size > 0 ? w->sink->write(w->sink->user, data, size, err) : PERIGEE_OK;
}

static perigee_status begin(writer *w, uint32_t kind, uint64_t size, perigee_error **err) {
    const section_header header = {kind, 0, size};
    XXH3_64bits_reset(w->hash);
    return put(w, &header, sizeof header, err);
}

static perigee_status end(writer *w, perigee_error **err) {
    const uint64_t checksum = XXH3_64bits_digest(w->hash);
    return w->sink->write(w->sink->user, &checksum, sizeof checksum, err);
}

static perigee_status put_section(writer *w, uint32_t kind, const void *data, size_t size, perigee_error **err) {
    perigee_status st = begin(w, kind, size, err);
    if (st == PERIGEE_OK) {
        st = put(w, data, size, err);
    }
    return st == PERIGEE_OK ? end(w, err) : st;
}

/* A layer after the other, each from position 0 on: nothing of the blocks shows. */
static perigee_status put_cache(writer *w, const perigee_session *s, uint64_t size, perigee_error **err) {
    const prg_cache *cache = &s->cache;
    perigee_status st = begin(w, SECTION_CACHE, size, err);
    for (size_t layer = 0; st == PERIGEE_OK && layer < cache->layers; layer++) {
        for (size_t at = 0; st == PERIGEE_OK && at < s->position; at += PRG_CACHE_BLOCK) {
            const size_t left = s->position - at, n = left < PRG_CACHE_BLOCK ? left : PRG_CACHE_BLOCK;
            const prg_cache_block *block = cache->blocks[at / PRG_CACHE_BLOCK];
            st = put(w, block->data + layer * cache->layer_bytes, n * cache->token_bytes, err);
        }
    }
    return st == PERIGEE_OK ? end(w, err) : st;
}

perigee_status prg_snapshot_save(const perigee_session *session, const void *extra, size_t extra_size,
                                 const prg_state_sink *sink, perigee_error **err) {
    const perigee_session *s = session;
    uint64_t sizes[SECTIONS], geometry[GEOMETRY_FIELDS];
    section_sizes(s, s->position, extra_size, sizes);
    geometry_of(s, s->position, geometry);
    XXH3_state_t hash; /* on the stack: XXH3_createState would go past the host's allocator */
    writer w = {sink, &hash};
    XXH3_INITSTATE(&hash);

    state_header header = {.version = VERSION,
                           .bytes = HEADER_BYTES,
                           .total = total_size(sizes),
                           .fingerprint = {s->model->fingerprint[0], s->model->fingerprint[1]},
                           .sections = SECTIONS};
    memcpy(header.magic, magic, sizeof magic);
    header.checksum = XXH3_64bits(&header, offsetof(state_header, checksum));
    perigee_status st = sink->write(sink->user, &header, sizeof header, err);
    if (st == PERIGEE_OK) {
        st = put_section(&w, SECTION_GEOMETRY, geometry, sizeof geometry, err);
    }
    if (st == PERIGEE_OK) {
        st = put_section(&w, SECTION_TOKENS, s->tokens, (size_t)sizes[1], err);
    }
    if (st == PERIGEE_OK) {
        st = put_cache(&w, s, sizes[2], err);
    }
    if (st == PERIGEE_OK) {
        const void *state = s->state.layers > 0 ? s->state.copy[s->state.live] : NULL;
        st = put_section(&w, SECTION_RECURRENT, state, (size_t)sizes[3], err);
    }
    return st == PERIGEE_OK ? put_section(&w, SECTION_EXTRA, extra, extra_size, err) : st;
}

/* ---- loading ---- */

typedef struct reader {
    const prg_state_source *source;
    XXH3_state_t *hash;
    int64_t at;
} reader;

static perigee_status bad(const reader *r, perigee_status status, perigee_error **err, const char *what) {
    const prg_where where = {NULL, r->source->file, r->at, -1};
    return prg_fail_at(err, status, where, "saved state, byte %lld: %s", (long long)r->at, what);
}

static perigee_status get(reader *r, void *data, size_t size, perigee_error **err) {
    perigee_status st = size > 0 ? r->source->read(r->source->user, data, size, err) : PERIGEE_OK;
    if (st == PERIGEE_OK) {
        XXH3_64bits_update(r->hash, data, size);
        r->at += (int64_t)size;
    }
    return st;
}

static perigee_status open_section(reader *r, uint32_t kind, section_header *header, perigee_error **err) {
    XXH3_64bits_reset(r->hash);
    perigee_status st = get(r, header, sizeof *header, err);
    if (st == PERIGEE_OK && header->kind != kind) {
        st = bad(r, PERIGEE_E_CHECKSUM, err, "another section than expected");
    }
    return st;
}

static perigee_status close_section(reader *r, perigee_error **err) {
    const uint64_t computed = XXH3_64bits_digest(r->hash);
    uint64_t checksum = 0;
    perigee_status st = get(r, &checksum, sizeof checksum, err);
    if (st == PERIGEE_OK && checksum != computed) {
        st = bad(r, PERIGEE_E_CHECKSUM, err, "a section's checksum does not match");
    }
    return st;
}

static perigee_status get_section(reader *r, uint32_t kind, void *data, uint64_t size, perigee_error **err) {
    section_header header;
    perigee_status st = open_section(r, kind, &header, err);
    if (st == PERIGEE_OK && header.size != size) {
        st = bad(r, PERIGEE_E_CHECKSUM, err, "a section's size does not fit");
    }
    if (st == PERIGEE_OK) {
        st = get(r, data, (size_t)size, err);
    }
    return st == PERIGEE_OK ? close_section(r, err) : st;
}

static perigee_status get_header(reader *r, const perigee_session *s, state_header *h, perigee_error **err) {
    perigee_status st = get(r, h, sizeof *h, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    if (memcmp(h->magic, magic, sizeof magic) != 0) {
        return bad(r, PERIGEE_E_FORMAT, err, "not a saved state");
    }
    if (h->checksum != XXH3_64bits(h, offsetof(state_header, checksum))) {
        return bad(r, PERIGEE_E_CHECKSUM, err, "the header's checksum does not match");
    }
    if (h->version != VERSION) {
        return bad(r, PERIGEE_E_VERSION, err, "of a version that this library does not know");
    }
    if (h->bytes != HEADER_BYTES || h->sections != SECTIONS) {
        return bad(r, PERIGEE_E_FORMAT, err, "a header of another form");
    }
    if (h->fingerprint[0] != s->model->fingerprint[0] || h->fingerprint[1] != s->model->fingerprint[1]) {
        return bad(r, PERIGEE_E_MISMATCH, err, "of another model");
    }
    return PERIGEE_OK;
}

static perigee_status get_geometry(reader *r, const perigee_session *s, size_t *position, perigee_error **err) {
    uint64_t found[GEOMETRY_FIELDS], mine[GEOMETRY_FIELDS];
    perigee_status st = get_section(r, SECTION_GEOMETRY, found, sizeof found, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    geometry_of(s, (size_t)found[0], mine);
    if (found[4] != mine[4]) {
        return bad(r, PERIGEE_E_MISMATCH, err, "its cache has another type than the session's");
    }
    if (memcmp(found, mine, sizeof found) != 0) {
        return bad(r, PERIGEE_E_MISMATCH, err, "its shapes are not the model's");
    }
    if (found[0] > s->plan.context) {
        return bad(r, PERIGEE_E_CONTEXT_FULL, err, "it holds more tokens than the session has room for");
    }
    *position = (size_t)found[0];
    return PERIGEE_OK;
}

static perigee_status get_tokens(reader *r, const perigee_session *s, prg_loaded *out, perigee_error **err) {
    perigee_status st = get_section(r, SECTION_TOKENS, out->tokens, out->position * sizeof(int32_t), err);
    for (size_t i = 0; st == PERIGEE_OK && i < out->position; i++) {
        if (out->tokens[i] < 0 || out->tokens[i] >= s->model->config.vocabulary) {
            st = bad(r, PERIGEE_E_FORMAT, err, "a token outside the vocabulary");
        }
    }
    return st;
}

static perigee_status get_cache(reader *r, prg_loaded *out, uint64_t size, perigee_error **err) {
    const prg_cache *cache = &out->cache;
    section_header header;
    perigee_status st = open_section(r, SECTION_CACHE, &header, err);
    if (st == PERIGEE_OK && header.size != size) {
        st = bad(r, PERIGEE_E_CHECKSUM, err, "a section's size does not fit");
    }
    for (size_t layer = 0; st == PERIGEE_OK && layer < cache->layers; layer++) {
        for (size_t at = 0; st == PERIGEE_OK && at < out->position; at += PRG_CACHE_BLOCK) {
            const size_t left = out->position - at, n = left < PRG_CACHE_BLOCK ? left : PRG_CACHE_BLOCK;
            prg_cache_block *block = cache->blocks[at / PRG_CACHE_BLOCK];
            st = get(r, block->data + layer * cache->layer_bytes, n * cache->token_bytes, err);
        }
    }
    return st == PERIGEE_OK ? close_section(r, err) : st;
}

/* The size is the file's word: it is read piece by piece, so that a lie costs no memory. */
static perigee_status get_extra(reader *r, const perigee_session *s, uint64_t total, prg_loaded *out,
                                perigee_error **err) {
    section_header header;
    perigee_status st = open_section(r, SECTION_EXTRA, &header, err);
    if (st == PERIGEE_OK && (header.size > total || (uint64_t)r->at + header.size + sizeof(uint64_t) != total)) {
        st = bad(r, PERIGEE_E_CHECKSUM, err, "a section's size does not fit");
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    enum { PIECE = 1 << 20 };
    while (st == PERIGEE_OK && out->extra_size < header.size) {
        const uint64_t left = header.size - out->extra_size;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        unsigned char *grown = prg_realloc(s->model->context->allocator, out->extra, out->extra_size + n);
        if (!grown) {
            return prg_fail_memory(err);
        }
        out->extra = grown;
        st = get(r, grown + out->extra_size, n, err);
        out->extra_size += n;
    }
    return st == PERIGEE_OK ? close_section(r, err) : st;
}

void prg_snapshot_drop(perigee_session *session, prg_loaded *loaded) {
    prg_allocator *allocator = session->model->context->allocator;
    prg_cache_free(&loaded->cache);
    prg_free(allocator, loaded->tokens);
    prg_free(allocator, loaded->extra);
    *loaded = (prg_loaded){.position = 0};
}

static perigee_status make_room(const perigee_session *s, prg_loaded *out, perigee_error **err) {
    prg_allocator *allocator = s->model->context->allocator;
    out->cache.allocator = allocator;
    out->tokens = prg_alloc(allocator, s->plan.context * sizeof *out->tokens);
    if (!out->tokens) {
        return prg_fail_memory(err);
    }
    return prg_cache_init(&out->cache, allocator, &s->model->config, &s->plan, err);
}

perigee_status prg_snapshot_load(perigee_session *session, const prg_state_source *source, prg_loaded *out,
                                 perigee_error **err) {
    perigee_session *s = session;
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset(&hash);
    reader r = {source, &hash, 0};
    state_header header;
    size_t position = 0;
    uint64_t sizes[SECTIONS];
    *out = (prg_loaded){.position = 0};
    out->cache.allocator = s->model->context->allocator;
    perigee_status st = get_header(&r, s, &header, err);
    if (st == PERIGEE_OK) {
        st = get_geometry(&r, s, &position, err);
    }
    if (st == PERIGEE_OK) {
        section_sizes(s, position, 0, sizes);
        if (header.total < total_size(sizes)) {
            st = bad(&r, PERIGEE_E_FORMAT, err, "its length does not fit what it holds");
        }
    }
    if (st == PERIGEE_OK) {
        st = make_room(s, out, err);
    }
    if (st == PERIGEE_OK) {
        out->position = position;
        st = get_tokens(&r, s, out, err);
    }
    if (st == PERIGEE_OK) {
        st = prg_cache_reserve(&out->cache, 0, position, 0, err);
    }
    if (st == PERIGEE_OK) {
        st = get_cache(&r, out, sizes[2], err);
    }
    if (st == PERIGEE_OK) {
        void *state = s->state.layers > 0 ? s->state.copy[!s->state.live] : NULL;
        st = get_section(&r, SECTION_RECURRENT, state, sizes[3], err);
    }
    if (st == PERIGEE_OK) {
        st = get_extra(&r, s, header.total, out, err);
    }
    if (st != PERIGEE_OK) {
        prg_snapshot_drop(s, out);
    }
    return st;
}

void prg_snapshot_commit(perigee_session *session, prg_loaded *loaded) {
    perigee_session *s = session;
    prg_allocator *allocator = s->model->context->allocator;
    prg_checkpoints_trim(s, 0);
    prg_cache_free(&s->cache);
    prg_free(allocator, s->tokens);
    prg_free(allocator, loaded->extra);
    s->cache = loaded->cache;
    s->tokens = loaded->tokens;
    s->position = loaded->position;
    s->state.live = s->state.layers > 0 ? !s->state.live : 0;
    *loaded = (prg_loaded){.position = 0};
}
