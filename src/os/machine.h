/* Processors, their tiles, and the clock. */
#ifndef PRG_OS_MACHINE_H
#define PRG_OS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/* Processors that this process may use: the affinity of the calling thread and the quota of every cgroup (v1 and v2)
 * above, at least 1. `root` stands before /proc and /sys; "" for the machine. */
size_t prg_os_processors(const char *root);

/* Seconds from some fixed moment; never runs backwards. */
double prg_os_clock(void);

/* Ask the system to let this process use the tiles of AMX, from now on and in all threads. False: it has none to give,
 * or refuses. */
bool prg_os_allow_tiles(void);

#endif
