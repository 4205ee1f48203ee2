/* Damaged checkpoints: each a clear error, and nothing left behind. */
#include <errno.h>

#include "base/error.h"
#include "model/model.h"
#include "model/open.h"
#include "support/copy_case.h"
#include "support/host_allocator.h"
#include "support/suite.h"

static host counted;
static perigee_context *context;
static long long idle; /* bytes that the context itself holds */
static char folder[256];

static void setup(void) {
    memset(&counted, 0, sizeof counted);
    perigee_allocator allocator = host_allocator(&counted);
    ck_assert_int_eq(perigee_context_new(NULL, &allocator, NULL, NULL, &context, NULL), PERIGEE_OK);
    idle = atomic_load(&counted.bytes);
}

static void teardown(void) {
    perigee_context_free(context);
    ck_assert_int_eq(atomic_load(&counted.bytes), 0);
}

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Load the folder, which must fail; the error, to be freed. */
static perigee_error *refused(perigee_status status, const char *text) {
    perigee_model *model = NULL;
    perigee_error *err = NULL;
    perigee_status st = perigee_model_load(context, folder, SIZE_MAX, NULL, NULL, NULL, NULL, &model, &err);
    ck_assert_msg(st == status, "%s instead of %s: %s", perigee_status_name(st), perigee_status_name(status),
                  perigee_error_message(err));
    ck_assert_msg(strstr(perigee_error_message(err), text), "no \"%s\" in: %s", text, perigee_error_message(err));
    ck_assert_ptr_null(model);
    ck_assert_int_eq(atomic_load(&counted.bytes), idle);
    return err;
}

static void check_refused(perigee_status status, const char *text) {
    perigee_error_free(refused(status, text));
    remove_case(folder);
}

/* Put another text of the same length in the place of the first `old` of a file. */
static void patch(const char *name, const char *old, const char *new) {
    size_t size, n = strlen(old);
    char *data = read_whole(in_folder(name), &size), *at = NULL;
    ck_assert_uint_eq(n, strlen(new));
    for (size_t i = 0; !at && i + n <= size; i++) {
        at = memcmp(data + i, old, n) == 0 ? data + i : NULL;
    }
    ck_assert_msg(at != NULL, "%s has no %s", name, old);
    memcpy(at, new, n);
    write_whole(in_folder(name), data, size);
    free(data);
}

/* Cut a file, or with a negative number cut that many bytes from its end. */
static void cut(const char *name, long keep) {
    size_t size;
    char *data = read_whole(in_folder(name), &size);
    write_whole(in_folder(name), data, keep < 0 ? size - (size_t)-keep : (size_t)keep);
    free(data);
}

#define FIRST "model-00001-of-000002.safetensors"
#define SECOND "model-00002-of-000002.safetensors"
#define INDEX "model.safetensors.index.json"

START_TEST(shards) {
    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder(SECOND));
    check_refused(PERIGEE_E_NOT_FOUND, SECOND);

    copy_case("kimi_k2", folder, sizeof folder);
    cut(SECOND, -100);
    perigee_error *e = refused(PERIGEE_E_TRUNCATED, "lm_head.weight");
    ck_assert_ptr_nonnull(strstr(perigee_error_file(e), SECOND));
    ck_assert_str_eq(perigee_error_tensor(e), "lm_head.weight");
    ck_assert_int_gt(perigee_error_offset(e), 0);
    perigee_error_free(e);
    cut(SECOND, 20);
    perigee_error_free(refused(PERIGEE_E_TRUNCATED, "a header of"));
    cut(SECOND, 0);
    check_refused(PERIGEE_E_TRUNCATED, "no header");

    copy_case("kimi_k2", folder, sizeof folder);
    static const char stray[] = "\x02\0\0\0\0\0\0\0{}";
    write_whole(in_folder("stray.safetensors"), stray, sizeof stray - 1);
    check_refused(PERIGEE_E_MISMATCH, "stray.safetensors is in the folder but not in the index");

    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder(FIRST));
    ck_assert_int_eq(mkdir(in_folder(FIRST), 0700), 0);
    perigee_error_free(refused(PERIGEE_E_IO, FIRST));
    rmdir(in_folder(FIRST));
    remove_case(folder);
}
END_TEST

