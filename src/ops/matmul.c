/* Products of activations with weights, over threads.
 *
 * Neighbouring jobs whose rows pack alike make a section: distinct activations are packed once, then threads share the
 * jobs' rows by cost: most of them in equal parts, the rest in ever smaller ones for whoever comes first, as cores are
 * never equally fast. An output is computed whole by one thread, so its bits don't depend on who computes it. */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "ops/ops.h"
#include "ops/product.h"

enum {
    SIDE_FLOATS = 1 << 16, /* of a block of results on the side, at least BLOCK_ROWS rows of it */
    BLOCK_ROWS = 96,
    PACK_ALONE = 1 << 14,  /* floats that are packed faster than threads wake */
    FEW_ROWS = 64,         /* of activations */
    ROUNDS = 5,            /* of parts that threads take, */
    LEAST_PART = 128 << 10 /* none smaller than this by its cost: what is read ahead at its end is read in vain */
};

typedef struct product {
    const perigee_matrix *w;
    size_t first, count;
    const prg_input *x;
    prg_form form;
    const void *packed;
    const uint32_t *rows;
    double begin, cost; /* in the section */
} product;

/* Activations to pack: `m` rows of x, or rows[0 ... m - 1] of it. */
typedef struct source {
    const prg_input *x;
    size_t m;
    const uint32_t *gather;
    char *to;
} source;

typedef enum section_kind { PLAIN, GATED, GATED_UP, WEIGHTED } section_kind;

typedef struct section {
    const prg_exec *exec;
    section_kind kind;
    const void *jobs; /* of the caller's type, beside `products` */
    product *products, *ups;
    size_t n;
    source *sources;
    size_t source_count, source_rows;
    double cost;
    size_t rounds;      /* a round is one part for each thread */
    atomic_size_t next; /* part to take, behind the first round */
    prg_gate gate;
    const perigee_kernel_row *gated;
    float *y; /* WEIGHTED */
    size_t ldy;
    char *scratch;
    size_t scratch_bytes, side_bytes; /* of each thread; results on the side come first */
    bool host;                        /* all on the calling thread, by functions that may fail */
    int32_t failure;
} section;

static size_t side_rows(size_t m) {
    return prg_max(BLOCK_ROWS, SIDE_FLOATS / prg_max(m, 1) / 48 * 48);
}

static size_t side_floats(size_t m) {
    return prg_max(SIDE_FLOATS, BLOCK_ROWS * m);
}

static bool is_host(prg_form form) {
    return form.row->flags & PERIGEE_KERNEL_HOST;
}

/* A HOST row takes float32 as it is. */
static size_t packed_bytes(prg_form form, size_t k) {
    return is_host(form) ? prg_scratch_bytes(k, sizeof(float)) : form.row->run.matmul.packed_bytes(k);
}

static bool pack_alike(prg_form a, prg_form b) {
    return is_host(a) == is_host(b) && (is_host(a) || a.row->run.matmul.pack == b.row->run.matmul.pack);
}

static void product_init(product *p, const prg_exec *exec, const perigee_matrix *w, size_t first, size_t count,
                         const prg_input *x) {
    assert(w->cols == x->k && first + count <= w->rows);
    *p = (product){.w = w, .first = first, .count = count, .x = x, .form = prg_form_of(exec->table, w->dtype)};
    if (exec->weight_bytes && x->m > 0) {
        const prg_dtype *dtype = prg_dtype_get(w->dtype);
        const size_t scales = dtype->scale_rows ? (count + dtype->scale_rows - 1) / dtype->scale_rows : 0;
        *exec->weight_bytes += (int64_t)(count * w->row_bytes + scales * w->scale_row_bytes);
    }
}

/* Packing */

/* Rows of x that must be packed so that the job's own numbers find theirs. */
static size_t span(const prg_input *x) {
    size_t last = 0;
    for (size_t t = 0; x->rows && t < x->m; t++) {
        last = prg_max(last, (size_t)x->rows[t] + 1);
    }
    return x->rows ? last : x->m;
}

static bool same_source(const prg_input *a, const prg_input *b) {
    return a->x == b->x && a->ldx == b->ldx && a->k == b->k;
}

static bool add_source(section *s, const prg_input *x, size_t m, const uint32_t *gather, const product *p) {
    char *to = prg_scratch_take(s->exec->scratch, m, packed_bytes(p->form, x->k));
    s->sources[s->source_count++] = (source){x, m, gather, to};
    s->source_rows += m;
    return to != NULL;
}

