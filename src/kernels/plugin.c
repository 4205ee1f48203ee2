#include "kernels/plugin.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"
#include "kernels/kernel_set.h"

typedef struct collector {
    prg_allocator *allocator;
    prg_plugin *plugin;
    char refusal[PRG_REASON_SIZE]; /* "": none so far */
} collector;

static int32_t collect(void *self, const perigee_kernel_row *row) {
    collector *to = self;
    prg_plugin *plugin = to->plugin;
    if (to->refusal[0]) {
        return PERIGEE_E_KERNEL;
    }
    perigee_kernel_row taken;
    if (!prg_kernel_row_take(row, &taken, to->refusal)) {
        return PERIGEE_E_KERNEL;
    }
    if (taken.flags & PERIGEE_KERNEL_HOST) {
        (void)strcpy(to->refusal, "HOST rows come in a kernel set only");
        return PERIGEE_E_KERNEL;
    }
    perigee_kernel_row *rows = prg_realloc(to->allocator, plugin->rows, (plugin->count + 1) * sizeof *rows);
    if (!rows) {
        (void)strcpy(to->refusal, "out of memory");
        return PERIGEE_E_MEMORY;
    }
    rows[plugin->count++] = taken;
    plugin->rows = rows;
    return 0;
}

/* What it was built for, where it says so. */
static perigee_status check_version(const prg_plugin *plugin, perigee_error **err) {
    const uint32_t *version = dlsym(plugin->object, "perigee_kernel_plugin_version");
    if (version && (*version < 1 || *version > PERIGEE_KERNEL_VERSION)) {
        return prg_fail(err, PERIGEE_E_KERNEL, "plugin %s: it is for version %u of kernels, this library for 1 to %d",
                        plugin->path, (unsigned)*version, PERIGEE_KERNEL_VERSION);
    }
    return PERIGEE_OK;
}

static perigee_status ask(prg_allocator *allocator, uint64_t features, prg_plugin *plugin, perigee_error **err) {
    perigee_kernel_plugin_fn entry = NULL;
    void *symbol = dlsym(plugin->object, "perigee_kernel_plugin");
    if (!symbol) {
        return prg_fail(err, PERIGEE_E_KERNEL, "plugin %s exports no perigee_kernel_plugin", plugin->path);
    }
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer */
    perigee_status status = check_version(plugin, err);
    if (status != PERIGEE_OK) {
        return status;
    }
    collector to = {allocator, plugin, ""};
    const perigee_kernel_registry registry = {
        .struct_size = sizeof registry,
        .version = PERIGEE_KERNEL_VERSION,
        .features = features,
        .self = &to,
        .add = collect,
    };
    int32_t result = entry(&registry);
    if (to.refusal[0]) {
        return prg_fail(err, PERIGEE_E_KERNEL, "plugin %s: a row was refused: %s", plugin->path, to.refusal);
    }
    if (result != 0) {
        return prg_fail(err, PERIGEE_E_KERNEL, "plugin %s refused with %d", plugin->path, (int)result);
    }
    return PERIGEE_OK;
}

perigee_status prg_plugin_open(prg_allocator *allocator, const char *path, size_t length, uint64_t features,
                               prg_plugin *out, perigee_error **err) {
    prg_plugin plugin = {.path = prg_strndup(allocator, path, length)};
    perigee_status status = PERIGEE_OK;
    if (!plugin.path) {
        status = prg_fail_memory(err);
        goto done;
    }
    plugin.object = dlopen(plugin.path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin.object) {
        const char *reason = dlerror();
        status = prg_fail(err, PERIGEE_E_KERNEL, "plugin %s: %s", plugin.path, reason ? reason : "not loaded");
        goto done;
    }
    status = ask(allocator, features, &plugin, err);
done:
    if (status != PERIGEE_OK) {
        prg_plugin_close(allocator, &plugin);
    } else {
        *out = plugin;
    }
    return status;
}

void prg_plugin_close(prg_allocator *allocator, prg_plugin *plugin) {
    prg_free(allocator, plugin->rows);
    if (plugin->object) {
        (void)dlclose(plugin->object);
    }
    prg_free(allocator, plugin->path);
    *plugin = (prg_plugin){0};
}
