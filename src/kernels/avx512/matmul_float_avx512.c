/* Products with weights of F32, F16 and BF16.
 *
 * Up to eight rows of activations: weights are converted as they come, four rows side by side for one row of
 * activations (which is then loaded once for four), six up to four, three for more. Beyond that, blocks of weights are
 * converted once into a panel that stays in cache, and tiles of 6 x 4 outputs run over it; blocks of K save and restore
 * the running sums, which changes no bit. Prefetches go to the second level only. */
#include "kernels/avx512/float_tile_avx512.h"

enum {
    ROWS = 6,         /* of a tile */
    TOKENS = 4,       /* of a tile */
    PANEL_ROWS = 48,  /* rows of weights that are converted at a time, a multiple of ROWS, */
    PANEL_STEPS = 32, /* and steps of K */
    CHUNK = 96,       /* rows of activations that go over a panel, a multiple of TOKENS */
    DIRECT = 8,       /* rows of activations that take no panel, */
    SIDE = 4,         /* and rows of weights side by side for one of them, */
    FEW = 3,          /* and for more than TOKENS */
    NEAR = 1024,      /* bytes ahead in a row that is longer than LONG_ROW; else the next rows */
    LONG_ROW = 8192
};

static size_t scratch_bytes(size_t m, size_t k) {
    (void)k;
    return m <= DIRECT ? 0
                       : (size_t)PANEL_ROWS * PANEL_STEPS * PRG_STEP * sizeof(float) + (size_t)PANEL_ROWS * CHUNK * 64;
}

INLINE const float *x_row(const void *packed, size_t bytes, const uint32_t *rows, size_t t) {
    return (const float *)prg_lanes_row(packed, bytes, rows, t);
}

/* R rows of weights from w on by T rows of activations, whole sums; the first m of the T are wanted. */
INLINE void direct(weight_kind kind, const char *w, size_t row_bytes, size_t k, const float *const *x, float *y,
                   size_t ldy, size_t m, int R, int T) {
    __m512 sum[ROWS][DIRECT];
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            sum[r][t] = _mm512_setzero_ps();
        }
    }
    const size_t step_bytes = PRG_STEP * kind_bytes(kind), steps = k / PRG_STEP, tail = k % PRG_STEP;
    const size_t ahead = row_bytes > LONG_ROW ? NEAR : (size_t)R * row_bytes;
    for (size_t s = 0; s < steps; s++) {
#pragma GCC unroll 6
        for (int r = 0; r < R; r++) {
            _mm_prefetch(w + (size_t)r * row_bytes + s * step_bytes + ahead, _MM_HINT_T1);
            if (kind == KIND_F32) {
                _mm_prefetch(w + (size_t)r * row_bytes + s * step_bytes + ahead + 64, _MM_HINT_T1);
            }
        }
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            __m512 v[ROWS];
#pragma GCC unroll 6
            for (int r = 0; r < R; r++) {
                v[r] = load_half(kind, w + (size_t)r * row_bytes + s * step_bytes, half);
            }
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) {
                const __m512 q = _mm512_load_ps(x[t] + s * PRG_STEP + half * 16);
#pragma GCC unroll 6
                for (int r = 0; r < R; r++) {
                    sum[r][t] = _mm512_fmadd_ps(v[r], q, sum[r][t]);
                }
            }
        }
    }
    if (tail) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
#pragma GCC unroll 6
            for (int r = 0; r < R; r++) {
                const __m512 v = load_half_tail(kind, w + (size_t)r * row_bytes + steps * step_bytes, half, tail);
#pragma GCC unroll 8
                for (int t = 0; t < T; t++) {
                    sum[r][t] = _mm512_fmadd_ps(v, _mm512_load_ps(x[t] + steps * PRG_STEP + half * 16), sum[r][t]);
                }
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            if ((size_t)t < m) {
                y[(size_t)t * ldy + (size_t)r] = tree_1(sum[r][t]);
            }
        }
    }
}

/* All rows by m <= T <= DIRECT rows of activations. */
INLINE void direct_rows(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const float *const *x,
                        float *y, size_t ldy, size_t m, int T) {
    const int R = T == 1 ? SIDE : T <= TOKENS ? ROWS : FEW;
    const char *p = (const char *)w->codes + first * w->row_bytes;
    size_t r = 0;
    for (; r + (size_t)R <= count; r += (size_t)R) {
        direct(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, m, R, T);
    }
    for (; r < count; r++) {
        direct(kind, p + r * w->row_bytes, w->row_bytes, w->cols, x, y + r, ldy, m, 1, T);
    }
}

/* Steps [from, to) of K of rows [0, n) as float32: [group of ROWS][step][half][row][16], zeros for rows that are not
 * there and columns behind the last. */