/* Decide what is packed for products [0, n): one copy of each x, or of a job's rows alone where they are few. */
static bool plan_packing(section *s, product *products, size_t n) {
    for (size_t i = 0; i < n; i++) {
        product *p = &products[i];
        if (p->packed || p->x->m == 0 || (s->host && !p->x->rows)) {
            continue;
        }
        size_t all = 0, rows = 0;
        for (size_t j = i; j < n; j++) {
            if (same_source(p->x, products[j].x)) {
                all = prg_max(all, span(products[j].x));
                rows += products[j].x->m;
            }
        }
        const bool shared = all <= rows && !s->host;
        if (!add_source(s, p->x, shared ? all : p->x->m, shared ? NULL : p->x->rows, p)) {
            return false;
        }
        const void *packed = s->sources[s->source_count - 1].to;
        p->packed = packed;
        p->rows = shared ? p->x->rows : NULL;
        for (size_t j = i + 1; shared && j < n; j++) {
            if (same_source(p->x, products[j].x)) {
                products[j].packed = packed;
                products[j].rows = products[j].x->rows;
            }
        }
    }
    return true;
}

static void pack_rows(const section *s, size_t from, size_t to) {
    const prg_form form = s->products[0].form;
    size_t base = 0;
    for (size_t i = 0; i < s->source_count && base < to; base += s->sources[i++].m) {
        const source *from_x = &s->sources[i];
        const size_t first = from > base ? from - base : 0, last = prg_min(from_x->m, to - base);
        const size_t k = from_x->x->k, ldx = from_x->x->ldx, bytes = packed_bytes(form, k);
        if (first >= last) {
            continue;
        }
        if (!from_x->gather) {
            form.row->run.matmul.pack(from_x->x->x + first * ldx, ldx, last - first, k, from_x->to + first * bytes);
            continue;
        }
        for (size_t t = first; t < last; t++) {
            const float *from_row = from_x->x->x + from_x->gather[t] * ldx;
            if (s->host) {
                memcpy(from_x->to + t * bytes, from_row, k * sizeof(float));
            } else {
                form.row->run.matmul.pack(from_row, ldx, 1, k, from_x->to + t * bytes);
            }
        }
    }
}

static void pack_share(void *argument, size_t index, size_t count) {
    const section *s = argument;
    pack_rows(s, s->source_rows * index / count, s->source_rows * (index + 1) / count);
}

static void pack(section *s) {
    size_t floats = 0;
    for (size_t i = 0; i < s->source_count; i++) {
        floats += s->sources[i].m * s->sources[i].x->k;
    }
    if (floats <= PACK_ALONE || s->host) {
        pack_rows(s, 0, s->source_rows);
    } else {
        prg_pool_run(s->exec->pool, pack_share, s);
    }
}

/* Sharing rows */

static void count_cost(section *s) {
    s->cost = 0;
    for (size_t i = 0; i < s->n; i++) {
        product *p = &s->products[i];
        const double scale_bytes = p->w->scales ? (double)p->w->scale_row_bytes : 0;
        /* a byte of weights takes about as long as eight multiply-adds */
        const double row = (double)p->w->row_bytes + scale_bytes + (double)p->x->m * (double)p->x->k / 8;
        p->begin = s->cost;
        p->cost = p->x->m ? row * (double)p->count : 0;
        s->cost += p->cost;
    }
}

/* Rows of a product that lie before a point of the section's cost, in whole tiles. */
static size_t rows_before(const product *p, double point) {
    if (point <= p->begin) {
        return 0;
    }
    if (point >= p->begin + p->cost) {
        return p->count;
    }
    const size_t tile = p->form.row->row_tile;
    const double rows = (point - p->begin) / p->cost * (double)p->count;
    return prg_min(p->count, (size_t)(rows / (double)tile + 0.5) * tile);
}

static void run_rows(section *s, const product *p, size_t from, size_t n, float *y, size_t ldy, char *scratch) {
    if (!s->host) {
        prg_form_run(p->form, p->w, p->first + from, n, p->packed, p->rows, p->x->m, y, ldy, scratch);
    } else if (s->failure == 0) {
        const perigee_kernel_row *row = p->form.row;
        const float *x = p->packed ? p->packed : p->x->x;
        const size_t ldx = p->packed ? packed_bytes(p->form, p->x->k) / sizeof(float) : p->x->ldx;
        s->failure = row->run.matmul.host(row->user, p->w, p->first + from, n, x, ldx, p->x->m, y, ldy);
    }
}

