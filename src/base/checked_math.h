/* Products and sums of sizes that come from a file or a caller. */
#ifndef PRG_BASE_CHECKED_MATH_H
#define PRG_BASE_CHECKED_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each is true, with *out set, if the result can be represented. */
static inline bool prg_mul(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool prg_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool prg_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool prg_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/* n rounded up to a multiple of a power of two; n must be at least `unit` below SIZE_MAX. */
static inline size_t prg_round_up(size_t n, size_t unit) {
    return (n + unit - 1) & ~(unit - 1);
}

static inline size_t prg_min(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t prg_max(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
