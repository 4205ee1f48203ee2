#include "model/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "model/stored.h"
#include "perigee/sys/kernel.h"

enum { TEXT = 256 };

/* Layers that a row counts: all that have the component, or those with KDA or without it. */
typedef enum layer_kind { KIND_ANY, KIND_KDA, KIND_MLA } layer_kind;

typedef struct writer {
    prg_checkpoint *checkpoint;
    perigee_description *out;
    perigee_status status;
    perigee_error **err;
} writer;

static const char *keep(writer *w, const char *text) {
    char *copy = prg_arena_strndup(&w->out->arena, text, strlen(text));
    if (!copy) {
        w->status = prg_fail_memory(w->err);
    }
    return copy;
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, TEXT - used, format, args);
    va_end(args);
}

/* A whole number with a comma before each group of three digits. */
static void append_number(char *text, int64_t value) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value);
    for (int i = 0; i < length; i++) {
        append(text, i > 0 && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    }
}

static bool counts(const prg_config *c, const prg_component *part, layer_kind kind, int64_t layer) {
    return prg_scope_has(c, part->scope, layer) && (kind == KIND_ANY || c->is_kda[layer] == (kind == KIND_KDA));
}

static int64_t layers_of(const prg_config *c, const prg_component *part, layer_kind kind) {
    int64_t count = 0;
    for (int64_t i = 0; i < c->layers; i++) {
        count += counts(c, part, kind, i);
    }
    return count;
}

static const char *prefix_of(prg_scope scope) {
    static const char *const prefixes[] = {
        [PRG_SCOPE_MODEL] = "",     [PRG_SCOPE_LAYER] = "",   [PRG_SCOPE_KDA] = "kda.",   [PRG_SCOPE_MLA] = "mla.",
        [PRG_SCOPE_DENSE] = "mlp.", [PRG_SCOPE_MOE] = "moe.", [PRG_SCOPE_EXPERT] = "moe."};
    return prefixes[scope];
}

static const char *unit_of(prg_scope scope, layer_kind kind) {
    static const char *const units[] = {
        [PRG_SCOPE_MODEL] = "",          [PRG_SCOPE_LAYER] = "layer",       [PRG_SCOPE_KDA] = "KDA layer",
        [PRG_SCOPE_MLA] = "MLA layer",   [PRG_SCOPE_DENSE] = "dense layer", [PRG_SCOPE_MOE] = "MoE layer",
        [PRG_SCOPE_EXPERT] = "MoE layer"};
    return kind == KIND_KDA ? "KDA layer" : kind == KIND_MLA ? "MLA layer" : units[scope];
}

static void write_formula(const prg_config *c, const prg_component *part, layer_kind kind, int64_t layers,
                          int64_t total, char *text) {
    if (part->rows != 1) {
        append_number(text, part->rows);
        append(text, " × ");
    }
    append_number(text, part->columns);
    if (part->scope == PRG_SCOPE_EXPERT) {
        append(text, " × ");
        append_number(text, c->experts);
        append(text, " expert%s", c->experts == 1 ? "" : "s");
    }
    if (part->scope != PRG_SCOPE_MODEL) {
        append(text, " × ");
        append_number(text, layers);
        append(text, " %s%s%s", unit_of(part->scope, kind), layers == 1 ? "" : "s",
               kind != KIND_ANY && part->scope == PRG_SCOPE_MOE ? " with MoE" : "");
    }
    append(text, " = ");
    append_number(text, total);
}

static const char *stored_name(const prg_stored *s) {
    static const char *const names[] = {
        [PERIGEE_DTYPE_NONE] = "unknown", [PERIGEE_DTYPE_F32] = "F32",     [PERIGEE_DTYPE_F16] = "F16",
        [PERIGEE_DTYPE_BF16] = "BF16",    [PERIGEE_DTYPE_MXFP4] = "MXFP4", [PERIGEE_DTYPE_INT4] = "INT4",
        [PERIGEE_DTYPE_FP8] = "FP8"};
    return names[s->dtype];
}

/* Adds what the checkpoint holds of one instance. */
static void count_instance(writer *w, prg_component_id id, int64_t layer, int64_t expert, perigee_component *row) {
    prg_stored s;
    prg_stored_find(w->checkpoint, id, layer, expert, &s);
    if (!s.codes) {
        return;
    }
    row->disk_total += prg_stored_elements(&s);
    row->disk_bytes += prg_stored_bytes(&s);
    const char *name = stored_name(&s);
    row->stored = !row->stored || row->stored == name ? name : "mixed";
}

static void count_on_disk(writer *w, prg_component_id id, const prg_component *part, layer_kind kind,
                          perigee_component *row) {
    const prg_config *c = &w->checkpoint->config;
    row->disk_total = row->disk_bytes = 0;
    if (part->scope == PRG_SCOPE_MODEL) {
        count_instance(w, id, 0, 0, row);
    }
    for (int64_t i = 0; i < c->layers; i++) {
        int64_t experts = part->scope == PRG_SCOPE_EXPERT ? c->experts : 1;
        for (int64_t e = 0; e < experts && counts(c, part, kind, i); e++) {
            count_instance(w, id, i, e, row);
        }
    }
}

