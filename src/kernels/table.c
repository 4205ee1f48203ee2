#include "kernels/table.h"

#include <string.h>

#include "base/error.h"
#include "dtype/dtype.h"
#include "kernels/cpu.h"
#include "kernels/kernel_set.h"
#include "kernels/plugin.h"
#include "kernels/rows.h"
#include "os/machine.h"

enum { OPS = 32, DTYPES = 64, PACK_EACH = 1024, PACK_STEP = 32, PACK_LAST = 1 << 16 };

static const char own_origin[] = "built-in";

static const perigee_kernel_row *const built_in[] = {
#define PRG_KERNEL(name) &prg_##name,
#include "kernels/kernel.def"
#undef PRG_KERNEL
};

typedef struct entry {
    const perigee_kernel_row *row;
    const char *origin;
    bool foreign; /* of a plugin or a host: goes before what is built in */
} entry;

struct prg_kernel_table {
    prg_allocator *allocator;
    const perigee_kernel_set *set;
    prg_plugin *plugins;
    size_t plugin_count;
    entry *entries;
    size_t count;
    prg_watch *watch; /* or NULL */
    uint32_t precision;
    enum { TILES_NOT_ASKED, TILES_ALLOWED, TILES_REFUSED } tiles;
    const entry *used[OPS][DTYPES];
};

static const struct {
    const char *name;
    uint64_t needs, allows;
} sets[] = {
    {"auto", 0, UINT64_MAX},
    {"scalar", 0, 0},
    {"avx2", PERIGEE_CPU_AVX2, PERIGEE_CPU_AVX2},
    {"avx512", PERIGEE_CPU_AVX512,
     PERIGEE_CPU_AVX2 | PERIGEE_CPU_AVX512 | PERIGEE_CPU_AVX512_VNNI | PERIGEE_CPU_AVX512_BF16},
    {"amx", PERIGEE_CPU_AMX_BF16, UINT64_MAX},
    {"neon", PERIGEE_CPU_NEON, PERIGEE_CPU_NEON | PERIGEE_CPU_DOTPROD},
};

static const char *const precisions[] = {"exact", "balanced", "fast"};

/* The system grants tiles to a process for good, at a price: so only a table that would have rows for them asks. */
static bool may_use(prg_kernel_table *table, uint64_t features) {
    if (!(features & PERIGEE_CPU_AMX_BF16)) {
        return true;
    }
    if (table->tiles == TILES_NOT_ASKED) {
        table->tiles = prg_os_allow_tiles() ? TILES_ALLOWED : TILES_REFUSED;
    }
    return table->tiles == TILES_ALLOWED;
}

static perigee_status choose_features(prg_kernel_table *table, const char *kernels, uint64_t *features,
                                      perigee_error **err) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (strcmp(sets[i].name, kernels) == 0) {
            if ((sets[i].needs & ~*features) || !may_use(table, sets[i].needs)) {
                return prg_fail(err, PERIGEE_E_UNSUPPORTED, "kernels=%s: this processor or system can't run them",
                                kernels);
            }
            *features &= sets[i].allows;
            return PERIGEE_OK;
        }
    }
    return prg_fail(err, PERIGEE_E_ARGUMENT, "kernels=%s is none of auto, scalar, avx2, avx512, amx, neon", kernels);
}

static perigee_status choose_precision(const char *precision, uint32_t *out, perigee_error **err) {
    for (uint32_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        if (strcmp(precisions[i], precision) == 0) {
            *out = i;
            return PERIGEE_OK;
        }
    }
    return prg_fail(err, PERIGEE_E_ARGUMENT, "precision=%s is none of exact, balanced, fast", precision);
}

static perigee_status open_plugins(prg_kernel_table *table, const char *paths, uint64_t features, perigee_error **err) {
    size_t most = 1;
    if (paths[strspn(paths, ":")] && !may_use(table, features)) { /* a plugin is not shown what it can't use */
        features &= ~(uint64_t)PERIGEE_CPU_AMX_BF16;
    }
    for (const char *p = paths; *p; p++) {
        most += *p == ':';
    }
    table->plugins = prg_calloc(table->allocator, most, sizeof *table->plugins);
    if (!table->plugins) {
        return prg_fail_memory(err);
    }
    while (*paths) {
        size_t length = strcspn(paths, ":");
        if (length > 0) {
            perigee_status status =
                prg_plugin_open(table->allocator, paths, length, features, &table->plugins[table->plugin_count], err);
            if (status != PERIGEE_OK) {
                return status;
            }
            table->plugin_count++;
        }
        paths += length + (paths[length] == ':');
    }
    return PERIGEE_OK;
}

