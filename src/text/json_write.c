#include "text/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_math.h"

typedef struct member {
    const prg_json *value;
    size_t order;
} member;

static int by_name(const prg_json *a, const prg_json *b) {
    /* order of bytes in UTF-8 is order of code points */
    int order = memcmp(a->key, b->key, prg_min(a->key_length, b->key_length));
    return order != 0 ? order : (a->key_length > b->key_length) - (a->key_length < b->key_length);
}

static int compare_names(const void *a, const void *b) {
    const member *x = a, *y = b;
    int order = by_name(x->value, y->value);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static int compare_order(const void *a, const void *b) {
    const member *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

bool prg_json_collect(prg_allocator *allocator, const prg_json *object, bool sorted, prg_json_members *out) {
    *out = (prg_json_members){NULL, 0};
    size_t bytes, n = 0;
    if (object->count == 0) {
        return true;
    }
    if (!prg_mul(object->count, sizeof(member), &bytes)) {
        return false;
    }
    member *members = prg_alloc(allocator, bytes);
    const prg_json **values = prg_alloc(allocator, bytes); /* members are larger */
    if (!members || !values) {
        prg_free(allocator, members);
        prg_free(allocator, values);
        return false;
    }
    for (const prg_json *m = object->first; m; m = m->next, n++) {
        members[n] = (member){m, n};
    }
    qsort(members, n, sizeof *members, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && by_name(members[kept - 1].value, members[i].value) == 0) {
            members[kept - 1].value = members[i].value; /* the place of the first, the value of the last */
        } else {
            members[kept++] = members[i];
        }
    }
    if (!sorted) {
        qsort(members, kept, sizeof *members, compare_order);
    }
    for (size_t i = 0; i < kept; i++) {
        values[i] = members[i].value;
    }
    prg_free(allocator, members);
    *out = (prg_json_members){values, kept};
    return true;
}

void prg_json_escape(prg_buffer *out, const char *text, size_t length) {
    static const char hex[] = "0123456789abcdef";
    size_t from = 0;
    if (length == 0) {
        return; /* `text` may be NULL */
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        prg_buffer_put(out, text + from, i - from);
        from = i + 1;
        static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
        const char *pair = NULL;
        for (size_t n = 0; n + 1 < sizeof named; n += 2) {
            pair = (unsigned char)named[n] == c ? named + n : pair;
        }
        if (pair) {
            prg_buffer_putc(out, '\\');
            prg_buffer_putc(out, pair[1]);
        } else {
            prg_buffer_puts(out, "\\u00");
            prg_buffer_putc(out, hex[c >> 4]);
            prg_buffer_putc(out, hex[c & 15]);
        }
    }
    prg_buffer_put(out, text + from, length - from);
}

void prg_json_write_string(prg_buffer *out, const char *text, size_t length) {
    prg_buffer_putc(out, '"');
    prg_json_escape(out, text, length);
    prg_buffer_putc(out, '"');
}

/* Digits and decimal exponent of the shortest text that reads back as `value` > 0. */
static size_t shortest_digits(double value, char digits[24], int *exponent) {
    char text[64];
    size_t count = 0;
    for (int precision = 0; precision < 17; precision++) {
        int length = snprintf(text, sizeof text, "%.*e", precision, value);
        count = 0;
        int i = 0;
        for (; i < length && text[i] != 'e'; i++) {
            if (text[i] >= '0' && text[i] <= '9') { /* the point is the locale's */
                digits[count++] = text[i];
            }
        }
        *exponent = (int)strtol(text + i + 1, NULL, 10);
        char again[64] = {0}; /* digits and the exponent of the last: no point, so no locale */
        memcpy(again, digits, count);
        snprintf(again + count, sizeof again - count, "e%d", *exponent - (int)count + 1);
        double back;
        if (prg_parse_double(again, strlen(again), &back) && back == value) {
            break;
        }
    }
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    return count;
}

static void write_float(prg_buffer *out, double value) {
    char digits[24];
    int exponent = 0;
    if (signbit(value)) {
        prg_buffer_putc(out, '-');
        value = -value;
    }
    if (value == 0) {
        prg_buffer_puts(out, "0.0");
        return;
    }
    size_t count = shortest_digits(value, digits, &exponent);
    if (exponent < -4 || exponent >= 16) {
        prg_buffer_putc(out, digits[0]);
        if (count > 1) {
            prg_buffer_putc(out, '.');
            prg_buffer_put(out, digits + 1, count - 1);
        }
        prg_buffer_puts(out, exponent < 0 ? "e-" : "e+");
        int size = exponent < 0 ? -exponent : exponent;
        if (size < 10) {
            prg_buffer_putc(out, '0');
        }
        prg_buffer_put_int(out, size);
        return;
    }
    int point = exponent + 1; /* digits before it */
    if (point <= 0) {
        prg_buffer_puts(out, "0.");
        for (int i = point; i < 0; i++) {
            prg_buffer_putc(out, '0');
        }
        prg_buffer_put(out, digits, count);
        return;
    }
    for (int i = 0; i < point; i++) {
        prg_buffer_putc(out, (size_t)i < count ? digits[i] : '0');
    }
    prg_buffer_putc(out, '.');
    if (count > (size_t)point) {
        prg_buffer_put(out, digits + point, count - (size_t)point);
    } else {
        prg_buffer_putc(out, '0');
    }
}

void prg_json_write_number(prg_buffer *out, const char *text, size_t length) {
    bool whole = true;
    for (size_t i = 0; i < length; i++) {
        whole = whole && text[i] != '.' && text[i] != 'e' && text[i] != 'E';
    }
    double value;
    if (whole) {
        bool minus_zero = length == 2 && memcmp(text, "-0", 2) == 0;
        prg_buffer_put(out, text + minus_zero, length - minus_zero);
    } else if (prg_parse_double(text, length, &value)) {
        write_float(out, value);
    } else {
        prg_buffer_puts(out, text[0] == '-' ? "-Infinity" : "Infinity");
    }
}

static void write_members(prg_buffer *out, const prg_json *object, unsigned style) {
    prg_json_members members;
    if (!prg_json_collect(out->allocator, object, style & PRG_JSON_SORTED, &members)) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < members.count; i++) {
        if (i > 0) {
            prg_buffer_puts(out, style & PRG_JSON_COMPACT ? "," : ", ");
        }
        prg_json_write_string(out, members.values[i]->key, members.values[i]->key_length);
        prg_buffer_puts(out, style & PRG_JSON_COMPACT ? ":" : ": ");
        prg_json_write(out, members.values[i], style);
    }
    prg_free(out->allocator, members.values);
}

/* Recursion is as deep as the parser allowed. */
void prg_json_write(prg_buffer *out, const prg_json *value, unsigned style) {
    switch (value->kind) {
    case PRG_JSON_NULL:
        prg_buffer_puts(out, "null");
        break;
    case PRG_JSON_FALSE:
        prg_buffer_puts(out, "false");
        break;
    case PRG_JSON_TRUE:
        prg_buffer_puts(out, "true");
        break;
    case PRG_JSON_NUMBER:
        prg_json_write_number(out, value->text, value->length);
        break;
    case PRG_JSON_STRING:
        prg_json_write_string(out, value->text, value->length);
        break;
    case PRG_JSON_ARRAY:
        prg_buffer_putc(out, '[');
        for (const prg_json *m = value->first; m; m = m->next) {
            if (m != value->first) {
                prg_buffer_puts(out, style & PRG_JSON_COMPACT ? "," : ", ");
            }
            prg_json_write(out, m, style);
        }
        prg_buffer_putc(out, ']');
        break;
    case PRG_JSON_OBJECT:
        prg_buffer_putc(out, '{');
        write_members(out, value, style);
        prg_buffer_putc(out, '}');
        break;
    }
}
