/* Elementary functions over lanes, to about 2 units in the last place, with their limits; NaN stays NaN. */
#ifndef PRG_KERNELS_LANE_MATH_H
#define PRG_KERNELS_LANE_MATH_H

#include "kernels/lanes.h"

/* c[0] + c[1] x + … */
INLINE lanes lanes_polynomial(lanes x, const float *c, size_t n) {
    lanes r = lanes_set(c[n - 1]);
    UNROLLED(8)
    for (size_t i = n - 1; i-- > 0;) {
        r = lanes_fma(r, x, lanes_set(c[i]));
    }
    return r;
}

/* e^x = 2^n e^r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 q(r). Subnormal results are kept. */
INLINE lanes lanes_exp(lanes x) {
    static const float q[] = {5.0000000000e-01f, 1.6666667163e-01f, 4.1666455567e-02f,
                              8.3333104849e-03f, 1.3934541494e-03f, 1.9891980628e-04f};
    const lanes rounder = lanes_set(12582912.0f); /* 1.5 * 2^23: adding it leaves a whole number */
    x = lanes_max(lanes_set(-104.0f), lanes_min(lanes_set(89.0f), x));
    lanes n = lanes_sub(lanes_fma(x, lanes_set(1.44269504f), rounder), rounder);
    /* ln 2 in two parts; the first has 15 bits, so that its product is exact */
    lanes r = lanes_fma(n, lanes_set(-0x1.62e4p-1f), x);
    r = lanes_fma(n, lanes_set(-0x1.7f7d1cp-20f), r);
    lanes p = lanes_polynomial(r, q, 6);
    p = lanes_add(lanes_set(1), lanes_fma(lanes_mul(p, r), r, r));
    return lanes_scale(p, n);
}

INLINE lanes lanes_sigmoid(lanes x) {
    return lanes_div(lanes_set(1), lanes_add(lanes_set(1), lanes_exp(lanes_sub(lanes_zero(), x))));
}

INLINE lanes lanes_silu(lanes x) {
    return lanes_div(x, lanes_add(lanes_set(1), lanes_exp(lanes_sub(lanes_zero(), x))));
}

/* Below 5/8 a polynomial, as 1 - 2 / (e^2x + 1) cancels there. */
INLINE lanes lanes_tanh(lanes x) {
    static const float c[] = {-3.3333334327e-01f, 1.3333304226e-01f,  -5.3959261626e-02f,
                              2.1768935025e-02f,  -8.3440002054e-03f, 2.2928072140e-03f};
    lanes a = lanes_abs(x), z = lanes_mul(x, x);
    lanes small = lanes_fma(lanes_mul(lanes_polynomial(z, c, 6), z), x, x);
    lanes e = lanes_exp(lanes_add(a, a));
    lanes large = lanes_sub(lanes_set(1), lanes_div(lanes_set(2), lanes_add(e, lanes_set(1))));
    return lanes_sign(lanes_if_less(a, lanes_set(0.625f), small, large), x);
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|); log1p(y) = 2 atanh(y / (2 + y)). */
INLINE lanes lanes_softplus(lanes x) {
    static const float c[] = {3.3333334327e-01f, 1.9999852777e-01f, 1.4296178520e-01f, 1.0853287578e-01f,
                              1.1612164974e-01f};
    lanes y = lanes_exp(lanes_sub(lanes_zero(), lanes_abs(x)));
    lanes s = lanes_div(y, lanes_add(lanes_set(2), y)), z = lanes_mul(s, s);
    s = lanes_add(s, s);
    lanes log1p_y = lanes_fma(lanes_mul(lanes_polynomial(z, c, 5), z), s, s);
    return lanes_add(lanes_max(lanes_zero(), x), log1p_y);
}

#endif
