#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

typedef struct option_row {
    const char *name;
    perigee_option key;
    perigee_option_type type;
    perigee_option_scope scope;
    double minimum, maximum;
    int64_t int_minimum, int_maximum;
    const char *default_text, *help;
} option_row;

static const option_row rows[] = {
#define PRG_OPTION(name, text, number, type, scope, minimum, maximum, preset, help)                                    \
    {text,                                                                                                             \
     PERIGEE_OPTION_##name,                                                                                            \
     PERIGEE_OPTION_TYPE_##type,                                                                                       \
     PERIGEE_SCOPE_##scope,                                                                                            \
     (double)(minimum),                                                                                                \
     (double)(maximum),                                                                                                \
     minimum,                                                                                                          \
     maximum,                                                                                                          \
     preset,                                                                                                           \
     help},
#include "base/options.def"
#undef PRG_OPTION
};

/* The header's numbers are written from the list; a stale header must not compile. */
#define PRG_OPTION(name, text, number, type, scope, minimum, maximum, preset, help)                                    \
    _Static_assert(PERIGEE_OPTION_##name == (number), "option_keys.h is stale: " #name);
#include "base/options.def"
#undef PRG_OPTION

enum { ROWS = sizeof rows / sizeof *rows };

typedef struct option_value {
    int set;
    int64_t integer;
    double real;
    char *text;
} option_value;

struct perigee_options {
    option_value values[ROWS];
};

static const option_row *find_key(perigee_option key) {
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].key == key) {
            return &rows[i];
        }
    }
    return NULL;
}

/* The row of a key if it has this type, else an error. */
static const option_row *expect(const perigee_options *options, perigee_option key, perigee_option_type type,
                                perigee_error **err) {
    const option_row *row = find_key(key);
    if (!options) {
        prg_fail(err, PERIGEE_E_ARGUMENT, "options is NULL");
        return NULL;
    }
    if (!row) {
        prg_fail(err, PERIGEE_E_ARGUMENT, "unknown option %d", (int)key);
        return NULL;
    }
    if (row->type != type) {
        prg_fail(err, PERIGEE_E_ARGUMENT, "option %s has another type", row->name);
        return NULL;
    }
    return row;
}

perigee_status perigee_options_new(perigee_options **out, perigee_error **err) {
    prg_clear(err);
    if (!out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL");
    }
    *out = calloc(1, sizeof **out);
    return *out ? PERIGEE_OK : prg_fail_memory(err);
}

void perigee_options_free(perigee_options *options) {
    if (options) {
        for (size_t i = 0; i < ROWS; i++) {
            free(options->values[i].text);
        }
        free(options);
    }
}

perigee_status perigee_options_set_int(perigee_options *options, perigee_option key, int64_t value,
                                       perigee_error **err) {
    prg_clear(err);
    const option_row *row = expect(options, key, PERIGEE_OPTION_TYPE_INT, err);
    if (!row) {
        return PERIGEE_E_ARGUMENT;
    }
    if (value < row->int_minimum || value > row->int_maximum) {
        return prg_fail(err, PERIGEE_E_RANGE, "option %s: %lld is not between %lld and %lld", row->name,
                        (long long)value, (long long)row->int_minimum, (long long)row->int_maximum);
    }
    option_value *v = &options->values[row - rows];
    v->integer = value;
    v->set = 1;
    return PERIGEE_OK;
}

perigee_status perigee_options_set_float(perigee_options *options, perigee_option key, double value,
                                         perigee_error **err) {
    prg_clear(err);
    const option_row *row = expect(options, key, PERIGEE_OPTION_TYPE_FLOAT, err);
    if (!row) {
        return PERIGEE_E_ARGUMENT;
    }
    if (!(value >= row->minimum && value <= row->maximum)) {
        return prg_fail(err, PERIGEE_E_RANGE, "option %s: %g is not between %g and %g", row->name, value, row->minimum,
                        row->maximum);
    }
    option_value *v = &options->values[row - rows];
    v->real = value;
    v->set = 1;
    return PERIGEE_OK;
}

