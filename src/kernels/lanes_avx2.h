#ifndef PRG_KERNELS_LANES_AVX2_H
#define PRG_KERNELS_LANES_AVX2_H

#include <immintrin.h>

typedef struct lanes {
    __m256 a, b;
} lanes;
#define LANES_X86

INLINE __m256 lanes_low(lanes v) {
    return v.a;
}
INLINE __m256 lanes_high(lanes v) {
    return v.b;
}
INLINE lanes lanes_of_halves(__m256 low, __m256 high) {
    return (lanes){low, high};
}
INLINE lanes lanes_set(float x) {
    return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
INLINE lanes lanes_load(const float *p) {
    return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
INLINE void lanes_store(float *p, lanes v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}
INLINE __m256i lanes_first(size_t n, int from) {
    const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - from), at);
}
/* The first n <= 16 floats, then zeros. */
INLINE lanes lanes_load_n(const float *p, size_t n) {
    if (n >= LANES) {
        return lanes_load(p);
    }
    return (lanes){_mm256_maskload_ps(p, lanes_first(n, 0)), _mm256_maskload_ps(p + 8, lanes_first(n, 8))};
}
INLINE void lanes_store_n(float *p, size_t n, lanes v) {
    if (n >= LANES) {
        lanes_store(p, v);
        return;
    }
    _mm256_maskstore_ps(p, lanes_first(n, 0), v.a);
    _mm256_maskstore_ps(p + 8, lanes_first(n, 8), v.b);
}
INLINE lanes lanes_add(lanes a, lanes b) {
    return (lanes){_mm256_add_ps(a.a, b.a), _mm256_add_ps(a.b, b.b)};
}
INLINE lanes lanes_sub(lanes a, lanes b) {
    return (lanes){_mm256_sub_ps(a.a, b.a), _mm256_sub_ps(a.b, b.b)};
}
INLINE lanes lanes_mul(lanes a, lanes b) {
    return (lanes){_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
}
INLINE lanes lanes_div(lanes a, lanes b) {
    return (lanes){_mm256_div_ps(a.a, b.a), _mm256_div_ps(a.b, b.b)};
}
/* As lanes_store, past the caches where that can be; p is aligned to 64 bytes. lanes_stream_end() before others read.
 */
INLINE void lanes_stream(float *p, lanes v) {
    _mm256_stream_ps(p, v.a);
    _mm256_stream_ps(p + 8, v.b);
}
INLINE void lanes_stream_end(void) {
    _mm_sfence();
}
/* a * b + c, rounded once */
INLINE lanes lanes_fma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b)};
}
/* a < b ? a : b */
INLINE lanes lanes_min(lanes a, lanes b) {
    return (lanes){_mm256_min_ps(a.a, b.a), _mm256_min_ps(a.b, b.b)};
}
/* a > b ? a : b */
INLINE lanes lanes_max(lanes a, lanes b) {
    return (lanes){_mm256_max_ps(a.a, b.a), _mm256_max_ps(a.b, b.b)};
}
/* a < b ? x : y */
INLINE lanes lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    return (lanes){_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                   _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ))};
}
INLINE lanes lanes_abs(lanes a) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return (lanes){_mm256_andnot_ps(bit, a.a), _mm256_andnot_ps(bit, a.b)};
}
/* |a| with the sign of b */
INLINE lanes lanes_sign(lanes a, lanes b) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return (lanes){_mm256_or_ps(_mm256_andnot_ps(bit, a.a), _mm256_and_ps(bit, b.a)),
                   _mm256_or_ps(_mm256_andnot_ps(bit, a.b), _mm256_and_ps(bit, b.b))};
}
INLINE __m256 scale_half(__m256 a, __m256 n) {
    const __m256i bias = _mm256_set1_epi32(127);
    __m256i whole = _mm256_cvtps_epi32(n), low = _mm256_srai_epi32(whole, 1), high = _mm256_sub_epi32(whole, low);
    a = _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(low, bias), 23)));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(high, bias), 23)));
}
/* a * 2^n for whole n of magnitude up to 150; of the two products only the second rounds */
INLINE lanes lanes_scale(lanes a, lanes n) {
    return (lanes){scale_half(a.a, n.a), scale_half(a.b, n.b)};
}
INLINE lanes lanes_load_bf16_n(const uint16_t *p, size_t n) {
    uint16_t all[LANES] = {0};
    if (n < LANES) {
        memcpy(all, p, n * sizeof *p);
        p = all;
    }
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i a = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(h)),
            b = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(h, 1));
    return (lanes){_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
}

#endif
