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

#ifdef __cplusplus
}
#endif

#endif
