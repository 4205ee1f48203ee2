/* Causal attention over latents. With c[t] the latent and r[t] the shared key of position t, and per head
 * q' = W_uk^T q_nope:  score[t] = scale (q' . c[t] + q_rope . r[t]),  z = sum softmax(score)[t] c[t],  out = W_uv z.
 * Work comes in units: some heads of some tokens of one part, at most ROWS_MOST rows of queries, which one thread takes
 * through all the keys that they see, in tiles of 64 or steps of 256 at absolute multiples. A row's bits do not depend
 * on its unit. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "ops/parallel.h"
#include "ops/product.h"

enum {
    ROWS_MOST = 96,
    GROUP = PERIGEE_ATTENTION_GROUP,
    KEYS = PERIGEE_ATTENTION_KEYS,
    WALK_KEYS = PERIGEE_ATTENTION_STEP
};

/* Scratch of one thread, in bytes from its start. `work` is that of a row that walks, what stands before it of others.
 */
typedef struct layout {
    size_t q, z, visible, product;
    size_t max, sum, tile;
    size_t work;
    size_t bytes;
} layout;

typedef struct attend_call {
    const prg_exec *exec;
    const prg_attention *attention;
    const prg_attention_part *parts;
    size_t n;
    size_t rows_most; /* of a unit */
    size_t units;
    layout at;
    unsigned char *scratch;
    atomic_size_t next;
} attend_call;

/* Heads first … first + heads - 1 of tokens t … t + m - 1 of a part; row i is head i % heads of token i / heads. */
typedef struct unit {
    const prg_attention_part *part;
    size_t first, heads;
    size_t t, m;
} unit;

static size_t take(size_t *at, size_t count, size_t size) {
    size_t place = *at;
    *at += prg_scratch_bytes(count, size);
    return place;
}

static const perigee_attention_functions *functions_of(const prg_kernel_table *table) {
    return &prg_kernel_table_row(table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE)->run.attention;
}

/* Rows of queries that are computed together. */
static size_t row_tile(const prg_kernel_table *table) {
    const perigee_kernel_row *row = prg_kernel_table_row(table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE);
    return row->run.attention.work_bytes ? row->row_tile : GROUP;
}

static layout make_layout(const prg_kernel_table *table, const prg_attention *a, size_t rows) {
    const perigee_attention_functions *f = functions_of(table);
    layout l = {0};
    size_t at = 0, width = a->rank + a->rope;
    l.q = take(&at, (rows + GROUP - 1) / GROUP * GROUP * width, sizeof(float));
    l.z = take(&at, rows * prg_round_up(a->rank, 16), sizeof(float));
    l.visible = take(&at, rows, sizeof(uint32_t));
    l.product = take(&at, prg_product_scratch(table, prg_max(a->nope, a->value), a->rank, rows), 1);
    if (f->work_bytes) {
        l.work = take(&at, f->work_bytes(a->rank, a->rope, rows), 1);
    } else {
        l.max = take(&at, rows, sizeof(float));
        l.sum = take(&at, rows, sizeof(float));
        l.tile = take(&at, 2 * KEYS * width + KEYS * (rows + GROUP), sizeof(float));
    }
    l.bytes = at;
    return l;
}

static size_t rows_for(const prg_attention *a, size_t m) {
    return prg_min(ROWS_MOST, a->heads * m);
}

size_t prg_attend_scratch(const prg_kernel_table *table, size_t threads, const prg_attention *attention, size_t m) {
    return m == 0 ? 0 : prg_scratch_bytes(threads, make_layout(table, attention, rows_for(attention, m)).bytes);
}

/* How a part is cut: blocks of tokens as equal as may be, then as many heads as fit beside them. */
typedef struct cut {
    size_t tokens, heads; /* of a unit, the last ones apart */
    size_t token_blocks, head_blocks;
} cut;

