/* The floating-point mode that all results rest on: round to nearest, subnormals kept, nothing traps. A host may have
 * set another one for its thread; it gets it back. */
#ifndef PRG_BASE_FLOAT_MODE_H
#define PRG_BASE_FLOAT_MODE_H

#include <fenv.h>

/* Set it for a thread of the library's own. */
void prg_float_mode_set(void);
/* Set it until leave(), which gives the thread back the mode that enter() found. Arithmetic goes into a function that
 * is called between the two: a compiler may move it past them otherwise. */
void prg_float_mode_enter(fenv_t *host);
void prg_float_mode_leave(const fenv_t *host);

#endif
