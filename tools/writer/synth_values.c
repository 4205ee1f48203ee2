#include "synth_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype/dtype.h"

/* Elements of a period: a prime, so that no two rows of a matrix are the same. */
enum { PERIOD = 4194301, BLOCKS = 12, E4M3_CODES = 127, QUANTILES = 128 };

/* One period of codes of one distribution. */
typedef struct block {
    synth_values values;
    size_t element;
    unsigned char *bytes;
    uint64_t used; /* age, for replacement */
} block;

struct synth_source {
    uint64_t seed;
    float *normals; /* [PERIOD] */
    uint8_t *noise; /* [PERIOD] */
    block blocks[BLOCKS];
    uint64_t clock;
};

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/* Uniform in (0, 1). */
static double uniform(uint64_t bits) {
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

synth_source *synth_source_new(uint64_t seed) {
    synth_source *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->seed = seed;
    s->normals = malloc(PERIOD * sizeof *s->normals);
    s->noise = malloc(PERIOD);
    if (!s->normals || !s->noise) {
        synth_source_free(s);
        return NULL;
    }
    for (size_t i = 0; i < PERIOD; i += 2) {
        double radius = sqrt(-2.0 * log(uniform(mix(seed + 2 * i))));
        double angle = 6.283185307179586 * uniform(mix(seed + 2 * i + 1));
        s->normals[i] = (float)(radius * cos(angle));
        if (i + 1 < PERIOD) {
            s->normals[i + 1] = (float)(radius * sin(angle));
        }
    }
    for (size_t i = 0; i < PERIOD; i++) {
        s->noise[i] = (uint8_t)mix(~seed + i);
    }
    return s;
}

void synth_source_free(synth_source *s) {
    if (s) {
        for (size_t i = 0; i < BLOCKS; i++) {
            free(s->blocks[i].bytes);
        }
        free(s->normals);
        free(s->noise);
        free(s);
    }
}

static size_t element_bytes(synth_kind kind) {
    switch (kind) {
    case SYNTH_NORMAL_F32:
    case SYNTH_SCALES_FP8:
    case SYNTH_LOG_RATE_F32:
    case SYNTH_SHAPE_I32:
        return 4;
    case SYNTH_NORMAL_BF16:
    case SYNTH_SCALES_INT4:
    case SYNTH_CONSTANT_BF16:
        return 2;
    default:
        return 1;
    }
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* E4M3 codes of the quantiles of |N(0, 1)|, the widest near 240, and their root mean square. */
static double fp8_quantiles(const synth_source *s, uint8_t *codes) {
    enum { SAMPLE = QUANTILES * 64 };
    static float sample[SAMPLE];
    for (size_t i = 0; i < SAMPLE; i++) {
        sample[i] = fabsf(s->normals[i]);
    }
    qsort(sample, SAMPLE, sizeof *sample, compare_floats);
    double squares = 0;
    for (size_t i = 0; i < QUANTILES; i++) {
        float wanted = sample[i * 64 + 32] * 80.0F;
        uint8_t code = 0;
        while (code + 1 < E4M3_CODES &&
               fabsf(prg_e4m3_to_f32((uint8_t)(code + 1)) - wanted) <= fabsf(prg_e4m3_to_f32(code) - wanted)) {
            code++;
        }
        codes[i] = code;
        squares += pow(prg_e4m3_to_f32(code), 2);
    }
    return sqrt(squares / QUANTILES);
}

/* Root mean square of nibbles as values: E2M1, and -7 to 7 with zero twice. */
static double nibble_rms(bool fp4) {
    return fp4 ? sqrt(68.5 / 8) : sqrt(280.0 / 16);
}

static void fill_scales(const synth_source *s, block *b) {
    double spread = b->values.spread;
    if (b->values.kind == SYNTH_SCALES_MXFP4) {
        /* powers of two: two neighbours, so often each that the mean square is right */
        double wanted = spread / nibble_rms(true);
        double exponent = floor(log2(wanted));
        double share = (pow(wanted / exp2(exponent), 2) - 1) / 3;
        for (size_t i = 0; i < PERIOD; i++) {
            bool up = (s->noise[i] + 0.5) / 256 < share;
            b->bytes[i] = (uint8_t)(127 + (int)exponent + up);
        }
        return;
    }
    uint8_t codes[QUANTILES];
    double rms = b->values.kind == SYNTH_SCALES_INT4 ? nibble_rms(false) : fp8_quantiles(s, codes);
    for (size_t i = 0; i < PERIOD; i++) {
        /* up to a quarter more or less: a scale taken for another must show */
        float scale = (float)(spread / rms * (0.75 + s->noise[i] / 512.0));
        if (b->values.kind == SYNTH_SCALES_INT4) {
            ((uint16_t *)(void *)b->bytes)[i] = prg_f32_to_bf16(scale);
        } else {
            ((float *)(void *)b->bytes)[i] = scale;
        }
    }
}

static void fill(const synth_source *s, block *b) {
    float mean = (float)b->values.mean;
    float spread = (float)b->values.spread;
    switch (b->values.kind) {
    case SYNTH_NORMAL_BF16:
        for (size_t i = 0; i < PERIOD; i++) {
            ((uint16_t *)(void *)b->bytes)[i] = prg_f32_to_bf16(mean + spread * s->normals[i]);
        }
        break;
    case SYNTH_NORMAL_F32:
        for (size_t i = 0; i < PERIOD; i++) {
            ((float *)(void *)b->bytes)[i] = mean + spread * s->normals[i];
        }
        break;
    case SYNTH_CODES_MXFP4:
        memcpy(b->bytes, s->noise, PERIOD);
        break;
    case SYNTH_CODES_INT4:
        for (size_t i = 0; i < PERIOD; i++) {
            unsigned low = s->noise[i] & 15U;
            unsigned high = s->noise[i] >> 4;
            b->bytes[i] = (uint8_t)((low ? low : 8U) | (high ? high : 8U) << 4);
        }
        break;
    case SYNTH_CODES_FP8: {
        uint8_t codes[QUANTILES];
        fp8_quantiles(s, codes);
        for (size_t i = 0; i < PERIOD; i++) {
            b->bytes[i] = (uint8_t)(codes[s->noise[i] >> 1] | (s->noise[i] & 1) << 7);
        }
        break;
    }
    default:
        fill_scales(s, b);
    }
}

/* The period of a distribution, made now or before. */
static const block *find_block(synth_source *s, const synth_values *values) {
    block *oldest = &s->blocks[0];
    for (size_t i = 0; i < BLOCKS; i++) {
        block *b = &s->blocks[i];
        if (b->bytes && b->values.kind == values->kind && b->values.mean == values->mean &&
            b->values.spread == values->spread) {
            b->used = ++s->clock;
            return b;
        }
        if (b->used < oldest->used) {
            oldest = b;
        }
    }
    free(oldest->bytes);
    oldest->values = *values;
    oldest->element = element_bytes(values->kind);
    oldest->bytes = malloc(PERIOD * oldest->element);
    oldest->used = ++s->clock;
    if (oldest->bytes) {
        fill(s, oldest);
    }
    return oldest->bytes ? oldest : NULL;
}

/* Short vectors that are no draw of a distribution. */
static bool write_special(const synth_source *s, writer_file *file, const synth_values *v, uint64_t count,
                          uint64_t key) {
    for (uint64_t i = 0; i < count; i++) {
        union {
            float f32;
            int32_t i32;
            uint16_t bf16;
        } one = {.i32 = 0};
        if (v->kind == SYNTH_SHAPE_I32) {
            one.i32 = (int32_t)(i == 0 ? v->mean : v->spread);
        } else if (v->kind == SYNTH_CONSTANT_BF16) {
            one.bf16 = prg_f32_to_bf16((float)v->mean);
        } else if ((double)i < v->spread) {
            one.f32 = (float)log(1 + (v->mean - 1) * uniform(mix(s->seed ^ mix(key + i))));
        }
        if (!writer_data(file, &one, element_bytes(v->kind))) {
            return false;
        }
    }
    return true;
}

bool synth_source_write(synth_source *s, writer_file *file, const synth_values *v, uint64_t count, uint64_t key) {
    if (v->kind == SYNTH_LOG_RATE_F32 || v->kind == SYNTH_CONSTANT_BF16 || v->kind == SYNTH_SHAPE_I32) {
        return write_special(s, file, v, count, key);
    }
    const block *b = find_block(s, v);
    if (!b) {
        return false;
    }
    uint64_t at = mix(s->seed ^ mix(key)) % PERIOD;
    while (count > 0) {
        uint64_t piece = PERIOD - at < count ? PERIOD - at : count;
        if (!writer_data(file, b->bytes + at * b->element, (size_t)piece * b->element)) {
            return false;
        }
        count -= piece;
        at = 0;
    }
    return true;
}
