/* Block formats by activations in int8 parts. A row of weights is unpacked once, a lane being a group; then each row of
 * activations goes over it. Products of bytes are summed in pairs of 16 bits: those of Q8_0 are taken with their signs,
 * because 255 * 127 * 2 would not fit. */
#include <immintrin.h>

#include "kernels/int8_parts.h"
#include "kernels/parts_rows.h"

#define INLINE static inline __attribute__((always_inline))

typedef enum form { FORM_MXFP4, FORM_INT4, FORM_Q8_0 } form;

typedef struct row_block {
    uint8_t q[PRG_SUPER];
    float scale[PRG_GROUPS];
} row_block;

static size_t scratch_bytes(size_t m, size_t k) {
    (void)m;
    return prg_super_count(k) * sizeof(row_block);
}

INLINE size_t code_bytes(form f, size_t cols) {
    return f == FORM_Q8_0 ? cols : (cols + 1) / 2;
}

/* Codes of 512 columns, vector j half h being groups 8h ... 8h + 7. */
INLINE void unpack_codes(form f, const uint8_t *codes, uint8_t *out) {
    const int stride = f == FORM_Q8_0 ? 8 : 4; /* dwords of a group */
    const __m256i groups = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(stride));
    const __m256i nibble = _mm256_set1_epi8(15);
    /* 2 E2M1 + 12 */
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    for (int half = 0; half < 2; half++) {
        for (int j = 0; j < stride; j++) {
            const void *from = codes + half * 8 * stride * 4 + j * 4;
            const __m256i words = _mm256_i32gather_epi32((const int *)from, groups, 4);
            if (f == FORM_Q8_0) {
                _mm256_store_si256((void *)(out + j * 64 + half * 32), words);
                continue;
            }
            __m256i low = _mm256_and_si256(words, nibble);
            __m256i high = _mm256_and_si256(_mm256_srli_epi16(words, 4), nibble);
            if (f == FORM_MXFP4) {
                low = _mm256_shuffle_epi8(table, low);
                high = _mm256_shuffle_epi8(table, high);
            }
            _mm256_store_si256((void *)(out + (2 * j) * 64 + half * 32), low);
            _mm256_store_si256((void *)(out + (2 * j + 1) * 64 + half * 32), high);
        }
    }
}

/* `n` scales; the rest are zero. Byte 0 of E8M0 is a subnormal, 255 is NaN. */
INLINE void unpack_scales(form f, int wide, const uint8_t *scales, size_t n, float *out) {
    for (size_t g = 0; g < PRG_GROUPS; g++) {
        uint16_t half = 0;
        uint32_t bits = 0;
        if (g >= n) {
            out[g] = 0;
        } else if (f == FORM_MXFP4) {
            bits = scales[g] == 255 ? 0x7fc00000u : scales[g] == 0 ? 0x00400000u : (uint32_t)scales[g] << 23;
            memcpy(&out[g], &bits, 4);
        } else if (wide) {
            memcpy(&out[g], scales + g * 4, 4);
        } else {
            memcpy(&half, scales + g * 2, 2);
            bits = (uint32_t)half << 16;
            memcpy(&out[g], &bits, 4);
            if (f == FORM_Q8_0) {
                out[g] = _cvtsh_ss(half);
            }
        }
    }
}

INLINE void unpack_row(form f, int wide, const perigee_matrix *w, size_t row, row_block *out) {
    const uint8_t *codes = (const uint8_t *)w->codes + row * w->row_bytes;
    const uint8_t *scales = (const uint8_t *)w->scales + row * w->scale_row_bytes;
    const size_t scale_bytes = f == FORM_MXFP4 ? 1 : wide ? 4 : 2;
    for (size_t b = 0; b < prg_super_count(w->cols); b++, out++) {
        const size_t left = w->cols - b * PRG_SUPER;
        const uint8_t *from = codes + b * code_bytes(f, PRG_SUPER);
        uint8_t copy[PRG_SUPER];
        for (size_t i = 0; i < code_bytes(f, PRG_SUPER); i += 64) {
            _mm_prefetch((const char *)from + 4096 + i, _MM_HINT_T1);
        }
        if (left < PRG_SUPER) {
            memset(copy, 0, sizeof copy);
            memcpy(copy, from, code_bytes(f, left));
            from = copy;
        }
        unpack_codes(f, from, out->q);
        const size_t groups = left < PRG_SUPER ? (left + PRG_GROUP - 1) / PRG_GROUP : PRG_GROUPS;
        unpack_scales(f, wide, scales + b * PRG_GROUPS * scale_bytes, groups, out->scale);
    }
}

INLINE __m256i dot_8(form f, __m256i sum, const uint8_t *codes, const int8_t *q) {
    __m256i u = _mm256_load_si256((const void *)codes), s = _mm256_load_si256((const void *)q);
    if (f == FORM_Q8_0) {
        s = _mm256_sign_epi8(s, u);
        u = _mm256_abs_epi8(u);
    }
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}

INLINE float output(form f, const row_block *w, const prg_part_block *x, size_t supers, int parts) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t b = 0; b < supers; b++, w++) {
        for (int p = 0; p < parts; p++, x++) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                __m256i dot =
                    f == FORM_Q8_0 ? _mm256_setzero_si256() : _mm256_load_si256((const void *)(x->start + half * 8));
#pragma GCC unroll 8
                for (int j = 0; j < 8; j++) {
                    dot = dot_8(f, dot, w->q + j * 64 + half * 32, x->q + j * 64 + half * 32);
                }
                const __m256 scale =
                    _mm256_mul_ps(_mm256_load_ps(w->scale + half * 8), _mm256_load_ps(x->scale + half * 8));
                sum[half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum[half]);
            }
        }
    }
    const __m256 eight = _mm256_add_ps(sum[0], sum[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

INLINE void multiply(form f, int parts, const perigee_matrix *w, size_t first, size_t count, const void *packed,
                     const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {
    const size_t supers = prg_super_count(w->cols);
    const int wide = f == FORM_Q8_0 && w->scale_dtype == PERIGEE_DTYPE_F32;
    row_block *row = scratch;
    for (size_t r = 0; r < count; r++) {
        unpack_row(f, wide, w, first + r, row);
        for (size_t t = 0; t < m; t++) {
            const prg_part_block *x = (const prg_part_block *)packed + (rows ? rows[t] : t) * supers * (size_t)parts;
            y[t * ldy + r] = output(f, row, x, supers, parts);
        }
    }
}

#define PRG_PARTS_FORMAT(type, TYPE, order, offset, factor, precision, PRECISION, parts, bound)                        \
    static size_t packed_bytes_##type##_##precision(size_t k) {                                                        \
        return prg_parts_packed_bytes(k, parts);                                                                       \
    }                                                                                                                  \
    static void pack_##type##_##precision(const float *x, size_t ldx, size_t m, size_t k, void *packed) {              \
        prg_parts_pack(x, ldx, m, k, order, offset, factor, parts, packed);                                            \
    }                                                                                                                  \
    static void multiply_##type##_##precision(const perigee_matrix *w, size_t first, size_t count, const void *packed, \
                                              const uint32_t *rows, size_t m, float *y, size_t ldy, void *scratch) {   \
        multiply(FORM_##TYPE, parts, w, first, count, packed, rows, m, y, ldy, scratch);                               \
    }                                                                                                                  \
    PRG_PARTS_ROW(type, TYPE, precision, PRECISION, parts, bound, avx2, PERIGEE_CPU_AVX2, 100, 1, 1)
#include "kernels/parts_formats.def"
#undef PRG_PARTS_FORMAT
