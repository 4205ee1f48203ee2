#include "synth_tensors.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
    const synth_family *family;
    synth_visit visit;
    void *user;
    const char *prefix;
    char module[160]; /* prefix of what is emitted now, as "model.layers.3.self_attn" */
    bool going;
} walk;

static void within(walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void within(walk *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(w->module, sizeof w->module, format, list);
    va_end(list);
}

static void emit(walk *w, const char *name, const char *dtype, synth_values values, size_t rank, uint64_t a, uint64_t b,
                 uint64_t c, uint64_t d) {
    if (!w->going) {
        return;
    }
    synth_tensor tensor = {.dtype = dtype, .rank = rank, .shape = {a, b, c, d}, .values = values};
    snprintf(tensor.name, sizeof tensor.name, "%s%s%s%s", w->prefix, w->module, w->module[0] ? "." : "", name);
    w->going = w->visit(w->user, &tensor);
}

static void vector(walk *w, const char *name, bool f32, int64_t count, double mean, double spread) {
    emit(w, name, f32 ? "F32" : "BF16", (synth_values){f32 ? SYNTH_NORMAL_F32 : SYNTH_NORMAL_BF16, mean, spread}, 1,
         (uint64_t)count, 0, 0, 0);
}

static void gain(walk *w, const char *name, int64_t count) {
    vector(w, name, false, count, 1, 0.2);
}

/* Names of the tensors of one matrix. */
static const char *joined(char *buffer, size_t size, const char *name, const char *suffix) {
    snprintf(buffer, size, "%s.%s", name, suffix);
    return buffer;
}

/* Values are scaled so that a row's product with a vector keeps the vector's root mean square. */
static void matrix(walk *w, const char *name, int64_t rows, int64_t cols, synth_store store, double strength) {
    double spread = strength / sqrt((double)cols);
    uint64_t r = (uint64_t)rows;
    uint64_t k = (uint64_t)cols;
    char buffer[160];
    switch (store) {
    case SYNTH_BF16:
        emit(w, joined(buffer, sizeof buffer, name, "weight"), "BF16", (synth_values){SYNTH_NORMAL_BF16, 0, spread}, 2,
             r, k, 0, 0);
        return;
    case SYNTH_MXFP4:
        emit(w, joined(buffer, sizeof buffer, name, "weight_packed"), "U8", (synth_values){SYNTH_CODES_MXFP4, 0, 0}, 2,
             r, k / 2, 0, 0);
        emit(w, joined(buffer, sizeof buffer, name, "weight_scale"), "U8",
             (synth_values){SYNTH_SCALES_MXFP4, 0, spread}, 2, r, k / 32, 0, 0);
        return;
    case SYNTH_INT4:
        emit(w, joined(buffer, sizeof buffer, name, "weight_packed"), "I32", (synth_values){SYNTH_CODES_INT4, 0, 0}, 2,
             r, k / 8, 0, 0);
        emit(w, joined(buffer, sizeof buffer, name, "weight_scale"), "BF16",
             (synth_values){SYNTH_SCALES_INT4, 0, spread}, 2, r, k / 32, 0, 0);
        emit(w, joined(buffer, sizeof buffer, name, "weight_shape"), "I32",
             (synth_values){SYNTH_SHAPE_I32, (double)rows, (double)cols}, 1, 2, 0, 0, 0);
        return;
    case SYNTH_FP8:
        emit(w, joined(buffer, sizeof buffer, name, "weight"), "F8_E4M3", (synth_values){SYNTH_CODES_FP8, 0, 0}, 2, r,
             k, 0, 0);
        emit(w, joined(buffer, sizeof buffer, name, "weight_scale_inv"), "F32",
             (synth_values){SYNTH_SCALES_FP8, 0, spread}, 2, (r + 127) / 128, (k + 127) / 128, 0, 0);
        return;
    }
}

/* K2's FP8 covers every matrix of a layer; the 4-bit forms are for routed experts alone. */
static synth_store trunk(const synth_family *f) {
    return f->store == SYNTH_FP8 ? SYNTH_FP8 : SYNTH_BF16;
}

static void kda(walk *w) {
    const synth_family *f = w->family;
    int64_t inner = f->kda_heads * f->kda_dim;
    bool full = f->inner_full_rank;
    static const char *const parts[] = {"q", "k", "v"};
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_proj", parts[i]);
        matrix(w, name, inner, f->hidden, SYNTH_BF16, 1);
        snprintf(name, sizeof name, "%s_conv1d.weight", parts[i]);
        emit(w, name, full ? "F32" : "BF16", (synth_values){full ? SYNTH_NORMAL_F32 : SYNTH_NORMAL_BF16, 0, 0.5}, 3,
             (uint64_t)inner, 1, (uint64_t)f->taps, 0);
    }
    if (full) {
        /* stored padded with zeros to the next 32 */
        uint64_t padded = (uint64_t)(f->kda_heads + 32 - f->kda_heads % 32);
        emit(w, "A_log", "F32", (synth_values){SYNTH_LOG_RATE_F32, 4, (double)f->kda_heads}, 1, padded, 0, 0, 0);
        matrix(w, "g_proj", inner, f->hidden, SYNTH_BF16, 1);
    } else {
        emit(w, "A_log", "F32", (synth_values){SYNTH_LOG_RATE_F32, 16, (double)f->kda_heads}, 4, 1, 1,
             (uint64_t)f->kda_heads, 1);
        matrix(w, "g_a_proj", f->kda_dim, f->hidden, SYNTH_BF16, 1);
        matrix(w, "g_b_proj", inner, f->kda_dim, SYNTH_BF16, 1);
    }
    vector(w, "dt_bias", true, inner, -2, 1);
    matrix(w, "f_a_proj", f->kda_dim, f->hidden, SYNTH_BF16, 1);
    matrix(w, "f_b_proj", inner, f->kda_dim, SYNTH_BF16, 1);
    matrix(w, "b_proj", f->kda_heads, f->hidden, SYNTH_BF16, 1);
    vector(w, "o_norm.weight", full, f->kda_dim, 1, 0.2);
    matrix(w, "o_proj", f->hidden, inner, SYNTH_BF16, 1);
}

