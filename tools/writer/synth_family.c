#include "synth_family.h"

#include <string.h>

static const char DASHED[] = "model-%05d-of-%06d.safetensors";
static const char SHORT[] = "model-%d-of-%d.safetensors";
static const char PLAIN[] = "model-%05d-of-%05d.safetensors";

#define K2_SIZES                                                                                                       \
    .layers = 61, .hidden = 7168, .intermediate = 18432, .moe_intermediate = 2048, .heads = 64, .q_rank = 1536,        \
    .kv_rank = 512, .nope = 128, .rope = 64, .value = 128, .experts = 384, .top_k = 8, .shared = 1,                    \
    .vocabulary = 163840, .routed_scale = 2.827, .rope_theta = 50000

static const synth_family families[] = {
    {.name = "kimi_k3",
     .model_type = "kimi_linear",
     .architecture = "KimiLinearForCausalLM",
     .wrapper_type = "kimi_k3",
     .wrapper = "KimiK3ForConditionalGeneration",
     .linear = true,
     .inner_full_rank = true,
     .store = SYNTH_MXFP4,
     .files = SYNTH_LAYER_AND_3,
     .file_format = DASHED,
     .layers = 93,
     .hidden = 7168,
     .intermediate = 33792,
     .moe_intermediate = 3072,
     .latent = 3584,
     .heads = 96,
     .q_rank = 1536,
     .kv_rank = 512,
     .nope = 128,
     .rope = 64,
     .value = 128,
     .kda_heads = 96,
     .kda_dim = 128,
     .taps = 4,
     .experts = 896,
     .top_k = 16,
     .shared = 2,
     .residual_block = 12,
     .vocabulary = 163840,
     .context = 1048576,
     .eos = 163586,
     .eps = 1e-5,
     .routed_scale = 1.0,
     .vision_tensors = 168,
     .vision_elements = 447358976},
    {.name = "kimi_linear",
     .model_type = "kimi_linear",
     .architecture = "KimiLinearForCausalLM",
     .linear = true,
     .store = SYNTH_BF16,
     .files = SYNTH_20_OF_27,
     .file_format = PLAIN,
     .layers = 27,
     .hidden = 2304,
     .intermediate = 9216,
     .moe_intermediate = 1024,
     .heads = 32,
     .kv_rank = 512,
     .nope = 128,
     .rope = 64,
     .value = 128,
     .head_dim = 72,
     .kda_heads = 32,
     .kda_dim = 128,
     .taps = 4,
     .experts = 256,
     .top_k = 8,
     .shared = 1,
     .vocabulary = 163840,
     .context = 1048576,
     .eos = 163586,
     .eps = 1e-5,
     .routed_scale = 2.446,
     .rope_theta = 10000},
    {.name = "kimi_k2",
     .model_type = "kimi_k2",
     .architecture = "DeepseekV3ForCausalLM",
     .store = SYNTH_FP8,
     .files = SYNTH_LAYER,
     .file_format = SHORT,
     K2_SIZES,
     .context = 131072,
     .eos = 163585,
     .stray = 56,
     .eps = 1e-6,
     .yarn_factor = 32,
     .yarn_beta_fast = 1},
    {.name = "kimi_k2_int4",
     .model_type = "kimi_k2",
     .architecture = "DeepseekV3ForCausalLM",
     .store = SYNTH_INT4,
     .files = SYNTH_LAYER,
     .file_format = DASHED,
     K2_SIZES,
     .context = 262144,
     .eos = 163586,
     .eps = 1e-5,
     .yarn_factor = 64,
     .yarn_beta_fast = 1},
    {.name = "kimi_k25",
     .model_type = "kimi_k2",
     .architecture = "DeepseekV3ForCausalLM",
     .wrapper_type = "kimi_k25",
     .wrapper = "KimiK25ForConditionalGeneration",
     .store = SYNTH_INT4,
     .files = SYNTH_LAYER_AND_3,
     .file_format = DASHED,
     K2_SIZES,
     .context = 262144,
     .eos = 163585,
     .eps = 1e-5,
     .yarn_factor = 64,
     .yarn_beta_fast = 32,
     .vision_tensors = 335,
     .vision_elements = 470000000},
    {.name = "moonlight",
     .model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .store = SYNTH_BF16,
     .files = SYNTH_LAYER,
     .file_format = PLAIN,
     .layers = 27,
     .hidden = 2048,
     .intermediate = 11264,
     .moe_intermediate = 1408,
     .heads = 16,
     .kv_rank = 512,
     .nope = 128,
     .rope = 64,
     .value = 128,
     .experts = 64,
     .top_k = 6,
     .shared = 2,
     .vocabulary = 163840,
     .context = 8192,
     .eos = 163586,
     .eps = 1e-5,
     .routed_scale = 2.446,
     .rope_theta = 50000},
};

enum { FAMILIES = sizeof families / sizeof *families };

const char *const *synth_families(void) {
    static const char *names[FAMILIES + 1];
    for (size_t i = 0; i < FAMILIES; i++) {
        names[i] = families[i].name;
    }
    return names;
}

const synth_family *synth_family_find(const char *name) {
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].name, name) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

/* A width divided, at least one unit of `multiple`, and a multiple of it. */
static void divide(int64_t *width, int64_t by, int64_t multiple) {
    if (*width > 0 && by > 1) {
        int64_t divided = (*width / by + multiple - 1) / multiple * multiple;
        *width = divided > multiple ? divided : multiple;
    }
}

synth_family synth_family_resize(const synth_family *family, const synth_request *request) {
    synth_family f = *family;
    f.published_layers = f.layers;
    f.published = (!request->layers || request->layers == f.layers) &&
                  (!request->experts || request->experts == f.experts) &&
                  (!request->vocabulary || request->vocabulary == f.vocabulary) && request->shrink <= 1;
    if (request->layers) {
        f.layers = request->layers;
    }
    if (request->experts) {
        f.experts = request->experts;
        f.top_k = f.top_k < f.experts ? f.top_k : f.experts;
    }
    if (request->vocabulary) {
        /* special ids keep their distance from the end */
        int64_t end = f.vocabulary - f.eos;
        f.vocabulary = request->vocabulary;
        f.eos = end < f.vocabulary ? f.vocabulary - end : f.vocabulary - 1;
    }
    /* experts have groups of 32 columns; rotary dims come in pairs */
    int64_t *by_32[] = {&f.hidden, &f.intermediate, &f.moe_intermediate, &f.latent};
    int64_t *by_8[] = {&f.q_rank, &f.kv_rank, &f.nope, &f.value, &f.kda_dim};
    for (size_t i = 0; i < sizeof by_32 / sizeof *by_32; i++) {
        divide(by_32[i], request->shrink, 32);
    }
    for (size_t i = 0; i < sizeof by_8 / sizeof *by_8; i++) {
        divide(by_8[i], request->shrink, 8);
    }
    divide(&f.rope, request->shrink, 2);
    divide(&f.heads, request->shrink, 1);
    divide(&f.kda_heads, request->shrink, 1);
    f.head_dim = f.head_dim ? f.hidden / f.heads : 0;
    if (!f.published) {
        f.vision_tensors = f.vision_tensors ? 2 : 0;
        f.vision_elements = f.vision_tensors * 4096;
    }
    return f;
}

bool synth_is_kda(const synth_family *family, int64_t layer) {
    /* every fourth layer has latent attention, and so has the last one of a model of published length */
    return family->kda_heads && (layer + 1) % 4 != 0 && layer + 1 != family->published_layers;
}
