#include <string.h>

#include "generate/schema.h"

/* White space is one of: nothing, a space, a line break with up to 64 spaces or tabs behind. So a text can't be all
 * white space, and stays readable. */
void prg_schema_space(prg_schema *s, uint32_t from, uint32_t to) {
    enum { INDENT = 64 };
    prg_nfa *n = s->nfa;
    if (s->space == PRG_NFA_NONE) {
        s->space = prg_nfa_add_state(n);
        uint32_t end = prg_nfa_add_state(n), line = prg_nfa_add_state(n);
        prg_nfa_accept(n, s->space);
        prg_nfa_accept(n, end);
        prg_nfa_bytes(n, s->space, ' ', ' ', end);
        prg_nfa_bytes(n, s->space, '\n', '\n', line);
        for (int i = 0; i < INDENT; i++) {
            uint32_t next = prg_nfa_add_state(n);
            prg_nfa_accept(n, line);
            prg_nfa_bytes(n, line, ' ', ' ', next);
            prg_nfa_bytes(n, line, '\t', '\t', next);
            line = next;
        }
        prg_nfa_accept(n, line);
    }
    prg_nfa_call(n, from, s->space, to);
}

static uint32_t then_byte(prg_schema *s, uint32_t from, char byte) {
    return prg_nfa_literal(s->nfa, from, &byte, 1);
}

static uint32_t then_space(prg_schema *s, uint32_t from) {
    uint32_t to = prg_nfa_add_state(s->nfa);
    prg_schema_space(s, from, to);
    return to;
}

static uint32_t then_comma(prg_schema *s, uint32_t from) {
    return then_space(s, then_byte(s, from, ','));
}

static void close_with(prg_schema *s, uint32_t from, char byte, uint32_t to) {
    uint32_t at = then_space(s, from);
    prg_nfa_bytes(s->nfa, at, (unsigned char)byte, (unsigned char)byte, to);
}

/* Any JSON value: a rule that calls itself. */
static void any_object(prg_schema *s, uint32_t from, uint32_t to) {
    uint32_t open = then_space(s, then_byte(s, from, '{')), key = prg_nfa_add_state(s->nfa),
             name = prg_nfa_add_state(s->nfa), after = prg_nfa_add_state(s->nfa);
    prg_nfa_bytes(s->nfa, open, '}', '}', to);
    prg_nfa_epsilon(s->nfa, open, key);
    prg_schema_free_string(s, key, name);
    prg_nfa_call(s->nfa, then_space(s, then_byte(s, name, ':')), s->any, after);
    prg_nfa_epsilon(s->nfa, then_comma(s, after), key);
    close_with(s, after, '}', to);
}

static void any_array(prg_schema *s, uint32_t from, uint32_t to) {
    uint32_t open = then_space(s, then_byte(s, from, '[')), item = prg_nfa_add_state(s->nfa),
             after = prg_nfa_add_state(s->nfa);
    prg_nfa_bytes(s->nfa, open, ']', ']', to);
    prg_nfa_epsilon(s->nfa, open, item);
    prg_nfa_call(s->nfa, item, s->any, after);
    prg_nfa_epsilon(s->nfa, then_comma(s, after), item);
    close_with(s, after, ']', to);
}

void prg_schema_any(prg_schema *s, uint32_t from, uint32_t to) {
    if (s->any == PRG_NFA_NONE) {
        s->any = prg_nfa_add_state(s->nfa);
        uint32_t end = prg_nfa_add_state(s->nfa);
        prg_nfa_accept(s->nfa, end);
        static const char *const words[] = {"null", "true", "false"};
        for (int i = 0; i < 3; i++) {
            prg_nfa_epsilon(s->nfa, prg_nfa_literal(s->nfa, s->any, words[i], strlen(words[i])), end);
        }
        prg_schema_free_string(s, s->any, end);
        prg_schema_free_number(s, false, s->any, end);
        any_object(s, s->any, end);
        any_array(s, s->any, end);
    }
    prg_nfa_call(s->nfa, from, s->any, to);
}

/* ---- constants ---- */

