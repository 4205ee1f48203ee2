/* A model drawn as blocks in blocks, with the count of each, from its description. */
#ifndef PERIGEE_TOOLS_TREE_H
#define PERIGEE_TOOLS_TREE_H

#include "cli.h"

int tree_print(const cli_args *args, const perigee_description *description);
int tree_write_svg(const cli_args *args, const perigee_description *description, const char *path);

#endif
