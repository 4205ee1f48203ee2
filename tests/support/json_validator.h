/* Validity under a JSON schema, straight from the words of the standard, for the keywords that tests use. It knows
 * nothing of grammars. */
#ifndef PRG_TESTS_JSON_VALIDATOR_H
#define PRG_TESTS_JSON_VALIDATOR_H

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static inline bool json_equal(const prg_json *a, const prg_json *b) {
    double x, y;
    if (a->kind == PRG_JSON_NUMBER && b->kind == PRG_JSON_NUMBER) {
        return prg_json_double(a, &x) && prg_json_double(b, &y) && x == y;
    }
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    if (a->kind == PRG_JSON_STRING) {
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    }
    const prg_json *n = b->first;
    for (const prg_json *m = a->first; m; m = m->next, n = n->next) {
        const prg_json *other = a->kind == PRG_JSON_OBJECT ? prg_json_get(b, m->key) : n;
        if (!other || !json_equal(m, other)) {
            return false;
        }
    }
    return true;
}

static inline bool json_is(const prg_json *v, const char *type) {
    double d;
    static const char *const names[] = {"null", "boolean", "boolean", "number", "string", "array", "object"};
    return strcmp(names[v->kind], type) == 0 ||
           (strcmp(type, "integer") == 0 && v->kind == PRG_JSON_NUMBER && prg_json_double(v, &d) && d == floor(d));
}

static inline bool json_has_type(const prg_json *v, const prg_json *type) {
    if (type->kind == PRG_JSON_STRING) {
        return json_is(v, type->text);
    }
    for (const prg_json *t = type->first; t; t = t->next) {
        if (json_is(v, t->text)) {
            return true;
        }
    }
    return false;
}

static inline bool json_matches(const char *pattern, const prg_json *v) {
    int code;
    PCRE2_SIZE at;
    pcre2_code *p =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(p, NULL);
    bool good = pcre2_match(p, (PCRE2_SPTR)v->text, v->length, 0, 0, m, NULL) >= 0;
    pcre2_match_data_free(m);
    pcre2_code_free(p);
    return good;
}

static inline double json_characters(const prg_json *v) {
    double n = 0;
    for (size_t i = 0; i < v->length; i++) {
        n += (v->text[i] & 0xC0) != 0x80;
    }
    return n;
}

static inline const prg_json *json_at(const prg_json *root, const char *pointer) {
    const prg_json *j = root;
    while (j && *pointer == '/') {
        char name[64];
        size_t n = strcspn(pointer + 1, "/");
        size_t length = 0;
        for (size_t i = 1; i <= n; i++) { /* of escapes, those that the tests have */
            bool slash = strncmp(pointer + i, "~1", 2) == 0, space = strncmp(pointer + i, "%20", 3) == 0;
            name[length++] = slash ? '/' : space ? ' ' : pointer[i];
            i += slash ? 1 : space ? 2 : 0;
        }
        name[length] = 0;
        j = prg_json_get(j, name);
        pointer += n + 1;
    }
    return j;
}

static inline bool json_valid(const prg_json *root, const prg_json *schema, const prg_json *v);

static inline bool json_valid_object(const prg_json *root, const prg_json *schema, const prg_json *v) {
    const prg_json *properties = prg_json_get(schema, "properties"),
                   *more = prg_json_get(schema, "additionalProperties"), *required = prg_json_get(schema, "required");
    for (const prg_json *m = required ? required->first : NULL; m; m = m->next) {
        if (!prg_json_get(v, m->text)) {
            return false;
        }
    }
    for (const prg_json *m = v->first; m; m = m->next) {
        const prg_json *s = properties ? prg_json_get(properties, m->key) : NULL;
        s = s ? s : more;
        if (s && !json_valid(root, s, m)) {
            return false;
        }
    }
    return true;
}

static inline bool json_valid_array(const prg_json *root, const prg_json *schema, const prg_json *v) {
    const prg_json *prefix = prg_json_get(schema, "prefixItems"), *items = prg_json_get(schema, "items");
    const prg_json *p = prefix ? prefix->first : NULL;
    for (const prg_json *m = v->first; m; m = m->next, p = p ? p->next : NULL) {
        const prg_json *s = p ? p : items;
        if (s && !json_valid(root, s, m)) {
            return false;
        }
    }
    return true;
}

static inline bool json_bound(const prg_json *schema, const char *keyword, double x, int sign, bool strict) {
    double limit;
    return !prg_json_double(prg_json_get(schema, keyword), &limit) ||
           (strict ? sign * x > sign * limit : sign * x >= sign * limit);
}

static inline bool json_valid(const prg_json *root, const prg_json *schema, const prg_json *v) {
    const prg_json *k;
    double d = 0;
    if (schema->kind != PRG_JSON_OBJECT) {
        return schema->kind == PRG_JSON_TRUE;
    }
    if ((k = prg_json_get(schema, "$ref")) && !json_valid(root, json_at(root, k->text + 1), v)) {
        return false;
    }
    static const char *const lists[] = {"anyOf", "oneOf", "allOf"};
    for (int i = 0; i < 3; i++) {
        if ((k = prg_json_get(schema, lists[i]))) {
            bool any = false;
            for (const prg_json *s = k->first; s; s = s->next) {
                any = any || json_valid(root, s, v);
            }
            if (!any) {
                return false;
            }
        }
    }
    if ((k = prg_json_get(schema, "enum"))) {
        bool any = false;
        for (const prg_json *s = k->first; s; s = s->next) {
            any = any || json_equal(s, v);
        }
        if (!any) {
            return false;
        }
    }
    if (((k = prg_json_get(schema, "const")) && !json_equal(k, v)) ||
        ((k = prg_json_get(schema, "type")) && !json_has_type(v, k))) {
        return false;
    }
    switch (v->kind) {
    case PRG_JSON_OBJECT:
        return json_valid_object(root, schema, v);
    case PRG_JSON_ARRAY:
        return json_valid_array(root, schema, v) && json_bound(schema, "minItems", (double)v->count, 1, false) &&
               json_bound(schema, "maxItems", (double)v->count, -1, false);
    case PRG_JSON_STRING:
        return json_bound(schema, "minLength", json_characters(v), 1, false) &&
               json_bound(schema, "maxLength", json_characters(v), -1, false) &&
               (!(k = prg_json_get(schema, "pattern")) || json_matches(k->text, v));
    case PRG_JSON_NUMBER:
        return prg_json_double(v, &d) && json_bound(schema, "minimum", d, 1, false) &&
               json_bound(schema, "exclusiveMinimum", d, 1, true) && json_bound(schema, "maximum", d, -1, false) &&
               json_bound(schema, "exclusiveMaximum", d, -1, true);
    default:
        return true;
    }
}

#endif
