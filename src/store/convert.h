/* Rows of a matrix of floats, read and held as Q8_0. */
#ifndef PRG_STORE_CONVERT_H
#define PRG_STORE_CONVERT_H

#include "store/store.h"

/* Rows that are read at a time. */
size_t prg_convert_rows_of(const prg_conversion *conversion);
/* Bytes that a thread needs for the largest of them. */
size_t prg_convert_buffer_bytes(const prg_conversion *conversions, size_t count);
/* Rows [first, first + count), count as above at most. `codes` and `scales` are those of row 0. */
perigee_status prg_convert_rows(const prg_conversion *conversion, const prg_file *file, size_t first, size_t count,
                                void *buffer, int8_t *codes, unsigned char *scales, perigee_error **err);

#endif
