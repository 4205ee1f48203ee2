#include "perigee/sys/kernel_set.h"
#include "support/exec.h"
#include "support/suite.h"

typedef struct sequence {
    size_t first, m; /* tokens of this call come after `first` cached ones */
    prg_latents cache;
    void **blocks;  /* [16] */
    float *latents; /* [first + m, width] as written */
} sequence;

typedef struct attend_case {
    prg_attention a;
    perigee_matrix kv_b;
    void *codes, *scales;
    float *q;
    size_t m;
} attend_case;

static attend_case make(size_t heads, size_t nope, size_t value, size_t rank, size_t rope, uint32_t dtype, size_t m) {
    attend_case c = {.m = m};
    size_t rows = heads * (nope + value), head = nope + rope;
    float *values = test_fill(rows * rank, -0.3f, 0.3f);
    c.codes = malloc(prg_dtype_matrix_bytes(dtype, rows, rank) + 64);
    c.scales = malloc(prg_dtype_matrix_bytes(dtype, rows, rank) + 64);
    prg_dtype_get(dtype)->encode(values, rows, rank, c.codes, c.scales);
    free(values);
    c.kv_b = prg_matrix_make(dtype, rows, rank, c.codes, c.scales);
    c.q = test_fill(m * heads * head, -1, 1);
    c.a = (prg_attention){.heads = heads,
                          .nope = nope,
                          .value = value,
                          .rank = rank,
                          .rope = rope,
                          .scale = 1 / sqrtf((float)head) * 1.3f,
                          .kv_b = NULL,
                          .q = c.q,
                          .ldq = heads * head,
                          .ldo = heads * value};
    return c;
}

static void drop(attend_case *c) {
    free(c->codes);
    free(c->scales);
    free(c->q);
}

static sequence make_sequence(const prg_exec *exec, const prg_attention *a, size_t first, size_t m, bool bf16) {
    size_t width = a->rank + a->rope, block = 128;
    sequence s = {.first = first, .m = m, .latents = test_fill((first + m) * width, -2, 2)};
    s.blocks = calloc(16, sizeof *s.blocks);
    for (size_t i = 0; i * block < first + m; i++) {
        s.blocks[i] = malloc(block * width * sizeof(float));
        memset(s.blocks[i], 0xff, block * width * sizeof(float)); /* NaN where nothing was written */
    }
    s.cache = (prg_latents){s.blocks, block, a->rank, a->rope, bf16};
    prg_latents_put(exec, &s.cache, s.latents, width, 0, first);
    prg_latents_put(exec, &s.cache, s.latents + first * width, width, first, m);
    for (size_t i = 0; bf16 && i < (first + m) * width; i++) {
        s.latents[i] = prg_bf16_to_f32(prg_f32_to_bf16(s.latents[i]));
    }
    return s;
}

static void drop_sequence(sequence *s) {
    for (size_t i = 0; i < 16; i++) {
        free(s->blocks[i]);
    }
    free(s->blocks);
    free(s->latents);
}

/* Expanded keys and values in double precision. */
static void reference(const attend_case *c, const sequence *s, size_t row, double *out) {
    const prg_attention *a = &c->a;
    size_t width = a->rank + a->rope, head = a->nope + a->rope, keys = s->first + s->m;
    double *k = malloc(keys * (a->nope + a->value) * sizeof *k), *p = malloc(keys * sizeof *p);
    float *w = malloc(a->rank * sizeof *w);
    for (size_t h = 0; h < a->heads; h++) {
        for (size_t r = 0; r < a->nope + a->value; r++) {
            prg_dtype_get(c->kv_b.dtype)->decode(&c->kv_b, h * (a->nope + a->value) + r, 0, a->rank, w);
            for (size_t t = 0; t < keys; t++) {
                double sum = 0;
                for (size_t i = 0; i < a->rank; i++) {
                    sum += (double)w[i] * (double)s->latents[t * width + i];
                }
                k[t * (a->nope + a->value) + r] = sum;
            }
        }
        for (size_t i = 0; i < s->m; i++) {
            const float *q = a->q + (row + i) * a->ldq + h * head;
            size_t sees = s->first + i + 1;
            double most = -1e300, sum = 0;
            for (size_t t = 0; t < sees; t++) {
                p[t] = 0;
                for (size_t j = 0; j < a->nope; j++) {
                    p[t] += (double)q[j] * k[t * (a->nope + a->value) + j];
                }
                for (size_t j = 0; j < a->rope; j++) {
                    p[t] += (double)q[a->nope + j] * (double)s->latents[t * width + a->rank + j];
                }
                p[t] *= (double)a->scale;
                most = fmax(most, p[t]);
            }
            for (size_t t = 0; t < sees; t++) {
                sum += p[t] = exp(p[t] - most);
            }
            for (size_t j = 0; j < a->value; j++) {
                double o = 0;
                for (size_t t = 0; t < sees; t++) {
                    o += p[t] / sum * k[t * (a->nope + a->value) + a->nope + j];
                }
                out[(row + i) * a->ldo + h * a->value + j] = o;
            }
        }
    }
    free(k);
    free(p);
    free(w);
}

