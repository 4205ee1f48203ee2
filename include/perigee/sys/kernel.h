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
#define PERIGEE_KERNEL_VERSION 1

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
    uint32_t dtype;  /**< perigee_dtype */
    uint32_t layout; /**< 0: as published; other values belong to the row that re-laid it */
    size_t rows, cols;
    const void *codes;
    const void *scales;     /**< NULL where the dtype has none */
    size_t row_bytes;       /**< from one row of codes to the next */
    size_t scale_row_bytes; /**< from one row (or row of blocks) of scales to the next */
    uint32_t scale_dtype;   /**< perigee_dtype of scales where it can vary */
    uint32_t reserved;
} perigee_matrix;

/** What a row computes. Numbers never change. */
typedef enum perigee_op {
    PERIGEE_OP_MATMUL = 1,            /**< y[t, r] = sum over c of w[r, c] x[t, c]; perigee_matmul_functions */
    PERIGEE_OP_MATMUL_TRANSPOSED = 2, /**< y[t, c] = sum over r of x[t, r] w[r, c]; perigee_transposed_functions */
    PERIGEE_OP_GATED_ACTIVATION = 3,  /**< perigee_gated_functions */
    PERIGEE_OP_RMS_NORM = 4,
    PERIGEE_OP_SOFTMAX = 5,
    PERIGEE_OP_SHORT_CONV = 6,
    PERIGEE_OP_KDA = 7,
    PERIGEE_OP_ATTENTION = 8,
    PERIGEE_OP_RESIDUAL_MIX = 9
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
    PERIGEE_CPU_DOTPROD = 32 /**< int8 dot products of ARMv8.2 */
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
    /** Bytes of one packed row of k activations: a multiple of 64. */
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

/** A kernel. Strings and functions live as long as the row's origin does. */
typedef struct perigee_kernel_row {
    size_t struct_size; /**< sizeof(perigee_kernel_row) */
    uint32_t op;        /**< perigee_op */
    uint32_t dtype;     /**< perigee_dtype of the weights that it reads as they are stored */
    uint32_t precision; /**< perigee_precision */
    uint32_t flags;     /**< perigee_kernel_flag */
    uint64_t features;  /**< perigee_cpu_feature: all that it needs */
    int32_t priority;   /**< of rows that fit equally well, the highest goes first */
    uint32_t reserved;
    double error_bound;    /**< of |y - exact| / sqrt(sum (w x)^2); 0 where it does not apply */
    const char *name;      /**< as "matmul_bf16_avx512" */
    const char *isa;       /**< as "avx512" */
    const char *numerics;  /**< rows of one op and dtype with equal numerics give equal bits */
    const char *signature; /**< of the main function, as "void(ptr,size,size,ptr,ptr,size,ptr,size,ptr)"; may be NULL */
    size_t row_tile;       /**< work is split at multiples of it */
    size_t token_tile;     /**< rows of activations that it takes at a time */
    void *user;            /**< for HOST rows */
    union {
        perigee_kernel_fn functions[8];
        perigee_matmul_functions matmul;
        perigee_transposed_functions transposed;
        perigee_gated_functions gated;
    } run;
} perigee_kernel_row;

/** What a plugin is given. */
typedef struct perigee_kernel_registry {
    size_t struct_size;
    uint32_t version; /**< PERIGEE_KERNEL_VERSION of the library */
    uint32_t reserved;
    uint64_t features; /**< perigee_cpu_feature that processor and system have */
    void *self;
    /** Offer a row (copied). Not 0: refused; return that value at once. */
    int32_t (*add)(void *self, const perigee_kernel_row *row);
} perigee_kernel_registry;

/**
 * A plugin is a shared object that exports a function of this type under the name "perigee_kernel_plugin". It adds its
 * rows and returns 0; any other value refuses, and nothing of it stays. Its file stays loaded as long as a table uses
 * it.
 */
typedef int32_t (*perigee_kernel_plugin_fn)(const perigee_kernel_registry *registry);

#ifdef __cplusplus
}
#endif

#endif