void prg_schema_constant(prg_schema *s, const prg_json *value, uint32_t from, uint32_t to) {
    prg_nfa *n = s->nfa;
    uint32_t at = from;
    switch (value->kind) {
    case PRG_JSON_NULL:
        at = prg_nfa_literal(n, at, "null", 4);
        break;
    case PRG_JSON_FALSE:
        at = prg_nfa_literal(n, at, "false", 5);
        break;
    case PRG_JSON_TRUE:
        at = prg_nfa_literal(n, at, "true", 4);
        break;
    case PRG_JSON_NUMBER:
        at = prg_nfa_literal(n, at, value->text, value->length);
        break;
    case PRG_JSON_STRING:
        at = prg_schema_quoted(s, at, value->text, value->length);
        break;
    case PRG_JSON_ARRAY:
    case PRG_JSON_OBJECT: {
        bool object = value->kind == PRG_JSON_OBJECT;
        at = then_space(s, then_byte(s, at, object ? '{' : '['));
        for (const prg_json *m = value->first; m && prg_schema_fine(s); m = m->next) {
            uint32_t after = prg_nfa_add_state(n);
            if (object) {
                at = then_space(s, then_byte(s, prg_schema_quoted(s, at, m->key, m->key_length), ':'));
            }
            prg_schema_constant(s, m, at, after);
            at = m->next ? then_comma(s, after) : then_space(s, after);
        }
        at = then_byte(s, at, object ? '}' : ']');
        break;
    }
    }
    prg_nfa_epsilon(n, at, to);
}

/* ---- objects ---- */

typedef struct property {
    const char *name;
    size_t length;
    const prg_json *schema; /* NULL: that of additional properties */
    bool required;
} property;

typedef struct properties {
    property *items;
    size_t count;
    const prg_json *additional; /* NULL: any value */
    bool closed;                /* no others */
} properties;

static property *find(const properties *p, const char *name, size_t length) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].length == length && memcmp(p->items[i].name, name, length) == 0) {
            return &p->items[i];
        }
    }
    return NULL;
}

static bool collect(prg_schema *s, const prg_json *schema, properties *p) {
    enum { MOST = 4096 }; /* they are compared in pairs */
    const prg_json *listed = prg_json_get(schema, "properties"), *required = prg_json_get(schema, "required");
    p->additional = prg_json_get(schema, "additionalProperties");
    p->closed = p->additional && p->additional->kind == PRG_JSON_FALSE;
    if (listed && listed->kind != PRG_JSON_OBJECT) {
        prg_schema_refuse_at(s, "properties", "not an object");
        return false;
    }
    if (required && required->kind != PRG_JSON_ARRAY) {
        prg_schema_refuse_at(s, "required", "not an array");
        return false;
    }
    if ((listed && listed->count > MOST) || (required && required->count > MOST)) {
        prg_schema_refuse(s, "more than %d properties", MOST);
        return false;
    }
    p->items = prg_arena_alloc(&s->arena, (listed ? listed->count : 0) + (required ? required->count : 0) + 1,
                               sizeof *p->items);
    if (!p->items) {
        s->nfa->no_memory = true;
        return false;
    }
    for (const prg_json *m = listed ? listed->first : NULL; m; m = m->next) {
        if (find(p, m->key, m->key_length)) {
            prg_schema_refuse_at(s, "properties", "a name is given twice");
            return false;
        }
        p->items[p->count++] = (property){m->key, m->key_length, m, false};
    }
    for (const prg_json *m = required ? required->first : NULL; m; m = m->next) {
        if (m->kind != PRG_JSON_STRING) {
            prg_schema_refuse_at(s, "required", "not an array of names");
            return false;
        }
        property *known = find(p, m->text, m->length);
        if (!known) { /* it must be there, as one of the additional ones */
            known = &p->items[p->count++];
            *known = (property){m->text, m->length, NULL, false};
        }
        known->required = true;
    }
    return true;
}

static void additional_value(prg_schema *s, const properties *p, uint32_t from, uint32_t to) {
    if (!p->additional) {
        prg_schema_any(s, from, to);
        return;
    }
    size_t before = prg_schema_enter(s, "additionalProperties", strlen("additionalProperties"), 0);
    prg_schema_value(s, p->additional, from, to, false);
    prg_schema_leave(s, before);
}

static void property_value(prg_schema *s, const properties *p, const property *q, uint32_t from, uint32_t to) {
    if (!q->schema) {
        additional_value(s, p, from, to);
        return;
    }
    size_t before = prg_schema_enter(s, "properties", strlen("properties"), 0);
    (void)prg_schema_enter(s, q->name, q->length, 0);
    prg_schema_value(s, q->schema, from, to, false);
    prg_schema_leave(s, before);
}

