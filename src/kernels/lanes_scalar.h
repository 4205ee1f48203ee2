/* What the lanes mean, in plain C. Each operation is a function that is called: sixteen of everything at every place
 * would make a compiler with sanitizers work for minutes. */
#ifndef PRG_KERNELS_LANES_SCALAR_H
#define PRG_KERNELS_LANES_SCALAR_H

typedef struct lanes {
    float v[LANES];
} lanes;

#define CALLED static __attribute__((noinline, unused))
#define EACH for (size_t i = 0; i < LANES; i++)

INLINE lanes lanes_set(float x) {
    lanes r;
    EACH r.v[i] = x;
    return r;
}
INLINE lanes lanes_load(const float *p) {
    lanes r;
    memcpy(r.v, p, sizeof r.v);
    return r;
}
INLINE void lanes_store(float *p, lanes a) {
    memcpy(p, a.v, sizeof a.v);
}
/* The first n <= 16 floats, then zeros. */
CALLED lanes lanes_load_n(const float *p, size_t n) {
    lanes r;
    EACH r.v[i] = i < n ? p[i] : 0;
    return r;
}
CALLED void lanes_store_n(float *p, size_t n, lanes a) {
    memcpy(p, a.v, n * sizeof(float));
}
CALLED lanes lanes_add(lanes a, lanes b) {
    EACH a.v[i] += b.v[i];
    return a;
}
CALLED lanes lanes_sub(lanes a, lanes b) {
    EACH a.v[i] -= b.v[i];
    return a;
}
CALLED lanes lanes_mul(lanes a, lanes b) {
    EACH a.v[i] *= b.v[i];
    return a;
}
CALLED lanes lanes_div(lanes a, lanes b) {
    EACH a.v[i] /= b.v[i];
    return a;
}
/* As lanes_store, past the caches where that can be; p is aligned to 64 bytes. lanes_stream_end() before others read.
 */
INLINE void lanes_stream(float *p, lanes a) {
    lanes_store(p, a);
}
INLINE void lanes_stream_end(void) {}
/* a * b + c, rounded once */
CALLED lanes lanes_fma(lanes a, lanes b, lanes c) {
    EACH a.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return a;
}
/* a < b ? a : b */
CALLED lanes lanes_min(lanes a, lanes b) {
    EACH a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
/* a > b ? a : b */
CALLED lanes lanes_max(lanes a, lanes b) {
    EACH a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
/* a < b ? x : y */
CALLED lanes lanes_if_less(lanes a, lanes b, lanes x, lanes y) {
    EACH a.v[i] = a.v[i] < b.v[i] ? x.v[i] : y.v[i];
    return a;
}
CALLED lanes lanes_abs(lanes a) {
    EACH a.v[i] = fabsf(a.v[i]);
    return a;
}
/* |a| with the sign of b */
CALLED lanes lanes_sign(lanes a, lanes b) {
    EACH a.v[i] = copysignf(a.v[i], b.v[i]);
    return a;
}
INLINE float power_of_two(int n) {
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float p;
    memcpy(&p, &bits, sizeof p);
    return p;
}
/* a * 2^n for whole n of magnitude up to 150; of the two products only the second rounds */
CALLED lanes lanes_scale(lanes a, lanes n) {
    EACH {
        int whole = n.v[i] == n.v[i] ? (int)n.v[i] : 0, low = whole >> 1;
        a.v[i] = a.v[i] * power_of_two(low) * power_of_two(whole - low);
    }
    return a;
}
CALLED lanes lanes_load_bf16_n(const uint16_t *p, size_t n) {
    lanes r;
    EACH {
        uint32_t bits = i < n ? (uint32_t)p[i] << 16 : 0;
        memcpy(&r.v[i], &bits, sizeof bits);
    }
    return r;
}
#undef EACH
#undef CALLED

#endif
