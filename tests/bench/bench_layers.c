/* Recurrence and the small ops at the widths of K3, attention at the heads of K3, K2 and Moonlight, each as a share of
 * a limit measured beside it: bench_layers [threads] [kernels] [kda|attention|prefill|small|all] [precision] */
#include "limits.h"
#include "support/exec.h"

enum { HEADS = 96, DIM = 128, W = HEADS * DIM, LAYERS = 69 };

static size_t threads = 1;
static const char *kernels = "auto";

/* Of this thread's processor time if it is the only one, as the limits are. */
static double now(void) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define BEST(best, repeat, ...)                                                                                        \
    double best = 1e9;                                                                                                 \
    for (int run_ = 0; run_ < (repeat); run_++) {                                                                      \
        double from_ = now();                                                                                          \
        __VA_ARGS__;                                                                                                   \
        from_ = now() - from_;                                                                                         \
        best = from_ < best ? from_ : best;                                                                            \
    }

/* Multiply-adds a second of one thread on registers alone, for the widest vectors of the set. */
static double rate(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && strcmp(kernels, "avx2") != 0) {
        return limit_f32();
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? limit_f32_avx2() : 0;
#else
    return 0;
#endif
}

#if defined(__x86_64__)
/* Multiply-adds a second of one thread on four tiles of AMX; the table in use has leave for them. */
static double tile_rate(void) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t columns[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    const int rounds = 20000;
    double best = 1e9;
    for (size_t i = 0; i < 8; i++) {
        shape.columns[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
    for (int i = 0; i < 5; i++) {
        double from = limit_seconds();
        for (int j = 0; j < rounds; j++) {
            __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n\ttdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
                             "tdpbf16ps %tmm6, %tmm5, %tmm2\n\ttdpbf16ps %tmm7, %tmm5, %tmm3");
        }
        from = limit_seconds() - from;
        best = from < best ? from : best;
    }
    __asm__ volatile("tilerelease");
    return 4.0 * 16 * 16 * 32 * rounds / best;
}
#endif

/* The other rates that attention may be held against; 0: not there, or not in this table. */
static void other_rates(const prg_kernel_table *table, double *bf16, double *tiles) {
    *bf16 = *tiles = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bf16")) {
        *bf16 = limit_bf16();
    }
    if (strcmp(prg_kernel_table_row(table, PERIGEE_OP_ATTENTION, PERIGEE_DTYPE_NONE)->isa, "amx_bf16") == 0) {
        *tiles = tile_rate();
    }
#else
    (void)table;
#endif
}

typedef struct update_call {
    float *x;
    size_t n;
} update_call;

static void update_part(void *argument, size_t index, size_t count) {
    update_call *c = argument;
    size_t each = c->n / count / 64 * 64;
    limit_update(c->x + index * each, each);
}

static void bench_kda(const prg_exec *exec) {
    prg_kda kda = {HEADS, DIM, test_fill(HEADS, 0.5f, 1), test_fill(W, -1, 1), true, -5};
    size_t floats = prg_kda_state_floats(&kda), all = floats * LAYERS;
    float *state = limit_buffer(all * sizeof(float)), *next = limit_buffer(all * sizeof(float));
    enum { M = 512 };
    float *q = test_fill((size_t)M * W, -1, 1), *k = test_fill((size_t)M * W, -1, 1),
          *v = test_fill((size_t)M * W, -1, 1);
    float *f = test_fill((size_t)M * W, -1, 1), *beta = test_fill((size_t)M * HEADS, -2, 2);
    float *out = test_fill((size_t)M * W, 0, 1);
    prg_kda_input in = {q, k, v, f, W, beta, HEADS, out, W};
    for (int round = 0; round < 3; round++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            update_call u = {state, all};
            BEST(limit, 3, prg_pool_run(exec->pool, update_part, &u));
            BEST(
                t, 3, for (size_t l = 0; l < LAYERS; l++) {
                    prg_kda_part part = {0, 1, state + l * floats, (in_place ? state : next) + l * floats, NULL};
                    prg_kda_run(exec, &kda, &in, &part, 1);
                });
            printf("kda decode %s: %.2f ms, %.1f GB/s = %.1f %% of an in-place loop (%.1f GB/s)\n",
                   in_place ? "in place" : "to next ", t * 1e3, 8e-9 * (double)all / t, 100 * limit / t,
                   8e-9 * (double)all / limit);
        }
    }
    prg_kda_part part = {0, M, state, next, NULL};
    BEST(t, 3, prg_kda_run(exec, &kda, &in, &part, 1));
    printf("kda prefill of %d: %.3f us a token and head and thread, %.1f us a token\n", M,
           t / M / HEADS * 1e6 * (double)threads, t / M * 1e6);
}

