/* The largest checkpoint: K3's 497,220 tensors in 96 files, all names and headers and no data. Reading it takes time in
 * proportion to their number and little memory. */
#include <inttypes.h>
#include <time.h>

#include "base/error.h"
#include "model/arch.h"
#include "perigee/perigee.h"
#include "support/copy_case.h"
#include "support/suite.h"

/* The time is 1.2 s on a quiet core, 3 at most is wanted; machines of tests are busy ones. */
enum { SHARDS = 96, MOST_MEGABYTES = 300, MOST_SECONDS = 12 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

static atomic_llong held, peak;

static void *allocate(size_t size, size_t alignment, void *user) {
    void *p = NULL;
    (void)user;
    if (posix_memalign(&p, alignment, size) != 0) {
        return NULL;
    }
    long long now = atomic_fetch_add(&held, (long long)size) + (long long)size;
    if (now > atomic_load(&peak)) {
        atomic_store(&peak, now);
    }
    return p;
}

static void deallocate(void *pointer, size_t size, void *user) {
    (void)user;
    atomic_fetch_sub(&held, (long long)size);
    free(pointer);
}

typedef struct shard {
    FILE *file;
    uint64_t header, data;
    bool first;
} shard;

typedef struct writer {
    char folder[256];
    prg_config config;
    shard at;
    FILE *index;
    int number;
    size_t tensors;
} writer;

static void name_shard(char *name, size_t size, int number) {
    snprintf(name, size, "model-%05d-of-%06d.safetensors", number, SHARDS);
}

static void open_shard(writer *w) {
    char name[64], path[512];
    name_shard(name, sizeof name, ++w->number);
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    w->at = (shard){.file = fopen(path, "wb"), .first = true};
    ck_assert_ptr_nonnull(w->at.file);
    fwrite("\0\0\0\0\0\0\0\0{", 1, 9, w->at.file);
}

/* The data of a shard is a hole. */
static void close_shard(writer *w) {
    long end;
    fputc('}', w->at.file);
    end = ftell(w->at.file);
    uint64_t length = (uint64_t)end - 8;
    rewind(w->at.file);
    fwrite(&length, 1, sizeof length, w->at.file);
    fflush(w->at.file);
    ck_assert_int_eq(ftruncate(fileno(w->at.file), (off_t)(8 + length + w->at.data)), 0);
    fclose(w->at.file);
}

static void put(writer *w, const char *name, const char *type, size_t bytes, int64_t rows, int64_t columns) {
    char file[64];
    shard *s = &w->at;
    uint64_t size = (uint64_t)(rows * columns) * bytes;
    fprintf(s->file, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":", s->first ? "" : ",", name, type);
    fprintf(s->file, rows == 1 ? "[%" PRId64 "]" : "[%" PRId64 ",", rows == 1 ? columns : rows);
    if (rows != 1) {
        fprintf(s->file, "%" PRId64 "]", columns);
    }
    fprintf(s->file, ",\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", s->data, s->data + size);
    s->data += size;
    s->first = false;
    name_shard(file, sizeof file, w->number);
    fprintf(w->index, "%s\n\"%s\": \"%s\"", w->tensors ? "," : "", name, file);
    w->tensors++;
}

static void put_component(writer *w, prg_component_id id, int64_t layer, int64_t expert) {
    prg_component part = prg_component_of(&w->config, id);
    char base[256], name[320];
    prg_arch_tensor_name(w->config.arch, id, part.scope, layer, expert, base, sizeof base);
    if (part.form == PRG_FORM_VECTOR) {
        snprintf(name, sizeof name, "language_model.%s", base);
        put(w, name, "F32", 4, part.rows, part.columns);
    } else if (part.scope == PRG_SCOPE_EXPERT) {
        snprintf(name, sizeof name, "language_model.%s.weight_packed", base);
        put(w, name, "U8", 1, part.rows, part.columns / 2);
        snprintf(name, sizeof name, "language_model.%s.weight_scale", base);
        put(w, name, "U8", 1, part.rows, part.columns / 32);
    } else {
        snprintf(name, sizeof name, "language_model.%s.weight", base);
        put(w, name, "BF16", 2, part.rows, part.columns);
    }
}

static void put_layer(writer *w, int64_t layer) {
    for (int id = 0; id < PRG_PART_COUNT; id++) {
        prg_component part = prg_component_of(&w->config, (prg_component_id)id);
        int64_t experts = part.scope == PRG_SCOPE_EXPERT ? w->config.experts : 1;
        for (int64_t e = 0; part.present && e < experts && prg_scope_has(&w->config, part.scope, layer); e++) {
            put_component(w, (prg_component_id)id, layer, e);
        }
    }
}

static void put_rest(writer *w) {
    open_shard(w);
    for (int id = 0; id < PRG_PART_COUNT; id++) {
        prg_component part = prg_component_of(&w->config, (prg_component_id)id);
        if (part.present && part.scope == PRG_SCOPE_MODEL) {
            put_component(w, (prg_component_id)id, 0, 0);
        }
    }
    close_shard(w);
    for (int i = w->number; i < SHARDS; i++) {
        open_shard(w);
        for (int k = 0; k < 84; k++) {
            char name[64];
            snprintf(name, sizeof name, "vision_tower.blocks.%d.%d.weight", i, k);
            put(w, name, "BF16", 2, 1024, 1024);
        }
        close_shard(w);
    }
}

static void write_checkpoint(writer *w) {
    prg_allocator *allocator;
    prg_arena arena;
    size_t size;
    char path[512];
    static const char config[] = PRG_FIXTURES "/golden/configs/kimi_k3/config.json";
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    prg_arena_init(&arena, allocator);
    ck_assert_int_eq(prg_config_read(&arena, config, &w->config, NULL), PERIGEE_OK);
    snprintf(path, sizeof path, "%s/config.json", w->folder);
    char *text = read_whole(config, &size);
    write_whole(path, text, size);
    free(text);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", w->folder);
    w->index = fopen(path, "wb");
    fprintf(w->index, "{\"metadata\": {}, \"weight_map\": {");
    for (int64_t i = 0; i < w->config.layers; i++) {
        open_shard(w);
        put_layer(w, i);
        close_shard(w);
    }
    put_rest(w);
    fprintf(w->index, "}}");
    fclose(w->index);
    prg_arena_free(&arena);
    prg_allocator_drop(allocator);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void report(const char *what, double began) {
    double took = seconds() - began;
    long long megabytes = atomic_load(&peak) >> 20;
    printf("%s: %.2f s of one core, %lld MB\n", what, took, megabytes);
    ck_assert_int_lt(megabytes, MOST_MEGABYTES);
    ck_assert(SLOW || took < MOST_SECONDS);
    atomic_store(&peak, atomic_load(&held));
}

START_TEST(all_of_k3) {
    writer w = {.tensors = 0};
    const char *base = getenv("TMPDIR");
    perigee_allocator host = {sizeof host, allocate, deallocate, NULL, NULL};
    perigee_context *context = NULL;
    perigee_description *description = NULL;
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    perigee_options *one = golden_options("threads=1"), *mapped = golden_options("weights=mapped");
    snprintf(w.folder, sizeof w.folder, "%s/perigee-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(w.folder));
    write_checkpoint(&w);
    ck_assert_uint_eq(w.tensors, 497220);
    golden_ok(perigee_context_new(one, &host, NULL, NULL, &context, &err), err);

    double began = seconds();
    golden_ok(perigee_model_describe(context, w.folder, SIZE_MAX, &description, &err), err);
    report("describe", began);
    perigee_totals totals = {.struct_size = sizeof totals};
    golden_ok(perigee_description_totals(description, &totals, &err), err);
    ck_assert_int_eq(totals.parameters, INT64_C(2779484476000));
    ck_assert_int_eq(totals.disk_parameters, totals.parameters);
    perigee_description_free(description);

    perigee_plan plan = {.struct_size = sizeof plan};
    began = seconds();
    golden_ok(perigee_model_plan(context, w.folder, SIZE_MAX, NULL, &plan, &err), err);
    report("plan", began);
    ck_assert(plan.mapped == 1 && plan.fits == 0);

    began = seconds();
    golden_ok(perigee_model_load(context, w.folder, SIZE_MAX, mapped, NULL, NULL, NULL, &model, &err), err);
    report("load, mapped", began);
    perigee_model_free(model);
    perigee_context_free(context);
    perigee_options_free(one);
    perigee_options_free(mapped);
    ck_assert_int_eq(atomic_load(&held), 0);
    remove_case(w.folder);
}
END_TEST

PRG_SUITE("many_tensors", NULL, NULL, all_of_k3)
