/* The form in which the trunk is held: all matrices but those of the routed experts. */
#ifndef PRG_MODEL_TRUNK_H
#define PRG_MODEL_TRUNK_H

#include "model/component.h"
#include "perigee/options.h"

typedef enum prg_trunk { PRG_TRUNK_PUBLISHED, PRG_TRUNK_Q8_0 } prg_trunk;

/* As the option says; nothing is checked. */
prg_trunk prg_trunk_of(const perigee_options *options);
/* The form in memory of a matrix that is stored as `stored`. */
uint32_t prg_trunk_form(prg_trunk trunk, prg_component_id id, uint32_t stored);

#endif