static void bench_attention(test_exec *e, const char *model, size_t heads, size_t keys, bool bf16, size_t m) {
    enum { RANK = 512, ROPE = 64, NOPE = 128, VALUE = 128, BLOCK = 1024 };
    size_t width = RANK + ROPE, size = bf16 ? 2 : 4, rows = heads * (NOPE + VALUE);
    prg_attention a = {heads, NOPE, VALUE, RANK, ROPE, 0.07f, NULL, NULL, heads * (NOPE + ROPE), NULL, heads * VALUE};
    float *latents = test_fill(width, -1, 1), *q = test_fill(m * a.ldq, -1, 1), *out = test_fill(m * a.ldo, 0, 1);
    uint16_t *codes = limit_buffer(rows * RANK * 2);
    for (size_t i = 0; i < rows * RANK; i++) {
        codes[i] = prg_f32_to_bf16(test_even(-0.05f, 0.05f));
    }
    perigee_matrix kv_b = prg_matrix_make(PERIGEE_DTYPE_BF16, rows, RANK, codes, NULL);
    size_t blocks = (keys + BLOCK - 1) / BLOCK;
    unsigned char *memory = limit_buffer(blocks * BLOCK * width * size);
    void **block = malloc(blocks * sizeof *block);
    for (size_t i = 0; i < blocks; i++) {
        block[i] = memory + i * BLOCK * width * size;
    }
    prg_attention_part part = {0, m, keys - m, {block, BLOCK, RANK, ROPE, bf16}};
    for (size_t i = 0; i < keys; i++) {
        latents[i % width] = test_even(-1, 1);
        prg_latents_put(&e->exec, &part.cache, latents, width, i, 1);
    }
    a.kv_b = &kv_b;
    a.q = q;
    a.out = out;
    test_exec_scratch(e, prg_attend_scratch(e->table, threads, &a, m));
    double before = rate();
    BEST(t, 3, prg_attend(&e->exec, &a, &part, 1, NULL));
    double after = rate(), limit = (before > after ? before : after) * (double)threads, seen = 0;
    for (size_t i = 0; i < m; i++) {
        seen += (double)(keys - m + i + 1);
    }
    double work = (seen * (double)(width + RANK) + (double)m * (NOPE + VALUE) * RANK) * (double)heads;
    double bf16_rate, tiles;
    other_rates(e->table, &bf16_rate, &tiles);
    printf("%-9s %3zu over %5zu keys, %s: %7.2f ms, %4.0f GFLOP/s, cache at %4.1f GB/s; %3.0f %% of float32", model, m,
           keys, bf16 ? "bf16" : "f32 ", t * 1e3, 2e-9 * work / t, 1e-9 * (double)(keys * width * size) / t,
           100 * work / t / limit);
    if (bf16_rate > 0) {
        printf(", %3.0f %% of vdpbf16ps", 100 * work / t / bf16_rate / (double)threads);
    }
    if (tiles > 0) {
        printf(", %2.0f %% of tiles", 100 * work / t / tiles / (double)threads);
    }
    printf("; scratch %.2f MB a thread\n", 1e-6 * (double)prg_attend_scratch(e->table, 1, &a, m));
    free(latents);
    free(q);
    free(out);
    munmap(codes, rows * RANK * 2);
    free(block);
    munmap(memory, blocks * BLOCK * width * size);
}

