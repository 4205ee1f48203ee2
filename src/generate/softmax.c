#include "generate/softmax.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Vectors of four floats or two doubles: what every machine has. Each lane is plain IEEE arithmetic. */
typedef float float4 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));
typedef double double2 __attribute__((vector_size(16)));
typedef int64_t long2 __attribute__((vector_size(16)));

enum { STEP = 16 };

static float4 load4(const float *p) {
    float4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void store4(float *p, float4 v) {
    memcpy(p, &v, sizeof v);
}

static int4 as_int4(float4 v) {
    int4 r;
    memcpy(&r, &v, sizeof r);
    return r;
}

static float4 as_float4(int4 v) {
    float4 r;
    memcpy(&r, &v, sizeof r);
    return r;
}

static float4 select4(int4 mask, float4 yes, float4 no) {
    return as_float4((as_int4(yes) & mask) | (as_int4(no) & ~mask));
}

static bool find_not_finite(const float *values, size_t n, size_t *where) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if ((bits & 0x7F800000u) == 0x7F800000u) {
            *where = i;
            return true;
        }
    }
    return false;
}

bool prg_softmax_maximum(const float *values, size_t n, float *copy, float *maximum, size_t *where) {
    const float4 zero = {0, 0, 0, 0};
    const float4 first = {values[0], values[0], values[0], values[0]};
    float4 bests[4] = {first, first, first, first};
    float4 trouble = zero; /* 0 * v is 0 for what is finite and NaN for what is not */
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        for (size_t k = 0; k < 4; k++) {
            float4 v = load4(values + i + 4 * k);
            trouble += v * zero;
            v += zero;
            bests[k] = select4(v > bests[k], v, bests[k]);
            if (copy) {
                store4(copy + i + 4 * k, v);
            }
        }
    }
    float4 best = bests[0];
    for (size_t k = 1; k < 4; k++) {
        best = select4(bests[k] > best, bests[k], best);
    }
    float top = best[0], sum = trouble[0] + trouble[1] + trouble[2] + trouble[3];
    for (int k = 1; k < 4; k++) {
        top = best[k] > top ? best[k] : top;
    }
    for (; i < n; i++) {
        float v = values[i] + 0.0f;
        sum += v * 0.0f;
        top = v > top ? v : top;
        if (copy) {
            copy[i] = v;
        }
    }
    if (!(sum == 0.0f) && find_not_finite(values, n, where)) {
        return false;
    }
    *maximum = top + 0.0f;
    return true;
}

/* exp(x), x <= 0: x = k ln 2 + r with |r| <= ln 2 / 2, a polynomial for exp(r), and k into the exponent. */
static float4 exp4(float4 x) {
    const float4 log2e = {0x1.715476p+0f, 0x1.715476p+0f, 0x1.715476p+0f, 0x1.715476p+0f};
    const float4 magic = {0x1.8p+23f, 0x1.8p+23f, 0x1.8p+23f, 0x1.8p+23f}; /* adding it rounds to a whole number */
    const float4 least = {-87.0f, -87.0f, -87.0f, -87.0f};
    int4 inside = x >= least;
    x = select4(inside, x, least);
    float4 shifted = x * log2e + magic;
    float4 k = shifted - magic;
    float4 r = x - k * 0x1.62e4p-1f; /* few digits: the product is exact */
    r = r - k * 0x1.7f7d1cp-20f;
    float4 p = r * 0x1.6c16c2p-10f + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    p = (p * r) * r + r;
    p = p + 1.0f;
    int4 exponent = (as_int4(shifted) - as_int4(magic)) << 23;
    return select4(inside, as_float4(as_int4(p) + exponent), (float4){0, 0, 0, 0});
}

/* The order of the sum: sixteen values fold to four lanes in float, and those into four accumulators in double. */
double prg_softmax_weights(const float *values, size_t n, float maximum, float *weights) {
    double2 sums[2] = {{0, 0}, {0, 0}};
    float4 top = {maximum, maximum, maximum, maximum};
    for (size_t i = 0; i < n; i += STEP) {
        float tail[STEP];
        const float *from = values + i;
        if (n - i < STEP) { /* behind the end: so far below the maximum that it becomes 0 */
            for (size_t k = 0; k < STEP; k++) {
                tail[k] = k < n - i ? values[i + k] : -INFINITY;
            }
            from = tail;
        }
        float4 e[4];
        for (int k = 0; k < 4; k++) {
            e[k] = exp4(load4(from + 4 * k) - top);
            store4(weights + i + 4 * k, e[k]);
        }
        float4 folded = (e[0] + e[1]) + (e[2] + e[3]);
        sums[0] += (double2){(double)folded[0], (double)folded[1]};
        sums[1] += (double2){(double)folded[2], (double)folded[3]};
    }
    double2 s = sums[0] + sums[1];
    return s[0] + s[1];
}

