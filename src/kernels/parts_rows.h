/* The row of a format of parts_formats.def for an instruction set, over static functions named
 * <what>_<type>_<precision>.
 */
#ifndef PRG_KERNELS_PARTS_ROWS_H
#define PRG_KERNELS_PARTS_ROWS_H

#include "kernels/rows.h"

#define PRG_PARTS_ROW(type, TYPE, level, LEVEL, parts, bound, set, needs, rank, rows_at_once, tokens_at_once)          \
    const perigee_kernel_row prg_matmul_##type##_##level##_##set = {                                                   \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_##LEVEL,                                                                        \
        .features = (needs),                                                                                           \
        .priority = (rank),                                                                                            \
        .error_bound = (bound),                                                                                        \
        .name = "matmul_" #type "_" #level "_" #set,                                                                   \
        .isa = #set,                                                                                                   \
        .numerics = "int8, " #parts " parts, 16 groups of 32",                                                         \
        .signature = "void(const ptr,size,size,const ptr,const ptr,size,ptr,size,ptr)",                                \
        .row_tile = (rows_at_once),                                                                                    \
        .token_tile = (tokens_at_once),                                                                                \
        .run.matmul = {packed_bytes_##type##_##level, pack_##type##_##level, scratch_bytes, multiply_##type##_##level, \
                       NULL},                                                                                          \
    };

#endif