static uint32_t decode(const char *text, size_t *length) {
    const unsigned char *b = (const unsigned char *)text;
    *length = b[0] < 0x80 ? 1 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    uint32_t c = *length == 1 ? b[0] : b[0] & (0x7Fu >> *length);
    for (size_t i = 1; i < *length; i++) {
        c = c << 6 | (b[i] & 0x3Fu);
    }
    return c;
}

/* Names other than those of `sorted`, which begin alike up to `at`: wherever the text leaves them it is free. */
static void other_names(prg_schema *s, const property *const *sorted, size_t count, size_t at, uint32_t from,
                        uint32_t leave, uint32_t to) {
    prg_range *others = prg_arena_alloc(&s->arena, count + 1, sizeof *others);
    if (!others) {
        s->nfa->no_memory = true;
        return;
    }
    size_t ranges = 0, i = 0;
    uint32_t low = 0;
    bool ends = count > 0 && sorted[0]->length == at;
    if (!ends) {
        prg_nfa_bytes(s->nfa, from, '"', '"', to);
    }
    for (i = ends; i < count && prg_schema_fine(s);) {
        size_t bytes, same = i;
        uint32_t c = decode(sorted[i]->name + at, &bytes);
        while (same < count && memcmp(sorted[same]->name + at, sorted[i]->name + at, bytes) == 0) {
            same++;
        }
        if (c > low) {
            others[ranges++] = (prg_range){low, c - 1};
        }
        low = c + 1;
        uint32_t next = prg_nfa_add_state(s->nfa);
        prg_nfa_class(s->nfa, from, &(prg_range){c, c}, 1, PRG_SPELL_JSON, next);
        other_names(s, sorted + i, same - i, at + bytes, next, leave, to);
        i = same;
    }
    others[ranges++] = (prg_range){low, 0x10FFFF};
    prg_nfa_class(s->nfa, from, others, ranges, PRG_SPELL_JSON, leave);
}

static int by_name(const property *a, const property *b) {
    size_t n = a->length < b->length ? a->length : b->length;
    int order = n > 0 ? memcmp(a->name, b->name, n) : 0;
    return order != 0 ? order : a->length < b->length ? -1 : a->length > b->length;
}

