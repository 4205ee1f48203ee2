/* Tools as the TypeScript declarations that K2.5's tokenizer makes of them: a type for each function, its parameters as
 * a type literal, descriptions and bounds as comments. What it cannot write, this cannot either. */
#include "text/chat.h"

typedef struct writer {
    prg_buffer *out;
    prg_allocator *allocator;
    const prg_json *root; /* the parameters of the function */
    prg_json_members definitions;
    bool self_reference;
    bool refused; /* something that the encoder refuses */
} writer;

static void put(writer *w, const char *text) {
    prg_buffer_puts(w->out, text);
}

static void put_json_text(writer *w, const prg_json *string) {
    prg_buffer_put(w->out, string->text, string->length);
}

static void indent_by(writer *w, size_t levels) {
    for (size_t i = 0; i < levels; i++) {
        put(w, "  ");
    }
}

static bool is_object(const prg_json *value) {
    return value && value->kind == PRG_JSON_OBJECT;
}

/* Whether a choice is of the type that the schema names; an integer counts as a number, and a boolean as both. */
static bool fits(const prg_json *choice, const prg_json *type) {
    bool boolean = choice->kind == PRG_JSON_TRUE || choice->kind == PRG_JSON_FALSE;
    bool number = choice->kind == PRG_JSON_NUMBER || boolean;
    bool whole = boolean || (number && !memchr(choice->text, '.', choice->length) &&
                             !memchr(choice->text, 'e', choice->length) && !memchr(choice->text, 'E', choice->length));
    return choice->kind == PRG_JSON_NULL ||
           !((prg_json_is(type, "string") && choice->kind != PRG_JSON_STRING) ||
             (prg_json_is(type, "number") && !number) || (prg_json_is(type, "integer") && !whole) ||
             (prg_json_is(type, "boolean") && !boolean));
}

/* The one type of a schema's choices, null apart; NULL where it names none. */
static const prg_json *type_of_choices(writer *w, const prg_json *schema) {
    const prg_json *type = prg_json_get(schema, "type");
    if (!type || type->kind != PRG_JSON_ARRAY) {
        return type;
    }
    const prg_json *first = type->first, *second = first ? first->next : NULL;
    if (type->count == 1) {
        return first;
    }
    if (type->count != 2 || !(prg_json_is(first, "null") || prg_json_is(second, "null"))) {
        w->refused = true;
        return NULL;
    }
    return prg_json_is(first, "null") ? second : first;
}

/* As Python's str() writes it: scalars of bounds and of enumerations. */
static void put_python(writer *w, const prg_json *value) {
    switch (value->kind) {
    case PRG_JSON_NULL:
        put(w, "None");
        break;
    case PRG_JSON_TRUE:
        put(w, "True");
        break;
    case PRG_JSON_FALSE:
        put(w, "False");
        break;
    case PRG_JSON_NUMBER:
        prg_json_write_number(w->out, value->text, value->length);
        break;
    case PRG_JSON_STRING:
        put_json_text(w, value);
        break;
    default:
        w->refused = true;
    }
}

/* Each line behind //; empty lines stay empty. Ends without a newline. */
static void put_comment(writer *w, const prg_json *text, size_t level) {
    const char *at = text->text, *end = text->text + text->length;
    for (;;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        if (length > 0) {
            indent_by(w, level);
            put(w, "// ");
            prg_buffer_put(w->out, at, length);
        }
        if (!stop) {
            return;
        }
        put(w, "\n");
        at = stop + 1;
    }
}

static const prg_json *description_of(const prg_json *schema) {
    const prg_json *d = prg_json_get(schema, "description");
    return d && d->kind == PRG_JSON_STRING && d->length > 0 ? d : NULL;
}

/* Whether a schema is taken for a plain `type`: references, unions and enumerations come first. */
static const prg_json *plain_type(const prg_json *schema) {
    if (prg_json_get(schema, "$ref") || prg_json_get(schema, "anyOf") || prg_json_get(schema, "enum")) {
        return NULL;
    }
    const prg_json *type = prg_json_get(schema, "type");
    return type && type->kind == PRG_JSON_STRING ? type : NULL;
}

