/* Classes of code points, as the splitter tells them apart. */
#ifndef PRG_TEXT_CHAR_CLASS_H
#define PRG_TEXT_CHAR_CLASS_H

#include <stdint.h>

#include "base/utf8.h"

enum {
    PRG_C_HAN = 1,       /* Script=Han */
    PRG_C_UPPER = 2,     /* Lu, Lt, Lm, Lo, M; not Han */
    PRG_C_LOWER = 4,     /* Ll, Lm, Lo, M; not Han: caseless letters and marks are in both */
    PRG_C_LETTER = 8,    /* L */
    PRG_C_NUMBER = 16,   /* N */
    PRG_C_SPACE = 32,    /* White_Space */
    PRG_C_NEWLINE = 64,  /* CR, LF */
    PRG_C_STRSPACE = 128 /* what Python's str.isspace() takes: U+001C to U+001F too */
};

enum { PRG_CODE_POINTS = 0x110000 };

/* Fill in the class of every code point. */
void prg_char_classes_fill(uint8_t classes[PRG_CODE_POINTS]);

/* Class of the character at `text`, which was checked. */
static inline unsigned prg_char_class(const uint8_t *classes, const unsigned char *text, size_t *length) {
    if (text[0] < 0x80) {
        *length = 1;
        return classes[text[0]];
    }
    return classes[prg_utf8_decode(text, length)];
}

#endif
