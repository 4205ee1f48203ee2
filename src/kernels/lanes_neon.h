#ifndef PRG_KERNELS_LANES_NEON_H
#define PRG_KERNELS_LANES_NEON_H

#include <arm_neon.h>

typedef struct lanes {
    float32x4_t v[4];
} lanes;

#define EACH for (int i = 0; i < 4; i++)

INLINE lanes lanes_set(float x) {
    lanes r;
    EACH r.v[i] = vdupq_n_f32(x);
    return r;
}
INLINE lanes lanes_load(const float *p) {
    lanes r;
    EACH r.v[i] = vld1q_f32(p + 4 * i);
    return r;
}
INLINE void lanes_store(float *p, lanes a) {
    EACH vst1q_f32(p + 4 * i, a.v[i]);
}
/* The first n <= 16 floats, then zeros. */
INLINE lanes lanes_load_n(const float *p, size_t n) {
    float all[LANES] = {0};
    if (n >= LANES) {
        return lanes_load(p);
    }
    memcpy(all, p, n * sizeof *p);
    return lanes_load(all);
}
INLINE void lanes_store_n(float *p, size_t n, lanes a) {
    float all[LANES];
    lanes_store(all, a);
    memcpy(p, all, n * sizeof *p);
}
INLINE lanes lanes_add(lanes a, lanes b) {
    EACH a.v[i] = vaddq_f32(a.v[i], b.v[i]);
    return a;
}
INLINE lanes lanes_sub(lanes a, lanes b) {
    EACH a.v[i] = vsubq_f32(a.v[i], b.v[i]);
    return a;
}
INLINE lanes lanes_mul(lanes a, lanes b) {
    EACH a.v[i] = vmulq_f32(a.v[i], b.v[i]);
    return a;
}
INLINE lanes lanes_div(lanes a, lanes b) {
    EACH a.v[i] = vdivq_f32(a.v[i], b.v[i]);
    return a;
}
/* As lanes_store, past the caches where that can be; p is aligned to 64 bytes. lanes_stream_end() before others read.
 */
INLINE void lanes_stream(float *p, lanes a) {
    lanes_store(p, a);
}
INLINE void lanes_stream_end(void) {}
/* a * b + c, rounded once */
INLINE lanes lanes_fma(lanes a, lanes b, lanes c) {
    EACH c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
    return c;
}
/* a < b ? a : b; vminq would let a NaN of `a` through */
INLINE lanes lanes_min(lanes a, lanes b) {
    EACH a.v[i] = vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]);
    return a;
}
/* a > b ? a : b */
INLINE lanes lanes_max(lanes a, lanes b) {
    EACH a.v[i] = vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]);
    return a;
}
/* a < b ? x : y */
INLINE lanes lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    EACH a.v[i] = vbslq_f32(vcltq_f32(a.v[i], b.v[i]), x.v[i], y.v[i]);
    return a;
}
INLINE lanes lanes_abs(lanes a) {
    EACH a.v[i] = vabsq_f32(a.v[i]);
    return a;
}
/* |a| with the sign of b */
INLINE lanes lanes_sign(lanes a, lanes b) {
    EACH a.v[i] = vbslq_f32(vdupq_n_u32(0x80000000u), b.v[i], a.v[i]);
    return a;
}
INLINE float32x4_t power_of_two(int32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
/* a * 2^n for whole n of magnitude up to 150; of the two products only the second rounds */
INLINE lanes lanes_scale(lanes a, lanes n) {
    EACH {
        int32x4_t whole = vcvtq_s32_f32(n.v[i]), low = vshrq_n_s32(whole, 1);
        a.v[i] = vmulq_f32(vmulq_f32(a.v[i], power_of_two(low)), power_of_two(vsubq_s32(whole, low)));
    }
    return a;
}
INLINE lanes lanes_load_bf16_n(const uint16_t *p, size_t n) {
    uint16_t all[LANES] = {0};
    lanes r;
    memcpy(all, p, n * sizeof *p);
    EACH r.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(all + 4 * i), 16));
    return r;
}
#undef EACH

#endif