static void bench_small(const prg_exec *exec) {
    enum { WIDE = 7168, SOURCES = 9 };
    float *x = test_fill((size_t)3 * W, -1, 1), *y = test_fill((size_t)3 * W, -1, 1), *gain = test_fill(3 * W, 1, 2);
    float *taps = test_fill((size_t)12 * W, -1, 1), *history = test_fill((size_t)9 * W, -1, 1),
          *next = test_fill((size_t)9 * W, -1, 1);
    float *logits = test_fill(896, -2, 2), weight[16];
    const float *sources[SOURCES];
    uint32_t chosen[16];
    prg_router r = {896, 16, 1, 1, false, true, 1, gain};
    for (size_t i = 0; i < SOURCES; i++) {
        sources[i] = test_fill(WIDE, -1, 1);
    }
    const perigee_gated_functions *act = &prg_kernel_table_row(exec->table, PERIGEE_OP_GATED_ACTIVATION, 0)->run.gated;
    enum { N = 2000 };
#define EACH(label, ...)                                                                                               \
    do {                                                                                                               \
        BEST(                                                                                                          \
            t, 3, for (int i = 0; i < N; i++) { __VA_ARGS__; });                                                       \
        printf("%s: %.2f us\n", label, t / N * 1e6);                                                                   \
    } while (0)
    EACH("rms norm of 7168", prg_rms_norm(exec, x, WIDE, gain, 1, WIDE, 1e-5f, y, WIDE));
    EACH("gated norm of 96 x 128", prg_rms_norm_gated(exec, x, W, gain, x + W, W, 1, HEADS, DIM, 1e-5f, y, W));
    EACH("residual mix of 9 x 7168", prg_residual_mix(exec, sources, SOURCES, WIDE, gain, 1, WIDE, 1e-5f, y, WIDE));
    EACH("convolution of 3 x 12288", prg_short_conv(exec, taps, 4, history, next, x, 3 * W, 1, 3 * W, y, 3 * W));
    EACH("SiTU of 6144", act->gated(x, x + 6144, 6144, 1, 4, 25, y));
    EACH("SwiGLU of 6144", act->gated(x, x + 6144, 6144, 0, 0, 0, y));
    EACH("router of 896, 16", memcpy(logits, x, 896 * sizeof *x); prg_route(exec, &r, logits, 1, chosen, weight));
    EACH("empty section", prg_pool_run(exec->pool, update_part, &(update_call){x, 0}));
}

int main(int argc, char **argv) {
    threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    kernels = argc > 2 ? argv[2] : "auto";
    const char *which = argc > 3 ? argv[3] : "all";
    bool all = strcmp(which, "all") == 0;
    const char *precision = argc > 4 ? argv[4] : "exact";
    test_exec e;
    if (!test_exec_open_as(&e, kernels, precision, threads)) {
        printf("%s: not on this processor\n", kernels);
        return 1;
    }
    static const struct {
        const char *name;
        size_t heads;
    } models[] = {{"K3", 96}, {"K2", 64}, {"Moonlight", 16}};
    for (size_t i = 0; i < 3 && (all || strcmp(which, "attention") == 0); i++) {
        for (size_t j = 0; j < 4; j++) {
            bench_attention(&e, models[i].name, models[i].heads, j < 2 ? 4096 : 32768, j % 2, 1);
        }
    }
    for (size_t i = 0; i < 3 && (all || strcmp(which, "prefill") == 0); i++) {
        bench_attention(&e, models[i].name, models[i].heads, 512, false, 512);
        bench_attention(&e, models[i].name, models[i].heads, 512, true, 512);
    }
    if (all || strcmp(which, "small") == 0) {
        bench_small(&e.exec);
    }
    if (all || strcmp(which, "kda") == 0) {
        bench_kda(&e.exec);
    }
    test_exec_close(&e);
    return 0;
}
