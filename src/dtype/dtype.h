/* Stored forms of weights: geometry, and the codec that defines their meaning. */
#ifndef PRG_DTYPE_DTYPE_H
#define PRG_DTYPE_DTYPE_H

#include <stdbool.h>

#include "perigee/sys/kernel.h"

typedef struct prg_dtype {
    perigee_dtype id;
    const char *name;   /* as "bf16" */
    size_t block_cols;  /* columns of one unit of codes */
    size_t block_bytes; /* bytes of one unit of codes */
    size_t scale_rows;  /* rows, and */
    size_t scale_cols;  /* columns that share a scale; 0 where there are none */
    size_t scale_bytes; /* bytes of one scale, as published */
    /* Columns [first, first + count) of one row to float32; any first and count. */
    void (*decode)(const perigee_matrix *matrix, size_t row, size_t first, size_t count, float *out);
    /* float32 [rows, cols] to codes and scales as a checkpoint holds them, round to nearest even; for writing and
     * tests. Rows of codes are prg_dtype_row_bytes() apart, rows of scales prg_dtype_scale_row_bytes(). */
    void (*encode)(const float *values, size_t rows, size_t cols, void *codes, void *scales);
} prg_dtype;

/* NULL if unknown. */
const prg_dtype *prg_dtype_get(uint32_t id);
const prg_dtype *prg_dtype_find(const char *name);
/* Bytes of a row of codes, and of one row of scales (for FP8: of one row of blocks). */
size_t prg_dtype_row_bytes(uint32_t id, size_t cols);
size_t prg_dtype_scale_row_bytes(uint32_t id, size_t cols);
/* All bytes of a matrix [rows, cols], scales included. */
size_t prg_dtype_matrix_bytes(uint32_t id, size_t rows, size_t cols);

/* A matrix as published over given buffers. */
perigee_matrix prg_matrix_make(uint32_t id, size_t rows, size_t cols, const void *codes, const void *scales);

float prg_bf16_to_f32(uint16_t half);
uint16_t prg_f32_to_bf16(float value);
float prg_f16_to_f32(uint16_t half);
uint16_t prg_f32_to_f16(float value);
float prg_e4m3_to_f32(uint8_t code);

#endif