static void run_plain(section *s, size_t i, size_t from, size_t to, char *scratch) {
    const product *p = &s->products[i];
    const prg_matmul_job *job = (const prg_matmul_job *)s->jobs + i;
    run_rows(s, p, from, to - from, job->y + from, job->ldy, scratch);
}

static void activate(const section *s, const float *gate, const float *up, size_t n, float *y) {
    const int situ = s->gate.kind == PRG_SITU;
    s->gated->run.gated.gated(gate, up, n, situ, s->gate.beta, s->gate.linear_beta, y);
}

static void run_gated(section *s, size_t i, size_t from, size_t to, char *scratch) {
    const product *p = &s->products[i], *up = &s->ups[i];
    const prg_gated_job *job = (const prg_gated_job *)s->jobs + i;
    const size_t block = side_rows(p->x->m);
    float *side = (float *)scratch;
    for (size_t r = from; r < to; r += block) {
        const size_t n = prg_min(block, to - r);
        if (s->kind == GATED) {
            run_rows(s, p, r, n, job->y + r, job->ldy, scratch + s->side_bytes);
        }
        run_rows(s, up, r, n, side, n, scratch + s->side_bytes);
        for (size_t t = 0; t < p->x->m; t++) {
            float *y = job->y + t * job->ldy + r;
            activate(s, y, side + t * n, n, y);
        }
    }
}

static void run_weighted(section *s, size_t i, size_t from, size_t to, char *scratch) {
    const product *p = &s->products[i];
    const prg_weighted_job *job = (const prg_weighted_job *)s->jobs + i;
    const size_t block = side_rows(p->x->m);
    float *side = (float *)scratch;
    for (size_t r = from; r < to; r += block) {
        const size_t n = prg_min(block, to - r);
        run_rows(s, p, r, n, side, n, scratch + s->side_bytes);
        for (size_t t = 0; t < p->x->m; t++) {
            float *y = s->y + (job->target ? job->target[t] : t) * s->ldy + r;
            const float weight = job->weight ? job->weight[t] : 1;
            for (size_t c = 0; c < n; c++) {
                y[c] += weight * side[t * n + c];
            }
        }
    }
}

/* Where a part begins, as a share of the section's cost. The first round covers three quarters of it, each later one
 * half of what is left, the last one all. */
static double part_begin(const section *s, size_t part, size_t threads) {
    const size_t round = part / threads;
    if (round >= s->rounds) {
        return 1;
    }
    double begin = 0, width = s->rounds > 1 ? 0.75 : 1;
    for (size_t r = 0; r < round; r++) {
        begin += width;
        width = r + 2 < s->rounds ? (1 - begin) / 2 : 1 - begin;
    }
    return begin + width * (double)(part % threads) / (double)threads;
}

/* Rounds whose parts are not too small. Each part of WEIGHTED goes over all activations again: many of them are not to
 * be read often. */
static size_t count_rounds(const section *s, size_t threads) {
    const size_t most = s->kind == WEIGHTED && s->source_rows > FEW_ROWS ? 2 : ROUNDS;
    size_t rounds = 1;
    double width = 0.25;
    while (threads > 1 && rounds < most && s->cost * width >= (double)threads * LEAST_PART) {
        width /= 2;
        rounds++;
    }
    return rounds;
}

static void multiply_part(section *s, double from, double to, char *scratch) {
    for (size_t i = 0; i < s->n; i++) {
        const product *p = &s->products[i];
        size_t first, last;
        if (p->x->m == 0) {
            continue;
        }
        if (s->kind == WEIGHTED) { /* a part has its own columns of y, in all jobs */
            const size_t tile = BLOCK_ROWS / 8, tiles = (p->count + tile - 1) / tile;
            first = prg_min(p->count, (size_t)((double)tiles * from) * tile);
            last = prg_min(p->count, (size_t)((double)tiles * to) * tile);
        } else {
            first = rows_before(p, s->cost * from);
            last = to < 1 ? rows_before(p, s->cost * to) : p->count;
        }
        if (first >= last) {
            continue;
        }
        if (s->kind == PLAIN) {
            run_plain(s, i, first, last, scratch);
        } else if (s->kind == WEIGHTED) {
            run_weighted(s, i, first, last, scratch);
        } else {
            run_gated(s, i, first, last, scratch);
        }
    }
}

static void multiply_share(void *argument, size_t index, size_t count) {
    section *s = argument;
    char *scratch = s->scratch + index * s->scratch_bytes;
    for (size_t part = index; part < s->rounds * count;) {
        multiply_part(s, part_begin(s, part, count), part_begin(s, part + 1, count), scratch);
        part = count + atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
    }
}

