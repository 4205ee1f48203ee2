/**
 * @file kernel.h The interface of kernels: what a row of the table is, and what its functions take.
 *
 * A row's functions are pure: they allocate nothing, cannot fail (HOST rows apart), call nothing of the host and touch
 * only what they are given. Every buffer of floats starts at a multiple of 64 bytes unless said otherwise; nothing is
 * read or written past the sizes named. Appending to structs is the only way in which this interface grows.
 */
#ifndef PERIGEE_SYS_KERNEL_H
#define PERIGEE_SYS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the structs below. */
#define PERIGEE_KERNEL_VERSION 2

/** How weights are stored. Numbers never change. */
typedef enum perigee_dtype {
    PERIGEE_DTYPE_NONE = 0, /**< an op without weights */
    PERIGEE_DTYPE_F32 = 1,
    PERIGEE_DTYPE_F16 = 2,
    PERIGEE_DTYPE_BF16 = 3,
    PERIGEE_DTYPE_MXFP4 = 4, /**< codes: 2 a byte, low nibble first; scales: U8 E8M0, one for 32 columns */
    PERIGEE_DTYPE_INT4 = 5,  /**< codes: 2 a byte, low nibble first, value + 8; scales: BF16, one for 32 columns */
    PERIGEE_DTYPE_FP8 = 6,   /**< codes: E4M3; scales: F32, one for 128 rows x 128 columns, ceiling at the edges */
    PERIGEE_DTYPE_Q8_0 = 7   /**< codes: int8; scales: F32 or F16 as `scale_dtype` says, one for 32 columns */
} perigee_dtype;

/** A matrix of weights [rows, cols] where it lies. Rows of codes are contiguous and need no alignment beyond 1 byte. */
typedef struct perigee_matrix {
    uint32_t dtype;         /**< perigee_dtype */
    uint32_t layout;        /**< 0: as published; other values belong to the row that re-laid it */
    size_t rows;            /**< outputs of a product */
    size_t cols;            /**< inputs of a product */
    const void *codes;      /**< values, or codes of them */
    const void *scales;     /**< NULL where the dtype has none */
    size_t row_bytes;       /**< from one row of codes to the next */
    size_t scale_row_bytes; /**< from one row (or row of blocks) of scales to the next */
    uint32_t scale_dtype;   /**< perigee_dtype of scales where it can vary */
    uint32_t reserved;      /**< 0 */
} perigee_matrix;

/** What a row computes. Numbers never change. */
typedef enum perigee_op {
    PERIGEE_OP_MATMUL = 1,            /**< y[t, r] = sum over c of w[r, c] x[t, c]; perigee_matmul_functions */
    PERIGEE_OP_MATMUL_TRANSPOSED = 2, /**< y[t, c] = sum over r of x[t, r] w[r, c]; perigee_transposed_functions */
    PERIGEE_OP_GATED_ACTIVATION = 3,  /**< perigee_gated_functions */
    PERIGEE_OP_RMS_NORM = 4,          /**< perigee_norm_functions */
    PERIGEE_OP_SOFTMAX = 5,           /**< perigee_softmax_functions */
    PERIGEE_OP_SHORT_CONV = 6,        /**< perigee_conv_functions */
    PERIGEE_OP_KDA = 7,               /**< perigee_kda_functions */
    PERIGEE_OP_ATTENTION = 8,         /**< perigee_attention_functions */
    PERIGEE_OP_RESIDUAL_MIX = 9       /**< perigee_mix_functions */
} perigee_op;

/** How near to exact arithmetic a row is; a context of one precision also uses rows of the ones before it. */
typedef enum perigee_precision {
    PERIGEE_PRECISION_EXACT = 0,    /**< as float32: 1e-6 of sqrt(sum (w x)^2) */
    PERIGEE_PRECISION_BALANCED = 1, /**< 1e-4 of it, 2e-5 in the mean */
    PERIGEE_PRECISION_FAST = 2      /**< as the row says */
} perigee_precision;

