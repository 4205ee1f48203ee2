#include "generate/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { NESTING = 100, RULES = 20000 };

bool prg_schema_fine(const prg_schema *s) {
    return s->status == PERIGEE_OK && !s->nfa->no_memory && !s->nfa->too_large;
}

static void no_memory(prg_schema *s) {
    if (s->status == PERIGEE_OK) {
        s->status = prg_fail_memory(s->err);
    }
}

void prg_schema_refuse(prg_schema *s, const char *format, ...) {
    if (s->status != PERIGEE_OK) {
        return;
    }
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    s->status = prg_fail(s->err, PERIGEE_E_SCHEMA, "schema at #%.*s: %s", (int)s->path_length, s->path, what);
}

void prg_schema_refuse_at(prg_schema *s, const char *keyword, const char *what) {
    size_t before = prg_schema_enter(s, keyword, strlen(keyword), 0);
    prg_schema_refuse(s, "%s", what);
    prg_schema_leave(s, before);
}

static void path_append(prg_schema *s, const char *text, size_t length) {
    if (length == 0) {
        return;
    }
    if (s->path_capacity - s->path_length < length) {
        size_t more = s->path_capacity * 2 + length + 64;
        char *wider = prg_arena_alloc(&s->arena, more, 1);
        if (!wider) {
            no_memory(s);
            return;
        }
        if (s->path_length > 0) {
            memcpy(wider, s->path, s->path_length);
        }
        s->path = wider;
        s->path_capacity = more;
    }
    memcpy(s->path + s->path_length, text, length);
    s->path_length += length;
}

size_t prg_schema_enter(prg_schema *s, const char *name, size_t length, size_t index) {
    size_t before = s->path_length;
    char number[32];
    path_append(s, "/", 1);
    if (!name) {
        length = (size_t)snprintf(number, sizeof number, "%zu", index);
        name = number;
    }
    for (size_t i = 0; i < length; i++) {
        const char *spelled = name[i] == '~' ? "~0" : name[i] == '/' ? "~1" : NULL;
        path_append(s, spelled ? spelled : &name[i], spelled ? 2 : 1);
    }
    return before;
}

void prg_schema_leave(prg_schema *s, size_t before) {
    s->path_length = before;
}

uint32_t prg_schema_count(prg_schema *s, const prg_json *schema, const char *keyword, uint32_t preset) {
    const prg_json *j = prg_json_get(schema, keyword);
    int64_t n = 0;
    if (!j) {
        return preset;
    }
    if (!prg_json_int(j, &n) || n < 0 || n > PRG_NFA_STATES) {
        prg_schema_refuse_at(s, keyword, "not a count, or too large");
        return preset;
    }
    return (uint32_t)n;
}

/* ---- keywords ---- */

static bool among(const char *key, size_t length, const char *const *names) {
    for (; *names; names++) {
        if (strlen(*names) == length && memcmp(*names, key, length) == 0) {
            return true;
        }
    }
    return false;
}

/* They say nothing about validity. Definitions are looked up by $ref alone. */
static const char *const annotations[] = {"title", "description", "default",    "examples", "$schema",
                                          "$id",   "$comment",    "deprecated", "readOnly", "writeOnly",
                                          "$defs", "definitions", NULL};
static const char *const assertions[] = {"type",      "properties",  "required",         "additionalProperties",
                                         "items",     "prefixItems", "minItems",         "maxItems",
                                         "minLength", "maxLength",   "pattern",          "format",
                                         "minimum",   "maximum",     "exclusiveMinimum", "exclusiveMaximum",
                                         NULL};
static const char *const references[] = {"$ref", NULL};
static const char *const any_of[] = {"anyOf", NULL};
static const char *const one_of[] = {"oneOf", NULL};
static const char *const all_of[] = {"allOf", NULL};
static const char *const constants[] = {"const", "type", NULL};
static const char *const enumerations[] = {"enum", "type", NULL};

/* Refuse what is neither an annotation nor among `names`. */
static void only(prg_schema *s, const prg_json *schema, const char *const *names) {
    for (const prg_json *m = schema->first; m && prg_schema_fine(s); m = m->next) {
        if (among(m->key, m->key_length, annotations) || among(m->key, m->key_length, names)) {
            continue;
        }
        size_t before = prg_schema_enter(s, m->key, m->key_length, 0);
        if (names == assertions) {
            prg_schema_refuse(s, "this keyword is not supported");
        } else {
            prg_schema_refuse(s, "this keyword is not supported beside %s", names[0]);
        }
        prg_schema_leave(s, before);
    }
}

/* ---- references ---- */