/* Names of the bounds that a comment tells, in order of name. */
static void bounds_of(const prg_json *schema, const char *names[3]) {
    const prg_json *type = plain_type(schema);
    names[0] = names[1] = names[2] = NULL;
    if (prg_json_is(type, "string")) {
        names[0] = "maxLength";
        names[1] = "minLength";
        names[2] = "pattern";
    } else if (prg_json_is(type, "number") || prg_json_is(type, "integer")) {
        names[0] = "maximum";
        names[1] = "minimum";
    } else if (prg_json_is(type, "array")) {
        names[0] = "maxItems";
        names[1] = "minItems";
    }
}

/* Description and bounds of a schema as comment lines; true if there were any. */
static bool put_docs(writer *w, const prg_json *schema, size_t level) {
    if (!is_object(schema)) {
        return false;
    }
    const prg_json *description = description_of(schema);
    if (description) {
        put_comment(w, description, level);
        put(w, "\n");
    }
    const char *names[3];
    bool any = false;
    bounds_of(schema, names);
    for (size_t i = 0; i < 3 && names[i]; i++) {
        const prg_json *value = prg_json_get(schema, names[i]);
        if (value) {
            if (!any) {
                indent_by(w, level);
            }
            put(w, any ? ", " : "// ");
            put(w, names[i]);
            put(w, ": ");
            put_python(w, value);
            any = true;
        }
    }
    if (any) {
        put(w, "\n");
    }
    return any || description;
}

static void put_type(writer *w, const prg_json *schema, size_t level);

static bool listed(const prg_json *names, const char *name, size_t length) {
    if (!names || names->kind != PRG_JSON_ARRAY) {
        return false;
    }
    for (const prg_json *n = names->first; n; n = n->next) {
        if (n->kind == PRG_JSON_STRING && n->length == length && memcmp(n->text, name, length) == 0) {
            return true;
        }
    }
    return false;
}

static void put_parameter(writer *w, const prg_json *schema, bool required, size_t level) {
    put_docs(w, schema, level);
    const prg_json *standard = prg_json_get(schema, "default");
    if (standard && standard->kind != PRG_JSON_NULL) {
        indent_by(w, level);
        put(w, "// Default: ");
        if (standard->kind == PRG_JSON_TRUE || standard->kind == PRG_JSON_FALSE) {
            put_python(w, standard);
        } else {
            prg_json_write(w->out, standard, PRG_JSON_SPACED | PRG_JSON_SORTED);
        }
        put(w, "\n");
    }
    indent_by(w, level);
    prg_buffer_put(w->out, schema->key, schema->key_length);
    put(w, required ? ": " : "?: ");
    put_type(w, schema, level);
}

/* Properties at `level`, those that are required first; gives how many there were. */
static size_t put_properties(writer *w, const prg_json *schema, size_t level, bool required_first) {
    const prg_json *properties = prg_json_get(schema, "properties"), *required = prg_json_get(schema, "required");
    prg_json_members members;
    size_t count = 0;
    if (!is_object(properties)) {
        return 0;
    }
    if (!prg_json_collect(w->allocator, properties, true, &members)) {
        w->out->failed = true;
        return 0;
    }
    for (int pass = 0; pass < (required_first ? 2 : 1); pass++) {
        for (size_t i = 0; i < members.count && !w->refused; i++) {
            const prg_json *p = members.values[i];
            bool is_required = listed(required, p->key, p->key_length);
            if (required_first && is_required != (pass == 0)) {
                continue;
            }
            if (count++ > 0) {
                put(w, ",\n");
            }
            put_parameter(w, p, is_required, level);
        }
    }
    prg_free(w->allocator, members.values);
    return count;
}

