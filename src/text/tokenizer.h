/* The tokenizer: ranks, special tokens and character classes of a checkpoint. Immutable, counted, shared by threads. */
#ifndef PRG_TEXT_TOKENIZER_H
#define PRG_TEXT_TOKENIZER_H

#include <stdatomic.h>

#include "perigee/text.h"
#include "text/bpe.h"
#include "text/char_class.h"
#include "text/chat_format.h"
#include "text/specials.h"

enum { PRG_TOKENIZER_ENDS = 4 };

/* What a layer above works out from a tokenizer once and leaves with it. */
typedef struct prg_derived {
    void (*drop)(struct prg_derived *derived);
} prg_derived;

struct perigee_tokenizer {
    prg_allocator *allocator; /* held */
    atomic_size_t references;
    char *family;
    const prg_chat_format *format; /* its own */
    prg_ranks ranks;
    prg_specials specials;
    uint8_t *classes;                    /* [PRG_CODE_POINTS] */
    int32_t end_ids[PRG_TOKENIZER_ENDS]; /* of the chat format */
    size_t end_count;
    _Atomic(prg_derived *) derived; /* NULL, or set once by compare and swap; dropped with the tokenizer */
};

/* The tokenizer of a checkpoint folder: tiktoken.model, and tokenizer_config.json where there is one. `family` is the
 * model_type ("kimi_k2", "kimi_k25", "kimi_k3", "kimi_linear", "deepseek_v3"); `vocabulary` the rows of the model's
 * head, past which no special token is made, 0 if not known. Without tiktoken.model: success and *out is NULL. Ranks
 * that do not fit the vocabulary: PERIGEE_E_MISMATCH. References: 1. */
perigee_status prg_tokenizer_open(prg_allocator *allocator, const char *folder, const char *family, int64_t vocabulary,
                                  perigee_tokenizer **out, perigee_error **err);
/* The same from memory; `config` NULL: no tokenizer_config.json. */
perigee_status prg_tokenizer_make(prg_allocator *allocator, const char *family, int64_t vocabulary, const char *ranks,
                                  size_t ranks_length, const char *config, size_t config_length,
                                  perigee_tokenizer **out, perigee_error **err);
/* As prg_tokenizer_open, with family and vocabulary from the folder's config.json; PERIGEE_E_NOT_FOUND without
 * tiktoken.model. */
perigee_status prg_tokenizer_open_alone(prg_allocator *allocator, const char *folder, perigee_tokenizer **out,
                                        perigee_error **err);
perigee_tokenizer *prg_tokenizer_hold(const perigee_tokenizer *tokenizer);
void prg_tokenizer_drop(perigee_tokenizer *tokenizer);

/* Ids there are: ranks and special tokens. */
static inline int32_t prg_tokenizer_vocabulary(const perigee_tokenizer *tokenizer) {
    return tokenizer->ranks.count + tokenizer->specials.count;
}
/* Bytes of an id, which must be below prg_tokenizer_vocabulary(); of a special token, its name. */
const unsigned char *prg_tokenizer_bytes(const perigee_tokenizer *tokenizer, int32_t id, size_t *length);
static inline bool prg_tokenizer_is_special(const perigee_tokenizer *tokenizer, int32_t id) {
    return id >= tokenizer->ranks.count;
}
/* Id of a special token by its name, or -1. */
int32_t prg_tokenizer_special(const perigee_tokenizer *tokenizer, const char *name);

/* Append the ids of a text. `markup`: names of special tokens give their ids; else everything is text. `flags` as
 * perigee_encode_text(). On failure `out` holds what it will. */
perigee_status prg_tokenizer_encode(const perigee_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags,
                                    bool markup, prg_ids *out, perigee_error **err);

#endif