/** What a processor must have; bits of perigee_kernel_row.features. */
typedef enum perigee_cpu_feature {
    PERIGEE_CPU_AVX2 = 1,        /**< AVX2, FMA and F16C */
    PERIGEE_CPU_AVX512 = 2,      /**< AVX-512 F, BW, VL and DQ */
    PERIGEE_CPU_AVX512_VNNI = 4, /**< and VNNI and VBMI */
    PERIGEE_CPU_AVX512_BF16 = 8, /**< and BF16 */
    PERIGEE_CPU_NEON = 16,
    PERIGEE_CPU_DOTPROD = 32, /**< int8 dot products of ARMv8.2 */
    PERIGEE_CPU_AMX_BF16 = 64 /**< tiles of AMX, with BF16, and leave of the system: docs/api.md */
} perigee_cpu_feature;

/** Bits of perigee_kernel_row.flags. */
typedef enum perigee_kernel_flag {
    PERIGEE_KERNEL_NONDETERMINISTIC = 1, /**< bits may depend on threads or on how many rows come together */
    PERIGEE_KERNEL_HOST = 2              /**< runs on the calling thread only, and may fail */
} perigee_kernel_flag;

/** Any function; cast to the type that the op names. */
typedef void (*perigee_kernel_fn)(void);

/**
 * PERIGEE_OP_MATMUL. Rows of activations are packed once, then multiplied by ranges of rows of weights, by any number
 * of threads. The bits of an output depend on its row of weights and its row of activations alone.
 */
typedef struct perigee_matmul_functions {
    /** Bytes of one packed row of k activations: a multiple of 64, not 0. */
    size_t (*packed_bytes)(size_t k);
    /** Pack rows 0 ... m - 1 of x, one after the other. x needs no alignment beyond 4 bytes. */
    void (*pack)(const float *x, size_t ldx, size_t m, size_t k, void *packed);
    /** Bytes of scratch that one call of multiply takes. */
    size_t (*scratch_bytes)(size_t m, size_t k);
    /** y[t * ldy + r - first] for m rows t and rows first <= r < first + count of w; row t is packed row rows[t], or t
     *  where `rows` is NULL. y needs no alignment beyond 4 bytes. */
    void (*multiply)(const perigee_matrix *w, size_t first, size_t count, const void *packed, const uint32_t *rows,
                     size_t m, float *y, size_t ldy, void *scratch);
    /** HOST rows: the whole product in one call, the other functions being NULL. Not 0: it failed. */
    int32_t (*host)(void *user, const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx,
                    size_t m, float *y, size_t ldy);
} perigee_matmul_functions;

/** PERIGEE_OP_MATMUL_TRANSPOSED: each y is one chain of fused multiply-adds over rows first, first + 1 … of w, from 0.
 */
typedef struct perigee_transposed_functions {
    /** y[t * ldy + c] for all m rows t and all columns c; x[t * ldx + r - first]. No alignment beyond 4 bytes. */
    void (*multiply)(const perigee_matrix *w, size_t first, size_t count, const float *x, size_t ldx, size_t m,
                     float *y, size_t ldy);
} perigee_transposed_functions;

/** PERIGEE_OP_GATED_ACTIVATION. */
typedef struct perigee_gated_functions {
    /** y[i] = act(gate[i], up[i]). Kind 0: silu(gate) * up. Kind 1 (SiTU): beta * tanh(gate / beta) * sigmoid(gate) *
     *  linear_beta * tanh(up / linear_beta); linear_beta 0: times up as it is. y may be gate or up. No alignment beyond
     *  4 bytes. */
    void (*gated)(const float *gate, const float *up, size_t n, int kind, float beta, float linear_beta, float *y);
} perigee_gated_functions;

/** PERIGEE_OP_RMS_NORM. No alignment beyond 4 bytes. */
typedef struct perigee_norm_functions {
    /** y[i] = gain[i] * x[i] / sqrt(mean(x^2) + eps), then times sigmoid(gate[i]) unless `gate` is NULL. y may be x. */
    void (*rms_norm)(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y);
} perigee_norm_functions;

