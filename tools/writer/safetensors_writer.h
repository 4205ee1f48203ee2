/* Writing safetensors files of any size: names first, then the data in the order of the names. */
#ifndef PERIGEE_WRITER_SAFETENSORS_WRITER_H
#define PERIGEE_WRITER_SAFETENSORS_WRITER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct writer_file writer_file;

enum { WRITER_MAX_RANK = 4 };

/* All functions return false on failure and say what in writer_error(). */
writer_file *writer_open(const char *path);
/* Fail as soon as *stop is not 0; a handler of signals may set it. */
void writer_heed(writer_file *file, const volatile sig_atomic_t *stop);
/* Name a tensor. `dtype` as the format has it ("BF16"); its bytes follow from dtype and shape. */
bool writer_add(writer_file *file, const char *name, const char *dtype, const uint64_t *shape, size_t rank);
/* Write the header: no more names after this. */
bool writer_begin(writer_file *file);
/* The next bytes of data, in any pieces. */
bool writer_data(writer_file *file, const void *bytes, size_t count);
/* Zeros, as a hole where the file system has them. */
bool writer_hole(writer_file *file, uint64_t count);
/* Finish; fails if data is missing. Frees `file` in any case and, on failure, removes what was written. */
bool writer_close(writer_file *file, bool keep);
const char *writer_error(const writer_file *file);
/* Bytes of data of all tensors named. */
uint64_t writer_data_bytes(const writer_file *file);
/* Bytes of one element, or 0 if unknown. */
size_t writer_dtype_bytes(const char *dtype);

#endif
