#include "model/rope.h"

#include <math.h>

#include "base/error.h"

static const double pi = 3.14159265358979323846;

static double mscale(double factor, double m) {
    return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

/* The pair that turns r times within the original context. */
static double pair_of(const prg_config *c, double r) {
    return (double)c->rope * log((double)c->yarn_original / (r * 2 * pi)) / (2 * log(c->rope_theta));
}

/* Fast pairs stay as they are, slow ones are stretched by the factor, with a ramp between. */
static double blend(const prg_config *c, double frequency, size_t pair) {
    double low = fmax(floor(pair_of(c, c->yarn_beta_fast)), 0);
    double high = fmin(ceil(pair_of(c, c->yarn_beta_slow)), (double)c->rope - 1);
    double ramp = ((double)pair - low) / fmax(high - low, 0.001);
    ramp = fmin(fmax(ramp, 0), 1);
    return frequency / c->yarn_factor * ramp + frequency * (1 - ramp);
}

perigee_status prg_rope_make(prg_arena *arena, const prg_config *config, prg_rope *out, double *scale,
                             perigee_error **err) {
    const prg_config *c = config;
    size_t pairs = (size_t)c->rope / 2;
    double *frequency = prg_arena_alloc(arena, pairs, sizeof *frequency);
    if (!frequency) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < pairs; i++) {
        frequency[i] = pow(c->rope_theta, -2.0 * (double)i / (double)c->rope);
        if (c->yarn) {
            frequency[i] = blend(c, frequency[i], i);
        }
    }
    *out = (prg_rope){pairs, frequency, 1};
    *scale = 1;
    if (c->yarn) {
        /* the factor of cos and sin is the ratio; the scores take the square of the other term alone */
        double all = mscale(c->yarn_factor, c->yarn_mscale_all);
        out->factor = (float)(mscale(c->yarn_factor, c->yarn_mscale) / all);
        *scale = all * all;
    }
    return PERIGEE_OK;
}