/* Sections */

/* Scratch of the threads, packing, products: everything but what the jobs are. `s->n` products that pack alike, and as
 * many `ups` for GATED. */
static perigee_status run_section(section *s, perigee_error **err) {
    const prg_exec *exec = s->exec;
    prg_scratch *scratch = exec->scratch;
    const size_t mark = scratch->used, threads = prg_pool_threads(exec->pool);
    perigee_status status = PERIGEE_OK;
    size_t m = 0, each = 0;
    s->host = is_host(s->products[0].form);
    for (size_t i = 0; i < s->n; i++) {
        const product *p = &s->products[i], *up = s->ups ? &s->ups[i] : p;
        m = prg_max(m, p->x->m);
        each = prg_max(each, prg_form_scratch(p->form, p->x->m, p->x->k));
        each = prg_max(each, prg_form_scratch(up->form, p->x->m, p->x->k));
    }
    s->side_bytes = s->kind == PLAIN ? 0 : prg_scratch_bytes(side_floats(m), sizeof(float));
    s->scratch_bytes = s->side_bytes + each;
    s->scratch = prg_scratch_take(scratch, threads, s->scratch_bytes);
    s->sources = prg_scratch_take(scratch, s->n, sizeof *s->sources);
    s->source_count = s->source_rows = 0;
    if (!s->scratch || !s->sources || !plan_packing(s, s->products, s->n)) {
        status = prg_fail(err, PERIGEE_E_INTERNAL, "scratch of a product is too small");
        goto done;
    }
    for (size_t i = 0; s->ups && i < s->n; i++) { /* the same input */
        s->ups[i].packed = s->products[i].packed;
        s->ups[i].rows = s->products[i].rows;
    }
    count_cost(s);
    pack(s);
    s->rounds = 1;
    atomic_init(&s->next, 0);
    if (s->host) {
        multiply_share(s, 0, 1);
    } else {
        s->rounds = count_rounds(s, threads);
        prg_pool_run(exec->pool, multiply_share, s);
    }
    if (s->failure != 0) {
        status =
            prg_fail(err, PERIGEE_E_KERNEL, "kernel %s failed with %d", s->products[0].form.row->name, (int)s->failure);
    }
done:
    scratch->used = mark;
    return status;
}

/* Products that pack alike, from the first on. */
static size_t alike(const product *products, const product *ups, size_t n) {
    size_t i = 1;
    while (i < n && pack_alike(products[0].form, products[i].form) &&
           (!ups || pack_alike(products[0].form, ups[i].form))) {
        i++;
    }
    return i;
}

static product *take_products(const prg_exec *exec, size_t n, perigee_error **err) {
    product *products = prg_scratch_take(exec->scratch, n, sizeof *products);
    if (!products) {
        (void)prg_fail(err, PERIGEE_E_INTERNAL, "scratch of a product is too small");
    }
    return products;
}

static perigee_status matmul(const prg_exec *exec, const prg_matmul_job *jobs, size_t n, bool exact,
                             perigee_error **err) {
    const size_t mark = exec->scratch->used;
    product *products = take_products(exec, n, err);
    perigee_status status = products ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    for (size_t i = 0; products && i < n; i++) {
        product_init(&products[i], exec, jobs[i].w, jobs[i].first, jobs[i].count, &jobs[i].x);
        if (exact) {
            products[i].form = prg_form_exact(exec->table, jobs[i].w->dtype);
        }
    }
    for (size_t i = 0, count; status == PERIGEE_OK && i < n; i += count) {
        count = alike(products + i, NULL, n - i);
        section s = {.exec = exec, .kind = PLAIN, .jobs = jobs + i, .products = products + i, .n = count};
        status = run_section(&s, err);
    }
    exec->scratch->used = mark;
    return status;
}

perigee_status prg_matmul(const prg_exec *exec, const prg_matmul_job *jobs, size_t n, perigee_error **err) {
    return matmul(exec, jobs, n, false, err);
}

perigee_status prg_matmul_exact(const prg_exec *exec, const prg_matmul_job *jobs, size_t n, perigee_error **err) {
    return matmul(exec, jobs, n, true, err);
}