/** PERIGEE_OP_SOFTMAX, and the elementwise functions beside it. No alignment beyond 4 bytes; y may be x. */
typedef struct perigee_softmax_functions {
    /** y = softmax(x), n > 0 values. */
    void (*softmax)(const float *x, size_t n, float *y);
    /** y[i] = 1 / (1 + exp(-x[i])) */
    void (*sigmoid)(const float *x, size_t n, float *y);
    /** y[i] *= sigmoid(gate[i]) */
    void (*sigmoid_gate)(const float *gate, size_t n, float *y);
} perigee_softmax_functions;

/** Channels first … first + count - 1 of a short causal convolution with SiLU: see perigee_conv_functions. */
typedef struct perigee_conv_job {
    const float *taps;    /**< [channels, n_taps], the last meets the newest input */
    size_t n_taps;        /**< 1 … 16 */
    size_t channels;      /**< of all arrays */
    const float *history; /**< [n_taps - 1, channels], oldest first */
    float *next;          /**< the same after row m - 1 */
    const float *u;       /**< [m, channels] */
    size_t ldu;           /**< from row to row of u */
    size_t m;             /**< rows, that is tokens */
    float *y;             /**< [m, channels]; may be u */
    size_t ldy;           /**< from row to row of y */
    size_t first;         /**< first channel to compute */
    size_t count;         /**< number of channels to compute */
} perigee_conv_job;

/** PERIGEE_OP_SHORT_CONV. No alignment beyond 4 bytes. */
typedef struct perigee_conv_functions {
    /** y[t, c] = silu(sum over j of taps[c, j] u[t - n_taps + 1 + j, c]) */
    void (*conv)(const perigee_conv_job *job);
} perigee_conv_functions;

/** m tokens of one head of Kimi Delta Attention: see perigee_kda_functions. All pointers are those of the head. */
typedef struct perigee_kda_job {
    size_t dim; /**< of keys and of values, 1 … 1024 */
    size_t m;   /**< > 0 */
    /** S [dim (key), dim (value)], without the update of the last token before, in panels of 64 columns, the last one
     *  narrower: column c of row i is at i * width + c - p of the panel that begins at p * dim, p = c / 64 * 64. */
    const float *state;
    float *next;          /**< S after m - 1 of the m tokens; may be `state` */
    const float *pending; /**< [3, dim] of the last token before: normalised key, decay, beta * (value - prediction) */
    float *next_pending;  /**< the same of the last token; may be `pending` */
    const float *q;       /**< [m, dim] queries, behind convolution and SiLU, not yet normalised */
    const float *k;       /**< [m, dim] keys, likewise */
    const float *v;       /**< [m, dim] values, likewise */
    const float *f;       /**< [m, dim] what the decay is made of */
    size_t ld;            /**< from token to token, of the four */
    const float *dt_bias; /**< [dim] added to f */
    float rate;           /**< exp(A_log) of the head */
    uint32_t has_lower_bound; /**< 0: log decay = -rate * softplus(f + dt_bias);
                               *   1: lower_bound * sigmoid(rate * (f + dt_bias)) */
    float lower_bound;        /**< below 0 */
    const float *beta;        /**< [m], before its sigmoid */
    size_t ldbeta;            /**< from token to token */
    float *out;               /**< [m, dim] */
    size_t ldo;               /**< from token to token */
    float *scratch;           /**< 7 * dim + 4096 floats */
} perigee_kda_job;

/** Columns of a panel of the state of a head. */
#define PERIGEE_KDA_PANEL 64

/** PERIGEE_OP_KDA. No alignment beyond 4 bytes. */
typedef struct perigee_kda_functions {
    /** Take the tokens of a job in: its outputs, and the state behind them. */
    void (*run)(const perigee_kda_job *job);
} perigee_kda_functions;