static void attend(test_exec *e, const attend_case *c, size_t threads, const prg_attention_part *parts, size_t n,
                   size_t m, float *out) {
    prg_attention a = c->a;
    int64_t bytes = 0;
    a.kv_b = &c->kv_b;
    a.out = out;
    size_t scratch = prg_attend_scratch(e->table, threads, &a, m);
    test_exec_scratch(e, scratch);
    e->exec.weight_bytes = &bytes;
    ck_assert_int_eq(prg_attend(&e->exec, &a, parts, n, NULL), PERIGEE_OK);
    ck_assert_int_eq(bytes, (int64_t)prg_dtype_matrix_bytes(c->kv_b.dtype, c->kv_b.rows, c->kv_b.cols));
    ck_assert_uint_eq(e->scratch.peak, scratch);
}

/* Tables, and how near each is to the exact result: of the largest output. */
static const struct {
    const char *kernels, *precision;
    double most;
} tables[] = {{"scalar", "exact", 3e-6}, {"avx2", "exact", 3e-6},   {"avx512", "exact", 3e-6}, {"neon", "exact", 3e-6},
              {"amx", "exact", 3e-6},    {"amx", "balanced", 4e-5}, {"amx", "fast", 2e-2}};
enum { TABLES = sizeof tables / sizeof *tables };

static bool of_lanes(const test_exec *e) {
    return strcmp(prg_kernel_table_row(e->table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE)->numerics, "lanes16") == 0;
}

/* One sequence in chunks that cross tiles and blocks, all tables and threads: near the exact result, and bits that
 * neither chunks nor threads change, nor tables whose rows name the same order of sums. */
static void check(attend_case c, size_t first, bool bf16) {
    size_t w = c.a.heads * c.a.value;
    double *want = malloc(c.m * w * sizeof *want);
    float *of_set = NULL, *of_lanes16 = NULL;
    uint64_t seed = test_seed; /* the same for all */
    for (size_t s = 0; s < TABLES; s++) {
        for (size_t k = 0; k < 6; k++) {
            size_t threads = (size_t[]){1, 2, 5, 2, 1, 3}[k], chunk = (size_t[]){c.m, c.m, c.m, 1, 3, 7}[k];
            test_exec e;
            if (!test_exec_open_as(&e, tables[s].kernels, tables[s].precision, threads)) {
                continue;
            }
            test_seed = seed;
            sequence q = make_sequence(&e.exec, &c.a, first, c.m, bf16);
            if (k == 0) {
                reference(&c, &q, 0, want);
            }
            float *out = test_fill(c.m * w, 0, 1);
            for (size_t t = 0; t < c.m; t += chunk) {
                size_t m = c.m - t < chunk ? c.m - t : chunk;
                prg_attention_part part = {t, m, first + t, q.cache};
                attend(&e, &c, threads, &part, 1, m, out);
            }
            double error = test_error(out, want, c.m * w);
            ck_assert_msg(error < tables[s].most, "%s %s: %.2e", tables[s].kernels, tables[s].precision, error);
            ck_assert_msg(k == 0 || test_same_bits(out, of_set, c.m * w), "%s %s %zu", tables[s].kernels,
                          tables[s].precision, k);
            if (of_lanes(&e)) {
                of_lanes16 = of_lanes16 ? of_lanes16 : test_copy(out, c.m * w);
                ck_assert_msg(test_same_bits(out, of_lanes16, c.m * w), "%s", tables[s].kernels);
            }
            if (k == 0) {
                free(of_set);
                of_set = out;
            } else {
                free(out);
            }
            drop_sequence(&q);
            test_exec_close(&e);
        }
    }
    free(of_set);
    free(of_lanes16);
    free(want);
    drop(&c);
}