static void mla(walk *w) {
    const synth_family *f = w->family;
    synth_store store = trunk(f);
    if (f->q_rank) {
        matrix(w, "q_a_proj", f->q_rank, f->hidden, store, 1);
        gain(w, "q_a_layernorm.weight", f->q_rank);
        matrix(w, "q_b_proj", f->heads * (f->nope + f->rope), f->q_rank, store, 1);
    } else {
        matrix(w, "q_proj", f->heads * (f->nope + f->rope), f->hidden, store, 1);
    }
    matrix(w, "kv_a_proj_with_mqa", f->kv_rank + f->rope, f->hidden, store, 1);
    gain(w, "kv_a_layernorm.weight", f->kv_rank);
    matrix(w, "kv_b_proj", f->heads * (f->nope + f->value), f->kv_rank, store, 1);
    matrix(w, "o_proj", f->hidden, f->heads * f->value, store, 1);
    if (f->stray) {
        emit(w, "rotary_emb.inv_freq", "BF16", (synth_values){SYNTH_CONSTANT_BF16, 1, 0}, 1, (uint64_t)f->stray, 0, 0,
             0);
    }
    if (f->inner_full_rank) {
        matrix(w, "g_proj", f->heads * f->value, f->hidden, SYNTH_BF16, 1);
    }
}

static void mlp(walk *w, int64_t inner) {
    int64_t hidden = w->family->hidden;
    matrix(w, "gate_proj", inner, hidden, trunk(w->family), 1);
    matrix(w, "up_proj", inner, hidden, trunk(w->family), 1);
    matrix(w, "down_proj", hidden, inner, trunk(w->family), 1);
}

static void moe(walk *w, int64_t layer) {
    const synth_family *f = w->family;
    const char *block = f->linear ? "block_sparse_moe" : "mlp";
    int64_t width = f->latent ? f->latent : f->hidden;
    within(w, "model.layers.%d.%s", (int)layer, block);
    matrix(w, "gate", f->experts, f->hidden, SYNTH_BF16, 1);
    bool bias_bf16 = f->linear ? !f->inner_full_rank : f->store == SYNTH_BF16;
    vector(w, "gate.e_score_correction_bias", !bias_bf16, f->experts, 0, 0.02);
    for (int64_t e = 0; e < f->experts; e++) {
        within(w, "model.layers.%d.%s.experts.%d", (int)layer, block, (int)e);
        matrix(w, f->linear ? "w1" : "gate_proj", f->moe_intermediate, width, f->store, 1);
        matrix(w, f->linear ? "w3" : "up_proj", f->moe_intermediate, width, f->store, 1);
        matrix(w, f->linear ? "w2" : "down_proj", width, f->moe_intermediate, f->store, 1);
    }
    within(w, "model.layers.%d.%s", (int)layer, block);
    if (f->latent) {
        matrix(w, "routed_expert_down_proj", f->latent, f->hidden, SYNTH_BF16, 1);
        matrix(w, "routed_expert_up_proj", f->hidden, f->latent, SYNTH_BF16, 1);
        gain(w, "routed_expert_norm.weight", f->latent);
    }
    within(w, "model.layers.%d.%s.shared_experts", (int)layer, block);
    mlp(w, f->moe_intermediate * f->shared);
}