static void put_object(writer *w, const prg_json *schema, size_t level) {
    size_t start = w->out->length;
    put(w, "{\n");
    size_t count = put_properties(w, schema, level + 1, true);
    const prg_json *more = prg_json_get(schema, "additionalProperties");
    if (more && more->kind != PRG_JSON_NULL) {
        if (count++ > 0) {
            put(w, ",\n");
        }
        indent_by(w, level + 1);
        put(w, "[k: string]: ");
        if (more->kind == PRG_JSON_FALSE) {
            put(w, "never");
        } else {
            put_type(w, more, level + 1);
        }
    }
    if (count == 0) {
        w->out->length = w->out->failed ? w->out->length : start;
        put(w, "{}");
        return;
    }
    put(w, "\n");
    indent_by(w, level);
    put(w, "}");
}

static void put_array(writer *w, const prg_json *schema, size_t level) {
    const prg_json *items = prg_json_get(schema, "items");
    bool empty = !items || items->kind == PRG_JSON_NULL || items->kind == PRG_JSON_FALSE ||
                 (items->kind == PRG_JSON_OBJECT && items->count == 0);
    if (empty) {
        put(w, "Array<any>");
        return;
    }
    size_t start = w->out->length;
    put(w, "Array<\n");
    if (put_docs(w, items, level + 1)) {
        indent_by(w, level + 1);
        put_type(w, items, level + 1);
        put(w, "\n");
        indent_by(w, level);
    } else {
        w->out->length = w->out->failed ? w->out->length : start;
        put(w, "Array<");
        put_type(w, items, level);
    }
    put(w, ">");
}

static void put_choices(writer *w, const prg_json *schema, const prg_json *choices) {
    if (choices->kind != PRG_JSON_ARRAY) {
        w->refused = true;
        return;
    }
    const prg_json *type = type_of_choices(w, schema);
    for (const prg_json *c = choices->first; c; c = c->next) {
        if (!fits(c, type)) {
            w->refused = true;
        }
        put(w, c == choices->first ? "" : " | ");
        put(w, c->kind == PRG_JSON_STRING ? "\"" : "");
        put_python(w, c);
        put(w, c->kind == PRG_JSON_STRING ? "\"" : "");
    }
}

static void put_union(writer *w, const prg_json *types) {
    static const char *const names[][2] = {{"string", "string"},   {"number", "number"}, {"integer", "number"},
                                           {"boolean", "boolean"}, {"null", "null"},     {"object", "{}"},
                                           {"array", "Array<any>"}};
    for (const prg_json *t = types->first; t; t = t->next) {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            name = prg_json_is(t, names[i][0]) ? names[i][1] : name;
        }
        if (!name) {
            w->refused = true;
            return;
        }
        put(w, t == types->first ? "" : " | ");
        put(w, name);
    }
}

static void put_reference(writer *w, const prg_json *reference) {
    static const char prefix[] = "#/$defs/";
    if (prg_json_is(reference, "#")) {
        w->self_reference = true;
        put(w, "parameters");
        return;
    }
    if (reference->kind == PRG_JSON_STRING && strncmp(reference->text, prefix, sizeof prefix - 1) == 0) {
        const char *name = strrchr(reference->text, '/') + 1;
        size_t length = reference->length - (size_t)(name - reference->text);
        for (size_t i = 0; i < w->definitions.count; i++) {
            const prg_json *d = w->definitions.values[i];
            if (d->key_length == length && memcmp(d->key, name, length) == 0) {
                prg_buffer_put(w->out, name, length);
                return;
            }
        }
    }
    w->refused = true;
}

static void put_type(writer *w, const prg_json *schema, size_t level) {
    const prg_json *part;
    if (schema->kind == PRG_JSON_TRUE || schema->kind == PRG_JSON_FALSE) {
        put(w, schema->kind == PRG_JSON_TRUE ? "any" : "null");
    } else if (!is_object(schema)) {
        w->refused = true;
    } else if ((part = prg_json_get(schema, "$ref"))) {
        put_reference(w, part);
    } else if ((part = prg_json_get(schema, "anyOf"))) {
        for (const prg_json *t = part->first; t; t = t->next) {
            put(w, t == part->first ? "" : " | ");
            put_type(w, t, level);
        }
    } else if ((part = prg_json_get(schema, "enum"))) {
        put_choices(w, schema, part);
    } else if (!(part = prg_json_get(schema, "type"))) {
        if (schema->count > 0) {
            w->refused = true;
        }
        put(w, "any");
    } else if (part->kind == PRG_JSON_ARRAY) {
        put_union(w, part);
    } else if (prg_json_is(part, "object")) {
        put_object(w, schema, level);
    } else if (prg_json_is(part, "array")) {
        put_array(w, schema, level);
    } else if (part->kind == PRG_JSON_STRING) {
        if (prg_json_is(part, "integer")) {
            put(w, "number");
        } else {
            put_json_text(w, part);
        }
    } else {
        w->refused = true;
    }
}

