/* RMS norm of a row, softmax and elementwise gates. Included once by a file of each instruction set. */
#ifndef PRG_KERNELS_NORM_FORM_H
#define PRG_KERNELS_NORM_FORM_H

#include "kernels/lane_math.h"

INLINE size_t lanes_of(size_t n, size_t i) {
    return n - i < LANES ? n - i : LANES;
}

/* sum x^2: vector j of the row goes to accumulator j mod 4 */
INLINE float sum_of_squares(const float *x, size_t n) {
    lanes a[4] = {lanes_zero(), lanes_zero(), lanes_zero(), lanes_zero()};
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (size_t j = 0; j < 4; j++) {
            lanes v = lanes_load(x + i + j * LANES);
            a[j] = lanes_fma(v, v, a[j]);
        }
    }
    for (size_t j = 0; i < n; i += LANES, j++) {
        lanes v = lanes_load_n(x + i, lanes_of(n, i));
        a[j] = lanes_fma(v, v, a[j]);
    }
    return lanes_sum(lanes_add(lanes_add(a[0], a[1]), lanes_add(a[2], a[3])));
}

static void rms_norm(const float *x, const float *gain, const float *gate, size_t n, float eps, float *y) {
    lanes scale = lanes_set(1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        lanes v = lanes_mul(lanes_mul(lanes_load_n(x + i, k), scale), lanes_load_n(gain + i, k));
        if (gate) {
            v = lanes_mul(v, lanes_sigmoid(lanes_load_n(gate + i, k)));
        }
        lanes_store_n(y + i, k, v);
    }
}

static void softmax(const float *x, size_t n, float *y) {
    float most = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) {
        most = most > x[i] ? most : x[i];
    }
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        float e[LANES];
        lanes_store(e, lanes_exp(lanes_sub(lanes_load_n(x + i, k), lanes_set(most))));
        for (size_t j = 0; j < k; j++) {
            sum += e[j];
        }
        memcpy(y + i, e, k * sizeof *e);
    }
    lanes scale = lanes_set(1.0f / sum);
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        lanes_store_n(y + i, k, lanes_mul(lanes_load_n(y + i, k), scale));
    }
}

static void sigmoid(const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        lanes_store_n(y + i, k, lanes_sigmoid(lanes_load_n(x + i, k)));
    }
}

static void sigmoid_gate(const float *gate, size_t n, float *y) {
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        lanes_store_n(y + i, k, lanes_mul(lanes_load_n(y + i, k), lanes_sigmoid(lanes_load_n(gate + i, k))));
    }
}

static void gated(const float *gate, const float *up, size_t n, int kind, float beta, float linear_beta, float *y) {
    for (size_t i = 0; i < n; i += LANES) {
        size_t k = lanes_of(n, i);
        lanes g = lanes_load_n(gate + i, k), u = lanes_load_n(up + i, k);
        if (kind == 0) {
            g = lanes_silu(g);
        } else {
            lanes b = lanes_set(beta), c = lanes_set(linear_beta);
            g = lanes_mul(lanes_mul(b, lanes_tanh(lanes_div(g, b))), lanes_sigmoid(g));
            if (linear_beta != 0) {
                u = lanes_mul(c, lanes_tanh(lanes_div(u, c)));
            }
        }
        lanes_store_n(y + i, k, lanes_mul(g, u));
    }
}

INLINE float mix_score(const float *v, const float *key, size_t n, float eps) {
    lanes squares[2] = {lanes_zero(), lanes_zero()}, dots[2] = {lanes_zero(), lanes_zero()};
    for (size_t i = 0, j = 0; i < n; i += LANES, j ^= 1) {
        size_t k = lanes_of(n, i);
        lanes x = lanes_load_n(v + i, k);
        squares[j] = lanes_fma(x, x, squares[j]);
        dots[j] = lanes_fma(x, lanes_load_n(key + i, k), dots[j]);
    }
    float square = lanes_sum(lanes_add(squares[0], squares[1])), dot = lanes_sum(lanes_add(dots[0], dots[1]));
    return dot / sqrtf(square / (float)n + eps);
}

static void mix(const float *const *sources, size_t n, size_t offset, const float *key, size_t width, float eps,
                float *score, float *y) {
    for (size_t j = 0; j < n; j++) {
        score[j] = mix_score(sources[j] + offset, key, width, eps);
    }
    softmax(score, n, score);
    for (size_t i = 0; i < width; i += LANES) {
        size_t k = lanes_of(width, i);
        lanes sum = lanes_zero();
        for (size_t j = 0; j < n; j++) {
            sum = lanes_fma(lanes_set(score[j]), lanes_load_n(sources[j] + offset + i, k), sum);
        }
        lanes_store_n(y + i, k, sum);
    }
}

#endif