static cut cut_part(const attend_call *c, const prg_attention_part *part) {
    cut k;
    size_t blocks = (part->m + c->rows_most - 1) / c->rows_most, heads = c->attention->heads;
    k.tokens = prg_min((part->m + blocks - 1) / blocks, c->rows_most);
    if (blocks > 1) { /* whole tiles, as rows that fill one up cost as much as others */
        const size_t tile = row_tile(c->exec->table);
        k.tokens = prg_min((k.tokens + tile - 1) / tile * tile, c->rows_most);
    }
    k.heads = prg_min(prg_max(c->rows_most / k.tokens, 1), heads);
    k.token_blocks = (part->m + k.tokens - 1) / k.tokens;
    k.head_blocks = (heads + k.heads - 1) / k.heads;
    return k;
}

/* Unit `index` in order of parts. In a part the last tokens, which see most keys, come first, so that the threads end
 * together. */
static unit find_unit(const attend_call *c, size_t index) {
    for (const prg_attention_part *p = c->parts;; p++) {
        if (p->m == 0) {
            continue;
        }
        cut k = cut_part(c, p);
        size_t units = k.token_blocks * k.head_blocks;
        if (index < units) {
            size_t t = (k.token_blocks - 1 - index / k.head_blocks) * k.tokens, h = index % k.head_blocks * k.heads;
            return (unit){p, h, prg_min(k.heads, c->attention->heads - h), t, prg_min(k.tokens, p->m - t)};
        }
        index -= units;
    }
}

/* q' of every head of the unit: row i at to + i * ld. */
static void absorb(const attend_call *c, const unit *u, unsigned char *own, float *to, size_t ld) {
    const prg_attention *a = c->attention;
    const float *q = a->q + (u->part->row + u->t) * a->ldq;
    for (size_t h = 0; h < u->heads; h++) {
        prg_product_transposed(c->exec->table, a->kv_b, (u->first + h) * (a->nope + a->value), a->nope,
                               q + (u->first + h) * (a->nope + a->rope), a->ldq, u->m, to + h * ld, u->heads * ld,
                               own + c->at.product);
    }
}

/* The rotated part of the query of row i of the unit. */
static const float *rope_of(const attend_call *c, const unit *u, size_t i) {
    const prg_attention *a = c->attention;
    return a->q + (u->part->row + u->t + i / u->heads) * a->ldq + (u->first + i % u->heads) * (a->nope + a->rope) +
           a->nope;
}

/* q' into the rows of z, then with the rotated part to groups of six. */
static void absorb_grouped(const attend_call *c, const unit *u, unsigned char *own) {
    const prg_attention *a = c->attention;
    size_t width = a->rank + a->rope, ldz = prg_round_up(a->rank, 16), rows = u->m * u->heads;
    float *z = (float *)(void *)(own + c->at.z), *packed = (float *)(void *)(own + c->at.q);
    absorb(c, u, own, z, ldz);
    for (size_t row = 0; row < rows; row += GROUP) {
        const float *latent[GROUP], *rope[GROUP];
        size_t n = prg_min(GROUP, rows - row);
        float *to = packed + row * width;
        for (size_t i = 0; i < n; i++) {
            latent[i] = z + (row + i) * ldz;
            rope[i] = rope_of(c, u, row + i);
        }
        if (n < GROUP) {
            memset(to, 0, GROUP * width * sizeof(float));
        }
        for (size_t i = 0; i < a->rank; i++) {
            for (size_t j = 0; j < n; j++) {
                to[i * GROUP + j] = latent[j][i];
            }
        }
        to += a->rank * GROUP;
        for (size_t i = 0; i < a->rope; i++) {
            for (size_t j = 0; j < n; j++) {
                to[i * GROUP + j] = rope[j][i];
            }
        }
    }
    memset(z, 0, rows * ldz * sizeof(float));
}

