/* Reading a set of options inside the library. */
#ifndef PRG_BASE_OPTIONS_H
#define PRG_BASE_OPTIONS_H

#include "perigee/options.h"

/* Fails with PERIGEE_E_SCOPE if anything is set of a scope other than those of the mask (1 << scope). NULL is fine. */
perigee_status prg_options_check(const perigee_options *options, unsigned scopes, perigee_error **err);
/* The value set, else the default. NULL options: the default. */
int64_t prg_options_int(const perigee_options *options, perigee_option key);
double prg_options_float(const perigee_options *options, perigee_option key);
/* Ends in NUL; borrowed from `options`. */
const char *prg_options_string(const perigee_options *options, perigee_option key);

#endif