START_TEST(test_decode) {
    check(make(7, 24, 20, 40, 12, PERIGEE_DTYPE_F32, 5), 200, false);
    check(make(14, 32, 32, 64, 16, PERIGEE_DTYPE_BF16, 3), 61, false);
    check(make(17, 16, 16, 50, 14, PERIGEE_DTYPE_BF16, 4), 1000, false);
    check(make(48, 16, 16, 64, 32, PERIGEE_DTYPE_BF16, 2), 300, true);
}
END_TEST

/* The last key is the first, the last or the only one of a tile, a step, a block. */
START_TEST(test_edges) {
    for (size_t i = 0; i < 10; i++) {
        size_t keys = (size_t[]){1, 2, 63, 64, 65, 127, 128, 129, 256, 257}[i];
        check(make((size_t[]){1, 3, 17}[i % 3], 8, 8, 33, 7, PERIGEE_DTYPE_F32, 1), keys - 1, i % 2 == 1);
    }
}
END_TEST

START_TEST(test_prefill) {
    check(make(3, 24, 20, 40, 12, PERIGEE_DTYPE_F32, 200), 0, false);
    check(make(2, 17, 9, 21, 6, PERIGEE_DTYPE_F32, 70), 130, false);
    check(make(2, 16, 16, 128, 64, PERIGEE_DTYPE_BF16, 33), 40, false);
    check(make(1, 16, 16, 32, 0, PERIGEE_DTYPE_BF16, 150), 200, true);
}
END_TEST

START_TEST(test_stored_forms) {
    check(make(3, 32, 16, 64, 16, PERIGEE_DTYPE_F16, 20), 50, false);
    check(make(2, 128, 128, 256, 16, PERIGEE_DTYPE_FP8, 5), 70, false);
    check(make(3, 32, 16, 64, 0, PERIGEE_DTYPE_INT4, 20), 50, false);
}
END_TEST

START_TEST(test_bf16_cache) {
    check(make(5, 24, 20, 40, 12, PERIGEE_DTYPE_F32, 9), 190, true);
    check(make(5, 32, 20, 64, 16, PERIGEE_DTYPE_BF16, 66), 0, true);
}
END_TEST

/* Four sequences of 1, 30, 0 and 3 tokens in one call, with caches of 150, 0, 5 and 64: each as when alone, for every
 * table. One sequence has values that would drown the others. */
START_TEST(test_parts) {
    enum { HEADS = 8, ROWS = 34 };
    attend_case c = make(HEADS, 24, 20, 40, 12, PERIGEE_DTYPE_BF16, ROWS);
    const size_t first[4] = {150, 0, 5, 64}, m[4] = {1, 30, 0, 3}, row[4] = {0, 1, 31, 31};
    size_t w = HEADS * 20;
    for (size_t s = 0; s < TABLES * 2; s++) {
        size_t threads = 1 + s % 2 * 2;
        test_exec e;
        if (!test_exec_open_as(&e, tables[s / 2].kernels, tables[s / 2].precision, threads)) {
            continue;
        }
        sequence q[4];
        prg_attention_part parts[4];
        for (size_t p = 0; p < 4; p++) {
            q[p] = make_sequence(&e.exec, &c.a, first[p], m[p], false);
            parts[p] = (prg_attention_part){row[p], m[p], first[p], q[p].cache};
        }
        float *together = test_fill(ROWS * w, 0, 1), *alone = test_fill(ROWS * w, 0, 1);
        attend(&e, &c, threads, parts, 4, ROWS, together);
        for (size_t p = 0; p < 4; p++) {
            if (m[p]) {
                attend(&e, &c, threads, parts + p, 1, m[p], alone);
            }
        }
        ck_assert(test_same_bits(together, alone, ROWS * w));
        double *want = malloc(ROWS * w * sizeof *want);
        for (size_t p = 0; p < 4; p++) {
            reference(&c, &q[p], row[p], want);
            drop_sequence(&q[p]);
        }
        ck_assert_double_lt(test_error(together, want, ROWS * w), tables[s / 2].most);
        free(want);
        free(together);
        free(alone);
        test_exec_close(&e);
    }
    drop(&c);
}
END_TEST

