/* Random values of a few distributions, at the speed of copying: each comes from a long period of codes made once. */
#ifndef PERIGEE_WRITER_SYNTH_VALUES_H
#define PERIGEE_WRITER_SYNTH_VALUES_H

#include "safetensors_writer.h"

typedef enum synth_kind {
    SYNTH_NORMAL_BF16,   /* mean + spread * N(0, 1) */
    SYNTH_NORMAL_F32,    /* likewise */
    SYNTH_CODES_MXFP4,   /* uniform nibbles */
    SYNTH_CODES_INT4,    /* nibbles of -7 to 7: a mean that is not zero would grow from layer to layer */
    SYNTH_CODES_FP8,     /* normally distributed, root mean square as synth_rms() says */
    SYNTH_SCALES_MXFP4,  /* E8M0 such that values have the root mean square `spread` */
    SYNTH_SCALES_INT4,   /* BF16, likewise */
    SYNTH_SCALES_FP8,    /* F32, likewise */
    SYNTH_LOG_RATE_F32,  /* log of uniform in [1, mean], the first `spread` of them; zeros behind */
    SYNTH_CONSTANT_BF16, /* mean */
    SYNTH_SHAPE_I32      /* mean, spread as two integers */
} synth_kind;

typedef struct synth_values {
    synth_kind kind;
    double mean, spread;
} synth_values;

typedef struct synth_source synth_source;

synth_source *synth_source_new(uint64_t seed);
void synth_source_free(synth_source *source);
/* Write `count` elements (of 4-bit codes: bytes); a place of its own in the period for each `key`. */
bool synth_source_write(synth_source *source, writer_file *file, const synth_values *values, uint64_t count,
                        uint64_t key);

#endif
