/** @file model.h Opening, planning, describing and loading a checkpoint. */
#ifndef PERIGEE_MODEL_H
#define PERIGEE_MODEL_H

#include "perigee/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A loaded model. Immutable, counted, shared by any number of threads and sessions; it holds its context. */
typedef struct perigee_model perigee_model;

/**
 * Progress of a load, on the calling thread: bytes done and bytes in all (at least 1). Return 0 to go on; anything else
 * stops the load with PERIGEE_E_CALLBACK.
 */
typedef int (*perigee_progress_fn)(int64_t done, int64_t total, void *user);

/**
 * Load the checkpoint at `path` (a folder in the published layout; `length` bytes, SIZE_MAX: ends in NUL). `options`
 * takes those of PERIGEE_SCOPE_MODEL; NULL: defaults. `progress` and `cancel` may be NULL. On failure nothing is left
 * behind.
 *
 * With weights=mapped, a file that another process truncates while the model lives faults as the system has it
 * (SIGBUS). Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_model_load(perigee_context *context, const char *path, size_t length,
                                              const perigee_options *options, perigee_progress_fn progress,
                                              void *progress_user, perigee_cancel *cancel, perigee_model **out,
                                              perigee_error **err);
/** Drop the caller's reference. Sessions hold their own. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_model_free(perigee_model *model);

/** What a host needs to know of a model. Strings are borrowed from the model. */
typedef struct perigee_model_info {
    size_t struct_size;     /**< set by the caller to sizeof(perigee_model_info) */
    const char *family;     /**< "kimi_k3", "kimi_linear", "kimi_k2", "kimi_k25" or "deepseek_v3" */
    int64_t vocabulary;     /**< rows of the head: logits of one position */
    int64_t hidden;         /**< width of the residual stream */
    int64_t layers;         /**< decoder layers */
    int64_t kda_layers;     /**< of these, with Kimi Delta Attention */
    int64_t context;        /**< longest position that the model was made for */
    int64_t bos;            /**< first token id, or -1 */
    const int32_t *end_ids; /**< ids that end a reply, of config and generation config */
    size_t end_count;       /**< number of them */
    int64_t weight_bytes;   /**< bytes of weights on disk that the text model uses */
    int64_t resident_bytes; /**< bytes of weights held in memory */
    int64_t token_bytes;    /**< bytes of weights that a step of one token reads */
} perigee_model_info;

/** Fill in `out`. Any thread. Since 0.1. */
PERIGEE_API perigee_status perigee_model_get_info(const perigee_model *model, perigee_model_info *out,
                                                  perigee_error **err);

/** What a load and its sessions will take; all in bytes but where said. */
typedef struct perigee_plan {
    size_t struct_size;          /**< set by the caller to sizeof(perigee_plan) */
    int64_t disk_bytes;          /**< weights of the text model on disk */
    int64_t resident_bytes;      /**< weights in memory after the load; 0 where they are mapped */
    int64_t relaid_bytes;        /**< of these, copies in another layout or form */
    int64_t table_bytes;         /**< bound structs, names, norms: what the model takes beside weights */
    int64_t token_bytes;         /**< weights that a step of one token reads */
    int64_t session_fixed_bytes; /**< recurrent and convolution state of a session, both copies, and its buffers */
    int64_t session_token_bytes; /**< latent cache for each token of context */
    int64_t cache_block_tokens;  /**< tokens of one cache block; the cache grows by whole blocks */
    int64_t scratch_bytes;       /**< scratch of the context for a chunk of `chunk` tokens */
    int64_t chunk;               /**< tokens of a prefill chunk */
    int64_t context;             /**< longest position */
    int64_t available_bytes;     /**< memory that the system grants this process, containers considered */
    int32_t mapped;              /**< 1: weights would be mapped, 0: resident */
    int32_t fits;                /**< 1 if weights, scratch and one session at full context fit in available_bytes */
} perigee_plan;

/**
 * Work out what loading `path` takes. `options` may mix PERIGEE_SCOPE_MODEL and PERIGEE_SCOPE_SESSION. Reads headers,
 * no weights. `path` may also be a config.json alone. Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_model_plan(perigee_context *context, const char *path, size_t length,
                                              const perigee_options *options, perigee_plan *out, perigee_error **err);

/** The components of a model with exact counts. Immutable, any thread; freed with perigee_description_free(). */
typedef struct perigee_description perigee_description;

/** One component: a kind of tensor, counted over the layers that have it. Strings are borrowed from the description. */
typedef struct perigee_component {
    size_t struct_size;   /**< set by the caller to sizeof(perigee_component) */
    const char *name;     /**< as "moe.routed_expert_norm" */
    const char *title;    /**< a few words for people */
    const char *formula;  /**< the calculation, as "7,168 × 24 MLA layers = 172,032" */
    const char *shape;    /**< of one instance, as "[7168]" */
    const char *stored;   /**< stored form, as "BF16", "MXFP4"; "" from a config alone where unknown */
    int64_t per_instance; /**< logical weights of one instance */
    int64_t instances;    /**< number of instances */
    int64_t total;        /**< per_instance * instances */
    int64_t active;       /**< of total, those that one token uses */
    int64_t disk_total;   /**< logical weights found on disk, or -1 from a config alone */
    int64_t disk_bytes;   /**< bytes found on disk, or -1 from a config alone */
} perigee_component;

/** Totals of a description. */
typedef struct perigee_totals {
    size_t struct_size; /**< set by the caller to sizeof(perigee_totals) */
    const char *family; /**< borrowed from the description */
    int64_t parameters; /**< logical weights, correction biases included; scales, padding and stray buffers apart */
    int64_t active;     /**< of these, those that one token uses */
    int64_t disk_parameters; /**< as found on disk, or -1 */
    int64_t disk_bytes;      /**< of the text model's tensors on disk, or -1 */
    int64_t layers;          /**< decoder layers */
    int64_t kda_layers;      /**< of these, with Kimi Delta Attention */
    int64_t mla_layers;      /**< of these, with latent attention */
    int64_t moe_layers;      /**< of these, with a mixture of experts */
} perigee_totals;

/**
 * Describe the checkpoint folder or config.json at `path`, from the config alone where no shard is there. Any thread.
 * Since 0.1.
 */
PERIGEE_API perigee_status perigee_model_describe(perigee_context *context, const char *path, size_t length,
                                                  perigee_description **out, perigee_error **err);
/**
 * perigee_model_describe() and perigee_model_plan() of one look at the files: whichever of `description` and `plan` is
 * not NULL, both or none. Any thread. Since 0.1.
 */
PERIGEE_API perigee_status perigee_model_inspect(perigee_context *context, const char *path, size_t length,
                                                 const perigee_options *options, perigee_description **description,
                                                 perigee_plan *plan, perigee_error **err);
/** Number of components. Since 0.1. */
PERIGEE_API size_t perigee_description_count(const perigee_description *description);
/** Component `index`, in the order of the forward pass. Since 0.1. */
PERIGEE_API perigee_status perigee_description_component(const perigee_description *description, size_t index,
                                                         perigee_component *out, perigee_error **err);
/** Totals. Since 0.1. */
PERIGEE_API perigee_status perigee_description_totals(const perigee_description *description, perigee_totals *out,
                                                      perigee_error **err);
/** Free a description. NULL is allowed. Since 0.1. */
PERIGEE_API void perigee_description_free(perigee_description *description);

#ifdef __cplusplus
}
#endif

#endif
