/* The verbs: each file verb_<name>.c holds one table of options and what it does. */
#ifndef PERIGEE_TOOLS_VERBS_H
#define PERIGEE_TOOLS_VERBS_H

#include "cli.h"

extern const cli_verb verb_run, verb_chat, verb_eval, verb_tokenize, verb_detokenize, verb_inspect, verb_bench,
    verb_synth, verb_kernels, verb_manual;

#endif
