/* Ids to whole characters. */
#ifndef PRG_TEXT_DECODER_H
#define PRG_TEXT_DECODER_H

#include "text/tokenizer.h"

struct perigee_decoder {
    perigee_tokenizer *tokenizer; /* held */
    uint32_t flags;
    prg_utf8_stream stream;
    prg_buffer text; /* of the last push */
};

perigee_status prg_decoder_new(const perigee_tokenizer *tokenizer, uint32_t flags, perigee_decoder **out,
                               perigee_error **err);
/* `id` is one of the tokenizer's. */
perigee_status prg_decoder_push(perigee_decoder *decoder, int32_t id, const char **text, size_t *length,
                                perigee_error **err);
perigee_status prg_decoder_flush(perigee_decoder *decoder, const char **text, size_t *length, perigee_error **err);
void prg_decoder_free(perigee_decoder *decoder);

#endif