/* The definitions, each with a newline behind. A reference to the whole is known only once everything was written, so
 * this goes in front afterwards. */
static void put_definitions(writer *w) {
    for (size_t i = 0; i < w->definitions.count && !w->refused; i++) {
        const prg_json *d = w->definitions.values[i], *description = description_of(d);
        if (description) {
            put_comment(w, description, 0);
            put(w, "\n");
        }
        put(w, "interface ");
        prg_buffer_put(w->out, d->key, d->key_length);
        put(w, " ");
        put_type(w, d, 0);
        put(w, "\n");
    }
}

static void put_function(writer *w, const prg_json *function) {
    const prg_json *parameters = prg_json_get(function, "parameters"), *name = prg_json_get(function, "name");
    static const prg_json nothing = {PRG_JSON_OBJECT, NULL, 0, NULL, 0, NULL, NULL, 0};
    w->root = is_object(parameters) ? parameters : &nothing;
    w->self_reference = false;
    const prg_json *definitions = prg_json_get(w->root, "$defs");
    if (is_object(definitions) && !prg_json_collect(w->allocator, definitions, true, &w->definitions)) {
        w->out->failed = true;
        return;
    }
    prg_buffer *out = w->out, type, interfaces;
    prg_buffer_init(&type, w->allocator);
    prg_buffer_init(&interfaces, w->allocator);
    w->out = &type;
    put_object(w, w->root, 0);
    w->out = &interfaces;
    bool self = w->self_reference; /* in the parameters themselves: known before definitions are looked at */
    put_definitions(w);
    w->out = out;
    if (self) {
        put(w, "interface parameters {");
        size_t start = w->out->length;
        put(w, "\n");
        if (put_properties(w, w->root, 1, false) > 0) {
            put(w, "\n");
        } else {
            w->out->length = w->out->failed ? w->out->length : start;
        }
        put(w, "}\n");
    }
    prg_buffer_put(out, interfaces.data, interfaces.length);
    const prg_json *description = description_of(function);
    if (description) {
        put_comment(w, description, 0);
        put(w, "\n");
    }
    put(w, "type ");
    if (name && name->kind == PRG_JSON_STRING) {
        put_json_text(w, name);
    } else {
        put(w, "function");
    }
    put(w, " = (_: ");
    if (self) {
        put(w, "parameters");
    } else {
        prg_buffer_put(out, type.data, type.length);
    }
    put(w, ") => any;");
    out->failed = out->failed || type.failed || interfaces.failed;
    prg_buffer_free(&type);
    prg_buffer_free(&interfaces);
    prg_free(w->allocator, w->definitions.values);
    w->definitions = (prg_json_members){NULL, 0};
}

bool prg_chat_typescript(prg_buffer *out, const prg_json *tools) {
    writer w = {.out = out, .allocator = out->allocator};
    bool any = false;
    for (const prg_json *t = tools->first; t && !w.refused; t = t->next) {
        const prg_json *function = prg_json_get(t, "function");
        if (!prg_json_is(prg_json_get(t, "type"), "function") || !is_object(function) || function->count == 0) {
            continue; /* as the published encoder does with other kinds of tools */
        }
        put(&w, any ? "\n" : "# Tools\n\n## functions\nnamespace functions {\n");
        put_function(&w, function);
        any = true;
    }
    if (any) {
        put(&w, "\n}\n");
    }
    return any && !w.refused;
}