static int32_t never(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                     size_t m, float *y, size_t ldy) {
    (void)w, (void)first, (void)count, (void)x, (void)ldx, (void)m, (void)y, (void)ldy;
    ++*(int *)user;
    return 1;
}

/* A host's product runs on the calling thread only: attention, which multiplies on all, keeps the library's own. */
START_TEST(test_host_rows) {
    int calls = 0;
    perigee_kernel_row row = {.struct_size = sizeof row,
                              .op = PERIGEE_OP_MATMUL,
                              .flags = PERIGEE_KERNEL_HOST,
                              .name = "mine",
                              .isa = "host",
                              .numerics = "mine",
                              .row_tile = 1,
                              .token_tile = 1,
                              .user = &calls,
                              .run.matmul = {.host = never}};
    perigee_kernel_set *set;
    ck_assert_int_eq(perigee_kernel_set_new(&set, NULL), PERIGEE_OK);
    const uint32_t forms[3] = {PERIGEE_DTYPE_F32, PERIGEE_DTYPE_BF16, PERIGEE_DTYPE_FP8};
    for (int i = 0; i < 2; i++) {
        row.dtype = forms[i];
        ck_assert_int_eq(perigee_kernel_set_add(set, &row, NULL, NULL), PERIGEE_OK);
    }
    for (int i = 0; i < 3; i++) {
        attend_case c = make(3, 16, 8, 32, 16, forms[i], 4);
        float out[2][4 * 3 * 8];
        for (int k = 0; k < 2; k++) {
            test_exec e;
            ck_assert(test_exec_open(&e, "scalar", 2));
            if (k == 1) {
                prg_kernel_table_free(e.table);
                ck_assert_int_eq(prg_kernel_table_new(e.allocator, "scalar", "exact", "", set, &e.table, NULL),
                                 PERIGEE_OK);
                e.exec.table = e.table;
            }
            uint64_t seed = test_seed;
            sequence s = make_sequence(&e.exec, &c.a, 3, 4, false);
            prg_attention_part part = {0, 4, 3, s.cache};
            attend(&e, &c, 2, &part, 1, 4, out[k]);
            drop_sequence(&s);
            test_exec_close(&e);
            test_seed = seed;
        }
        ck_assert(test_same_bits(out[0], out[1], 4 * 3 * 8));
        drop(&c);
    }
    ck_assert_int_eq(calls, 0);
    perigee_kernel_set_free(set);
}
END_TEST

/* The tile alone: rows of one table against those of the plain one, bit for bit, over several tiles. */
START_TEST(test_tables_agree) {
    enum { ROWS = 13, RANK = 72, ROPE = 20, W = RANK + ROPE, TILES = 3, LDZ = 80 };
    float *q = test_fill(18 * W, -1, 1), *latent = test_fill(TILES * 64 * W, -1, 1), first[ROWS * (LDZ + 2)];
    for (size_t i = 0; i < W; i++) {
        for (size_t j = 1; j < 6; j++) {
            q[12 * W + i * 6 + j] = 0;
        }
    }
    for (size_t s = 0; s < TEST_SETS; s++) {
        test_exec e;
        if (!test_exec_open(&e, test_sets[s], 1)) {
            continue;
        }
        const perigee_attention_functions *f =
            &prg_kernel_table_row(e.table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE)->run.attention;
        if (!f->tile) {
            test_exec_close(&e);
            continue;
        }
        float state[ROWS * (LDZ + 2)] = {0};
        float *scratch = malloc((128 * W + 64 * (ROWS + 6)) * sizeof(float));
        for (size_t i = 0; i < ROWS; i++) {
            state[ROWS * LDZ + i] = -INFINITY;
        }
        for (size_t k = 0; k < TILES; k++) {
            uint32_t visible[ROWS];
            for (uint32_t i = 0; i < ROWS; i++) {
                visible[i] = k + 1 < TILES ? 64 : i < 2 ? 0 : 3 * i;
            }
            perigee_attention_tile tile = {RANK,
                                           ROPE,
                                           ROWS,
                                           q,
                                           0.4f,
                                           0,
                                           latent + k * 64 * W,
                                           k + 1 < TILES ? 64 : 37,
                                           visible,
                                           state + ROWS * LDZ,
                                           state + ROWS * (LDZ + 1),
                                           state,
                                           scratch,
                                           NULL};
            f->tile(&tile);
        }
        if (s == 0) {
            memcpy(first, state, sizeof first);
        }
        ck_assert(test_same_bits(first, state, ROWS * (LDZ + 2)));
        free(scratch);
        test_exec_close(&e);
    }
    free(q);
    free(latent);
}
END_TEST

