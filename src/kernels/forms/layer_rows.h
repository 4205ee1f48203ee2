/* The rows of the kernels that are written over lanes, for the instruction set that the including file is compiled
 * for: ROWS(avx2, PERIGEE_CPU_AVX2, 100). */
#ifndef PRG_KERNELS_LAYER_ROWS_H
#define PRG_KERNELS_LAYER_ROWS_H

#include "kernels/rows.h"

#include "kernels/forms/conv_form.h"
#include "kernels/forms/kda_form.h"
#include "kernels/forms/norm_form.h"

#define ROW(which, operation, isa_, features_, priority_, ...)                                                         \
    const perigee_kernel_row prg_##which##_##isa_ = {.struct_size = sizeof(perigee_kernel_row),                        \
                                                     .op = PERIGEE_OP_##operation,                                     \
                                                     .dtype = PERIGEE_DTYPE_NONE,                                      \
                                                     .precision = PERIGEE_PRECISION_EXACT,                             \
                                                     .features = features_,                                            \
                                                     .priority = priority_,                                            \
                                                     .name = #which "_" #isa_,                                         \
                                                     .isa = #isa_,                                                     \
                                                     .numerics = "lanes16",                                            \
                                                     .row_tile = 1,                                                    \
                                                     .token_tile = 1,                                                  \
                                                     .run = {__VA_ARGS__}};

#define ROWS_BUT_ATTENTION(isa, features, priority)                                                                    \
    ROW(gated, GATED_ACTIVATION, isa, features, priority, .gated = {gated})                                            \
    ROW(norm, RMS_NORM, isa, features, priority, .norm = {rms_norm})                                                   \
    ROW(softmax, SOFTMAX, isa, features, priority, .softmax = {softmax, sigmoid, sigmoid_gate})                        \
    ROW(conv, SHORT_CONV, isa, features, priority, .conv = {conv})                                                     \
    ROW(kda, KDA, isa, features, priority, .kda = {kda})                                                               \
    ROW(mix, RESIDUAL_MIX, isa, features, priority, .mix = {mix})

#define ROWS(isa, features, priority)                                                                                  \
    ROWS_BUT_ATTENTION(isa, features, priority)                                                                        \
    ROW(attention, ATTENTION, isa, features, priority, .attention = {.tile = attention})

#endif
