#include "text/decoder.h"

#include "base/error.h"

perigee_status prg_decoder_new(const perigee_tokenizer *tokenizer, uint32_t flags, perigee_decoder **out,
                               perigee_error **err) {
    perigee_decoder *d = prg_calloc(tokenizer->allocator, 1, sizeof *d);
    if (!d) {
        return prg_fail_memory(err);
    }
    d->tokenizer = prg_tokenizer_hold(tokenizer);
    d->flags = flags;
    prg_buffer_init(&d->text, tokenizer->allocator);
    *out = d;
    return PERIGEE_OK;
}

/* Hand out the text, or undo: a lost write must not lose characters for good. */
static perigee_status hand_out(perigee_decoder *d, prg_utf8_stream before, const char **text, size_t *length,
                               perigee_error **err) {
    const char *whole = prg_buffer_text(&d->text);
    if (!whole) {
        d->stream = before;
        prg_buffer_free(&d->text);
        return prg_fail_memory(err);
    }
    *text = whole;
    *length = d->text.length;
    return PERIGEE_OK;
}

perigee_status prg_decoder_push(perigee_decoder *decoder, int32_t id, const char **text, size_t *length,
                                perigee_error **err) {
    prg_utf8_stream before = decoder->stream;
    decoder->text.length = 0;
    if (!prg_tokenizer_is_special(decoder->tokenizer, id) || !(decoder->flags & PERIGEE_DECODE_SKIP_SPECIAL)) {
        size_t size;
        const unsigned char *bytes = prg_tokenizer_bytes(decoder->tokenizer, id, &size);
        prg_utf8_stream_feed(&decoder->stream, bytes, size, &decoder->text);
    }
    return hand_out(decoder, before, text, length, err);
}

perigee_status prg_decoder_flush(perigee_decoder *decoder, const char **text, size_t *length, perigee_error **err) {
    prg_utf8_stream before = decoder->stream;
    decoder->text.length = 0;
    prg_utf8_stream_end(&decoder->stream, &decoder->text);
    return hand_out(decoder, before, text, length, err);
}

void prg_decoder_free(perigee_decoder *decoder) {
    if (decoder) {
        prg_allocator *allocator = decoder->tokenizer->allocator;
        perigee_tokenizer *tokenizer = decoder->tokenizer;
        prg_buffer_free(&decoder->text);
        prg_free(allocator, decoder);
        prg_tokenizer_drop(tokenizer);
    }
}
