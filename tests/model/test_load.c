/* Loading: the same bytes whether they are resident or mapped, and what a host is told of a model. */
#include <fenv.h>

#include "base/error.h"
#include "dtype/dtype.h"
#include "model/model.h"
#include "perigee/perigee.h"
#include "support/copy_case.h"
#include "support/suite.h"

static perigee_context *context;

static void setup(void) {
    context = golden_context("threads=2");
}

static void teardown(void) {
    perigee_context_free(context);
}

static void same_matrix(const perigee_model *a, const prg_weight *x, const perigee_model *b, const prg_weight *y) {
    ck_assert_uint_eq(x->dtype, y->dtype);
    if (x->dtype == PERIGEE_DTYPE_NONE) {
        return;
    }
    perigee_matrix m = prg_store_matrix(a->store, x), n = prg_store_matrix(b->store, y);
    size_t codes = prg_dtype_row_bytes(m.dtype, m.cols) * m.rows;
    size_t scales = prg_dtype_matrix_bytes(m.dtype, m.rows, m.cols) - codes;
    ck_assert_uint_eq((uintptr_t)m.codes % 64, 0);
    ck_assert_mem_eq(m.codes, n.codes, codes);
    if (scales) {
        ck_assert_uint_eq((uintptr_t)m.scales % 64, 0);
        ck_assert_mem_eq(m.scales, n.scales, scales);
    }
}

static void same_expert(const perigee_model *a, const prg_mlp_weights *x, const perigee_model *b,
                        const prg_mlp_weights *y) {
    same_matrix(a, &x->gate, b, &y->gate);
    same_matrix(a, &x->up, b, &y->up);
    same_matrix(a, &x->down, b, &y->down);
}

START_TEST(resident_and_mapped_agree) {
    for (size_t i = 0; i < GOLDEN_CASES; i++) {
        perigee_model *a = golden_model(context, golden_cases[i], "weights=resident");
        perigee_model *b = golden_model(context, golden_cases[i], "weights=mapped");
        perigee_model_info x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
        ck_assert_int_eq(perigee_model_get_info(a, &x, NULL), PERIGEE_OK);
        ck_assert_int_eq(perigee_model_get_info(b, &y, NULL), PERIGEE_OK);
        ck_assert_int_eq(x.vocabulary, 320);
        ck_assert_uint_eq(x.end_count, 1);
        ck_assert_int_eq(x.end_ids[0], 258);
        ck_assert_int_eq(x.weight_bytes, y.weight_bytes);
        ck_assert_int_lt(x.token_bytes, x.weight_bytes);
        ck_assert_int_gt(x.resident_bytes, 0);
        ck_assert_int_eq(y.resident_bytes, 0);
        ck_assert_uint_eq(a->fingerprint[0], b->fingerprint[0]);
        ck_assert_uint_eq(a->fingerprint[1], b->fingerprint[1]);
        same_matrix(a, &a->embed, b, &b->embed);
        same_matrix(a, &a->head, b, &b->head);
        for (int64_t l = 0; l < x.layers; l++) {
            const prg_layer *p = &a->layers[l], *q = &b->layers[l];
            ck_assert(p->is_moe == (l > 0));
            if (!p->is_moe) {
                same_expert(a, &p->ffn.mlp, b, &q->ffn.mlp);
                continue;
            }
            same_matrix(a, &p->ffn.moe.router_gate, b, &q->ffn.moe.router_gate);
            ck_assert_uint_eq(p->ffn.moe.first_group, p->group + 1);
            for (size_t e = 0; e < p->ffn.moe.router.experts; e++) {
                same_expert(a, &p->ffn.moe.experts[e], b, &q->ffn.moe.experts[e]);
            }
        }
        perigee_model_free(a);
        perigee_model_free(b);
    }
}
END_TEST

START_TEST(the_fingerprint_sees_a_change) {
    char folder[256];
    perigee_model *before = golden_model(context, "kimi_k2", NULL);
    static const uint16_t one = 0x3f80;
    copy_case("kimi_k2", folder, sizeof folder);
    damage(folder, "model.layers.2.input_layernorm.weight", 6, &one, sizeof one);
    perigee_model *after = load_folder(context, folder);
    ck_assert_uint_ne(before->fingerprint[0], after->fingerprint[0]);
    perigee_model_free(after);
    perigee_model_free(before);
    remove_case(folder);
}
END_TEST

