/* Saving and loading a large session, against plain copies of as many bytes in the same run:
 *     bench_state MODEL [megabytes] [folder]
 * MODEL is any checkpoint, as tests/fixtures/golden/moonlight: its latents are given Moonlight's shape (27 layers of
 * 576 bfloat16) and are never computed. The folder is for the file; "" leaves files out. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perigee/state.h"
#include "session/session.h"

enum { LAYERS = 27, RANK = 512, ROPE = 64, REPEAT = 5 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void require(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

/* The compiler may not leave out what was written there. */
static void keep(const void *bytes) {
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of an action and of its limit, in turn; the median of their quotients. */
typedef struct pairs {
    double quotient[REPEAT], best, best_limit;
    int n;
} pairs;

static void add_pair(pairs *p, double limit, double seconds) {
    p->quotient[p->n++] = limit / seconds;
    p->best = p->n == 1 || seconds < p->best ? seconds : p->best;
    p->best_limit = p->n == 1 || limit < p->best_limit ? limit : p->best_limit;
}

static void tell(const char *what, const char *limit, pairs *p, size_t size) {
    qsort(p->quotient, (size_t)p->n, sizeof *p->quotient, by_value);
    const double gigabytes = (double)size * 1e-9;
    printf("%-18s %6.2f GB/s, %s %6.2f GB/s, median of quotients %.2f\n", what, gigabytes / p->best, limit,
           gigabytes / p->best_limit, p->quotient[p->n / 2]);
}

static perigee_session *make_session(perigee_model *model, size_t position) {
    perigee_session *s = NULL;
    prg_session_plan plan = {.context = position,
                             .chunk = 1,
                             .bf16 = true,
                             .mla_layers = LAYERS,
                             .latent_bytes = (RANK + ROPE) * sizeof(uint16_t),
                             .checkpoint_every = 1};
    require(prg_session_make(model, &plan, &s, NULL) == PERIGEE_OK, "making a session");
    return s;
}

static void fill(perigee_session *s) {
    const size_t position = s->plan.context;
    require(prg_cache_reserve(&s->cache, 0, position, 0, NULL) == PERIGEE_OK, "reserving the cache");
    for (size_t i = 0; i < s->cache.count; i++) {
        memset(s->cache.blocks[i]->data, (int)(i % 251), s->cache.layers * s->cache.layer_bytes);
    }
    for (size_t i = 0; i < position; i++) {
        s->tokens[i] = (int32_t)(i % 100);
    }
    s->position = position;
}

/* As many bytes written to memory that the process has not had yet, as a load has to. */
static double copy_to_fresh(const unsigned char *from, size_t size) {
    const double began = now();
    unsigned char *to = malloc(size);
    require(to != NULL, "memory");
    memcpy(to, from, size);
    keep(to);
    const double seconds = now() - began;
    free(to);
    return seconds;
}

static void bench_buffer(perigee_session *from, perigee_session *to, unsigned char *bytes, size_t size) {
    pairs saves = {.n = 0}, loads = {.n = 0}, fresh = {.n = 0};
    unsigned char *plain = malloc(size);
    require(plain != NULL, "memory");
    memset(plain, 1, size);
    for (int i = 0; i < REPEAT; i++) {
        double t = now();
        memcpy(plain, bytes, size);
        keep(plain);
        const double copy = now() - t;
        t = now();
        require(perigee_state_save(from, NULL, bytes, size, NULL, NULL) == PERIGEE_OK, "saving");
        add_pair(&saves, copy, now() - t);
        const double first = copy_to_fresh(bytes, size);
        t = now();
        require(perigee_state_load(to, NULL, bytes, size, NULL) == PERIGEE_OK, "loading");
        const double seconds = now() - t;
        add_pair(&loads, copy, seconds);
        add_pair(&fresh, first, seconds);
    }
    free(plain);
    tell("save to a buffer", "memcpy", &saves, size);
    tell("load from a buffer", "memcpy", &loads, size);
    tell("load from a buffer", "memcpy to fresh memory", &fresh, size);
}

static double write_plain(const char *path, const unsigned char *bytes, size_t size) {
    const double began = now();
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0, "creating a file");
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(fd, bytes + at, size - at < 1 << 20 ? size - at : 1 << 20);
        require(n > 0, "writing");
        at += (size_t)n;
    }
    require(fsync(fd) == 0, "syncing");
    close(fd);
    return now() - began;
}

static double read_plain(const char *path, unsigned char *bytes, size_t size) {
    const double began = now();
    const int fd = open(path, O_RDONLY);
    require(fd >= 0, "opening a file");
    for (size_t at = 0; at < size;) {
        const ssize_t n = read(fd, bytes + at, size - at < 1 << 20 ? size - at : 1 << 20);
        require(n > 0, "reading");
        at += (size_t)n;
    }
    close(fd);
    return now() - began;
}

static void bench_file(perigee_session *from, perigee_session *to, unsigned char *bytes, size_t size,
                       const char *folder) {
    char path[512], plain[512];
    snprintf(path, sizeof path, "%s/bench.state", folder);
    snprintf(plain, sizeof plain, "%s/bench.plain", folder);
    pairs saves = {.n = 0}, loads = {.n = 0};
    for (int i = 0; i < REPEAT; i++) {
        double limit = write_plain(plain, bytes, size), t = now();
        require(perigee_state_save_file(from, NULL, path, SIZE_MAX, NULL) == PERIGEE_OK, "saving to a file");
        add_pair(&saves, limit, now() - t);
        limit = read_plain(plain, bytes, size);
        t = now();
        require(perigee_state_load_file(to, NULL, path, SIZE_MAX, NULL) == PERIGEE_OK, "loading a file");
        add_pair(&loads, limit, now() - t);
    }
    unlink(path);
    unlink(plain);
    tell("save to a file", "write and sync", &saves, size);
    tell("load from a file", "read (cached)", &loads, size);
}

int main(int argc, char **argv) {
    require(argc >= 2, "usage: bench_state MODEL [megabytes] [folder]; reading it");
    const size_t megabytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    require(perigee_context_new(NULL, NULL, NULL, NULL, &context, NULL) == PERIGEE_OK, "making a context");
    require(perigee_model_load(context, argv[1], SIZE_MAX, NULL, NULL, NULL, NULL, &model, NULL) == PERIGEE_OK,
            "loading the model");
    model->config.kv_rank = RANK;
    model->config.rope = ROPE;
    const size_t position = megabytes * 1000000 / (LAYERS * (RANK + ROPE) * sizeof(uint16_t));
    perigee_session *from = make_session(model, position), *to = make_session(model, position);
    size_t size = 0;
    fill(from);
    require(perigee_state_size(from, NULL, &size, NULL) == PERIGEE_OK, "asking for the size");
    unsigned char *bytes = malloc(size);
    require(bytes != NULL, "memory");
    memset(bytes, 1, size);
    printf("%zu tokens, %.3f GB\n", position, (double)size * 1e-9);
    bench_buffer(from, to, bytes, size);
    const char *folder = argc > 3 ? argv[3] : ".";
    if (*folder) {
        bench_file(from, to, bytes, size, folder);
    }
    free(bytes);
    perigee_session_free(from);
    perigee_session_free(to);
    perigee_model_free(model);
    perigee_context_free(context);
    return 0;
}