static const void *latents_at(const prg_latents *cache, size_t key) {
    size_t place = (key & (cache->block - 1)) * (cache->rank + cache->rope);
    const void *block = cache->blocks[key / cache->block];
    return cache->bf16 ? (const void *)((const uint16_t *)block + place) : (const void *)((const float *)block + place);
}

/* How many of the keys key … key + most - 1 each row sees. */
static void see(const unit *u, size_t key, size_t most, uint32_t *visible) {
    for (size_t i = 0; i < u->m * u->heads; i++) {
        size_t sees = u->part->first + u->t + i / u->heads + 1; /* a token sees itself too */
        visible[i] = (uint32_t)(sees <= key ? 0 : prg_min(sees - key, most));
    }
}

static void take_tiles(const attend_call *c, const unit *u, unsigned char *own) {
    const prg_attention *a = c->attention;
    const prg_latents *cache = &u->part->cache;
    size_t rows = u->m * u->heads, end = u->part->first + u->t + u->m, ldz = prg_round_up(a->rank, 16);
    uint32_t *visible = (uint32_t *)(void *)(own + c->at.visible);
    float *z = (float *)(void *)(own + c->at.z);
    perigee_attention_tile tile = {.rank = a->rank,
                                   .rope = a->rope,
                                   .rows = rows,
                                   .q = (float *)(void *)(own + c->at.q),
                                   .scale = a->scale,
                                   .bf16 = cache->bf16,
                                   .visible = visible,
                                   .max = (float *)(void *)(own + c->at.max),
                                   .sum = (float *)(void *)(own + c->at.sum),
                                   .z = z,
                                   .scratch = (float *)(void *)(own + c->at.tile)};
    absorb_grouped(c, u, own);
    for (size_t i = 0; i < rows; i++) {
        tile.max[i] = -INFINITY;
        tile.sum[i] = 0;
    }
    for (size_t key = 0; key < end; key += KEYS) {
        see(u, key, KEYS, visible);
        tile.keys = prg_min(end - key, KEYS);
        tile.latent = latents_at(cache, key);
        /* only whole tiles: nothing behind the cache is touched */
        tile.next = key + 2 * KEYS <= end ? latents_at(cache, key + KEYS) : NULL;
        functions_of(c->exec->table)->tile(&tile);
    }
    for (size_t row = 0; row < rows; row++) {
        float whole = 1.0f / tile.sum[row];
        for (size_t i = 0; i < a->rank; i++) {
            z[row * ldz + i] *= whole;
        }
    }
}

static void walk(const attend_call *c, const unit *u, unsigned char *own) {
    enum { TILES = WALK_KEYS / KEYS };
    const prg_attention *a = c->attention;
    const prg_latents *cache = &u->part->cache;
    const perigee_attention_functions *f = functions_of(c->exec->table);
    size_t end = u->part->first + u->t + u->m, rows = u->m * u->heads, ldq = a->rank + a->rope;
    uint32_t *visible = (uint32_t *)(void *)(own + c->at.visible);
    float *q = (float *)(void *)(own + c->at.q);
    const void *tiles[2][TILES] = {{NULL}};
    perigee_attention_walk w = {.rank = a->rank,
                                .rope = a->rope,
                                .rows = rows,
                                .scale = a->scale,
                                .bf16 = cache->bf16,
                                .work = own + c->at.work,
                                .q = q,
                                .ldq = ldq,
                                .latents = tiles[0],
                                .visible = visible,
                                .next = tiles[1],
                                .z = (float *)(void *)(own + c->at.z),
                                .ldz = prg_round_up(a->rank, 16)};
    absorb(c, u, own, q, ldq);
    for (size_t i = 0; i < rows; i++) {
        memcpy(q + i * ldq + a->rank, rope_of(c, u, i), a->rope * sizeof *q);
    }
    f->begin(&w);
    for (size_t key = 0; key < end; key += WALK_KEYS) {
        see(u, key, WALK_KEYS, visible);
        w.keys = prg_min(end - key, WALK_KEYS);
        w.n_next = end <= key + WALK_KEYS ? 0 : prg_min((end - key - WALK_KEYS) / KEYS, TILES);
        for (size_t i = 0; i * KEYS < w.keys; i++) {
            tiles[0][i] = latents_at(cache, key + i * KEYS);
        }
        for (size_t i = 0; i < w.n_next; i++) {
            tiles[1][i] = latents_at(cache, key + WALK_KEYS + i * KEYS);
        }
        f->step(&w);
    }
    f->end(&w);
}

