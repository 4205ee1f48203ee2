/* Regular expressions: a documented subset without anything that is not regular. */
#ifndef PRG_GENERATE_REGEX_H
#define PRG_GENERATE_REGEX_H

#include "generate/nfa.h"

/* Whole: the pattern describes all of the text. Search: it occurs somewhere in it, as JSON Schema has it; ^ and $ tie
 * it to the ends. */
typedef enum prg_regex_mode { PRG_REGEX_WHOLE, PRG_REGEX_SEARCH } prg_regex_mode;

/* States from `from` to `to` that take what matches. PERIGEE_E_SCHEMA with the offset in the pattern. */
perigee_status prg_regex_compile(prg_nfa *nfa, const char *pattern, size_t length, prg_regex_mode mode,
                                 prg_nfa_spelling spelling, uint32_t from, uint32_t to, perigee_error **err);

#endif