static void layer(walk *w, int64_t index) {
    const synth_family *f = w->family;
    within(w, "model.layers.%d", (int)index);
    gain(w, "input_layernorm.weight", f->hidden);
    gain(w, "post_attention_layernorm.weight", f->hidden);
    if (f->residual_block) {
        gain(w, "self_attention_res_norm.weight", f->hidden);
        matrix(w, "self_attention_res_proj", 1, f->hidden, SYNTH_BF16, 1);
        gain(w, "mlp_res_norm.weight", f->hidden);
        matrix(w, "mlp_res_proj", 1, f->hidden, SYNTH_BF16, 1);
    }
    within(w, "model.layers.%d.self_attn", (int)index);
    (synth_is_kda(f, index) ? kda : mla)(w);
    if (index == 0) {
        within(w, "model.layers.0.mlp");
        mlp(w, f->intermediate);
    } else {
        moe(w, index);
    }
}

static void embed(walk *w) {
    within(w, "model.embed_tokens");
    emit(w, "weight", "BF16", (synth_values){SYNTH_NORMAL_BF16, 0, 1}, 2, (uint64_t)w->family->vocabulary,
         (uint64_t)w->family->hidden, 0, 0);
}

static void head(walk *w) {
    within(w, "%s", "");
    matrix(w, "lm_head", w->family->vocabulary, w->family->hidden, SYNTH_BF16, 3);
}

static void final_norms(walk *w) {
    within(w, "model");
    if (w->family->residual_block) {
        gain(w, "output_attn_res_norm.weight", w->family->hidden);
        matrix(w, "output_attn_res_proj", 1, w->family->hidden, SYNTH_BF16, 1);
    }
    gain(w, "norm.weight", w->family->hidden);
}

/* What the text model must skip; only the number of tensors and the bytes are as published. */
static void vision(walk *w) {
    const synth_family *f = w->family;
    w->prefix = "";
    int64_t each = f->vision_tensors ? f->vision_elements / f->vision_tensors : 0;
    for (int64_t i = 0; i < f->vision_tensors; i++) {
        bool last = i + 1 == f->vision_tensors;
        within(w, "%s", last ? "mm_projector" : "vision_tower");
        char name[64];
        snprintf(name, sizeof name, last ? "linear_1.weight" : "blocks.%d.weight", (int)i);
        emit(w, name, "BF16", (synth_values){SYNTH_NORMAL_BF16, 0, 0.02}, 1,
             (uint64_t)(last ? f->vision_elements - each * i : each), 0, 0, 0);
    }
}

size_t synth_file_count(const synth_family *f) {
    if (f->files == SYNTH_20_OF_27) {
        return (size_t)(f->layers * 20 / 27 > 0 ? f->layers * 20 / 27 : 1);
    }
    return (size_t)f->layers + (f->files == SYNTH_LAYER_AND_3 ? 3 : 0);
}

bool synth_walk_file(const synth_family *f, size_t file, synth_visit visit, void *user) {
    walk w = {.family = f, .visit = visit, .user = user, .prefix = f->wrapper ? "language_model." : "", .going = true};
    size_t count = synth_file_count(f);
    size_t layer_files = f->files == SYNTH_LAYER_AND_3 ? count - 3 : count;
    if (file == 0) {
        embed(&w);
    }
    for (int64_t i = 0; i < f->layers; i++) {
        if ((size_t)i * layer_files / (size_t)f->layers == file) {
            layer(&w, i);
        }
    }
    bool rest = file + 1 == count;
    if (f->files == SYNTH_LAYER_AND_3 ? file == layer_files : rest) {
        head(&w);
    }
    if (f->files == SYNTH_LAYER_AND_3 ? file == layer_files + 1 : rest) {
        final_norms(&w);
    }
    if (rest) {
        vision(&w);
    }
    return w.going;
}