INLINE void fill_panel(weight_kind kind, const perigee_matrix *w, size_t first, size_t n, size_t from, size_t to,
                       float *panel) {
    const size_t step_bytes = PRG_STEP * kind_bytes(kind), whole = w->cols / PRG_STEP, tail = w->cols % PRG_STEP;
    float *out = panel; /* written from front to back, whole lines */
    for (size_t r = 0; r < n; r += ROWS) {
        const char *p = (const char *)w->codes + (first + r) * w->row_bytes;
        const size_t here = n - r < ROWS ? n - r : ROWS;
        for (size_t s = from; s < to; s++) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
#pragma GCC unroll 6
                for (size_t i = 0; i < ROWS; i++, out += 16) {
                    __m512 v = _mm512_setzero_ps();
                    if (i < here) {
                        const char *q = p + i * w->row_bytes + s * step_bytes;
                        v = s < whole ? load_half(kind, q, half) : load_half_tail(kind, q, half, tail);
                    }
                    _mm512_store_ps(out, v);
                }
            }
        }
    }
}

/* Add `halves` half steps to the sums of ROWS x T outputs. */
INLINE void tile(const float *panel, const float *const *x, size_t halves, float *sums, int first, int T) {
    __m512 sum[ROWS][TOKENS];
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            sum[r][t] = first ? _mm512_setzero_ps() : _mm512_load_ps(sums + (t * ROWS + r) * 16);
        }
    }
    const float *x0 = x[0], *x1 = x[T > 1 ? 1 : 0], *x2 = x[T > 2 ? 2 : 0], *x3 = x[T > 3 ? 3 : 0];
#pragma GCC unroll 4
    for (size_t i = 0; i < halves * 16; i += 16, panel += ROWS * 16) {
        __m512 v[ROWS];
#pragma GCC unroll 6
        for (int r = 0; r < ROWS; r++) {
            v[r] = _mm512_load_ps(panel + r * 16);
        }
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            const __m512 q = _mm512_load_ps((t == 0 ? x0 : t == 1 ? x1 : t == 2 ? x2 : x3) + i);
#pragma GCC unroll 6
            for (int r = 0; r < ROWS; r++) {
                sum[r][t] = _mm512_fmadd_ps(v[r], q, sum[r][t]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < T; t++) {
            _mm512_store_ps(sums + (t * ROWS + r) * 16, sum[r][t]);
        }
    }
}

static __attribute__((noinline)) void tile_any(const float *panel, const float *const *x, size_t halves, float *sums,
                                               int first, size_t tokens) {
    switch (tokens) {
    case 1:
        tile(panel, x, halves, sums, first, 1);
        break;
    case 2:
        tile(panel, x, halves, sums, first, 2);
        break;
    case 3:
        tile(panel, x, halves, sums, first, 3);
        break;
    default:
        tile(panel, x, halves, sums, first, 4);
        break;
    }
}

/* The trees of a tile; n of its ROWS rows are there. */
static void finish(const float *sums, size_t tokens, size_t n, float *y, size_t ldy) {
    for (size_t t = 0; t < tokens; t++, sums += ROWS * 16, y += ldy) {
        float out[8];
        const __m512 zero = _mm512_setzero_ps();
        _mm_storeu_ps(out, tree_4(_mm512_load_ps(sums), _mm512_load_ps(sums + 16), _mm512_load_ps(sums + 32),
                                  _mm512_load_ps(sums + 48)));
        _mm_storeu_ps(out + 4, tree_4(_mm512_load_ps(sums + 64), _mm512_load_ps(sums + 80), zero, zero));
        memcpy(y, out, n * sizeof *y);
    }
}

/* While a tile of rows [t, t + TOKENS) of `tokens` computes, its share of the bytes that the same group of rows of the
 * next panel will be made of. */
INLINE void prefetch_share(weight_kind kind, const perigee_matrix *w, size_t row, size_t step, size_t steps, size_t t,
                           size_t tokens) {
    const size_t lines = steps * PRG_STEP * kind_bytes(kind) / 64, all = ROWS * lines;
    const size_t last = t + TOKENS < tokens ? all * (t + TOKENS) / tokens : all;
    const char *p = (const char *)w->codes + row * w->row_bytes + step * PRG_STEP * kind_bytes(kind);
    size_t i = all * t / tokens;
    for (size_t r = i / lines, line = i % lines; i < last; r++, line = 0) {
        for (; line < lines && i < last; line++, i++) {
            _mm_prefetch(p + r * w->row_bytes + line * 64, _MM_HINT_T1);
        }
    }
}

