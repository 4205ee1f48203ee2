/* perigee inspect: every component of a model with its exact count, and what running it takes. */
#include <stdio.h>
#include <string.h>

#include "tree.h"
#include "verbs.h"

static const cli_option options[] = {
    {"tree", CLI_FLAG, NULL, 0, 0, NULL, "draw the model as blocks in blocks, with the weights in each"},
    {"svg", CLI_TEXT, "FILE", 0, 0, NULL, "write that drawing to FILE"},
};

static json_t *component_json(const perigee_component *c) {
    json_t *row =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I}", "name", c->name, "title", c->title, "formula", c->formula,
                  "shape", c->shape, "stored", c->stored, "per_instance", (json_int_t)c->per_instance, "instances",
                  (json_int_t)c->instances, "total", (json_int_t)c->total, "active", (json_int_t)c->active);
    if (row && c->disk_total >= 0) {
        json_object_set_new(row, "disk_total", json_integer(c->disk_total));
        json_object_set_new(row, "disk_bytes", json_integer(c->disk_bytes));
    }
    return row;
}

static json_t *totals_json(const perigee_totals *t) {
    json_t *totals =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "parameters", (json_int_t)t->parameters, "active", (json_int_t)t->active,
                  "layers", (json_int_t)t->layers, "kda_layers", (json_int_t)t->kda_layers, "mla_layers",
                  (json_int_t)t->mla_layers, "moe_layers", (json_int_t)t->moe_layers);
    if (totals && t->disk_parameters >= 0) {
        json_object_set_new(totals, "disk_parameters", json_integer(t->disk_parameters));
        json_object_set_new(totals, "disk_bytes", json_integer(t->disk_bytes));
    }
    return totals;
}

static json_t *plan_json(const perigee_plan *p) {
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:b}", "disk_bytes",
                     (json_int_t)p->disk_bytes, "resident_bytes", (json_int_t)p->resident_bytes, "relaid_bytes",
                     (json_int_t)p->relaid_bytes, "table_bytes", (json_int_t)p->table_bytes, "token_bytes",
                     (json_int_t)p->token_bytes, "session_fixed_bytes", (json_int_t)p->session_fixed_bytes,
                     "session_token_bytes", (json_int_t)p->session_token_bytes, "cache_block_tokens",
                     (json_int_t)p->cache_block_tokens, "scratch_bytes", (json_int_t)p->scratch_bytes, "chunk",
                     (json_int_t)p->chunk, "context", (json_int_t)p->context, "available_bytes",
                     (json_int_t)p->available_bytes, "mapped", (int)p->mapped, "fits", (int)p->fits);
}

static void print_component(const perigee_component *c) {
    printf("%-34s %-9s %s\n", c->name, c->stored, c->formula);
    if (c->title[0] || c->shape[0]) {
        printf("%34s %9s %s %s\n", "", "", c->shape, c->title);
    }
    if (c->disk_total >= 0 && c->disk_total != c->total) {
        printf("%34s %9s ON DISK: %s\n", "", "", cli_number(c->disk_total));
    }
}

static void print_totals(const perigee_totals *t) {
    printf("\n%s layers: %s KDA, %s MLA; %s with a mixture of experts\n", cli_number(t->layers),
           cli_number(t->kda_layers), cli_number(t->mla_layers), cli_number(t->moe_layers));
    printf("%-24s %24s\n", "parameters", cli_number(t->parameters));
    printf("%-24s %24s\n", "active for a token", cli_number(t->active));
    if (t->disk_parameters >= 0) {
        bool same = t->disk_parameters == t->parameters;
        printf("%-24s %24s (%s)\n", "found on disk", cli_number(t->disk_parameters),
               same ? "adds up" : "DOES NOT ADD UP");
        printf("%-24s %24s (%s)\n", "bytes on disk", cli_number(t->disk_bytes), cli_bytes(t->disk_bytes));
    }
}

static void print_bytes(const char *what, int64_t value) {
    printf("%-24s %24s (%s)\n", what, cli_number(value), cli_bytes(value));
}

static void print_plan(const perigee_plan *p) {
    printf("\nTo run it, in bytes:\n");
    print_bytes(p->mapped ? "weights, mapped" : "weights, resident", p->mapped ? p->disk_bytes : p->resident_bytes);
    if (p->relaid_bytes) {
        print_bytes("  of these re-laid", p->relaid_bytes);
    }
    print_bytes("model beside weights", p->table_bytes);
    print_bytes("weights read per token", p->token_bytes);
    print_bytes("session, fixed", p->session_fixed_bytes);
    print_bytes("session, per token", p->session_token_bytes);
    print_bytes("scratch of the context", p->scratch_bytes);
    print_bytes("available", p->available_bytes);
    printf("%-24s %24s\n", "longest position", cli_number(p->context));
    printf("%-24s %24s\n", "prefill chunk", cli_number(p->chunk));
    printf("%s\n", !p->fits    ? "It does not fit in memory."
                   : p->mapped ? "Its weights are read from the file as they are needed; all else fits in memory."
                               : "It fits in memory.");
}

static int show(const cli_args *args, const perigee_description *description, const perigee_plan *plan) {
    perigee_error *error = NULL;
    perigee_totals totals = {.struct_size = sizeof totals};
    if (perigee_description_totals(description, &totals, &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    json_t *components = json_array();
    if (!args->json) {
        printf("family %s\n\n", totals.family);
    }
    for (size_t i = 0; i < perigee_description_count(description); i++) {
        perigee_component component = {.struct_size = sizeof component};
        if (perigee_description_component(description, i, &component, &error) != PERIGEE_OK) {
            json_decref(components);
            return cli_fail(args, error);
        }
        if (args->json) {
            json_array_append_new(components, component_json(&component));
        } else {
            print_component(&component);
        }
    }
    if (args->json) {
        return cli_print_json(json_pack("{s:s,s:o,s:o,s:o}", "family", totals.family, "components", components,
                                        "totals", totals_json(&totals), "plan", plan_json(plan)));
    }
    json_decref(components);
    print_totals(&totals);
    print_plan(plan);
    return CLI_DONE;
}

static int run(const cli_args *args) {
    cli_host host;
    perigee_description *description = NULL;
    int status = cli_open_context(args, &host);
    if (status == CLI_DONE) {
        perigee_error *error = NULL;
        const char *svg = cli_text(args, "svg");
        perigee_plan plan = {.struct_size = sizeof plan};
        const bool listed = !svg && !cli_given(args, "tree");
        if (perigee_model_inspect(host.context, args->words[0], SIZE_MAX, args->plan, &description,
                                  listed ? &plan : NULL, &error) != PERIGEE_OK) {
            status = cli_fail_option(args, error);
        } else if (svg) {
            status = tree_write_svg(args, description, svg);
        }
        if (status == CLI_DONE && cli_given(args, "tree")) {
            status = tree_print(args, description);
        } else if (status == CLI_DONE && listed) {
            status = show(args, description, &plan);
        }
    }
    perigee_description_free(description);
    cli_close(&host);
    return status;
}

const cli_verb verb_inspect = {
    .name = "inspect",
    .words = "MODEL_OR_CONFIG",
    .word_count = 1,
    .scopes = CLI_LOAD,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help = "count every component, and say what running it takes\nFrom a folder in the published layout, or from a "
            "config.json alone.",
    .run = run,
};
