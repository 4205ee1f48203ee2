#include "model/config_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

void prg_config_fail(prg_config_reader *r, perigee_status status, const char *key, const char *format, ...) {
    if (r->status != PERIGEE_OK) {
        return;
    }
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    r->status = prg_fail_at(r->err, status, (prg_where){NULL, r->file, -1, -1}, "%s: %s: %s", r->file, key, what);
}

const prg_json *prg_config_get(const prg_json *object, const char *key) {
    const prg_json *found = prg_json_get(object, key);
    return found && found->kind != PRG_JSON_NULL ? found : NULL;
}

int64_t prg_config_int(prg_config_reader *r, const prg_json *object, const char *key, int64_t minimum, int64_t maximum,
                       int64_t preset) {
    const prg_json *value = prg_config_get(object, key);
    int64_t number;
    if (!value) {
        if (preset == PRG_REQUIRED) {
            prg_config_fail(r, PERIGEE_E_CONFIG, key, "missing");
            return minimum;
        }
        return preset;
    }
    if (!prg_json_int(value, &number)) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "not a whole number");
        return minimum;
    }
    if (number < minimum || number > maximum) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "%lld is not between %lld and %lld", (long long)number,
                        (long long)minimum, (long long)maximum);
        return minimum;
    }
    return number;
}

double prg_config_real(prg_config_reader *r, const prg_json *object, const char *key, double above, double maximum,
                       double preset) {
    const prg_json *value = prg_config_get(object, key);
    double number;
    if (!value) {
        if (isnan(preset)) {
            prg_config_fail(r, PERIGEE_E_CONFIG, key, "missing");
            return maximum;
        }
        return preset;
    }
    if (!prg_json_double(value, &number)) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "not a number");
        return maximum;
    }
    if (!(number > above && number <= maximum)) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "%g is not above %g and at most %g", number, above, maximum);
        return maximum;
    }
    return number;
}

bool prg_config_flag(prg_config_reader *r, const prg_json *object, const char *key, bool preset) {
    const prg_json *value = prg_config_get(object, key);
    if (!value) {
        return preset;
    }
    if (value->kind != PRG_JSON_TRUE && value->kind != PRG_JSON_FALSE) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "neither true nor false");
    }
    return value->kind == PRG_JSON_TRUE;
}

int prg_config_choice(prg_config_reader *r, const prg_json *object, const char *key, const char *const *choices,
                      int preset) {
    const prg_json *value = prg_config_get(object, key);
    if (!value) {
        return preset;
    }
    if (value->kind != PRG_JSON_STRING) {
        prg_config_fail(r, PERIGEE_E_CONFIG, key, "not a string");
        return preset;
    }
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], value->text) == 0) {
            return i;
        }
    }
    prg_config_fail(r, PERIGEE_E_UNSUPPORTED, key, "\"%.64s\" is not supported", value->text);
    return preset;
}
