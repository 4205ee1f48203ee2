#include "base/buffer.h"

#include <string.h>

#include "base/checked_math.h"

void prg_buffer_init(prg_buffer *buffer, prg_allocator *allocator) {
    *buffer = (prg_buffer){.allocator = allocator};
}

void prg_buffer_free(prg_buffer *buffer) {
    prg_free(buffer->allocator, buffer->data);
    prg_buffer_init(buffer, buffer->allocator);
}

static bool make_room(prg_buffer *b, size_t more) {
    size_t need, twice;
    if (b->failed || !prg_add(b->length, more, &need) || !prg_mul(b->capacity, 2, &twice)) {
        b->failed = true;
        return false;
    }
    if (need <= b->capacity) {
        return true;
    }
    size_t capacity = prg_max(prg_max(need, twice), 64);
    unsigned char *data = prg_realloc(b->allocator, b->data, capacity);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void prg_buffer_put(prg_buffer *buffer, const void *bytes, size_t length) {
    if (length > 0 && make_room(buffer, length)) {
        memcpy(buffer->data + buffer->length, bytes, length);
        buffer->length += length;
    }
}

void prg_buffer_puts(prg_buffer *buffer, const char *text) {
    prg_buffer_put(buffer, text, strlen(text));
}

void prg_buffer_putc(prg_buffer *buffer, char byte) {
    prg_buffer_put(buffer, &byte, 1);
}

void prg_buffer_put_int(prg_buffer *buffer, int64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    prg_buffer_put(buffer, digits + at, sizeof digits - at);
}

const char *prg_buffer_text(prg_buffer *buffer) {
    if (!make_room(buffer, 1)) {
        return NULL;
    }
    buffer->data[buffer->length] = 0;
    return (const char *)buffer->data;
}