/** Rows of queries that a tile of keys is attended from: see perigee_attention_functions. */
typedef struct perigee_attention_tile {
    size_t rank;             /**< width of a latent, which is key and value */
    size_t rope;             /**< width of the key beside the latent */
    size_t rows;             /**< of queries */
    const float *q;          /**< [ceil(rows / 6), rank + rope, 6]; rows beyond the last are 0 */
    float scale;             /**< of scores */
    uint32_t bf16;           /**< latents are bfloat16, else float32 */
    const void *latent;      /**< [keys, rank + rope] */
    size_t keys;             /**< 1 … 64 */
    const uint32_t *visible; /**< [rows]: how many of the keys the row sees, 0 … keys */
    float *max;              /**< [rows]: greatest score so far; -infinity at first */
    float *sum;              /**< [rows]: of exp(score - max) so far; 0 at first */
    float *z;                /**< [rows, rank rounded up to 16]: weighted sum of latents so far; 0 at first */
    float *scratch;          /**< 128 * (rank + rope) + 64 * (rows + 6) floats */
    const void *next;        /**< the latents that come after these, or NULL: a hint to fetch them early */
} perigee_attention_tile;

/** Rows of queries that lie side by side in perigee_attention_tile. */
#define PERIGEE_ATTENTION_GROUP 6
/** The most keys of a tile. */
#define PERIGEE_ATTENTION_KEYS 64

/** Rows of queries on their way over all keys, for a row that keeps what it makes of both in a form of its own: see
 *  perigee_attention_functions. No alignment beyond 4 bytes (latents: 2), but for `work`. */
typedef struct perigee_attention_walk {
    size_t rank;                /**< of latents */
    size_t rope;                /**< of the shared key behind a latent */
    size_t rows;                /**< of queries */
    float scale;                /**< of scores */
    uint32_t bf16;              /**< latents are bfloat16, else float32 */
    void *work;                 /**< the row's own from `begin` to `end`: work_bytes(), aligned to 64 */
    const float *q;             /**< `begin`: [rows, rank + rope] */
    size_t ldq;                 /**< from row to row of q */
    const void *const *latents; /**< `step`: tiles of 64 keys, each [64, rank + rope], the last one of fewer */
    size_t keys;                /**< `step`: 1 … 256; fewer than 256 in the last step only */
    const uint32_t *visible;    /**< `step`: [rows]: how many of the keys the row sees, 0 … keys */
    const void *const *next;    /**< `step`: whole tiles that come after these: a hint to fetch them early */
    size_t n_next;              /**< 0 … 4 of them */
    float *z;                   /**< `end`: [rows, rank]: mean of latents, weighted with the softmax of scores */
    size_t ldz;                 /**< from row to row of z */
} perigee_attention_walk;

/** Keys of a step of perigee_attention_walk. */
#define PERIGEE_ATTENTION_STEP 256

/** PERIGEE_OP_ATTENTION. Keys come in their order; a row's bits depend on what it sees alone. The error bound of a
 *  kernel row is that of each score and of z as if scores were exact. */
typedef struct perigee_attention_functions {
    /** Go over the keys of a tile: max, sum and z are those with its keys after the call. May be NULL if the functions
     *  below are there, which go before it. */
    void (*tile)(const perigee_attention_tile *tile);
    /** Bytes of `work`, whatever the form of latents. */
    size_t (*work_bytes)(size_t rank, size_t rope, size_t rows);
    /** Take in queries. */
    void (*begin)(const perigee_attention_walk *walk);
    /** Go over 256 keys, as often as it takes. */
    void (*step)(const perigee_attention_walk *walk);
    /** Give out z. */
    void (*end)(const perigee_attention_walk *walk);
} perigee_attention_functions;

/** PERIGEE_OP_RESIDUAL_MIX. No alignment beyond 4 bytes. */
typedef struct perigee_mix_functions {
    /** score[j] = sum over i of key[i] v_j[i] / sqrt(mean(v_j^2) + eps) with v_j = sources[j] + offset;
     *  y = sum over j of softmax(score)[j] v_j. score: [n], overwritten. */
    void (*mix)(const float *const *sources, size_t n, size_t offset, const float *key, size_t width, float eps,
                float *score, float *y);
} perigee_mix_functions;

