#ifndef PERIGEE_TOOLS_RUN_IDS_H
#define PERIGEE_TOOLS_RUN_IDS_H

#include "text_io.h"

/* Take in the prompt, write what --logits and --trace ask for, and print the greedy continuation. */
int run_ids(const cli_args *args, cli_host *host, const cli_ids *prompt);

#endif
