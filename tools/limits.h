/* What this machine can do, measured here and now: the yardsticks of perigee bench. */
#ifndef PERIGEE_TOOLS_LIMITS_H
#define PERIGEE_TOOLS_LIMITS_H

#include <stddef.h>

typedef struct limits limits;

/* Threads to measure with, and a buffer in huge pages, far larger than the caches, all of it written once. NULL: out of
 * memory. */
limits *limits_new(size_t threads);
void limits_free(limits *l);
/* Bytes a second that a plain loop reads from memory, on the first `threads` threads together. */
double limits_read(limits *l, size_t threads);
/* Multiply-adds of float32 a second on registers alone, likewise. */
double limits_multiply_add(limits *l, size_t threads);
/* The same of integers of 8 bits into sums of 32; 0 where no loop is written for the processor. */
double limits_int8(limits *l, size_t threads);
/* Instructions that the loops use, as "avx512". */
const char *limits_isa(void);

#endif