START_TEST(index_and_shards_disagree) {
    copy_case("kimi_k2", folder, sizeof folder);
    patch(INDEX, "\"model.embed_tokens.weight\": \"model-00001", "\"model.embed_tokens.weight\": \"model-00002");
    check_refused(PERIGEE_E_TENSOR, "model.embed_tokens.weight lies in " FIRST ", the index has it in " SECOND);

    copy_case("kimi_k2", folder, sizeof folder);
    patch(INDEX, "\"model.norm.weight\"", "\"model.norn.weight\"");
    check_refused(PERIGEE_E_TENSOR, "model.norn.weight is not in");

    copy_case("kimi_k2", folder, sizeof folder);
    patch(INDEX, "\"model.norm.weight\"", "\"lm_head.weight\"   ");
    check_refused(PERIGEE_E_TENSOR, "model.norm.weight of " SECOND " is not in the index");
}
END_TEST

START_TEST(broken_index) {
    static char deep[12000] = "{\"weight_map\": ";
    static const struct {
        const char *text;
        perigee_status status;
    } cases[] = {{"", PERIGEE_E_FORMAT},
                 {"{}", PERIGEE_E_FORMAT},
                 {"[]", PERIGEE_E_FORMAT},
                 {"{\"weight_map\": {\"model.norm.weight\": \"" SECOND "\"}", PERIGEE_E_FORMAT},
                 {"{\"weight_map\": [\"" FIRST "\"]}", PERIGEE_E_FORMAT},
                 {"{\"weight_map\": {\"a\": {\"b\": 1}}}", PERIGEE_E_FORMAT},
                 {"{\"weight_map\": {\"a\": 3}}", PERIGEE_E_FORMAT},
                 {"{\"weight_map\": {\"a\": \"../" FIRST "\"}}", PERIGEE_E_NOT_FOUND},
                 {deep, PERIGEE_E_FORMAT}};
    memset(deep + strlen(deep), '[', 10000);
    copy_case("kimi_k2", folder, sizeof folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_whole(in_folder(INDEX), cases[i].text, strlen(cases[i].text));
        perigee_error_free(refused(cases[i].status, ""));
    }
    remove_case(folder);
}
END_TEST

/* Without an index, so that the header's word is the only one. */
static void damaged_header(const char *name, const char *file, const char *old, const char *new) {
    copy_case(name, folder, sizeof folder);
    unlink(in_folder(INDEX));
    patch(file, old, new);
}

START_TEST(tensors) {
    damaged_header("kimi_k2", FIRST, "layers.0.input_layernorm", "layers.0.input_layernorn");
    perigee_error *e = refused(PERIGEE_E_TENSOR, "model.layers.0.input_layernorm.weight is missing");
    ck_assert_str_eq(perigee_error_tensor(e), "model.layers.0.input_layernorm.weight");
    perigee_error_free(e);
    remove_case(folder);

    damaged_header("kimi_k2", FIRST, "0.self_attn.q_a_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[48,64]",
                   "0.self_attn.q_a_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[64,48]");
    check_refused(PERIGEE_E_TENSOR, "BF16 [64, 48]; wanted is [48, 64]");

    damaged_header("kimi_k2", FIRST, "input_layernorm.weight\":{\"dtype\":\"BF16\"",
                   "input_layernorm.weight\":{\"dtype\":\"I16\" ");
    check_refused(PERIGEE_E_TENSOR, "is I16 [64]");

    damaged_header("kimi_k2", FIRST, "q_a_proj.weight\":{\"dtype\":\"BF16\"", "q_a_proj.weight\":{\"dtype\":\"I16\" ");
    check_refused(PERIGEE_E_TENSOR, "q_a_proj");

    damaged_header("kimi_k2", FIRST, "layers.0.mlp.down_proj", "layers.0.mlp.gate_proj");
    check_refused(PERIGEE_E_FORMAT, "model.layers.0.mlp.gate_proj.weight comes twice");

    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder(INDEX));
    size_t size;
    char *data = read_whole(in_folder(FIRST), &size);
    write_whole(in_folder("model-00003.safetensors"), data, size);
    free(data);
    check_refused(PERIGEE_E_FORMAT, "comes twice: in " FIRST " and in model-00003.safetensors");

    /* a name with and one without the prefix are the same tensor */
    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder(INDEX));
    static const char again[] = "\x54\0\0\0\0\0\0\0{\"language_model.model.norm.weight\":"
                                "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
    ck_assert_uint_eq(sizeof again - 1 - 8, 0x54);
    write_whole(in_folder("z.safetensors"), again, sizeof again - 1);
    check_refused(PERIGEE_E_FORMAT, "comes twice");
}
END_TEST

