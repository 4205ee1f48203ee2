/* Rotary positions as the config has them, the YaRN blend included. */
#ifndef PRG_MODEL_ROPE_H
#define PRG_MODEL_ROPE_H

#include "model/config.h"

/* Frequencies lie in the arena. `scale`: by how much the scores' scale grows. */
perigee_status prg_rope_make(prg_arena *arena, const prg_config *config, prg_rope *out, double *scale,
                             perigee_error **err);

#endif