perigee_status perigee_options_set_string(perigee_options *options, perigee_option key, const char *value,
                                          size_t length, perigee_error **err) {
    prg_clear(err);
    const option_row *row = expect(options, key, PERIGEE_OPTION_TYPE_STRING, err);
    if (!row) {
        return PERIGEE_E_ARGUMENT;
    }
    if (!value) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "option %s: value is NULL", row->name);
    }
    if (length == SIZE_MAX) {
        length = strlen(value);
    }
    if (length < (size_t)row->int_minimum || length > (size_t)row->int_maximum) {
        return prg_fail(err, PERIGEE_E_RANGE, "option %s: %zu bytes, %lld are allowed", row->name, length,
                        (long long)row->int_maximum);
    }
    if (memchr(value, 0, length)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "option %s: a NUL byte in the value", row->name);
    }
    char *copy = malloc(length + 1);
    if (!copy) {
        return prg_fail_memory(err);
    }
    memcpy(copy, value, length);
    copy[length] = 0;
    option_value *v = &options->values[row - rows];
    free(v->text);
    v->text = copy;
    v->set = 1;
    return PERIGEE_OK;
}

static perigee_status set_int_text(perigee_options *options, const option_row *row, const char *value,
                                   perigee_error **err) {
    char *end = NULL;
    /* strtoll takes no grouping and no decimal point, so that it is the same in every locale */
    long long parsed = strtoll(value, &end, 10);
    if (end == value || *end || parsed == INT64_MAX || parsed == INT64_MIN) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "option %s: \"%s\" is not a whole number", row->name, value);
    }
    return perigee_options_set_int(options, row->key, parsed, err);
}

perigee_status perigee_options_set_text(perigee_options *options, const char *name, const char *value,
                                        perigee_error **err) {
    prg_clear(err);
    if (!options || !name || !value) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "options, name or value is NULL");
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) != 0) {
            continue;
        }
        double real;
        switch (rows[i].type) {
        case PERIGEE_OPTION_TYPE_INT:
            return set_int_text(options, &rows[i], value, err);
        case PERIGEE_OPTION_TYPE_FLOAT:
            if (!prg_parse_double(value, strlen(value), &real)) {
                return prg_fail(err, PERIGEE_E_ARGUMENT, "option %s: \"%s\" is not a number", name, value);
            }
            return perigee_options_set_float(options, rows[i].key, real, err);
        case PERIGEE_OPTION_TYPE_STRING:
            return perigee_options_set_string(options, rows[i].key, value, SIZE_MAX, err);
        }
    }
    return prg_fail(err, PERIGEE_E_ARGUMENT, "unknown option \"%s\"", name);
}

size_t perigee_option_count(void) {
    return ROWS;
}

perigee_status perigee_option_describe(size_t index, perigee_option_description *out, perigee_error **err) {
    prg_clear(err);
    if (!out || out->struct_size < sizeof *out || index >= ROWS) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "out is NULL or too small, or index is beyond the last option");
    }
    const option_row *r = &rows[index];
    *out = (perigee_option_description){out->struct_size, r->key,          r->type,    r->scope,  r->name,
                                        r->help,          r->default_text, r->minimum, r->maximum};
    return PERIGEE_OK;
}

perigee_status prg_options_check(const perigee_options *options, unsigned scopes, perigee_error **err) {
    for (size_t i = 0; options && i < ROWS; i++) {
        if (options->values[i].set && !(scopes & (1u << rows[i].scope))) {
            return prg_fail(err, PERIGEE_E_SCOPE, "option %s does not belong to this call", rows[i].name);
        }
    }
    return PERIGEE_OK;
}

int64_t prg_options_int(const perigee_options *options, perigee_option key) {
    const option_row *row = find_key(key);
    const option_value *v = options ? &options->values[row - rows] : NULL;
    return v && v->set ? v->integer : strtoll(row->default_text, NULL, 10);
}

double prg_options_float(const perigee_options *options, perigee_option key) {
    const option_row *row = find_key(key);
    const option_value *v = options ? &options->values[row - rows] : NULL;
    if (v && v->set) {
        return v->real;
    }
    double preset = 0;
    prg_parse_double(row->default_text, strlen(row->default_text), &preset);
    return preset;
}

const char *prg_options_string(const perigee_options *options, perigee_option key) {
    const option_row *row = find_key(key);
    const option_value *v = options ? &options->values[row - rows] : NULL;
    return v && v->set ? v->text : row->default_text;
}