static void *widen(prg_schema *s, const void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) {
        return (void *)(uintptr_t)items;
    }
    size_t more = *capacity * 2 + 16;
    void *wider = prg_arena_alloc(&s->arena, more, size);
    if (!wider) {
        no_memory(s);
        return NULL;
    }
    if (count > 0) {
        memcpy(wider, items, count * size);
    }
    *capacity = more;
    return wider;
}

static uint32_t rule_of(prg_schema *s, const prg_json *schema, const char *path, size_t path_length) {
    for (size_t i = 0; i < s->rule_count; i++) {
        if (s->rules[i].schema == schema) {
            return (uint32_t)i;
        }
    }
    if (s->rule_count == RULES) {
        prg_schema_refuse(s, "more than %d schemas", RULES);
        return 0;
    }
    prg_schema_rule *rules = widen(s, s->rules, s->rule_count, &s->rule_capacity, sizeof *rules);
    char *copy = prg_arena_strndup(&s->arena, path, path_length);
    if (!rules || !copy) {
        no_memory(s);
        return 0;
    }
    s->rules = rules;
    rules[s->rule_count] = (prg_schema_rule){schema, prg_nfa_add_state(s->nfa), copy};
    return (uint32_t)s->rule_count++;
}

static void call_rule(prg_schema *s, uint32_t rule, uint32_t from, uint32_t to, bool first) {
    if (!prg_schema_fine(s)) {
        return;
    }
    prg_nfa_call(s->nfa, from, s->rules[rule].start, to);
    if (first) {
        prg_schema_edge *edges = widen(s, s->edges, s->edge_count, &s->edge_capacity, sizeof *edges);
        if (edges) {
            s->edges = edges;
            edges[s->edge_count++] = (prg_schema_edge){s->present, rule};
        }
    }
}

void prg_schema_call(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to, bool first) {
    call_rule(s, rule_of(s, schema, s->path, s->path_length), from, to, first);
}

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* A step of a pointer, with its escapes undone, into `out`; the length, or SIZE_MAX if it is malformed. */
static size_t unescape(const char *text, size_t length, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            if (length - i < 3) {
                return SIZE_MAX;
            }
            int high = hex(text[i + 1]), low = hex(text[i + 2]);
            if (high < 0 || low < 0) {
                return SIZE_MAX;
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '~') {
            if (i + 1 >= length || (text[i + 1] != '0' && text[i + 1] != '1')) {
                return SIZE_MAX;
            }
            c = text[++i] == '0' ? '~' : '/';
        }
        out[n++] = c;
    }
    return n;
}

static const prg_json *member(const prg_json *j, const char *name, size_t length) {
    const prg_json *found = NULL;
    size_t index = 0, at = 0;
    bool digits = length > 0 && length < 10;
    for (size_t i = 0; i < length; i++) {
        digits = digits && name[i] >= '0' && name[i] <= '9';
        index = digits ? index * 10 + (size_t)(name[i] - '0') : 0;
    }
    for (const prg_json *m = j->first; m; m = m->next, at++) {
        bool same = j->kind == PRG_JSON_OBJECT ? m->key_length == length && memcmp(m->key, name, length) == 0
                                               : digits && at == index;
        found = same ? m : found;
    }
    return j->kind == PRG_JSON_OBJECT || j->kind == PRG_JSON_ARRAY ? found : NULL;
}

static void reference(prg_schema *s, const prg_json *ref, uint32_t from, uint32_t to, bool first) {
    if (ref->kind != PRG_JSON_STRING || ref->length == 0 || ref->text[0] != '#' ||
        (ref->length > 1 && ref->text[1] != '/')) {
        prg_schema_refuse_at(s, "$ref", "only references into the same schema (#, #/…) are supported");
        return;
    }
    const prg_json *j = s->root;
    size_t at = 1;
    while (j && at < ref->length) {
        const char *step = ref->text + at + 1;
        const char *slash = memchr(step, '/', ref->length - at - 1);
        size_t length = slash ? (size_t)(slash - step) : ref->length - at - 1;
        char *plain = prg_arena_alloc(&s->arena, length + 1, 1);
        if (!plain) {
            no_memory(s);
            return;
        }
        size_t n = unescape(step, length, plain);
        j = n == SIZE_MAX ? NULL : member(j, plain, n);
        at += length + 1;
    }
    if (!j) {
        prg_schema_refuse_at(s, "$ref", "there is nothing at this reference");
        return;
    }
    call_rule(s, rule_of(s, j, ref->text + 1, ref->length - 1), from, to, first);
}

