/* Arbitrary bytes as a config.json: an error, or sizes that are sane. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "model/describe.h"
#include "model/plan.h"
#include "model/rope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const prg_config *c) {
    if (!c->arch || !c->family || c->layers < 1 || c->hidden < 1 || c->vocabulary < 1 || c->heads < 1 ||
        c->kda_layers < 0 || c->kda_layers > c->layers || c->top_k > c->experts || c->end_count > PRG_MAX_END_IDS) {
        abort();
    }
    int64_t kda = 0;
    for (int64_t i = 0; i < c->layers; i++) {
        kda += c->is_kda[i];
    }
    if (kda != c->kda_layers) {
        abort();
    }
}

/* A config that was taken in can be described, planned and turned into frequencies; nothing of it overflows. */
static void use(prg_allocator *allocator, const prg_config *config) {
    prg_checkpoint checkpoint = {.allocator = allocator, .config = *config};
    perigee_description *description = NULL;
    prg_weight_plan plan;
    prg_rope rope;
    double scale;
    prg_arena_init(&checkpoint.arena, allocator);
    if (prg_describe(&checkpoint, &description, NULL) == PERIGEE_OK && description->totals.parameters < 1) {
        abort();
    }
    prg_description_free(description);
    if (prg_plan_weights(&checkpoint, PRG_TRUNK_PUBLISHED, &plan, NULL) == PERIGEE_OK && plan.disk_bytes < 1) {
        abort();
    }
    if (config->rotary) {
        prg_rope_make(&checkpoint.arena, config, &rope, &scale, NULL);
    }
    prg_arena_free(&checkpoint.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* the file has a path, and lies in memory */
    static int fd = -1;
    char path[64];
    if (fd < 0) {
        fd = memfd_create("config", 0);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) {
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    prg_allocator *allocator = NULL;
    if (prg_allocator_new(NULL, &allocator, NULL) != PERIGEE_OK) {
        return 0;
    }
    prg_arena arena;
    prg_arena_init(&arena, allocator);
    prg_config config;
    perigee_error *error = NULL;
    perigee_status status = prg_config_read(&arena, path, &config, &error);
    if ((status == PERIGEE_OK) != (error == NULL)) {
        abort();
    }
    if (status == PERIGEE_OK) {
        check(&config);
        use(allocator, &config);
    }
    perigee_error_free(error);
    prg_arena_free(&arena);
    if (allocator->bytes != 0) {
        abort();
    }
    prg_allocator_drop(allocator);
    return 0;
}
