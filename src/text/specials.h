/* Names of the special tokens: the slots behind the ranks. Immutable after load. */
#ifndef PRG_TEXT_SPECIALS_H
#define PRG_TEXT_SPECIALS_H

#include "base/json.h"

enum { PRG_SPECIAL_SLOTS = 256 };

typedef struct prg_special {
    const char *name; /* ends in NUL, in the arena */
    size_t length;
    bool reserved; /* no name of its own */
} prg_special;

typedef struct prg_specials {
    prg_arena arena;
    int32_t base; /* id of slot 0: the number of ranks */
    int32_t count;
    prg_special slots[PRG_SPECIAL_SLOTS];
    uint8_t longest_first[PRG_SPECIAL_SLOTS]; /* slots by falling length of name */
    bool first[256], second[256];             /* bytes that a name has as its first and second */
} prg_specials;

/* `config` is the text of tokenizer_config.json, or NULL: then the names of the family. `count` slots, 0 to 256.
 * An added token among the ranks, or one that is not well-formed: PERIGEE_E_FORMAT; those past the slots are left out.
 * Free with prg_specials_free, after a failure too. */
perigee_status prg_specials_load(prg_specials *specials, prg_allocator *allocator, const char *family, int32_t base,
                                 int32_t count, const char *config, size_t length, const char *file,
                                 perigee_error **err);
void prg_specials_free(prg_specials *specials);

/* Id by name, or -1. */
int32_t prg_specials_find(const prg_specials *specials, const char *name, size_t length);
/* Id of the special token, the longest of several, whose name `text` starts with, or -1. */
int32_t prg_specials_match(const prg_specials *specials, const unsigned char *text, size_t length, size_t *size);

#endif
