/* What sets the families apart: sizes as published, names, stored forms, files. */
#ifndef PERIGEE_WRITER_SYNTH_FAMILY_H
#define PERIGEE_WRITER_SYNTH_FAMILY_H

#include "synth.h"

typedef enum synth_store { SYNTH_BF16, SYNTH_MXFP4, SYNTH_INT4, SYNTH_FP8 } synth_store;
typedef enum synth_files { SYNTH_LAYER_AND_3, SYNTH_LAYER, SYNTH_20_OF_27 } synth_files;

typedef struct synth_family {
    const char *name;
    const char *model_type, *architecture; /* of the text config */
    const char *wrapper_type, *wrapper;    /* of what is around it, or NULL: flat */
    bool linear;                           /* Kimi Linear's keys and names, else DeepSeek's */
    bool inner_full_rank;                  /* K3: full-rank gates, F32 taps, attention residuals, SiTU */
    synth_store store;                     /* of routed experts; FP8: of every matrix in a layer */
    synth_files files;
    const char *file_format; /* of index from 1, and count */
    int64_t layers, hidden, intermediate, moe_intermediate, latent;
    int64_t heads, q_rank, kv_rank, nope, rope, value, head_dim;
    int64_t kda_heads, kda_dim, taps;
    int64_t experts, top_k, shared, residual_block;
    int64_t vocabulary, context, eos, stray;                           /* stray: length of inv_freq buffers, 0: none */
    double eps, routed_scale, rope_theta, yarn_factor, yarn_beta_fast; /* factor 0: no YaRN */
    int64_t vision_tensors, vision_elements;                           /* at published size */
    /* of this checkpoint, after synth_family_resize() */
    int64_t published_layers;
    bool published; /* all sizes as published */
} synth_family;

const synth_family *synth_family_find(const char *name);
/* Apply a request's sizes. */
synth_family synth_family_resize(const synth_family *family, const synth_request *request);
/* True if layer (zero-based) has Kimi Delta Attention. */
bool synth_is_kda(const synth_family *family, int64_t layer);
/* Write config.json and generation_config.json; false: out of memory or not written. */
bool synth_write_configs(const synth_family *family, const char *folder);

#endif