/* Queries and latents of a walk, and what the walk gives. */
typedef struct walk_case {
    size_t rank, rope, rows, keys;
    bool bf16;
    float scale;
    const float *q, *values; /* latents as float32 numbers */
    const uint32_t *visible; /* of all keys */
} walk_case;

static void walk(const perigee_attention_functions *f, const walk_case *c, float *z) {
    size_t width = c->rank + c->rope, bytes = f->work_bytes(c->rank, c->rope, c->rows);
    void *work = NULL;
    uint32_t *visible = malloc(c->rows * sizeof *visible);
    test_require(posix_memalign(&work, 64, bytes) == 0);
    memset(work, 0xff, bytes);
    perigee_attention_walk w = {.rank = c->rank,
                                .rope = c->rope,
                                .rows = c->rows,
                                .scale = c->scale,
                                .bf16 = c->bf16,
                                .work = work,
                                .q = c->q,
                                .ldq = width,
                                .visible = visible,
                                .z = z,
                                .ldz = c->rank};
    f->begin(&w);
    for (size_t key = 0; key < c->keys; key += 256) {
        void *tile[4];
        const void *latents[4];
        w.keys = c->keys - key < 256 ? c->keys - key : 256;
        for (size_t i = 0; i * 64 < w.keys; i++) { /* of just the bytes that there are, so that a read behind shows */
            size_t n = w.keys - i * 64 < 64 ? w.keys - i * 64 : 64;
            tile[i] = malloc(n * width * (c->bf16 ? 2 : 4));
            for (size_t j = 0; j < n * width; j++) {
                float x = c->values[(key + i * 64) * width + j];
                if (c->bf16) {
                    ((uint16_t *)tile[i])[j] = prg_f32_to_bf16(x);
                } else {
                    ((float *)tile[i])[j] = x;
                }
            }
            latents[i] = tile[i];
        }
        for (size_t i = 0; i < c->rows; i++) {
            size_t sees = c->visible[i] < key ? 0 : c->visible[i] - key;
            visible[i] = (uint32_t)(sees < w.keys ? sees : w.keys);
        }
        w.latents = latents;
        f->step(&w);
        for (size_t i = 0; i * 64 < w.keys; i++) {
            free(tile[i]);
        }
    }
    f->end(&w);
    free(visible);
    free(work);
}

/* Errors of scores are counted by what they do to z: with p the softmax, z moves by p (v - z) for each. */
static void check_walk(const perigee_kernel_row *row, const walk_case *c, const float *z) {
    size_t width = c->rank + c->rope;
    double *p = malloc(c->keys * sizeof *p), *size = malloc(c->keys * sizeof *size);
    for (size_t r = 0; r < c->rows; r++) {
        double most = -INFINITY, sum = 0;
        for (size_t t = 0; t < c->visible[r]; t++) {
            double squares = 0;
            p[t] = 0;
            for (size_t i = 0; i < width; i++) {
                double x = (double)c->q[r * width + i] * (double)c->values[t * width + i] * (double)c->scale;
                p[t] += x;
                squares += x * x;
            }
            size[t] = sqrt(squares);
            most = fmax(most, p[t]);
        }
        for (size_t t = 0; t < c->visible[r]; t++) {
            sum += p[t] = exp(p[t] - most);
        }
        for (size_t i = 0; i < c->rank; i++) {
            double exact = 0, squares = 0, moved = 0;
            for (size_t t = 0; t < c->visible[r]; t++) {
                exact += p[t] / sum * (double)c->values[t * width + i];
            }
            for (size_t t = 0; t < c->visible[r]; t++) {
                double v = (double)c->values[t * width + i];
                squares += p[t] / sum * p[t] / sum * v * v;
                moved += p[t] / sum * fabs(v - exact) * size[t];
            }
            double off = fabs((double)z[r * c->rank + i] - exact), unit = sqrt(squares) + moved;
            ck_assert_msg(off <= row->error_bound * unit, "%s: %zu keys, row %zu, column %zu: off by %.2e", row->name,
                          c->keys, r, i, off / unit);
        }
    }
    free(p);
    free(size);
}

