/* Short causal convolution over time with SiLU, 16 channels at a time. */
#ifndef PRG_KERNELS_CONV_FORM_H
#define PRG_KERNELS_CONV_FORM_H

#include "kernels/lane_math.h"

enum { CONV_TAPS_MOST = 16 };

/* k <= 16 channels from c on; `n` is constant in the usual case, so that the window stays in registers. */
INLINE void conv_channels(const perigee_conv_job *job, size_t n, size_t c, size_t k) {
    float transposed[CONV_TAPS_MOST * LANES] = {0};
    lanes window[CONV_TAPS_MOST], taps[CONV_TAPS_MOST];
    for (size_t i = 0; i < k; i++) {
        for (size_t j = 0; j < n; j++) {
            transposed[j * LANES + i] = job->taps[(c + i) * n + j];
        }
    }
    for (size_t j = 0; j < n; j++) {
        taps[j] = lanes_load(transposed + j * LANES);
    }
    for (size_t j = 0; j + 1 < n; j++) {
        window[j] = lanes_load_n(job->history + j * job->channels + c, k);
    }
    for (size_t t = 0; t < job->m; t++) {
        window[n - 1] = lanes_load_n(job->u + t * job->ldu + c, k);
        lanes sum = lanes_mul(taps[0], window[0]);
        for (size_t j = 1; j < n; j++) {
            sum = lanes_fma(taps[j], window[j], sum);
        }
        lanes_store_n(job->y + t * job->ldy + c, k, lanes_silu(sum));
        for (size_t j = 0; j + 1 < n; j++) {
            window[j] = window[j + 1];
        }
    }
    for (size_t j = 0; j + 1 < n; j++) {
        lanes_store_n(job->next + j * job->channels + c, k, window[j]);
    }
}

static void conv(const perigee_conv_job *job) {
    for (size_t c = job->first; c < job->first + job->count; c += LANES) {
        size_t left = job->first + job->count - c, k = left < LANES ? left : LANES;
        if (job->n_taps == 4) {
            conv_channels(job, 4, c, k);
        } else {
            conv_channels(job, job->n_taps, c, k);
        }
    }
}

#endif