/* Gate and up whose forms pack differently: one after the other. */
static perigee_status run_unlike(section s, perigee_error **err) {
    const prg_gated_job *job = s.jobs;
    const prg_matmul_job plain = {job->gate, 0, job->gate->rows, job->x, job->y, job->ldy};
    section first = {.exec = s.exec, .kind = PLAIN, .jobs = &plain, .products = s.products, .n = 1};
    perigee_status status = run_section(&first, err);
    if (status != PERIGEE_OK) {
        return status;
    }
    s.kind = GATED_UP;
    s.products = s.ups;
    s.n = 1;
    return run_section(&s, err);
}

perigee_status prg_gated_matmul(const prg_exec *exec, const prg_gated_job *jobs, size_t n, prg_gate gate,
                                perigee_error **err) {
    const size_t mark = exec->scratch->used;
    product *products = take_products(exec, 2 * n, err), *ups = products ? products + n : NULL;
    perigee_status status = products ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    for (size_t i = 0; products && i < n; i++) {
        assert(jobs[i].gate->rows == jobs[i].up->rows);
        product_init(&products[i], exec, jobs[i].gate, 0, jobs[i].gate->rows, &jobs[i].x);
        product_init(&ups[i], exec, jobs[i].up, 0, jobs[i].up->rows, &jobs[i].x);
    }
    for (size_t i = 0, count; status == PERIGEE_OK && i < n; i += count) {
        section s = {.exec = exec,
                     .kind = GATED,
                     .jobs = jobs + i,
                     .products = products + i,
                     .ups = ups + i,
                     .gate = gate,
                     .gated = prg_kernel_table_row(exec->table, PERIGEE_OP_GATED_ACTIVATION, PERIGEE_DTYPE_NONE)};
        count = 1;
        if (!pack_alike(products[i].form, ups[i].form)) {
            status = run_unlike(s, err);
            continue;
        }
        count = alike(products + i, ups + i, n - i);
        s.n = count;
        status = run_section(&s, err);
    }
    exec->scratch->used = mark;
    return status;
}

perigee_status prg_weighted_matmul(const prg_exec *exec, const prg_weighted_job *jobs, size_t n, float *y, size_t ldy,
                                   perigee_error **err) {
    const size_t mark = exec->scratch->used;
    product *products = take_products(exec, n, err);
    perigee_status status = products ? PERIGEE_OK : PERIGEE_E_INTERNAL;
    for (size_t i = 0; products && i < n; i++) {
        assert(jobs[i].w->rows == jobs[0].w->rows);
        product_init(&products[i], exec, jobs[i].w, 0, jobs[i].w->rows, &jobs[i].x);
    }
    for (size_t i = 0, count; status == PERIGEE_OK && i < n; i += count) {
        count = alike(products + i, NULL, n - i);
        section s = {
            .exec = exec, .kind = WEIGHTED, .jobs = jobs + i, .products = products + i, .n = count, .y = y, .ldy = ldy};
        status = run_section(&s, err);
    }
    exec->scratch->used = mark;
    return status;
}

size_t prg_matmul_scratch(const prg_kernel_table *table, size_t threads, size_t n, size_t m, size_t k) {
    size_t packed = 0, each = 0;
    for (uint32_t dtype = PERIGEE_DTYPE_F32; prg_dtype_get(dtype); dtype++) {
        const prg_form forms[] = {prg_form_of(table, dtype), prg_form_exact(table, dtype)};
        for (size_t i = 0; i < 2; i++) {
            packed = prg_max(packed, m * packed_bytes(forms[i], k));
            each = prg_max(each, prg_form_scratch(forms[i], m, k));
        }
    }
    each += prg_scratch_bytes(side_floats(m), sizeof(float));
    return prg_scratch_bytes(2 * n, sizeof(product)) + prg_scratch_bytes(n, sizeof(source)) + packed +
           prg_scratch_bytes(threads, each);
}

typedef struct embedding {
    const perigee_matrix *table;
    const int32_t *ids;
    size_t m, ldy;
    float *y;
} embedding;

static void embed_share(void *argument, size_t index, size_t count) {
    const embedding *e = argument;
    const prg_dtype *dtype = prg_dtype_get(e->table->dtype);
    for (size_t t = e->m * index / count; t < e->m * (index + 1) / count; t++) {
        dtype->decode(e->table, (size_t)e->ids[t], 0, e->table->cols, e->y + t * e->ldy);
    }
}

void prg_embed(const prg_exec *exec, const perigee_matrix *table, const int32_t *ids, size_t m, float *y, size_t ldy) {
    embedding e = {table, ids, m, ldy, y};
    if (m * table->cols <= PACK_ALONE) {
        embed_share(&e, 0, 1);
    } else {
        prg_pool_run(exec->pool, embed_share, &e);
    }
}
