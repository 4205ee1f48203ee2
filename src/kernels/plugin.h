/* Shared objects that bring rows. */
#ifndef PRG_KERNELS_PLUGIN_H
#define PRG_KERNELS_PLUGIN_H

#include "base/alloc.h"
#include "perigee/sys/kernel.h"

typedef struct prg_plugin {
    void *object; /* of dlopen() */
    char *path;
    perigee_kernel_row *rows;
    size_t count;
} prg_plugin;

/* Load and ask for rows. On failure nothing of it stays. */
perigee_status prg_plugin_open(prg_allocator *allocator, const char *path, size_t length, uint64_t features,
                               prg_plugin *out, perigee_error **err);
void prg_plugin_close(prg_allocator *allocator, prg_plugin *plugin);

#endif