/* `n` <= PANEL_ROWS rows by rows [begin, end) of the activations. */
INLINE void panel_rows(weight_kind kind, const perigee_matrix *w, size_t first, size_t n, const void *packed,
                       const uint32_t *rows, size_t begin, size_t end, float *y, size_t ldy, float *scratch) {
    const size_t steps = (w->cols + PRG_STEP - 1) / PRG_STEP, bytes = prg_lanes_packed_bytes(w->cols);
    float *panel = scratch, *sums = scratch + PANEL_ROWS * PANEL_STEPS * PRG_STEP;
    for (size_t s = 0; s < steps; s += PANEL_STEPS) {
        const size_t last = s + PANEL_STEPS < steps ? s + PANEL_STEPS : steps, halves = 2 * (last - s);
        fill_panel(kind, w, first, n, s, last, panel);
        for (size_t r = 0; r < n; r += ROWS) {
            for (size_t t = begin; t < end; t += TOKENS) {
                const float *x[TOKENS];
                float *sum = sums + (r / ROWS * (CHUNK / TOKENS) + (t - begin) / TOKENS) * ROWS * TOKENS * 16;
                const size_t tokens = end - t < TOKENS ? end - t : TOKENS;
                for (size_t i = 0; i < tokens; i++) {
                    x[i] = x_row(packed, bytes, rows, t + i) + s * PRG_STEP;
                }
                prefetch_share(kind, w, first + n + r, s, last - s, t - begin, end - begin);
                tile_any(panel + r * halves * 16, x, halves, sum, s == 0, tokens);
                if (last == steps) {
                    finish(sum, tokens, n - r < ROWS ? n - r : ROWS, y + t * ldy + r, ldy);
                }
            }
        }
    }
}

INLINE void multiply(weight_kind kind, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    if (m <= DIRECT) {
        const float *x[DIRECT];
        for (size_t t = 0; t < DIRECT && m > 0; t++) { /* the last one stands for those that are not there */
            x[t] = x_row(packed, prg_lanes_packed_bytes(w->cols), rows, t < m ? t : m - 1);
        }
        switch (m) {
        case 0:
            break;
        case 1:
            direct_rows(kind, w, first, count, x, y, ldy, 1, 1);
            break;
        case 2:
            direct_rows(kind, w, first, count, x, y, ldy, 2, 2);
            break;
        case 3:
            direct_rows(kind, w, first, count, x, y, ldy, 3, 3);
            break;
        case 4:
            direct_rows(kind, w, first, count, x, y, ldy, 4, 4);
            break;
        default:
            direct_rows(kind, w, first, count, x, y, ldy, m, DIRECT);
            break;
        }
        return;
    }
    for (size_t t = 0; t < m; t += CHUNK) {
        for (size_t r = 0; r < count; r += PANEL_ROWS) {
            panel_rows(kind, w, first + r, count - r < PANEL_ROWS ? count - r : PANEL_ROWS, packed, rows, t,
                       m - t < CHUNK ? m : t + CHUNK, y + r, ldy, scratch);
        }
    }
}

static void pack_pairs(const float *x, size_t ldx, size_t m, size_t k, void *packed) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const size_t floats = prg_lanes_packed_floats(k), whole = k / PRG_STEP * PRG_STEP;
    for (size_t t = 0; t < m; t++) {
        const float *from = x + t * ldx;
        float *to = (float *)packed + t * floats;
        for (size_t c = 0; c < whole; c += PRG_STEP) {
            const __m512 low = _mm512_loadu_ps(from + c), high = _mm512_loadu_ps(from + c + 16);
            _mm512_store_ps(to + c, _mm512_permutex2var_ps(low, even, high));
            _mm512_store_ps(to + c + 16, _mm512_permutex2var_ps(low, odd, high));
        }
        memset(to + whole, 0, (floats - whole) * sizeof *to);
        for (size_t c = whole; c < k; c++) {
            to[whole + c % 2 * 16 + c % PRG_STEP / 2] = from[c];
        }
    }
}

#define ROW(type, TYPE, pack_form, ORDER)                                                                              \
    static void multiply_##type(const perigee_matrix *w, size_t first, size_t count, const void *packed,               \
                                const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {                 \
        multiply(KIND_##TYPE, w, first, count, packed, rows, m, y, ldy, scratch);                                      \
    }                                                                                                                  \
    const perigee_kernel_row prg_matmul_##type##_avx512 = {                                                            \
        .struct_size = sizeof(perigee_kernel_row),                                                                     \
        .op = PERIGEE_OP_MATMUL,                                                                                       \
        .dtype = PERIGEE_DTYPE_##TYPE,                                                                                 \
        .precision = PERIGEE_PRECISION_EXACT,                                                                          \
        .features = PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512,                                                             \
        .priority = 200,                                                                                               \
        .error_bound = 1e-6,                                                                                           \
        .name = "matmul_" #type "_avx512",                                                                             \
        .isa = "avx512",                                                                                               \
        .numerics = PRG_NUMERICS_##ORDER,                                                                              \
        .signature = PRG_MATMUL_SIGNATURE,                                                                             \
        .row_tile = 12,                                                                                                \
        .token_tile = TOKENS,                                                                                          \
        .run.matmul = {prg_lanes_packed_bytes, pack_form, scratch_bytes, multiply_##type, NULL},                       \
    };

ROW(f32, F32, prg_lanes_pack_natural, NATURAL)
ROW(f16, F16, prg_lanes_pack_natural, NATURAL)
ROW(bf16, BF16, pack_pairs, PAIRS)