static bool is_usable(prg_kernel_table *table, const perigee_kernel_row *row, uint64_t features) {
    return (row->features & ~features) == 0 && may_use(table, row->features);
}

static void add_entry(prg_kernel_table *table, const perigee_kernel_row *row, const char *origin, bool foreign) {
    table->entries[table->count++] = (entry){row, origin, foreign};
}

/* A row with worse bounds than the context asks for never goes; else foreign ones first, then the least exact that is
 * allowed (it is there because it is faster), then priority, then the one that came first. */
static bool goes_before(const entry *a, const entry *b) {
    if (a->foreign != b->foreign) {
        return a->foreign;
    }
    if (a->row->precision != b->row->precision) {
        return a->row->precision > b->row->precision;
    }
    return a->row->priority > b->row->priority;
}

static bool same_name(const perigee_kernel_row *a, const perigee_kernel_row *b) {
    return a->op == b->op && a->dtype == b->dtype && strcmp(a->name, b->name) == 0;
}

static perigee_status refuse_name(const entry *a, const char *origin, perigee_error **err) {
    return prg_fail(err, PERIGEE_E_KERNEL, "kernel %s of %s: there is one of that name, op and form from %s",
                    a->row->name, a->origin, origin);
}

/* A name means one row, so that reports and choices can name it: whatever the table takes and the processor has, or a
 * plugin would work with some options and on some machines only. */
static perigee_status check_names(const prg_kernel_table *table, size_t first_foreign, perigee_error **err) {
    for (size_t i = first_foreign; i < table->count; i++) {
        const entry *a = &table->entries[i];
        for (size_t j = 0; j < sizeof built_in / sizeof *built_in; j++) {
            if (same_name(a->row, built_in[j])) {
                return refuse_name(a, own_origin, err);
            }
        }
        for (size_t j = first_foreign; j < i; j++) {
            if (same_name(a->row, table->entries[j].row)) {
                return refuse_name(a, table->entries[j].origin, err);
            }
        }
    }
    return PERIGEE_OK;
}

/* Memory is laid out for packed rows side by side, whatever k is; a look at many of them finds a slip. */
static perigee_status check_packing(const entry *of, perigee_error **err) {
    const perigee_kernel_row *row = of->row;
    if (row->op != PERIGEE_OP_MATMUL || row->flags & PERIGEE_KERNEL_HOST) {
        return PERIGEE_OK;
    }
    for (size_t k = 1; k <= PACK_LAST; k += k < PACK_EACH ? 1 : PACK_STEP) {
        const size_t bytes = row->run.matmul.packed_bytes(k);
        if (bytes == 0 || bytes % 64 != 0) {
            return prg_fail(err, PERIGEE_E_KERNEL,
                            "kernel %s of %s: it packs %zu activations in %zu bytes, which is no multiple of 64",
                            row->name, of->origin, k, bytes);
        }
    }
    return PERIGEE_OK;
}

/* Leave out the foreign rows that the processor lacks something for: they are not called, not even to check them. */
static perigee_status keep_usable(prg_kernel_table *table, size_t first_foreign, uint64_t cpu, perigee_error **err) {
    const size_t count = table->count;
    table->count = first_foreign;
    for (size_t i = first_foreign; i < count; i++) {
        const entry one = table->entries[i];
        if (!is_usable(table, one.row, cpu)) {
            continue;
        }
        perigee_status status = check_packing(&one, err);
        if (status != PERIGEE_OK) {
            return status;
        }
        table->entries[table->count++] = one;
    }
    return PERIGEE_OK;
}

static void choose_rows(prg_kernel_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        const entry *candidate = &table->entries[i];
        const entry **used = &table->used[candidate->row->op][candidate->row->dtype];
        if (candidate->row->precision <= table->precision && (!*used || goes_before(candidate, *used))) {
            *used = candidate;
        }
    }
}