START_TEST(quantised_tensors) {
    damaged_header("kimi_k3", FIRST, "layers.1.block_sparse_moe.experts.0.w1.weight_scale\"",
                   "layers.1.block_sparse_moe.experts.0.w1.weight_scald\"");
    check_refused(PERIGEE_E_TENSOR, "experts.0.w1.weight_scale is missing");

    damaged_header("kimi_k2_int4", FIRST, "layers.1.mlp.experts.0.gate_proj.weight_shape",
                   "layers.1.mlp.experts.0.gate_proj.weight_shapf");
    check_refused(PERIGEE_E_TENSOR, "experts.0.gate_proj.weight_shape is missing");

    damaged_header("kimi_k2_fp8", FIRST, "layers.0.self_attn.q_a_proj.weight_scale_inv",
                   "layers.0.self_attn.q_a_proj.weight_scale_ins");
    check_refused(PERIGEE_E_TENSOR, "q_a_proj.weight_scale_inv is missing");

    copy_case("kimi_k2_int4", folder, sizeof folder);
    static const int32_t other[2] = {64, 32};
    damage(folder, "model.layers.1.mlp.experts.3.gate_proj.weight_shape", 0, other, sizeof other);
    check_refused(PERIGEE_E_TENSOR, "gate_proj.weight_shape says [64, 32]; wanted is [32, 64]");
}
END_TEST

START_TEST(configs) {
    copy_case("kimi_k2", folder, sizeof folder);
    patch("config.json", "\"n_routed_experts\": 16", "\"n_routed_experts\": -1");
    check_refused(PERIGEE_E_CONFIG, "n_routed_experts");

    /* a valid config of another model */
    copy_case("kimi_k2", folder, sizeof folder);
    patch("config.json", "\"n_routed_experts\": 16", "\"n_routed_experts\": 17");
    check_refused(PERIGEE_E_TENSOR, "model.layers.1.mlp.gate.e_score_correction_bias");

    copy_case("kimi_k2", folder, sizeof folder);
    cut("config.json", -20);
    check_refused(PERIGEE_E_FORMAT, "config.json");

    copy_case("kimi_k2", folder, sizeof folder);
    static char deep[10001];
    memset(deep, '[', 10000);
    write_whole(in_folder("config.json"), deep, 10000);
    check_refused(PERIGEE_E_FORMAT, "deeper than");

    copy_case("kimi_k2", folder, sizeof folder);
    write_whole(in_folder("generation_config.json"), "{\"eos_token_id\": 1.5}", 21);
    check_refused(PERIGEE_E_CONFIG, "eos_token_id");
}
END_TEST