/* A schema that is itself again before anything is taken describes nothing. */
static void refuse_loops(prg_schema *s) {
    size_t n = s->rule_count;
    uint32_t *degree = prg_arena_alloc(&s->arena, n + 1, sizeof *degree);
    if (!degree) {
        no_memory(s);
        return;
    }
    for (size_t i = 0; i < s->edge_count; i++) {
        degree[s->edges[i].to]++;
    }
    /* Take off rules that none leads to, until none is left or only loops and what they lead to. */
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++) {
            if (degree[i] == 0) {
                degree[i] = UINT32_MAX;
                changed = true;
                for (size_t k = 0; k < s->edge_count; k++) {
                    if (s->edges[k].from == i) {
                        degree[s->edges[k].to]--;
                    }
                }
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (degree[i] != UINT32_MAX) {
            s->path = (char *)(uintptr_t)s->rules[i].path;
            s->path_length = strlen(s->path);
            prg_schema_refuse(s, "refers to itself without end");
            return;
        }
    }
}

/* ---- values ---- */

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_OBJECT = 4,
    TYPE_ARRAY = 8,
    TYPE_STRING = 16,
    TYPE_NUMBER = 32,
    TYPE_INTEGER = 64,
    TYPE_ALL = 63
};

static unsigned type_named(const prg_json *name) {
    static const char *const names[] = {"null", "boolean", "object", "array", "string", "number", "integer"};
    for (unsigned i = 0; name->kind == PRG_JSON_STRING && i < 7; i++) {
        if (strlen(names[i]) == name->length && memcmp(names[i], name->text, name->length) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static unsigned types_of(prg_schema *s, const prg_json *schema) {
    const prg_json *type = prg_json_get(schema, "type");
    unsigned types = 0;
    if (!type) {
        return TYPE_ALL;
    }
    bool list = type->kind == PRG_JSON_ARRAY;
    for (const prg_json *t = list ? type->first : type; t; t = list ? t->next : NULL) {
        unsigned one = type_named(t);
        if (one == 0) {
            prg_schema_refuse_at(s, "type", "unknown type");
            return 0;
        }
        types |= one;
    }
    if (types == 0) {
        prg_schema_refuse_at(s, "type", "no type is left");
    }
    return types;
}

static bool has_type(const prg_json *value, unsigned types) {
    int64_t whole;
    switch (value->kind) {
    case PRG_JSON_NULL:
        return types & TYPE_NULL;
    case PRG_JSON_FALSE:
    case PRG_JSON_TRUE:
        return types & TYPE_BOOLEAN;
    case PRG_JSON_NUMBER:
        return (types & TYPE_NUMBER) || ((types & TYPE_INTEGER) && prg_json_int(value, &whole));
    case PRG_JSON_STRING:
        return types & TYPE_STRING;
    case PRG_JSON_ARRAY:
        return types & TYPE_ARRAY;
    default:
        return types & TYPE_OBJECT;
    }
}

static void enumeration(prg_schema *s, const prg_json *schema, const prg_json *values, uint32_t from, uint32_t to) {
    unsigned types = types_of(s, schema);
    size_t kept = 0;
    if (values->kind != PRG_JSON_ARRAY) {
        prg_schema_refuse_at(s, "enum", "not an array");
        return;
    }
    for (const prg_json *v = values->first; v && prg_schema_fine(s); v = v->next) {
        if (has_type(v, types)) {
            prg_schema_constant(s, v, from, to);
            kept++;
        }
    }
    if (kept == 0) {
        prg_schema_refuse_at(s, "enum", "no value is left");
    }
}

static void alternatives(prg_schema *s, const prg_json *list, const char *keyword, uint32_t from, uint32_t to,
                         bool first) {
    if (list->kind != PRG_JSON_ARRAY || list->count == 0) {
        prg_schema_refuse_at(s, keyword, "not an array of schemas");
        return;
    }
    size_t before = prg_schema_enter(s, keyword, strlen(keyword), 0), index = 0;
    for (const prg_json *v = list->first; v && prg_schema_fine(s); v = v->next) {
        size_t inner = prg_schema_enter(s, NULL, 0, index++);
        uint32_t begin = prg_nfa_add_state(s->nfa);
        prg_nfa_epsilon(s->nfa, from, begin);
        prg_schema_value(s, v, begin, to, first);
        prg_schema_leave(s, inner);
    }
    prg_schema_leave(s, before);
}

static bool asserts_nothing(const prg_json *schema) {
    for (const prg_json *m = schema->first; m; m = m->next) {
        if (!among(m->key, m->key_length, annotations)) {
            return false;
        }
    }
    return true;
}

static void typed(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to) {
    unsigned types = types_of(s, schema);
    if (types & TYPE_NULL) {
        prg_nfa_epsilon(s->nfa, prg_nfa_literal(s->nfa, from, "null", 4), to);
    }
    if (types & TYPE_BOOLEAN) {
        prg_nfa_epsilon(s->nfa, prg_nfa_literal(s->nfa, from, "true", 4), to);
        prg_nfa_epsilon(s->nfa, prg_nfa_literal(s->nfa, from, "false", 5), to);
    }
    if (types & TYPE_OBJECT) {
        prg_schema_object(s, schema, from, to);
    }
    if (types & TYPE_ARRAY) {
        prg_schema_array(s, schema, from, to);
    }
    if (types & TYPE_STRING) {
        prg_schema_string(s, schema, from, to);
    }
    if (types & (TYPE_NUMBER | TYPE_INTEGER)) {
        prg_schema_number(s, schema, !(types & TYPE_NUMBER), from, to);
    }
}

void prg_schema_value(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to, bool first) {
    if (!prg_schema_fine(s) || schema->kind == PRG_JSON_FALSE) {
        return; /* under false nothing is valid */
    }
    if (schema->kind == PRG_JSON_TRUE) {
        prg_schema_any(s, from, to);
        return;
    }
    if (schema->kind != PRG_JSON_OBJECT || ++s->depth > NESTING) {
        prg_schema_refuse(s, schema->kind != PRG_JSON_OBJECT ? "a schema is an object, true or false"
                                                             : "schemas nested too deep");
        return;
    }
    static const struct {
        const char *keyword;
        const char *const *beside;
    } forms[] = {{"$ref", references}, {"anyOf", any_of},      {"oneOf", one_of}, {"allOf", all_of},
                 {"const", constants}, {"enum", enumerations}, {NULL, assertions}};
    size_t form = 0;
    while (forms[form].keyword && !prg_json_get(schema, forms[form].keyword)) {
        form++;
    }
    const prg_json *content = forms[form].keyword ? prg_json_get(schema, forms[form].keyword) : NULL;
    only(s, schema, forms[form].beside);
    if (!prg_schema_fine(s)) {
        return;
    }
    switch (form) {
    case 0:
        reference(s, content, from, to, first);
        break;
    case 3:
        if (content->count > 1) {
            prg_schema_refuse_at(s, "allOf", "more than one schema in allOf is not supported");
        }
        alternatives(s, content, "allOf", from, to, first);
        break;
    case 1:
    case 2:
        alternatives(s, content, forms[form].keyword, from, to, first);
        break;
    case 4:
        if (has_type(content, types_of(s, schema))) {
            prg_schema_constant(s, content, from, to);
        } else {
            prg_schema_refuse_at(s, "const", "the value is not of the type");
        }
        break;
    case 5:
        enumeration(s, schema, content, from, to);
        break;
    default:
        if (asserts_nothing(schema)) {
            prg_schema_any(s, from, to);
        } else {
            typed(s, schema, from, to);
        }
    }
    s->depth--;
}

static void compile_rules(prg_schema *s) {
    for (size_t i = 0; i < s->rule_count && prg_schema_fine(s); i++) {
        const prg_schema_rule rule = s->rules[i];
        uint32_t end = prg_nfa_add_state(s->nfa);
        prg_nfa_accept(s->nfa, end);
        s->present = (uint32_t)i;
        s->path_length = 0;
        path_append(s, rule.path, strlen(rule.path));
        s->depth = 0;
        prg_schema_value(s, rule.schema, rule.start, end, true);
    }
    if (prg_schema_fine(s)) {
        refuse_loops(s);
    }
}

perigee_status prg_schema_compile(prg_nfa *nfa, const char *text, size_t length, perigee_error **err) {
    prg_schema s = {.nfa = nfa,
                    .err = err,
                    .space = PRG_NFA_NONE,
                    .any = PRG_NFA_NONE,
                    .string = PRG_NFA_NONE,
                    .number = PRG_NFA_NONE,
                    .integer = PRG_NFA_NONE};
    perigee_error *why = NULL;
    prg_arena_init(&s.arena, nfa->allocator);
    s.status = prg_json_parse(&s.arena, text, length, 200, NULL, &s.root, &why);
    if (s.status == PERIGEE_E_FORMAT) {
        s.status = prg_fail_at(err, PERIGEE_E_SCHEMA, (prg_where){NULL, NULL, perigee_error_offset(why), -1},
                               "schema: %s", perigee_error_message(why));
    } else if (s.status != PERIGEE_OK) {
        s.status = prg_fail_memory(err);
    }
    perigee_error_free(why);
    uint32_t start = 0;
    path_append(&s, "#", 1); /* so that there is one */
    s.path_length = 0;
    if (s.status == PERIGEE_OK) {
        start = prg_nfa_add_state(nfa);
        uint32_t end = prg_nfa_add_state(nfa);
        prg_nfa_accept(nfa, end);
        prg_schema_call(&s, s.root, start, end, false);
        compile_rules(&s);
    }
    prg_arena_free(&s.arena);
    return s.status == PERIGEE_OK ? prg_nfa_finish(nfa, start, err) : s.status;
}
