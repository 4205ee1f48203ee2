/* Short causal convolution over time with SiLU, 16 channels at a time. */
#ifndef PRG_KERNELS_CONV_FORM_H
#define PRG_KERNELS_CONV_FORM_H

#include "kernels/lane_math.h"

enum { CONV_TAPS_MOST = 16 };

/* Taps of k <= 16 channels, by their place in time. */
INLINE void load_taps(const float *from, size_t n, size_t k, lanes *taps) {
    if (n == 4 && k == LANES) {
        lanes_load_fours(from, taps);
        return;
    }
    float turned[CONV_TAPS_MOST * LANES] = {0};
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < n; j++) {
            turned[j * LANES + i] = from[i * n + j];
        }
    }
    for (size_t j = 0; j < n; j++) {
        taps[j] = lanes_load(turned + j * LANES);
    }
}

/* k <= 16 channels from c on; `n` and `k` are constant in the usual case, so that the window stays in registers. */
INLINE void conv_channels(const perigee_conv_job *job, size_t n, size_t c, size_t k) {
    lanes window[CONV_TAPS_MOST], taps[CONV_TAPS_MOST];
    load_taps(job->taps + c * n, n, k, taps);
    UNROLLED(4)
    for (size_t j = 0; j + 1 < n; j++) {
        window[j] = lanes_load_n(job->history + j * job->channels + c, k);
    }
    for (size_t t = 0; t < job->m; t++) {
        window[n - 1] = lanes_load_n(job->u + t * job->ldu + c, k);
        lanes sum = lanes_mul(taps[0], window[0]);
        UNROLLED(4)
        for (size_t j = 1; j < n; j++) {
            sum = lanes_fma(taps[j], window[j], sum);
        }
        lanes_store_n(job->y + t * job->ldy + c, k, lanes_silu(sum));
        UNROLLED(4)
        for (size_t j = 0; j + 1 < n; j++) {
            window[j] = window[j + 1];
        }
    }
    UNROLLED(4)
    for (size_t j = 0; j + 1 < n; j++) {
        lanes_store_n(job->next + j * job->channels + c, k, window[j]);
    }
}

static void conv(const perigee_conv_job *job) {
    for (size_t c = job->first; c < job->first + job->count; c += LANES) {
        size_t left = job->first + job->count - c, k = left < LANES ? left : LANES;
        if (job->n_taps == 4 && k == LANES) {
            conv_channels(job, 4, c, LANES);
        } else {
            conv_channels(job, job->n_taps, c, k);
        }
    }
}

#endif