/**
 * A kernel. Strings and functions live as long as the row's origin does.
 *
 * A signature is "result(type,type,...)" of the types void, ptr, const ptr, size, i32, u32, i64, u64, f32 and f64. It
 * is what the row says of its function: a number of parameters, a type or a const that the op does not have is refused.
 * Whether the machine code keeps to it can't be seen.
 */
typedef struct perigee_kernel_row {
    size_t struct_size;   /**< sizeof(perigee_kernel_row) */
    uint32_t op;          /**< perigee_op */
    uint32_t dtype;       /**< perigee_dtype of the weights that it reads as they are stored */
    uint32_t precision;   /**< perigee_precision */
    uint32_t flags;       /**< perigee_kernel_flag */
    uint64_t features;    /**< perigee_cpu_feature: all that it needs */
    int32_t priority;     /**< of rows that fit equally well, the highest goes first */
    uint32_t reserved;    /**< 0 */
    double error_bound;   /**< of |y - exact| / sqrt(sum (w x)^2); 0 where it does not apply */
    const char *name;     /**< as "matmul_bf16_avx512"; it, isa and numerics are printable UTF-8 and not empty */
    const char *isa;      /**< as "avx512" */
    const char *numerics; /**< rows of one op and dtype with equal numerics give equal bits */
    /** Of the main function: multiply (host in HOST rows) of products, the first one of other ops; may be NULL. */
    const char *signature;
    size_t row_tile;   /**< work is split at multiples of it; 0: 1 */
    size_t token_tile; /**< rows of activations that it takes at a time; 0: 1 */
    void *user;        /**< for HOST rows */
    union {
        perigee_kernel_fn functions[8];
        perigee_matmul_functions matmul;
        perigee_transposed_functions transposed;
        perigee_gated_functions gated;
        perigee_norm_functions norm;
        perigee_softmax_functions softmax;
        perigee_conv_functions conv;
        perigee_kda_functions kda;
        perigee_attention_functions attention;
        perigee_mix_functions mix;
    } run; /**< the functions of `op` */
    /**
     * A bare function in place of `run`, called as it is; `signature` says its type and must be there. For ops of one
     * function it is that one. PERIGEE_OP_MATMUL: "void(const ptr,size,size,const ptr,size,size,ptr,size)" of w, first,
     * count, x, ldx, m, y, ldy as perigee_transposed_functions.multiply has them, for
     * y[t * ldy + r] = sum over c of w[first + r, c] x[t * ldx + c]. Not for PERIGEE_OP_SOFTMAX. Since version 2.
     */
    perigee_kernel_fn function;
} perigee_kernel_row;

/** What a plugin is given. */
typedef struct perigee_kernel_registry {
    size_t struct_size; /**< sizeof(perigee_kernel_registry) of the library */
    uint32_t version;   /**< PERIGEE_KERNEL_VERSION of the library */
    uint32_t reserved;  /**< 0 */
    uint64_t features;  /**< perigee_cpu_feature that processor and system have, tiles with leave of the system */
    void *self;         /**< first argument of add */
    /** Offer a row (copied). Not 0: refused; return that value at once. */
    int32_t (*add)(void *self, const perigee_kernel_row *row);
} perigee_kernel_registry;

/**
 * A plugin is a shared object that exports a function of this type under the name "perigee_kernel_plugin". It adds its
 * rows and returns 0; any other value refuses, and nothing of it stays. Its file stays loaded as long as a table uses
 * it. It may also export the version that it was built for, as `const uint32_t perigee_kernel_plugin_version =
 * PERIGEE_KERNEL_VERSION;`: one that the library doesn't know is refused before the function is called.
 */
typedef int32_t (*perigee_kernel_plugin_fn)(const perigee_kernel_registry *registry);

#ifdef __cplusplus
}
#endif

#endif
