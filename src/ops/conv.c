#include <assert.h>

#include "base/checked_math.h"
#include "ops/parallel.h"

typedef struct conv_call {
    const perigee_conv_functions *functions;
    perigee_conv_job job;
} conv_call;

static void conv_part(void *argument, size_t index, size_t count) {
    const conv_call *c = argument;
    perigee_conv_job job = c->job;
    prg_share share = prg_share_of((job.channels + 15) / 16, index, count);
    job.first = share.first * 16;
    job.count = prg_min(share.end * 16, job.channels) - job.first;
    if (share.first < share.end) {
        c->functions->conv(&job);
    }
}

void prg_short_conv(const prg_exec *exec, const float *taps, size_t n_taps, const float *history, float *next,
                    const float *u, size_t ldu, size_t m, size_t channels, float *y, size_t ldy) {
    assert(n_taps >= 1 && n_taps <= PRG_CONV_TAPS_MOST);
    assert(n_taps == 1 || next != history); /* of one tap there is no history */
    conv_call c = {&prg_plain_row(exec, PERIGEE_OP_SHORT_CONV)->run.conv,
                   {.taps = taps,
                    .n_taps = n_taps,
                    .channels = channels,
                    .history = history,
                    .next = next,
                    .u = u,
                    .ldu = ldu,
                    .m = m,
                    .y = y,
                    .ldy = ldy}};
    prg_parallel(exec, (m + 2) * channels, conv_part, &c);
}
