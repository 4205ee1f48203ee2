/* Products with weights of F32, F16 and BF16: two rows of weights by up to three of activations in registers. The order
 * is that of lanes16.h. */
#include <arm_neon.h>

#include "kernels/lanes16.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum weight_kind { KIND_F32, KIND_F16, KIND_BF16 } weight_kind;

enum { ROWS = 2, TOKENS = 3, PARTS = 4, NEAR = 1024 };

INLINE size_t kind_bytes(weight_kind kind) {
    return kind == KIND_F32 ? 4 : 2;
}

/* Lanes 4 * part ... 4 * part + 3 of one half of the step at p. */
INLINE float32x4_t load_part(weight_kind kind, const char *p, int half, int part) {
    if (kind == KIND_F32) {
        return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)p + half * 64 + part * 16));
    }
    if (kind == KIND_F16) {
        return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)p + half * 32 + part * 8)));
    }
    const uint32x4_t pairs = vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p + part * 16));
    return vreinterpretq_f32_u32(half ? vandq_u32(pairs, vdupq_n_u32(0xffff0000u)) : vshlq_n_u32(pairs, 16));
}

/* Lane l takes in lane l + 8, l + 4, l + 2, l + 1. */
INLINE float tree_1(const float32x4_t sum[PARTS]) {
    const float32x4_t four = vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* Add one step to the sums [row][token][part]. */
INLINE void step(weight_kind kind, const char *w, size_t row_bytes, const float *const *x, size_t column,
                 float32x4_t sum[ROWS][TOKENS][PARTS], int R, int T) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
#pragma GCC unroll 4
        for (int part = 0; part < PARTS; part++) {
            float32x4_t v[ROWS];
#pragma GCC unroll 2
            for (int r = 0; r < R; r++) {
                v[r] = load_part(kind, w + (size_t)r * row_bytes, half, part);
            }
#pragma GCC unroll 3
            for (int t = 0; t < T; t++) {
                const float32x4_t q = vld1q_f32(x[t] + column + half * 16 + part * 4);
#pragma GCC unroll 2
                for (int r = 0; r < R; r++) {
                    sum[r][t][part] = vfmaq_f32(sum[r][t][part], v[r], q);
                }
            }
        }
    }
}

INLINE void tile(weight_kind kind, const char *w, size_t row_bytes, size_t k, const float *const *x, float *y,
                 size_t ldy, int R, int T) {
    float32x4_t sum[ROWS][TOKENS][PARTS];
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
#pragma GCC unroll 4
            for (int part = 0; part < PARTS; part++) {
                sum[r][t][part] = vdupq_n_f32(0);
            }
        }
    }
    const size_t step_bytes = PRG_STEP * kind_bytes(kind), whole = k / PRG_STEP, tail = k % PRG_STEP;
    for (size_t s = 0; s < whole; s++) {
#pragma GCC unroll 2
        for (int r = 0; r < R; r++) {
            __builtin_prefetch(w + (size_t)r * row_bytes + s * step_bytes + NEAR);
        }
        step(kind, w + s * step_bytes, row_bytes, x, s * PRG_STEP, sum, R, T);
    }
    if (tail) { /* a copy, so that nothing behind the row is read */
        char copy[ROWS][PRG_STEP * 4] = {{0}};
        for (int r = 0; r < R; r++) {
            memcpy(copy[r], w + (size_t)r * row_bytes + whole * step_bytes, tail * kind_bytes(kind));
        }
        step(kind, copy[0], sizeof copy[0], x, whole * PRG_STEP, sum, R, T);
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 3
        for (int t = 0; t < T; t++) {
            y[(size_t)t * ldy + (size_t)r] = tree_1(sum[r][t]);
        }
    }
}

INLINE void tile_rows(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *const *x,
                      float *y, size_t ldy, int T) {
    const char *p = (const char *)w->codes + first * w->row_bytes;
    size_t r = 0;
    for (; r + ROWS <= count; r += ROWS) {
        tile(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, ROWS, T);
    }
    for (; r < count; r++) {
        tile(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, 1, T);
    }
}

/* Rows in blocks that stay in cache while all activations go over them. */
INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy) {
    const size_t block = m <= TOKENS ? count : 16;
    for (size_t r = 0; r < count; r += block) {
        const size_t n = count - r < block ? count - r : block;
        for (size_t t = 0; t < m; t += TOKENS) {
            const float *x[TOKENS];
            const size_t tokens = m - t < TOKENS ? m - t : TOKENS;
            for (size_t i = 0; i < tokens; i++) {
                x[i] = (const float *)(const void *)prg_lanes_row(packed, prg_lanes_packed_bytes(w->cols), rows, t + i);
            }
            float *out = y + t * ldy + r;
            if (tokens == 1) {
                tile_rows(kind, w, first + r, n, x, out, ldy, 1);
            } else if (tokens == 2) {
                tile_rows(kind, w, first + r, n, x, out, ldy, 2);
            } else {
                tile_rows(kind, w, first + r, n, x, out, ldy, 3);
            }
        }
    }
}

static size_t scratch_bytes(size_t m, size_t k) {
    (void)m;
    (void)k;
    return 0;
}

#define ROW(type, TYPE, order, ORDER)                                                                                  \
    static void multiply_##type(const perigee_matrix *w, size_t first, size_t count, const void *packed,               \
                                const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {                 \
        (void)scratch;                                                                                                 \
        multiply(KIND_##TYPE, w, first, count, packed, rows, m, y, ldy);                                               \
    }                                                                                                                  \
    const perigee_kernel_row prg_matmul_##type##_neon = {                                                              \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .features = PERIGEE_CPU_NEON,                                                                                  \
        .priority = 100,                                                                                               \
        .error_bound = 1e-6,                                                                                           \
        .name = "matmul_" #type "_neon",                                                                               \
        .isa = "neon",                                                                                                 \
        .numerics = PRG_NUMERICS_##ORDER,                                                                              \
        .signature = PRG_MATMUL_SIGNATURE,                                                                             \
        .row_tile = ROWS,                                                                                              \
        .token_tile = TOKENS,                                                                                          \
        .run.matmul = {prg_lanes_packed_bytes, prg_lanes_pack_##order, scratch_bytes, multiply_##type, NULL},          \
    };

ROW(f32, F32, natural, NATURAL)
ROW(f16, F16, natural, NATURAL)
ROW(bf16, BF16, pairs, PAIRS)
