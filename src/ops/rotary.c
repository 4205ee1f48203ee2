/* Rotary positions. Angles, their reduction and the polynomials are in double precision with one rounding each, so
 * that cos and sin are the same on every machine. */
#include "ops/parallel.h"

typedef struct rope_call {
    const prg_rope *rope;
    float *x;
    size_t ldx, m, heads, stride;
    const int64_t *position;
} rope_call;

/* pi / 2 in four parts; the first three have 20 bits, so that a whole number of up to 33 bits times each is exact. */
static double reduce(double angle, unsigned *quarter) {
    const double rounder = 6755399441055744.0; /* 1.5 * 2^52 */
    double n = (angle * 0.63661977236758134308 + rounder) - rounder;
    *quarter = (unsigned)((int64_t)n & 3);
    angle -= n * 0x1.921fap+0;
    angle -= n * 0x1.54442p-20;
    angle -= n * 0x1.a308cp-41;
    return angle - n * 0x1.313198a2e0370p-61;
}

/* Taylor series; |x| <= pi / 4 leaves an error below 1e-16. */
static void sine_cosine(double angle, double *sine, double *cosine) {
    unsigned quarter;
    double x = reduce(angle, &quarter), z = x * x;
    double s =
        x +
        x * z *
            (-1.0 / 6 +
             z * (1.0 / 120 +
                  z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 + z * (1.0 / 6227020800.0 +
                                                                                     z * (-1.0 / 1307674368000.0)))))));
    double c =
        1 + z * (-0.5 + z * (1.0 / 24 +
                             z * (-1.0 / 720 + z * (1.0 / 40320 +
                                                    z * (-1.0 / 3628800 + z * (1.0 / 479001600.0 +
                                                                               z * (-1.0 / 87178291200.0 +
                                                                                    z * (1.0 / 20922789888000.0))))))));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

static void rotate_part(void *argument, size_t index, size_t count) {
    const rope_call *call = argument;
    prg_share share = prg_share_of(call->m, index, count);
    for (size_t t = share.first; t < share.end; t++) {
        for (size_t i = 0; i < call->rope->pairs; i++) {
            double sine, cosine;
            sine_cosine((double)call->position[t] * call->rope->frequency[i], &sine, &cosine);
            float s = (float)sine * call->rope->factor, c = (float)cosine * call->rope->factor;
            float *pair = call->x + t * call->ldx + 2 * i;
            for (size_t h = 0; h < call->heads; h++, pair += call->stride) {
                float a = pair[0], b = pair[1];
                pair[0] = a * c - b * s;
                pair[1] = a * s + b * c;
            }
        }
    }
}

void prg_rope_apply(const prg_exec *exec, const prg_rope *rope, float *x, size_t ldx, size_t m, size_t heads,
                    size_t head_stride, const int64_t *position) {
    rope_call c = {rope, x, ldx, m, heads, head_stride, position};
    prg_parallel(exec, m > 1 ? m * rope->pairs * (20 + 2 * heads) : 0, rotate_part, &c);
}
