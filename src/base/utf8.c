#include "base/utf8.h"

#include <string.h>

prg_utf8_sequence prg_utf8_look(const unsigned char *text, size_t length) {
    unsigned char lead = text[0];
    if (lead < 0x80) {
        return (prg_utf8_sequence){1, true, false};
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return (prg_utf8_sequence){1, false, false};
    }
    size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    /* only the second byte's range depends on the first (Unicode, table 3-7) */
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < whole; i++) {
        if (i == length) {
            return (prg_utf8_sequence){i, false, true};
        }
        if (text[i] < low || text[i] > high) {
            return (prg_utf8_sequence){i, false, false};
        }
        low = 0x80;
        high = 0xBF;
    }
    return (prg_utf8_sequence){whole, true, false};
}

size_t prg_utf8_check(const unsigned char *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        uint64_t eight;
        if (length - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        prg_utf8_sequence s = prg_utf8_look(text + at, length - at);
        if (!s.well_formed) {
            return at;
        }
        at += s.length;
    }
    return length;
}

void prg_utf8_replace(prg_buffer *out, const unsigned char *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        size_t good = prg_utf8_check(text + at, length - at);
        prg_buffer_put(out, text + at, good);
        at += good;
        if (at < length) {
            at += prg_utf8_look(text + at, length - at).length;
            prg_buffer_puts(out, PRG_UTF8_REPLACEMENT);
        }
    }
}

void prg_utf8_stream_feed(prg_utf8_stream *stream, const unsigned char *bytes, size_t length, prg_buffer *out) {
    size_t at = 0;
    while (stream->count > 0 && at < length) {
        stream->held[stream->count++] = bytes[at++];
        prg_utf8_sequence s = prg_utf8_look(stream->held, stream->count);
        if (s.incomplete) {
            continue;
        }
        if (s.well_formed) {
            prg_buffer_put(out, stream->held, s.length);
        } else {
            /* the last byte did not go on; it may begin something itself */
            prg_buffer_puts(out, PRG_UTF8_REPLACEMENT);
            at--;
        }
        stream->count = 0;
    }
    while (at < length) {
        size_t good = prg_utf8_check(bytes + at, length - at);
        prg_buffer_put(out, bytes + at, good);
        at += good;
        if (at == length) {
            break;
        }
        prg_utf8_sequence s = prg_utf8_look(bytes + at, length - at);
        if (s.incomplete) {
            memcpy(stream->held, bytes + at, s.length);
            stream->count = s.length;
            break;
        }
        prg_buffer_puts(out, PRG_UTF8_REPLACEMENT);
        at += s.length;
    }
}

void prg_utf8_stream_end(prg_utf8_stream *stream, prg_buffer *out) {
    if (stream->count > 0) {
        prg_buffer_puts(out, PRG_UTF8_REPLACEMENT);
        stream->count = 0;
    }
}