double prg_softmax_sum(const float *weights, size_t n) {
    double2 sums[2] = {{0, 0}, {0, 0}};
    for (size_t i = 0; i < n; i += STEP) {
        const float *w = weights + i;
        float4 folded = (load4(w) + load4(w + 4)) + (load4(w + 8) + load4(w + 12));
        sums[0] += (double2){(double)folded[0], (double)folded[1]};
        sums[1] += (double2){(double)folded[2], (double)folded[3]};
    }
    double2 s = sums[0] + sums[1];
    return s[0] + s[1];
}

void prg_softmax_zero_below(float *weights, size_t n, float floor) {
    const float4 low = {floor, floor, floor, floor}, zero = {0, 0, 0, 0};
    for (size_t i = 0; i < n; i += STEP) {
        for (size_t k = 0; k < STEP; k += 4) {
            float4 w = load4(weights + i + k);
            store4(weights + i + k, select4(w >= low, w, zero));
        }
    }
}

void prg_softmax_scale(float *values, size_t n, float factor) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        store4(values + i, load4(values + i) * factor);
    }
    for (; i < n; i++) {
        values[i] *= factor;
    }
}

bool prg_softmax_all_below(const float *weights, float floor) {
    float4 low = {floor, floor, floor, floor};
    int4 any = (load4(weights) >= low) | (load4(weights + 4) >= low) | (load4(weights + 8) >= low) |
               (load4(weights + 12) >= low);
    int64_t halves[2];
    memcpy(halves, &any, sizeof any);
    return (halves[0] | halves[1]) == 0;
}

static double2 exp2d(double2 x) {
    const double2 magic = {0x1.8p+52, 0x1.8p+52};
    const double2 least = {-700.0, -700.0};
    long2 inside = x >= least;
    long2 bits;
    memcpy(&bits, &x, sizeof bits);
    long2 floor_bits;
    memcpy(&floor_bits, &least, sizeof floor_bits);
    bits = (bits & inside) | (floor_bits & ~inside);
    memcpy(&x, &bits, sizeof x);
    double2 shifted = x * 0x1.71547652b82fep+0 + magic;
    double2 k = shifted - magic;
    double2 r = x - k * 0x1.62e42fefa0000p-1;
    r = r - k * 0x1.cf79abc9e3b39p-40;
    static const double c[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                               1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                               1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
    double2 p = {c[0], c[0]};
    for (size_t i = 1; i < sizeof c / sizeof *c; i++) {
        p = p * r + c[i];
    }
    p = (p * r) * r + r;
    p = p + 1.0;
    long2 shift, base, whole;
    memcpy(&shift, &shifted, sizeof shift);
    memcpy(&base, &magic, sizeof base);
    memcpy(&whole, &p, sizeof whole);
    whole = (whole + ((shift - base) << 52)) & inside;
    memcpy(&p, &whole, sizeof p);
    return p;
}

double prg_softmax_exp(double x) {
    return exp2d((double2){x, x})[0];
}

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 artanh(s), s = (m - 1) / (m + 1). */
double prg_softmax_ln(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (int64_t)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        k++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s, p = 0.0;
    for (int i = 25; i >= 3; i -= 2) {
        p = (p + 1.0 / (double)i) * z;
    }
    double small = 2.0 * s * p + (double)k * 0x1.cf79abc9e3b39p-40;
    return (double)k * 0x1.62e42fefa0000p-1 + (2.0 * s + small);
}

double prg_softmax_log_sum(const float *values, size_t n, float maximum) {
    double top = (double)maximum;
    double2 sums[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    for (size_t i = 0; i < n; i += 8) {
        for (size_t k = 0; k < 4; k++) {
            size_t at = i + 2 * k;
            double2 x = {at < n ? (double)values[at] - top : -1000.0,
                         at + 1 < n ? (double)values[at + 1] - top : -1000.0};
            sums[k] += exp2d(x);
        }
    }
    double2 s = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return top + prg_softmax_ln(s[0] + s[1]);
}