/* From means of latents to values. */
static void finish(const attend_call *c, const unit *u, unsigned char *own) {
    const prg_attention *a = c->attention;
    size_t ldz = prg_round_up(a->rank, 16);
    float *z = (float *)(void *)(own + c->at.z), *out = a->out + (u->part->row + u->t) * a->ldo;
    for (size_t h = 0; h < u->heads; h++) {
        size_t head = u->first + h;
        prg_product(c->exec->table, a->kv_b, head * (a->nope + a->value) + a->nope, a->value, z + h * ldz,
                    u->heads * ldz, u->m, out + head * a->value, a->ldo, own + c->at.product);
    }
}

static void attend_part(void *argument, size_t index, size_t count) {
    attend_call *c = argument;
    unsigned char *own = c->scratch + index * c->at.bytes;
    (void)count;
    for (;;) {
        size_t next = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
        if (next >= c->units) {
            return;
        }
        unit u = find_unit(c, next);
        if (functions_of(c->exec->table)->work_bytes) {
            walk(c, &u, own);
        } else {
            take_tiles(c, &u, own);
        }
        finish(c, &u, own);
    }
}

/* An equal part for each thread where that is less than a unit may have: two of eight heads end sooner than one of
 * twelve and one of four, though both come to four groups of queries. But no less than the kernel computes anyway. */
static size_t choose_rows(const prg_kernel_table *table, size_t most, size_t rows, size_t threads) {
    size_t tile = prg_kernel_table_row(table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE)->row_tile;
    return prg_min(((rows + threads - 1) / threads + tile - 1) / tile * tile, most);
}

perigee_status prg_attend(const prg_exec *exec, const prg_attention *attention, const prg_attention_part *parts,
                          size_t n, perigee_error **err) {
    size_t m = 0, threads = prg_pool_threads(exec->pool);
    for (size_t i = 0; i < n; i++) {
        assert(parts[i].cache.rank == attention->rank && parts[i].cache.rope == attention->rope);
        assert(parts[i].cache.block % KEYS == 0);
        m += parts[i].m;
    }
    if (m == 0) {
        return PERIGEE_OK;
    }
    size_t used = exec->scratch->used, most = rows_for(attention, m);
    attend_call c = {.exec = exec,
                     .attention = attention,
                     .parts = parts,
                     .n = n,
                     .rows_most = choose_rows(exec->table, most, attention->heads * m, threads),
                     .at = make_layout(exec->table, attention, most)};
    c.scratch = prg_scratch_take(exec->scratch, threads, c.at.bytes);
    if (!c.scratch) {
        return prg_fail(err, PERIGEE_E_INTERNAL, "attention: %zu threads want %zu bytes of scratch each", threads,
                        c.at.bytes);
    }
    for (size_t i = 0; i < n; i++) {
        if (parts[i].m) {
            cut k = cut_part(&c, &parts[i]);
            c.units += k.token_blocks * k.head_blocks;
        }
    }
    atomic_init(&c.next, 0);
    prg_pool_run(exec->pool, attend_part, &c);
    exec->scratch->used = used;
    if (exec->weight_bytes) {
        const perigee_matrix *w = attention->kv_b;
        *exec->weight_bytes += (int64_t)prg_dtype_matrix_bytes(w->dtype, w->rows, w->cols);
    }
    return PERIGEE_OK;
}
