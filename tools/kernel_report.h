#ifndef PERIGEE_TOOLS_KERNEL_REPORT_H
#define PERIGEE_TOOLS_KERNEL_REPORT_H

#include "cli.h"

/* After a run: what --trace-kernels and --check-kernels saw, to standard error. A difference makes it fail. */
int kernel_report(const cli_args *args, const cli_host *host, int status);
/* The same as members kernel_trace and kernel_check of a document; nothing without the options. */
void kernel_report_json(const cli_host *host, json_t *document);

#endif