/* All kernel rows that walk, alone: within what they say, from small scores to such that one key takes all; no bit
 * depends on the rows beside, on what lies in hidden keys, or on what the work held. */
START_TEST(test_walks) {
    const walk_case cases[] = {{512, 64, 17, 1000, false, 0.07f, NULL, NULL, NULL},
                               {512, 64, 33, 300, true, 0.07f, NULL, NULL, NULL},
                               {40, 13, 3, 65, false, 1.0f, NULL, NULL, NULL},
                               {72, 0, 16, 129, true, 6.0f, NULL, NULL, NULL},
                               {31, 33, 50, 257, false, 0.3f, NULL, NULL, NULL}};
    for (size_t n = 0; n < TABLES; n++) {
        test_exec e;
        if (!test_exec_open_as(&e, tables[n].kernels, tables[n].precision, 1)) {
            continue;
        }
        const perigee_kernel_row *row = prg_kernel_table_row(e.table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE);
        const perigee_attention_functions *f = &row->run.attention;
        for (size_t k = 0; f->work_bytes && k < sizeof cases / sizeof *cases; k++) {
            walk_case c = cases[k];
            size_t width = c.rank + c.rope;
            float *q = test_fill(c.rows * width, -1, 1), *values = test_fill(c.keys * width, -2, 2);
            float *z = test_fill(c.rows * c.rank, 0, 1), *other = test_fill(c.rows * c.rank, 0, 1);
            uint32_t *visible = malloc(c.rows * sizeof *visible);
            for (size_t i = 0; i < c.rows; i++) {
                visible[i] = (uint32_t)(i % 3 == 2 ? c.keys : 1 + test_random() % c.keys);
            }
            for (size_t i = 0; c.bf16 && i < c.keys * width; i++) {
                values[i] = prg_bf16_to_f32(prg_f32_to_bf16(values[i]));
            }
            c.q = q;
            c.values = values;
            c.visible = visible;
            walk(f, &c, z);
            check_walk(row, &c, z);
            for (size_t i = 0; i < c.rows; i++) { /* one after the other, with other latents where it does not look */
                walk_case one = c;
                float *changed = test_copy(values, c.keys * width);
                for (size_t j = visible[i] * width; j < c.keys * width; j++) {
                    changed[j] = -3 * changed[j];
                }
                one.rows = 1;
                one.q = q + i * width;
                one.visible = visible + i;
                one.values = changed;
                walk(f, &one, other);
                ck_assert_msg(test_same_bits(other, z + i * c.rank, c.rank), "%s: case %zu, row %zu", row->name, k, i);
                if (i < 9 && of_lanes(&e)) { /* and beside rows to which what it does not see is no number */
                    for (size_t j = visible[i] * width; j < c.keys * width; j++) {
                        changed[j] = NAN;
                    }
                    one = c;
                    one.values = changed;
                    walk(f, &one, other);
                    ck_assert(test_same_bits(other + i * c.rank, z + i * c.rank, c.rank));
                }
                free(changed);
            }
            free(q);
            free(values);
            free(z);
            free(other);
            free(visible);
        }
        test_exec_close(&e);
    }
}
END_TEST

PRG_SUITE("attention", NULL, NULL, test_decode, test_edges, test_prefill, test_stored_forms, test_bf16_cache,
          test_parts, test_host_rows, test_tables_agree, test_walks)