START_TEST(folders) {
    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder("config.json"));
    check_refused(PERIGEE_E_NOT_FOUND, "config.json");

    copy_case("kimi_k2", folder, sizeof folder);
    unlink(in_folder(FIRST));
    unlink(in_folder(SECOND));
    check_refused(PERIGEE_E_NOT_FOUND, "has no *.safetensors file");

    /* one more than are taken, with the two of the checkpoint */
    copy_case("kimi_k2", folder, sizeof folder);
    char name[64];
    write_whole(in_folder("extra.safetensors"), "", 0);
    for (int i = 0; i < 65536 - 2; i++) {
        snprintf(name, sizeof name, "%d.safetensors", i);
        write_whole(in_folder(name), "", 0);
    }
    perigee_error_free(refused(PERIGEE_E_UNSUPPORTED, "more than 65536 *.safetensors files"));
    for (int i = 0; i < 65536 - 2; i++) {
        snprintf(name, sizeof name, "%d.safetensors", i);
        ck_assert_int_eq(unlink(in_folder(name)), 0);
    }
    remove_case(folder);

    snprintf(folder, sizeof folder, "/nowhere/at all");
    perigee_error_free(refused(PERIGEE_E_NOT_FOUND, "/nowhere/at all"));
    snprintf(folder, sizeof folder, PRG_FIXTURES "/golden/kimi_k2/config.json");
    perigee_error_free(refused(PERIGEE_E_NOT_FOUND, "not a folder"));
}
END_TEST

/* What is no regular file is refused, not waited for. */
START_TEST(pipes) {
    static const char *const names[] = {"extra.safetensors", "config.json"};
    for (size_t i = 0; i < 2; i++) {
        copy_case("kimi_k3", folder, sizeof folder);
        unlink(in_folder(names[i]));
        ck_assert_int_eq(mkfifo(in_folder(names[i]), 0600), 0);
        check_refused(PERIGEE_E_IO, names[i]);
    }
}
END_TEST

START_TEST(arguments) {
    perigee_model *model = NULL;
    perigee_options *options = golden_options("weights=elsewhere");
    const char *path = PRG_FIXTURES "/golden/kimi_k2";
    ck_assert_int_eq(perigee_model_load(context, path, 0, NULL, NULL, NULL, NULL, &model, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_model_load(context, "a\0b", 3, NULL, NULL, NULL, NULL, &model, NULL), PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_model_load(NULL, path, SIZE_MAX, NULL, NULL, NULL, NULL, &model, NULL),
                     PERIGEE_E_ARGUMENT);
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL),
                     PERIGEE_E_ARGUMENT);
    perigee_options_free(options);
    options = golden_options("trunk=q4_0");
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL),
                     PERIGEE_E_ARGUMENT);
    perigee_options_free(options);
    options = golden_options("chunk=3");
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL),
                     PERIGEE_E_SCOPE);
    perigee_options_free(options);
    /* a budget below the weights: an error where they must be resident, a map where they need not */
    options = golden_options("weights=resident memory_budget=100000");
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL),
                     PERIGEE_E_MEMORY);
    perigee_options_free(options);
    options = golden_options("memory_budget=100000");
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL), PERIGEE_OK);
    perigee_model_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(perigee_model_get_info(model, &info, NULL), PERIGEE_OK);
    ck_assert_int_eq(info.resident_bytes, 0);
    perigee_model_free(model);
    perigee_options_free(options);
}
END_TEST

/* A device whose n-th read fails, or finds the end of the file. */
typedef struct device {
    atomic_int reads;
    int fail_at;
    int error; /* 0: the end */
} device;

static int64_t read_device(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    device *d = user;
    if (atomic_fetch_add(&d->reads, 1) + 1 == d->fail_at) {
        return -(int64_t)d->error;
    }
    return pread(fd, buffer, size, (off_t)offset);
}

static perigee_status load_from(device *d, perigee_error **err) {
    prg_io io = {read_device, d};
    perigee_model *model = NULL;
    perigee_options *options = golden_options("weights=resident");
    perigee_status st = prg_model_open(context, PRG_FIXTURES "/golden/kimi_k2_int4", options, NULL, &io, &model, err);
    perigee_model_free(model);
    perigee_options_free(options);
    return st;
}

START_TEST(reads_that_fail) {
    device all = {.fail_at = 0};
    ck_assert_int_eq(load_from(&all, NULL), PERIGEE_OK);
    int total = atomic_load(&all.reads);
    ck_assert_int_gt(total, 500);
    for (int n = 1; n <= total; n += n < 20 || n > total - 20 ? 1 : 7) {
        for (int end = 0; end < 2; end++) {
            device d = {.fail_at = n, .error = end ? 0 : EIO};
            perigee_error *e = NULL;
            perigee_status st = load_from(&d, &e);
            ck_assert_msg(st == (end ? PERIGEE_E_TRUNCATED : PERIGEE_E_IO), "read %d: %s", n, perigee_status_name(st));
            ck_assert_msg(perigee_error_file(e) && perigee_error_offset(e) >= 0, "read %d: %s", n,
                          perigee_error_message(e));
            ck_assert_int_eq(atomic_load(&counted.bytes), idle);
            perigee_error_free(e);
        }
    }
}
END_TEST

