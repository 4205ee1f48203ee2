/* UTF-8: checking foreign text, replacing what is ill-formed, and walking over text that was checked. */
#ifndef PRG_BASE_UTF8_H
#define PRG_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define PRG_UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* The sequence at `text`, of which `length` >= 1 bytes are there. */
typedef struct prg_utf8_sequence {
    size_t length;    /* of the sequence, or of the longest ill-formed part, which one U+FFFD stands for */
    bool well_formed; /* surrogates, overlong forms and what lies above U+10FFFF are not */
    bool incomplete;  /* ill-formed only because the bytes end here */
} prg_utf8_sequence;

prg_utf8_sequence prg_utf8_look(const unsigned char *text, size_t length);
/* Offset of the first ill-formed byte, or `length`. */
size_t prg_utf8_check(const unsigned char *text, size_t length);
/* Append the text with U+FFFD for each ill-formed part, as Python's errors="replace" does. */
void prg_utf8_replace(prg_buffer *out, const unsigned char *text, size_t length);

/* Code point at `text`, which was checked; *length is that of its sequence. */
static inline uint32_t prg_utf8_decode(const unsigned char *text, size_t *length) {
    uint32_t lead = text[0];
    if (lead < 0x80) {
        *length = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *length = 2;
        return (lead & 0x1F) << 6 | (text[1] & 0x3Fu);
    }
    if (lead < 0xF0) {
        *length = 3;
        return (lead & 0x0F) << 12 | (text[1] & 0x3Fu) << 6 | (text[2] & 0x3Fu);
    }
    *length = 4;
    return (lead & 0x07) << 18 | (text[1] & 0x3Fu) << 12 | (text[2] & 0x3Fu) << 6 | (text[3] & 0x3Fu);
}

/* Turns bytes that come in pieces into whole characters. */
typedef struct prg_utf8_stream {
    unsigned char held[4]; /* the start of a sequence */
    size_t count;
} prg_utf8_stream;

/* Append to `out` what the bytes complete; the rest is held back. */
void prg_utf8_stream_feed(prg_utf8_stream *stream, const unsigned char *bytes, size_t length, prg_buffer *out);
/* Nothing more comes: what was held back becomes U+FFFD. */
void prg_utf8_stream_end(prg_utf8_stream *stream, prg_buffer *out);

#endif
