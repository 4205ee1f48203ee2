#include "tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 64, LABEL = 96 };

/* A block holds blocks and components, in the order of the forward pass. */
typedef struct block {
    char label[LABEL];
    int64_t total;          /* weights in all its instances */
    perigee_component part; /* of a component; its name is NULL in a block */
    struct block *children[CHILDREN];
    size_t count;
} block;

/* Blocks are made when the first component for them comes, so that they stand where it does. */
typedef struct drawing {
    block *root, *layers, *kda, *mla, *feed_forward, *dense, *moe, *experts, *shared;
    perigee_totals totals;
    bool memory;
} drawing;

static void free_block(block *b) {
    for (size_t i = 0; b && i < b->count; i++) {
        free_block(b->children[i]);
    }
    free(b);
}

static block *add_block(drawing *d, block *to) {
    block *made = to && to->count < CHILDREN ? calloc(1, sizeof *made) : NULL;
    if (made) {
        to->children[to->count++] = made;
    }
    d->memory = d->memory && made;
    return made;
}

static block *open_block(drawing *d, block **slot, block *to, const char *label, int64_t times) {
    if (!*slot && (*slot = add_block(d, to)) != NULL) {
        if (times > 0) {
            snprintf((*slot)->label, LABEL, "%s × %s", label, cli_number(times));
        } else {
            snprintf((*slot)->label, LABEL, "%s", label);
        }
    }
    return *slot;
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

/* The block of a component, by its name: kda.… and mla.… are attention, but for the parts of the feed-forward that the
 * description counts for both kinds of layer. */
static block *place(drawing *d, const perigee_component *part) {
    const char *name = part->name;
    bool in_moe = strstr(name, "moe.") != NULL;
    bool in_dense = begins(name, "mlp.");
    bool shared_norm = strstr(name, ".ffn_") != NULL;
    bool attention = (begins(name, "kda.") || begins(name, "mla.")) && !in_moe && !shared_norm;
    if (!attention && !in_moe && !in_dense && !shared_norm) {
        return d->root;
    }
    block *layers = open_block(d, &d->layers, d->root, "layers", d->totals.layers);
    if (attention) {
        return begins(name, "kda.")
                   ? open_block(d, &d->kda, layers, "Kimi Delta Attention", d->totals.kda_layers)
                   : open_block(d, &d->mla, layers, "multi-head latent attention", d->totals.mla_layers);
    }
    block *feed_forward = open_block(d, &d->feed_forward, layers, "feed-forward", d->totals.layers);
    if (in_dense) {
        return open_block(d, &d->dense, feed_forward, "dense", d->totals.layers - d->totals.moe_layers);
    }
    if (!in_moe) {
        return feed_forward;
    }
    block *moe = open_block(d, &d->moe, feed_forward, "mixture of experts", d->totals.moe_layers);
    if (begins(name, "moe.expert.")) {
        return open_block(d, &d->experts, moe, "routed experts", part->instances / d->totals.moe_layers);
    }
    return begins(name, "moe.shared.") ? open_block(d, &d->shared, moe, "shared experts", 0) : moe;
}

static int64_t add_up(block *b) {
    for (size_t i = 0; i < b->count; i++) {
        b->total += add_up(b->children[i]);
    }
    return b->total;
}

static int draw(const cli_args *args, const perigee_description *description, drawing *d) {
    perigee_error *error = NULL;
    *d = (drawing){.totals = {.struct_size = sizeof d->totals}, .memory = true};
    d->root = calloc(1, sizeof *d->root);
    if (perigee_description_totals(description, &d->totals, &error) != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    for (size_t i = 0; i < perigee_description_count(description) && d->root && d->memory; i++) {
        perigee_component part = {.struct_size = sizeof part};
        if (perigee_description_component(description, i, &part, &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
        block *leaf = add_block(d, place(d, &part));
        if (leaf) {
            leaf->part = part;
            leaf->total = part.total;
            snprintf(leaf->label, LABEL, "%s", part.name);
        }
    }
    if (!d->root || !d->memory) {
        return cli_fail_text(args, "out of memory");
    }
    snprintf(d->root->label, LABEL, "%s", d->totals.family);
    add_up(d->root);
    return CLI_DONE;
}

/* Columns that a label takes: characters, not bytes. */
static int columns(const char *text) {
    int count = 0;
    for (; *text; text++) {
        count += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return count;
}

static void print_block(const block *b, const char *before, bool last, bool root) {
    char under[64] = "";
    int width = columns(before) + (root ? 0 : 3) + columns(b->label);
    printf("%s%s%s%*s %17s", before,
           root   ? ""
           : last ? "└─ "
                  : "├─ ",
           b->label, width < 46 ? 46 - width : 0, "", cli_number(b->total));
    if (b->part.name) {
        printf("  %-9s %s %s", b->part.stored, b->part.shape, b->part.title);
    }
    printf("\n");
    snprintf(under, sizeof under, "%s%s", before, root ? "" : last ? "   " : "│  ");
    for (size_t i = 0; i < b->count; i++) {
        print_block(b->children[i], under, i + 1 == b->count, false);
    }
}

static json_t *block_json(const block *b) {
    json_t *json = json_pack("{s:s,s:I}", "name", b->label, "total", (json_int_t)b->total);
    if (b->part.name) {
        json_object_set_new(json, "shape", json_string(b->part.shape));
        json_object_set_new(json, "stored", json_string(b->part.stored));
        json_object_set_new(json, "instances", json_integer(b->part.instances));
        return json;
    }
    json_t *children = json_array();
    for (size_t i = 0; i < b->count; i++) {
        json_array_append_new(children, block_json(b->children[i]));
    }
    json_object_set_new(json, "blocks", children);
    return json;
}

int tree_print(const cli_args *args, const perigee_description *description) {
    drawing d;
    int status = draw(args, description, &d);
    if (status == CLI_DONE && args->json) {
        status = cli_print_json(block_json(d.root));
    } else if (status == CLI_DONE) {
        print_block(d.root, "", true, true);
        printf("\n%s weights, %s of them active for a token\n", cli_number(d.totals.parameters),
               cli_number(d.totals.active));
    }
    free_block(d.root);
    return status;
}

enum { LINE = 20, PAD = 10, TITLE = 30, ABOUT = 290, WIDTH = 940 };

/* Boxes keep away from what is above and below them; lines stand close together. */
static int gap_before(const block *b, size_t child) {
    return child > 0 && (!b->children[child]->part.name || !b->children[child - 1]->part.name) ? PAD : 0;
}

static int height_of(const block *b) {
    int height = LINE;
    if (!b->part.name) {
        height = TITLE + PAD;
        for (size_t i = 0; i < b->count; i++) {
            height += gap_before(b, i) + height_of(b->children[i]);
        }
    }
    return height;
}

static void put_text(FILE *file, int x, int y, const char *kind, const char *anchor, const char *text) {
    fprintf(file, "<text x=\"%d\" y=\"%d\" class=\"%s\" text-anchor=\"%s\">", x, y, kind, anchor);
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
    fputs("</text>\n", file);
}

static void put_block(FILE *file, const block *b, int x, int y, int width, unsigned depth) {
    static const char *const fills[] = {"#f4f6f8", "#e6edf5", "#d7e6d9", "#f5ead2", "#f0d9d2"};
    if (b->part.name) {
        char about[400];
        snprintf(about, sizeof about, "%s %s  %s", b->part.shape, b->part.stored, b->part.title);
        put_text(file, x + 4, y + 14, "part", "start", b->label);
        put_text(file, ABOUT, y + 14, "about", "start", about);
        put_text(file, x + width - 4, y + 14, "count", "end", cli_number(b->total));
        return;
    }
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" stroke=\"#56606b\"/>\n", x,
            y, width, height_of(b), fills[depth < 5 ? depth : 4]);
    put_text(file, x + PAD, y + 20, "block", "start", b->label);
    put_text(file, x + width - PAD - 4, y + 20, "count", "end", cli_number(b->total));
    y += TITLE;
    for (size_t i = 0; i < b->count; i++) {
        y += gap_before(b, i);
        put_block(file, b->children[i], x + PAD, y, width - 2 * PAD, depth + 1);
        y += height_of(b->children[i]);
    }
}

int tree_write_svg(const cli_args *args, const perigee_description *description, const char *path) {
    drawing d;
    int status = draw(args, description, &d);
    FILE *file = status == CLI_DONE ? fopen(path, "wb") : NULL;
    if (file) {
        int height = height_of(d.root) + 2 * PAD;
        fprintf(
            file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>text "
            "{ font: 12px sans-serif; fill: #20262d } .block { font-weight: bold; font-size: 14px } .about { fill: "
            "#56606b }</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, height, WIDTH, height);
        put_block(file, d.root, PAD, PAD, WIDTH - 2 * PAD, 0);
        fputs("</svg>\n", file);
        bool good = !ferror(file);
        good = fclose(file) == 0 && good;
        status = good ? CLI_DONE : cli_fail_text(args, "%s: could not be written", path);
    } else if (status == CLI_DONE) {
        status = cli_fail_text(args, "%s: %s", path, strerror(errno));
    }
    free_block(d.root);
    return status;
}