typedef struct progress {
    int64_t last, total;
    int calls, stop_at;
    perigee_cancel *cancel;
} progress;

static int on_progress(int64_t done, int64_t total, void *user) {
    progress *p = user;
    ck_assert_int_ge(done, p->last);
    ck_assert_int_le(done, total);
    p->last = done;
    p->total = total;
    p->calls++;
    if (p->calls == p->stop_at) {
        perigee_cancel_trigger(p->cancel);
        return p->cancel ? 0 : 1;
    }
    return 0;
}

START_TEST(progress_and_cancel) {
    const char *path = PRG_FIXTURES "/golden/kimi_k2";
    perigee_model *model = NULL;
    perigee_options *options = golden_options("weights=resident");
    progress p = {0};
    ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, on_progress, &p, NULL, &model, NULL),
                     PERIGEE_OK);
    ck_assert_int_eq(p.last, p.total);
    ck_assert_int_ge(p.calls, 2);
    perigee_model_free(model);
    for (int n = 1; n <= 2; n++) {
        model = NULL;
        p = (progress){.stop_at = n};
        ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, on_progress, &p, NULL, &model, NULL),
                         PERIGEE_E_CALLBACK);
        p = (progress){.stop_at = n};
        ck_assert_int_eq(perigee_cancel_new(&p.cancel, NULL), PERIGEE_OK);
        ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, on_progress, &p, p.cancel, &model, NULL),
                         PERIGEE_E_CANCELLED);
        /* it stays set */
        ck_assert_int_eq(perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, p.cancel, &model, NULL),
                         PERIGEE_E_CANCELLED);
        perigee_cancel_free(p.cancel);
        ck_assert_ptr_null(model);
        ck_assert_int_eq(atomic_load(&counted.bytes), idle);
    }
    perigee_options_free(options);
}
END_TEST

static perigee_status load_and_describe(const char *path, const perigee_options *options) {
    perigee_model *model = NULL;
    perigee_description *description = NULL;
    perigee_status st = perigee_model_load(context, path, SIZE_MAX, options, NULL, NULL, NULL, &model, NULL);
    perigee_model_free(model);
    if (st == PERIGEE_OK) {
        st = perigee_model_describe(context, path, SIZE_MAX, &description, NULL);
        perigee_description_free(description);
    }
    return st;
}

START_TEST(allocations_that_fail) {
    static const char *const wheres[] = {"weights=resident", "weights=mapped"};
    for (int w = 0; w < 2; w++) {
        perigee_options *options = golden_options(wheres[w]);
        const char *path = PRG_FIXTURES "/golden/kimi_k3";
        int failures = 0;
        for (long long n = 1;; n += n < 300 ? 1 : 37) {
            atomic_store(&counted.calls, 0);
            atomic_store(&counted.fail_at, n);
            perigee_status st = load_and_describe(path, options);
            bool reached = atomic_load(&counted.calls) >= n;
            atomic_store(&counted.fail_at, 0);
            ck_assert_int_eq(atomic_load(&counted.bytes), idle);
            if (!reached) {
                ck_assert_int_eq(st, PERIGEE_OK);
                break;
            }
            ck_assert_msg(st == PERIGEE_E_MEMORY, "allocation %lld: %s", n, perigee_status_name(st));
            failures++;
        }
        ck_assert_int_gt(failures, 150);
        perigee_options_free(options);
    }
}
END_TEST

PRG_SUITE("bad_checkpoint", setup, teardown, shards, index_and_shards_disagree, broken_index, tensors,
          quantised_tensors, configs, folders, pipes, arguments, reads_that_fail, progress_and_cancel,
          allocations_that_fail)