/* One file and no index does as well as many with one. */
START_TEST(without_an_index) {
    char folder[256], path[512];
    copy_case("kimi_k3", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    unlink(path);
    perigee_model *model = load_folder(context, folder), *whole = golden_model(context, "kimi_k3", NULL);
    ck_assert_uint_eq(model->fingerprint[0], whole->fingerprint[0]);
    perigee_model_free(model);
    perigee_model_free(whole);
    remove_case(folder);
}
END_TEST

START_TEST(end_ids_of_both_configs) {
    char folder[256], path[512];
    static const char text[] = "{\"max_length\": 100, \"eos_token_id\": [258, 12, 13]}";
    copy_case("kimi_k3", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    write_whole(path, text, sizeof text - 1);
    perigee_model *model = load_folder(context, folder);
    perigee_model_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(perigee_model_get_info(model, &info, NULL), PERIGEE_OK);
    ck_assert_uint_eq(info.end_count, 3);
    ck_assert_int_eq(info.end_ids[0], 258);
    ck_assert_int_eq(info.end_ids[2], 13);
    perigee_model_free(model);
    remove_case(folder);
}
END_TEST

/* Small vectors, by hand: padding cut, rates out of their logarithm, mixes as products. */
START_TEST(small_vectors) {
    perigee_model *m = golden_model(context, "kimi_k3", "weights=mapped");
    const prg_kda_weights *kda = &m->layers[0].attention.kda;
    ck_assert(m->layers[0].is_kda && !m->layers[3].is_kda && m->layers[0].bank && !m->layers[1].bank);
    for (size_t h = 0; h < 4; h++) {
        ck_assert(kda->op.rate[h] > 1 && kda->op.rate[h] < 4); /* drawn from there by the generator */
    }
    ck_assert(kda->op.has_lower_bound && kda->op.lower_bound == -5);
    ck_assert_ptr_nonnull(m->final_mix);
    ck_assert_float_eq_tol(m->layers[3].attention.mla.scale, 1 / sqrtf(24), 1e-7F);
    ck_assert(!m->layers[3].attention.mla.rotary && m->layers[3].attention.mla.inner_eps == 1e-6F);
    perigee_model_free(m);
    m = golden_model(context, "kimi_k2", "inner_eps=0.25");
    ck_assert_float_eq(m->layers[0].attention.mla.inner_eps, 0.25F);
    ck_assert_float_eq_tol(m->layers[0].attention.mla.scale, (float)(1.8132604340 / sqrt(24)), 1e-6F);
    ck_assert_ptr_null(m->final_mix);
    ck_assert_ptr_null(m->layers[0].attention_mix);
    perigee_model_free(m);
}
END_TEST

/* What is computed at load rounds to nearest, whatever the host does; and the host's mode is as it was. */
START_TEST(in_the_rounding_of_a_host) {
    static const char *const names[] = {"kimi_k25", "kimi_k3"}; /* YaRN; rates and mixes */
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < 2 * 3; i++) {
        perigee_model *a = golden_model(context, names[i % 2], NULL);
        fesetround(modes[i / 2]);
        perigee_model *b = golden_model(context, names[i % 2], NULL);
        int kept = fegetround();
        fesetround(FE_TONEAREST);
        ck_assert_int_eq(kept, modes[i / 2]);
        ck_assert_double_eq(a->config.eps, b->config.eps);
        for (int64_t l = 0; l < a->config.layers; l++) {
            const prg_layer *p = &a->layers[l], *q = &b->layers[l];
            const size_t row = (size_t)a->config.hidden * sizeof(float);
            if (p->attention_mix) {
                ck_assert_mem_eq(p->attention_mix, q->attention_mix, row);
            }
            if (p->is_kda) {
                const prg_kda *x = &p->attention.kda.op, *y = &q->attention.kda.op;
                ck_assert_mem_eq(x->rate, y->rate, x->heads * sizeof *x->rate);
                continue;
            }
            const prg_mla_weights *x = &p->attention.mla, *y = &q->attention.mla;
            ck_assert_float_eq(x->scale, y->scale);
            ck_assert_float_eq(x->inner_eps, y->inner_eps);
            ck_assert_uint_eq(x->rotation.pairs, y->rotation.pairs);
            for (size_t k = 0; k < x->rotation.pairs; k++) {
                ck_assert_double_eq(x->rotation.frequency[k], y->rotation.frequency[k]);
            }
        }
        perigee_model_free(a);
        perigee_model_free(b);
    }
}
END_TEST

START_TEST(a_tokenizer_in_the_folder) {
    char folder[256], path[512], text[256 * 24] = "";
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 256; i++) {
        snprintf(text + strlen(text), 24, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i);
    }
    copy_case("kimi_k3", folder, sizeof folder);
    snprintf(path, sizeof path, "%s/tiktoken.model", folder);
    write_whole(path, text, strlen(text));
    perigee_model *model = load_folder(context, folder);
    ck_assert_ptr_nonnull(perigee_model_tokenizer(model));
    perigee_model_free(model);
    write_whole(path, "nonsense", 8);
    perigee_error *err = NULL;
    model = NULL;
    perigee_status st = perigee_model_load(context, folder, SIZE_MAX, NULL, NULL, NULL, NULL, &model, &err);
    ck_assert_int_eq(st, PERIGEE_E_FORMAT);
    ck_assert_ptr_null(model);
    perigee_error_free(err);
    remove_case(folder);
    model = golden_model(context, "kimi_k3", NULL);
    ck_assert_ptr_null(perigee_model_tokenizer(model));
    perigee_model_free(model);
}
END_TEST

PRG_SUITE("load", setup, teardown, resident_and_mapped_agree, the_fingerprint_sees_a_change, without_an_index,
          end_ids_of_both_configs, small_vectors, in_the_rounding_of_a_host, a_tokenizer_in_the_folder)