/* Of a component, what one token uses: a row of an embedding that is not the head too, and top_k of the experts. */
static int64_t active_of(const prg_config *c, prg_component_id id, const prg_component *part, int64_t size,
                         int64_t layers, int64_t total) {
    if (id == PRG_PART_EMBED && !c->tied_head) {
        return c->hidden;
    }
    return part->scope == PRG_SCOPE_EXPERT ? size * c->top_k * layers : total;
}

static void add_row(writer *w, prg_component_id id, const prg_component *part, layer_kind kind, bool name_kind) {
    const prg_config *c = &w->checkpoint->config;
    int64_t layers = part->scope == PRG_SCOPE_MODEL ? 1 : layers_of(c, part, kind);
    if (layers == 0 || w->status != PERIGEE_OK) {
        return;
    }
    char name[TEXT] = "", formula[TEXT] = "", shape[TEXT] = "";
    perigee_component *row = &w->out->components[w->out->count++];
    int64_t size = part->rows * part->columns;
    int64_t instances = layers * (part->scope == PRG_SCOPE_EXPERT ? c->experts : 1);
    append(name, "%s%s%s", name_kind ? prefix_of(kind == KIND_KDA ? PRG_SCOPE_KDA : PRG_SCOPE_MLA) : "",
           prefix_of(part->scope), part->name);
    write_formula(c, part, kind, layers, size * instances, formula);
    append(shape, part->rows == 1 ? "[%lld]" : "[%lld, ", (long long)(part->rows == 1 ? part->columns : part->rows));
    if (part->rows != 1) {
        append(shape, "%lld]", (long long)part->columns);
    }
    *row = (perigee_component){.struct_size = sizeof *row,
                               .name = keep(w, name),
                               .title = part->title,
                               .formula = keep(w, formula),
                               .shape = keep(w, shape),
                               .per_instance = size,
                               .instances = instances,
                               .total = size * instances,
                               .active = active_of(c, id, part, size, layers, size * instances),
                               .disk_total = -1,
                               .disk_bytes = -1};
    if (w->checkpoint->file_count) {
        count_on_disk(w, id, part, kind, row);
    }
    row->stored = row->stored ? row->stored : "";
}

static void add_component(writer *w, prg_component_id id) {
    const prg_config *c = &w->checkpoint->config;
    prg_component part = prg_component_of(c, id);
    if (!part.present) {
        return;
    }
    /* norms and residuals are counted for each kind of layer, as is the norm of the experts' latent */
    bool split = part.scope == PRG_SCOPE_LAYER || id == PRG_PART_LATENT_NORM;
    if (split) {
        bool both = c->kda_layers > 0 && c->kda_layers < c->layers;
        bool name_kind = part.scope == PRG_SCOPE_LAYER || both;
        add_row(w, id, &part, KIND_KDA, name_kind);
        add_row(w, id, &part, KIND_MLA, name_kind);
    } else {
        add_row(w, id, &part, KIND_ANY, false);
    }
}

static void add_totals(perigee_description *d, const prg_checkpoint *checkpoint) {
    const prg_config *c = &checkpoint->config;
    bool disk = checkpoint->file_count > 0;
    d->totals = (perigee_totals){.struct_size = sizeof d->totals,
                                 .family = c->family,
                                 .disk_parameters = disk ? 0 : -1,
                                 .disk_bytes = disk ? 0 : -1,
                                 .layers = c->layers,
                                 .kda_layers = c->kda_layers,
                                 .mla_layers = c->layers - c->kda_layers,
                                 .moe_layers = prg_moe_layers(c, -1)};
    for (size_t i = 0; i < d->count; i++) {
        const perigee_component *row = &d->components[i];
        d->totals.parameters += row->total;
        d->totals.active += row->active;
        d->totals.disk_parameters += disk ? row->disk_total : 0;
        d->totals.disk_bytes += disk ? row->disk_bytes : 0;
    }
}

perigee_status prg_describe(prg_checkpoint *checkpoint, perigee_description **out, perigee_error **err) {
    perigee_description *d = prg_calloc(checkpoint->allocator, 1, sizeof *d);
    if (!d) {
        return prg_fail_memory(err);
    }
    prg_arena_init(&d->arena, prg_allocator_hold(checkpoint->allocator));
    writer w = {checkpoint, d, PERIGEE_OK, err};
    d->components = prg_arena_alloc(&d->arena, (size_t)PRG_PART_COUNT * 2, sizeof *d->components);
    if (!d->components) {
        w.status = prg_fail_memory(err);
    }
    for (int id = 0; id < PRG_PART_COUNT && w.status == PERIGEE_OK; id++) {
        add_component(&w, (prg_component_id)id);
    }
    if (w.status != PERIGEE_OK) {
        prg_description_free(d);
        return w.status;
    }
    add_totals(d, checkpoint);
    *out = d;
    return PERIGEE_OK;
}

void prg_description_free(perigee_description *description) {
    if (description) {
        prg_allocator *allocator = description->arena.allocator;
        prg_arena_free(&description->arena);
        prg_free(allocator, description);
        prg_allocator_drop(allocator);
    }
}
