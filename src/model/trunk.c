#include "model/trunk.h"

#include <string.h>

#include "base/options.h"
#include "perigee/sys/kernel.h"

prg_trunk prg_trunk_of(const perigee_options *options) {
    const char *trunk = prg_options_string(options, PERIGEE_OPTION_TRUNK);
    return strcmp(trunk, "q8_0") == 0 ? PRG_TRUNK_Q8_0 : PRG_TRUNK_PUBLISHED;
}

/* Large matrices that are read whole for every token. What decides on experts, decays and gates is small and stays; so
 * does kv_b, which is multiplied transposed too, and the embedding, of which a token reads one row. */
static bool converts(prg_component_id id) {
    switch (id) {
    case PRG_PART_KDA_Q:
    case PRG_PART_KDA_K:
    case PRG_PART_KDA_V:
    case PRG_PART_KDA_GATE:
    case PRG_PART_KDA_OUT:
    case PRG_PART_MLA_Q:
    case PRG_PART_MLA_Q_A:
    case PRG_PART_MLA_Q_B:
    case PRG_PART_MLA_KV_A:
    case PRG_PART_MLA_GATE:
    case PRG_PART_MLA_OUT:
    case PRG_PART_MLP_GATE:
    case PRG_PART_MLP_UP:
    case PRG_PART_MLP_DOWN:
    case PRG_PART_LATENT_DOWN:
    case PRG_PART_LATENT_UP:
    case PRG_PART_SHARED_GATE:
    case PRG_PART_SHARED_UP:
    case PRG_PART_SHARED_DOWN:
    case PRG_PART_HEAD:
        return true;
    default:
        return false;
    }
}

uint32_t prg_trunk_form(prg_trunk trunk, prg_component_id id, uint32_t stored) {
    const bool floats = stored == PERIGEE_DTYPE_F32 || stored == PERIGEE_DTYPE_F16 || stored == PERIGEE_DTYPE_BF16;
    return trunk == PRG_TRUNK_Q8_0 && floats && converts(id) ? PERIGEE_DTYPE_Q8_0 : stored;
}