/* A name in quotes that is none of the listed ones. */
static uint32_t additional_name(prg_schema *s, const properties *p, uint32_t from) {
    enum { LONGEST = 2000 };
    static const prg_range any[] = {{0, 0x10FFFF}};
    const property **sorted = prg_arena_alloc(&s->arena, p->count + 1, sizeof *sorted);
    if (!sorted) {
        s->nfa->no_memory = true;
        return 0;
    }
    for (size_t i = 0; i < p->count; i++) {
        size_t at = i;
        for (; at > 0 && by_name(sorted[at - 1], &p->items[i]) > 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = &p->items[i];
        if (p->items[i].length > LONGEST) {
            prg_schema_refuse_at(s, "properties", "a name is too long");
            return 0;
        }
    }
    uint32_t open = then_byte(s, from, '"'), leave = prg_nfa_add_state(s->nfa), to = prg_nfa_add_state(s->nfa);
    prg_nfa_class(s->nfa, leave, any, 1, PRG_SPELL_JSON, leave);
    prg_nfa_bytes(s->nfa, leave, '"', '"', to);
    other_names(s, sorted, p->count, 0, open, leave, to);
    return to;
}

/* Properties come in the order of the schema; those that are not required may be left out. `first` stands where none
 * has been written, `comma` behind a comma, `after` behind a property. */
void prg_schema_object(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to) {
    prg_nfa *n = s->nfa;
    properties p = {NULL, 0, NULL, false};
    if (!collect(s, schema, &p)) {
        return;
    }
    size_t last = p.count; /* behind the last required one all may be left out */
    while (last > 0 && !p.items[last - 1].required) {
        last--;
    }
    uint32_t first = then_space(s, then_byte(s, from, '{')), end = prg_nfa_add_state(n);
    uint32_t comma = prg_nfa_add_state(n), after = PRG_NFA_NONE;
    close_with(s, end, '}', to);
    for (size_t i = 0; i < p.count && prg_schema_fine(s); i++) {
        const property *q = &p.items[i];
        uint32_t key = prg_nfa_add_state(n), next_first = prg_nfa_add_state(n), next_comma = prg_nfa_add_state(n);
        prg_nfa_epsilon(n, first, key);
        prg_nfa_epsilon(n, comma, key);
        if (!q->required) {
            prg_nfa_epsilon(n, first, next_first);
            prg_nfa_epsilon(n, comma, next_comma);
        }
        after = prg_nfa_add_state(n);
        uint32_t colon = then_byte(s, prg_schema_quoted(s, key, q->name, q->length), ':');
        property_value(s, &p, q, then_space(s, colon), after);
        prg_nfa_epsilon(n, then_comma(s, after), next_comma);
        if (i + 1 >= last) {
            prg_nfa_epsilon(n, after, end);
        }
        first = next_first;
        comma = next_comma;
    }
    if (last == 0) {
        prg_nfa_bytes(n, first, '}', '}', to);
    }
    if (!p.closed && prg_schema_fine(s)) {
        uint32_t key = prg_nfa_add_state(n);
        after = prg_nfa_add_state(n);
        prg_nfa_epsilon(n, first, key);
        prg_nfa_epsilon(n, comma, key);
        uint32_t colon = then_byte(s, additional_name(s, &p, key), ':');
        additional_value(s, &p, then_space(s, colon), after);
        prg_nfa_epsilon(n, then_comma(s, after), comma);
        prg_nfa_epsilon(n, after, end);
    }
}

/* ---- arrays ---- */

static void item(prg_schema *s, const prg_json *prefix, const prg_json *items, size_t index, bool several,
                 uint32_t from, uint32_t to) {
    if (prefix) {
        size_t before = prg_schema_enter(s, "prefixItems", strlen("prefixItems"), 0);
        (void)prg_schema_enter(s, NULL, 0, index);
        prg_schema_value(s, prefix, from, to, false);
        prg_schema_leave(s, before);
    } else if (!items) {
        prg_schema_any(s, from, to);
    } else {
        size_t before = prg_schema_enter(s, "items", strlen("items"), 0);
        if (several) {
            prg_schema_call(s, items, from, to, false);
        } else {
            prg_schema_value(s, items, from, to, false);
        }
        prg_schema_leave(s, before);
    }
}

void prg_schema_array(prg_schema *s, const prg_json *schema, uint32_t from, uint32_t to) {
    prg_nfa *n = s->nfa;
    const prg_json *prefix = prg_json_get(schema, "prefixItems"), *items = prg_json_get(schema, "items");
    uint32_t least = prg_schema_count(s, schema, "minItems", 0);
    uint32_t most = prg_schema_count(s, schema, "maxItems", PRG_NFA_NONE);
    if (prefix && (prefix->kind != PRG_JSON_ARRAY || prefix->count == 0)) {
        prg_schema_refuse_at(s, "prefixItems", "not an array of schemas");
    }
    if (items && items->kind == PRG_JSON_ARRAY) {
        prg_schema_refuse_at(s, "items", "an array here is not supported: use prefixItems");
    }
    if (least > most) {
        prg_schema_refuse_at(s, "minItems", "greater than maxItems");
    }
    if (!prg_schema_fine(s)) {
        return;
    }
    uint32_t listed = prefix ? (uint32_t)prefix->count : 0;
    uint32_t fixed = most != PRG_NFA_NONE ? most : least > listed ? least : listed;
    const prg_json *at = prefix ? prefix->first : NULL;
    bool several = fixed > listed + 1 || (fixed > listed && most == PRG_NFA_NONE);
    uint32_t open = then_space(s, then_byte(s, from, '[')), slot = prg_nfa_add_state(n);
    prg_nfa_epsilon(n, open, slot); /* a comma leads to the slot, from where the array may not end */
    if (least == 0) {
        prg_nfa_bytes(n, open, ']', ']', to);
    }
    for (uint32_t i = 0; i < fixed && prg_schema_fine(s); i++) {
        uint32_t after = prg_nfa_add_state(n);
        item(s, at, items, i, several, slot, after);
        at = at ? at->next : NULL;
        if (i + 1 >= least) {
            close_with(s, after, ']', to);
        }
        slot = then_comma(s, after);
    }
    if (most == PRG_NFA_NONE) {
        uint32_t after = prg_nfa_add_state(n);
        item(s, NULL, items, 0, several, slot, after);
        prg_nfa_epsilon(n, then_comma(s, after), slot);
        close_with(s, after, ']', to);
    }
}
