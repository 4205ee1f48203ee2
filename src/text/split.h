/* Splitting text into the pieces that are merged on their own, and cutting long text beforehand. */
#ifndef PRG_TEXT_SPLIT_H
#define PRG_TEXT_SPLIT_H

#include "text/char_class.h"

/* End of the piece that begins at `at` < `length`. The eight alternatives of the published pattern in order, leftmost
 * first; no recursion, and all pieces together take time linear in the text. */
size_t prg_split_next(const uint8_t *classes, const unsigned char *text, size_t length, size_t at);

enum { PRG_CUT_SLICE = 400000, PRG_CUT_RUN = 25000 };

/* Where the published tokenizers cut before they split: after every PRG_CUT_SLICE characters, and inside such a slice
 * where a run of white space, or of anything else, gets longer than PRG_CUT_RUN. Starts as zeros. */
typedef struct prg_cut {
    size_t slice; /* characters of the present slice behind us */
    size_t run;
    unsigned run_class;
} prg_cut;

/* End of the part that begins at `at` < `length`. */
size_t prg_cut_next(prg_cut *cut, const uint8_t *classes, const unsigned char *text, size_t length, size_t at);

#endif