static perigee_status fill(prg_kernel_table *table, uint64_t features, uint64_t cpu, perigee_error **err) {
    size_t most = sizeof built_in / sizeof *built_in;
    for (const prg_kernel_set_row *row = prg_kernel_set_rows(table->set); row; row = row->next) {
        most++;
    }
    for (size_t i = 0; i < table->plugin_count; i++) {
        most += table->plugins[i].count;
    }
    table->entries = prg_calloc(table->allocator, most, sizeof *table->entries);
    if (!table->entries) {
        return prg_fail_memory(err);
    }
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (is_usable(table, built_in[i], features)) {
            add_entry(table, built_in[i], own_origin, false);
        }
    }
    const size_t first_foreign = table->count;
    for (size_t i = 0; i < table->plugin_count; i++) {
        for (size_t j = 0; j < table->plugins[i].count; j++) {
            add_entry(table, &table->plugins[i].rows[j], table->plugins[i].path, true);
        }
    }
    for (const prg_kernel_set_row *row = prg_kernel_set_rows(table->set); row; row = row->next) {
        add_entry(table, &row->row, "host", true);
    }
    perigee_status status = check_names(table, first_foreign, err);
    if (status == PERIGEE_OK) {
        status = keep_usable(table, first_foreign, cpu, err);
    }
    if (status == PERIGEE_OK) {
        choose_rows(table);
    }
    return status;
}

perigee_status prg_kernel_table_new(prg_allocator *allocator, const char *kernels, const char *precision,
                                    const char *plugins, const perigee_kernel_set *set, prg_kernel_table **out,
                                    perigee_error **err) {
    const uint64_t cpu = prg_cpu_features();
    uint64_t features = cpu;
    prg_kernel_table *table = prg_calloc(allocator, 1, sizeof *table);
    if (!table) {
        return prg_fail_memory(err);
    }
    table->allocator = allocator;
    table->set = prg_kernel_set_hold(set);
    perigee_status status = choose_features(table, kernels, &features, err);
    if (status == PERIGEE_OK) {
        status = choose_precision(precision, &table->precision, err);
    }
    if (status == PERIGEE_OK) {
        status = open_plugins(table, plugins, cpu, err);
    }
    if (status == PERIGEE_OK) {
        status = fill(table, features, cpu, err);
    }
    if (status != PERIGEE_OK) {
        prg_kernel_table_free(table);
        return status;
    }
    *out = table;
    return PERIGEE_OK;
}

perigee_status prg_kernel_table_watch(prg_kernel_table *table, unsigned what, perigee_error **err) {
    perigee_status status = prg_watch_new(table->allocator, what, table->count, &table->watch, err);
    for (size_t i = 0; status == PERIGEE_OK && i < table->count; i++) {
        status = prg_watch_row(table->watch, table->entries[i].row, &table->entries[i].row, err);
    }
    return status;
}

prg_watch *prg_kernel_table_watcher(const prg_kernel_table *table) {
    return table->watch;
}

void prg_kernel_table_free(prg_kernel_table *table) {
    if (!table) {
        return;
    }
    prg_allocator *allocator = table->allocator;
    prg_watch_free(table->watch);
    for (size_t i = 0; i < table->plugin_count; i++) {
        prg_plugin_close(allocator, &table->plugins[i]);
    }
    perigee_kernel_set_free((perigee_kernel_set *)(uintptr_t)table->set); /* the reference of prg_kernel_set_hold() */
    prg_free(allocator, table->plugins);
    prg_free(allocator, table->entries);
    prg_free(allocator, table);
}

size_t prg_kernel_table_count(const prg_kernel_table *table) {
    return table->count;
}

const perigee_kernel_row *prg_kernel_table_at(const prg_kernel_table *table, size_t index) {
    return table->entries[index].row;
}

const perigee_kernel_row *prg_kernel_table_row(const prg_kernel_table *table, uint32_t op, uint32_t dtype) {
    if (op >= OPS || dtype >= DTYPES) {
        return NULL;
    }
    const entry *used = table->used[op][dtype];
    return used ? used->row : NULL;
}

void prg_kernel_table_info(const prg_kernel_table *table, size_t index, perigee_kernel_info *out) {
    const entry *at = &table->entries[index];
    const perigee_kernel_row *row = at->row;
    const prg_dtype *dtype = prg_dtype_get(row->dtype);
    const perigee_kernel_info info = {
        .struct_size = sizeof info,
        .name = row->name,
        .op = prg_kernel_op_name(row->op),
        .weight = dtype ? dtype->name : "",
        .isa = row->isa,
        .origin = at->origin,
        .numerics = row->numerics,
        .precision = precisions[row->precision],
        .error_bound = row->error_bound,
        .deterministic = !(row->flags & PERIGEE_KERNEL_NONDETERMINISTIC),
        .in_use = table->used[row->op][row->dtype] == at,
    };
    const size_t size = out->struct_size < sizeof info ? out->struct_size : sizeof info;
    memcpy(out, &info, size);
    out->struct_size = size;
}
