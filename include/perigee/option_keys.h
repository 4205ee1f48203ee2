/* Written by tools/public_enums.sh from src/base/options.def. */
#ifndef PERIGEE_OPTION_KEYS_H
#define PERIGEE_OPTION_KEYS_H

/** Keys of options. Numbers never change. perigee_option_describe() tells type, scope and bounds. */
typedef enum perigee_option {
    PERIGEE_OPTION_THREADS = 1, /**< threads of a step; 0: one for each usable core */
    PERIGEE_OPTION_CPUS = 2, /**< processors to bind threads to, as 0,2-5; empty: unbound */
    PERIGEE_OPTION_KERNELS = 3, /**< kernel table: auto, scalar, avx2, avx512, amx, neon */
    PERIGEE_OPTION_PRECISION = 4, /**< precision of products: exact, balanced, fast */
    PERIGEE_OPTION_LOG_LEVEL = 5, /**< 0 nothing, 1 errors, 2 warnings, 3 information, 4 all */
    PERIGEE_OPTION_PLUGINS = 6, /**< kernel plugins to load: paths separated by colons */
    PERIGEE_OPTION_TRACE_KERNELS = 7, /**< 1: count and time the calls of kernels */
    PERIGEE_OPTION_CHECK_KERNELS = 8, /**< 1: run each call of a kernel through a scalar row too, and compare */
    PERIGEE_OPTION_WEIGHTS = 20, /**< where weights lie: auto, resident, mapped */
    PERIGEE_OPTION_INNER_EPS = 21, /**< epsilon of the norms inside latent attention */
    PERIGEE_OPTION_MEMORY_BUDGET = 22, /**< ceiling of memory in bytes; 0: what the system has */
    PERIGEE_OPTION_TRUNK = 23, /**< resident form of the trunk: published, q8_0 */
    PERIGEE_OPTION_CONTEXT = 40, /**< longest position; 0: what the model was made for */
    PERIGEE_OPTION_CHUNK = 41, /**< tokens of a prefill chunk; 0: from sizes */
    PERIGEE_OPTION_CACHE_TYPE = 42, /**< type of the latent cache: float32, bfloat16 */
    PERIGEE_OPTION_CHECKPOINTS = 43, /**< bytes for recurrent checkpoints to rewind to; 0: none */
    PERIGEE_OPTION_CHECKPOINT_INTERVAL = 44 /**< tokens between recurrent checkpoints */
} perigee_option;

#endif
