/* Where a pass spends its time: each half of every layer, the head and what lies between, with the bytes of weights
 * that they read, beside a plain read loop on all threads before and after each round: bench_step MODEL [rows]
 * [threads] [precision] [rounds] `rows` 1 is a decode step behind a prompt of 64; more is a prefill of one chunk from
 * an empty session. */
#include <string.h>

#include "base/error.h"
#include "layers/layers.h"
#include "limits.h"
#include "perigee/perigee.h"
#include "session/session.h"

enum { PROMPT = 64, PARTS_MOST = 4096, READ_BYTES = 512 << 20, ROUNDS_MOST = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void require(perigee_status status, perigee_error *err) {
    if (status != PERIGEE_OK) {
        fprintf(stderr, "%s: %s\n", perigee_status_name(status), perigee_error_message(err));
        exit(1);
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* A part of the pass: seconds of every round, bytes of one. */
typedef struct part {
    char name[32];
    double seconds[ROUNDS_MOST];
    int64_t bytes;
} part;

static part parts[PARTS_MOST];
static size_t part_count, at_part, round_at;
static int64_t bytes_read;

static void note(const char *name, double seconds, int64_t bytes) {
    part *p = &parts[at_part++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->seconds[round_at] = seconds;
    p->bytes = bytes;
    part_count = at_part > part_count ? at_part : part_count;
}

#define TIMED(name, call)                                                                                              \
    do {                                                                                                               \
        const int64_t bytes_ = bytes_read;                                                                             \
        const double from_ = now();                                                                                    \
        call;                                                                                                          \
        note(name, now() - from_, bytes_read - bytes_);                                                                \
    } while (0)

static unsigned char *read_buffer;

static void read_share(void *argument, size_t index, size_t count) {
    (void)argument;
    const size_t each = READ_BYTES / count / 256 * 256;
    limit_read(read_buffer + index * each, each);
}

static double read_rate(prg_pool *pool) {
    const double from = now();
    for (int i = 0; i < 3; i++) {
        prg_pool_run(pool, read_share, NULL);
    }
    return 3.0 * READ_BYTES / (now() - from);
}

static void run_layer(prg_pass *pass, const prg_layer *layer, float *x, float *normed, float *y) {
    const size_t m = pass->m, n = pass->hidden;
    perigee_error *err = NULL;
    require(prg_store_pin(pass->store, layer->group, &err), err);
    TIMED("norms, sums, checks", prg_rms_norm(&pass->exec, x, n, layer->input_norm, m, n, 1e-5f, normed, n));
    if (layer->is_kda) {
        TIMED("KDA", require(prg_layer_kda(pass, &layer->attention.kda, normed, y, &err), err));
    } else {
        TIMED("MLA", require(prg_layer_mla(pass, &layer->attention.mla, normed, y, &err), err));
    }
    TIMED("norms, sums, checks", prg_rms_norm(&pass->exec, x, n, layer->ffn_norm, m, n, 1e-5f, normed, n));
    if (layer->is_moe) {
        TIMED("MoE", require(prg_layer_moe(pass, &layer->ffn.moe, layer->act, normed, y, &err), err));
    } else {
        TIMED("MLP", require(prg_layer_mlp(pass, &layer->ffn.mlp, layer->act, normed, y, &err), err));
    }
    TIMED("norms, sums, checks", prg_add_rows(&pass->exec, normed, n, m, n, y, n));
    TIMED("norms, sums, checks", prg_first_not_finite(&pass->exec, x, n, m, n));
    prg_store_release(pass->store, layer->group);
}

/* Rows of noise go through the layers, each from the same input: a random model's sums may grow. */
static void run_pass(perigee_session *s, size_t rows, size_t first) {
    perigee_model *model = s->model;
    perigee_context *context = model->context;
    const size_t n = (size_t)model->config.hidden, vocabulary = (size_t)model->config.vocabulary;
    float *x = malloc(rows * n * sizeof *x), *normed = malloc(rows * n * sizeof *x), *y = calloc(rows * n, sizeof *y);
    float *logits = malloc(vocabulary * sizeof *logits);
    int64_t *position = malloc(rows * sizeof *position);
    uint32_t noise = (uint32_t)round_at;
    for (size_t i = 0; i < rows * n; i++) {
        noise = noise * 1664525u + 1013904223u;
        x[i] = (float)(noise >> 8) / 8388608.0f - 1;
    }
    for (size_t i = 0; i < rows; i++) {
        position[i] = (int64_t)(first + i);
    }
    prg_segment segment = {.row = 0, .m = rows, .first = first};
    prg_pass pass = {.exec = {context->table, context->pool, &context->scratch, &bytes_read},
                     .store = model->store,
                     .hidden = n,
                     .m = rows,
                     .position = position,
                     .segments = &segment,
                     .n = 1};
    size_t mla = 0, kda = 0;
    perigee_error *err = NULL;
    at_part = 0;
    for (int64_t i = 0; i < model->config.layers; i++) {
        const prg_layer *layer = &model->layers[i];
        if (layer->is_kda) {
            float *live = s->state.copy[s->state.live] + kda * s->state.floats;
            float *other = s->state.copy[!s->state.live] + kda * s->state.floats;
            segment.state = live;
            segment.next = rows == 1 ? live : other;
            segment.next_tail = other + prg_kda_square_floats(&s->state.sizes);
            kda++;
        } else {
            segment.cache = prg_cache_layer(&s->cache, mla++);
        }
        run_layer(&pass, layer, x, normed, y);
    }
    require(prg_store_pin(model->store, model->head_group, &err), err);
    const perigee_matrix head = prg_store_matrix(model->store, &model->head);
    const prg_matmul_job job = {&head, 0, head.rows, {normed, n, 1, n, NULL}, logits, head.rows};
    TIMED("head", require(prg_matmul(&pass.exec, &job, 1, &err), err));
    TIMED("norms, sums, checks", prg_first_not_finite(&pass.exec, logits, vocabulary, 1, vocabulary));
    prg_store_release(model->store, model->head_group);
    free(x);
    free(normed);
    free(y);
    free(logits);
    free(position);
}

static void report(size_t rounds, double limit) {
    double whole = 0;
    for (size_t i = 0; i < part_count; i++) {
        whole += median(parts[i].seconds, rounds);
    }
    printf("%-24s %9s %7s %9s %8s %14s\n", "", "ms", "share", "MB", "GB/s", "of read loop");
    int64_t all = 0;
    for (size_t i = 0; i < part_count; i++) {
        double seconds = 0;
        int64_t bytes = 0;
        size_t count = 0;
        for (size_t j = 0; j < part_count; j++) {
            if (strcmp(parts[i].name, parts[j].name) == 0) {
                if (j < i) {
                    count = 0;
                    break;
                }
                seconds += parts[j].seconds[rounds / 2];
                bytes += parts[j].bytes;
                count++;
            }
        }
        if (count > 0) {
            all += bytes;
            printf("%-20s x%-3zu %8.2f %6.1f%% %9.1f %8.2f %12.1f %%\n", parts[i].name, count, seconds * 1e3,
                   100 * seconds / whole, (double)bytes * 1e-6, (double)bytes / seconds * 1e-9,
                   100 * (double)bytes / seconds / limit);
        }
    }
    printf("%-24s %8.2f %6.1f%% %9.1f %8.2f %12.1f %%\n", "all", whole * 1e3, 100.0, (double)all * 1e-6,
           (double)all / whole * 1e-9, 100 * (double)all / whole / limit);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "bench_step MODEL [rows] [threads] [precision] [rounds]\n");
        return 2;
    }
    const size_t rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, threads = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    size_t rounds = argc > 5 ? strtoul(argv[5], NULL, 10) : 9;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
    perigee_options *options = NULL;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    perigee_session *session = NULL;
    perigee_error *err = NULL;
    require(perigee_options_new(&options, &err), err);
    require(perigee_options_set_int(options, PERIGEE_OPTION_THREADS, (int64_t)threads, &err), err);
    require(perigee_options_set_text(options, "precision", argc > 4 ? argv[4] : "exact", &err), err);
    require(perigee_context_new(options, NULL, NULL, NULL, &context, &err), err);
    perigee_options_free(options);
    require(perigee_model_load(context, argv[1], SIZE_MAX, NULL, NULL, NULL, NULL, &model, &err), err);
    require(perigee_options_new(&options, &err), err);
    char chunk[24];
    snprintf(chunk, sizeof chunk, "%zu", rows > PROMPT ? rows : PROMPT);
    require(perigee_options_set_text(options, "chunk", chunk, &err), err);
    require(perigee_options_set_text(options, "context", "4096", &err), err);
    require(perigee_session_new(model, options, &session, &err), err);
    perigee_options_free(options);

    int32_t tokens[PROMPT];
    for (int i = 0; i < PROMPT; i++) {
        tokens[i] = i + 7;
    }
    require(perigee_decode_step(session, tokens, PROMPT, PERIGEE_LOGITS_NONE, NULL, NULL, NULL, &err), err);
    const size_t first = rows == 1 ? session->position : 0;
    require(prg_cache_reserve(&session->cache, first, rows, session->position, &err), err);
    read_buffer = limit_buffer(READ_BYTES);
    require(prg_pool_enter(context->pool, &err), err);
    run_pass(session, rows, first);
    double limits[ROUNDS_MOST + 1];
    limits[0] = read_rate(context->pool);
    for (round_at = 0; round_at < rounds; round_at++) {
        run_pass(session, rows, first);
        limits[round_at + 1] = read_rate(context->pool);
    }
    prg_pool_leave(context->pool);
    const double limit = median(limits, rounds + 1);
    printf("%zu rows, %zu threads, %s, medians of %zu; read loop %.2f GB/s\n", rows, threads,
           argc > 4 ? argv[4] : "exact", rounds, limit * 1e-9);
    report(rounds, limit);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    return 0;
}
