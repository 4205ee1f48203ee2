#ifndef PRG_KERNELS_LANES_AVX512_H
#define PRG_KERNELS_LANES_AVX512_H

#include <immintrin.h>

typedef __m512 lanes;
#define LANES_X86

INLINE __m256 lanes_low(lanes a) {
    return _mm512_castps512_ps256(a);
}
INLINE __m256 lanes_high(lanes a) {
    return _mm512_extractf32x8_ps(a, 1);
}

INLINE lanes lanes_of_halves(__m256 low, __m256 high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
INLINE lanes lanes_set(float x) {
    return _mm512_set1_ps(x);
}
INLINE lanes lanes_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void lanes_store(float *p, lanes a) {
    _mm512_storeu_ps(p, a);
}
INLINE __mmask16 lanes_first(size_t n) {
    return (__mmask16)((1u << n) - 1u);
}
/* The first n <= 16 floats, then zeros. */
INLINE lanes lanes_load_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(lanes_first(n), p);
}
INLINE void lanes_store_n(float *p, size_t n, lanes a) {
    _mm512_mask_storeu_ps(p, lanes_first(n), a);
}
INLINE lanes lanes_add(lanes a, lanes b) {
    return _mm512_add_ps(a, b);
}
INLINE lanes lanes_sub(lanes a, lanes b) {
    return _mm512_sub_ps(a, b);
}
INLINE lanes lanes_mul(lanes a, lanes b) {
    return _mm512_mul_ps(a, b);
}
INLINE lanes lanes_div(lanes a, lanes b) {
    return _mm512_div_ps(a, b);
}
/* As lanes_store, past the caches where that can be; p is aligned to 64 bytes. lanes_stream_end() before others read.
 */
INLINE void lanes_stream(float *p, lanes a) {
    _mm512_stream_ps(p, a);
}
INLINE void lanes_stream_end(void) {
    _mm_sfence();
}
/* a * b + c, rounded once */
INLINE lanes lanes_fma(lanes a, lanes b, lanes c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* a < b ? a : b */
INLINE lanes lanes_min(lanes a, lanes b) {
    return _mm512_min_ps(a, b);
}
/* a > b ? a : b */
INLINE lanes lanes_max(lanes a, lanes b) {
    return _mm512_max_ps(a, b);
}
/* a < b ? x : y */
INLINE lanes lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
INLINE lanes lanes_abs(lanes a) {
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}
/* |a| with the sign of b */
INLINE lanes lanes_sign(lanes a, lanes b) {
    const __m512 bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, a), _mm512_and_ps(bit, b));
}
/* a * 2^n for whole n of magnitude up to 150, rounded once */
INLINE lanes lanes_scale(lanes a, lanes n) {
    return _mm512_scalef_ps(a, n);
}
INLINE lanes lanes_load_bf16_n(const uint16_t *p, size_t n) {
    __m256i h = _mm256_maskz_loadu_epi16(lanes_first(n), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

#endif
