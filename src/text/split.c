#include "text/split.h"

enum { PAST_END = 256, NOT_OTHER = PRG_C_SPACE | PRG_C_LETTER | PRG_C_NUMBER | PAST_END };

typedef struct view {
    const uint8_t *classes;
    const unsigned char *text;
    size_t length;
} view;

static inline unsigned look(const view *v, size_t at, size_t *next) {
    if (at >= v->length) {
        *next = at;
        return PAST_END;
    }
    size_t length;
    unsigned class = prg_char_class(v->classes, v->text + at, &length);
    *next = at + length;
    return class;
}

static inline size_t run_of(const view *v, size_t at, unsigned classes) {
    size_t next;
    while (look(v, at, &next) & classes) {
        at = next;
    }
    return at;
}

/* UPPER* LOWER+ from `at`: its end, or `at` if it does not match. */
static inline size_t lower_word(const view *v, size_t at) {
    size_t next, shared = at;
    unsigned class;
    while ((class = look(v, at, &next)) & PRG_C_UPPER) {
        at = next;
        if (class & PRG_C_LOWER) {
            shared = at; /* where a matcher would go back to: LOWER+ could be this one character */
        }
    }
    return class & PRG_C_LOWER ? run_of(v, next, PRG_C_LOWER) : shared;
}

/* 's 't 're 've 'm 'll 'd in any case, at `at` or not at all. U+017F folds to s. */
static inline size_t contraction(const view *v, size_t at) {
    const unsigned char *t = v->text + at;
    size_t left = v->length - at;
    if (left < 2 || t[0] != '\'') {
        return at;
    }
    unsigned char a = t[1] | 0x20;
    if (t[1] < 0x80 && (a == 's' || a == 't' || a == 'm' || a == 'd')) {
        return at + 2;
    }
    if (left < 3) {
        return at;
    }
    if (t[1] == 0xC5 && t[2] == 0xBF) {
        return at + 3;
    }
    unsigned char b = t[2] | 0x20;
    bool two = t[1] < 0x80 && t[2] < 0x80 && (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'));
    return two ? at + 3 : at;
}

/* Words: alternatives 2 and 3, each with and then without the optional first character. */
static inline size_t word(const view *v, size_t at, unsigned class, size_t next) {
    bool lead = !(class & (PRG_C_NEWLINE | PRG_C_LETTER | PRG_C_NUMBER));
    size_t end;
    if (lead && (end = lower_word(v, next)) > next) {
        return contraction(v, end);
    }
    if ((end = lower_word(v, at)) > at) {
        return contraction(v, end);
    }
    /* LOWER* after UPPER+ is empty here, else the above would have matched */
    if (lead && (end = run_of(v, next, PRG_C_UPPER)) > next) {
        return contraction(v, end);
    }
    if ((end = run_of(v, at, PRG_C_UPPER)) > at) {
        return contraction(v, end);
    }
    return at;
}

/* White space: alternatives 6, 7 and 8. */
static size_t space(const view *v, size_t at) {
    size_t next, last = at, newline = at, end = at;
    unsigned class;
    while ((class = look(v, end, &next)) & PRG_C_SPACE) {
        last = end;
        end = next;
        if (class & PRG_C_NEWLINE) {
            newline = end;
        }
    }
    if (newline > at) {
        return newline;
    }
    return class == PAST_END || last == at ? end : last;
}

size_t prg_split_next(const uint8_t *classes, const unsigned char *text, size_t length, size_t at) {
    view v = {classes, text, length};
    size_t next, end;
    unsigned class = look(&v, at, &next);
    if (class & PRG_C_HAN) {
        return run_of(&v, next, PRG_C_HAN);
    }
    if ((end = word(&v, at, class, next)) > at) {
        return end;
    }
    if (class & PRG_C_NUMBER) {
        for (int i = 1; i < 3 && look(&v, next, &end) & PRG_C_NUMBER; i++) {
            next = end;
        }
        return next;
    }
    size_t first = text[at] == ' ' ? next : at;
    if (!(look(&v, first, &end) & NOT_OTHER)) {
        do {
            first = end;
        } while (!(look(&v, first, &end) & NOT_OTHER));
        return run_of(&v, first, PRG_C_NEWLINE);
    }
    if (class & PRG_C_SPACE) {
        return space(&v, at);
    }
    return next; /* a Han letter or number never comes here, and every other class was taken */
}

size_t prg_cut_next(prg_cut *cut, const uint8_t *classes, const unsigned char *text, size_t length, size_t at) {
    while (at < length) {
        if (cut->slice == PRG_CUT_SLICE) {
            *cut = (prg_cut){0, 0, 0};
            return at;
        }
        size_t bytes;
        unsigned class = prg_char_class(classes, text + at, &bytes) & PRG_C_STRSPACE;
        if (cut->slice == 0 || class != cut->run_class) {
            cut->run_class = class;
            cut->run = 1;
        } else if (++cut->run > PRG_CUT_RUN) {
            cut->run = 0;
            return at;
        }
        cut->slice++;
        at += bytes;
    }
    return at;
}
