/* Exported calls on tokenizers and decoders. */
#include <string.h>

#include "base/error.h"
#include "model/model.h"
#include "text/decoder.h"

static size_t length_of(const char *text, size_t length) {
    return length == SIZE_MAX ? (text ? strlen(text) : 0) : length;
}

const perigee_tokenizer *perigee_model_tokenizer(const perigee_model *model) {
    return model ? model->tokenizer : NULL;
}

perigee_status perigee_tokenizer_open(perigee_context *context, const char *path, size_t length,
                                      perigee_tokenizer **out, perigee_error **err) {
    prg_clear(err);
    if (!context || !path || !out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "context, path or out is NULL");
    }
    length = length_of(path, length);
    if (memchr(path, 0, length)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "path holds a NUL byte");
    }
    char *folder = prg_strndup(context->allocator, path, length);
    if (!folder) {
        return prg_fail_memory(err);
    }
    perigee_tokenizer *made = NULL;
    perigee_status st = prg_tokenizer_open_alone(context->allocator, folder, &made, err);
    prg_free(context->allocator, folder);
    if (st == PERIGEE_OK) {
        *out = made;
    }
    return st;
}

void perigee_tokenizer_free(perigee_tokenizer *tokenizer) {
    prg_tokenizer_drop(tokenizer);
}

perigee_status perigee_tokenizer_get_info(const perigee_tokenizer *tokenizer, perigee_tokenizer_info *out,
                                          perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !out || out->struct_size < sizeof *out) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer or out is NULL, or struct_size is too small");
    }
    *out = (perigee_tokenizer_info){out->struct_size,
                                    tokenizer->family,
                                    tokenizer->format->name,
                                    tokenizer->ranks.count,
                                    prg_tokenizer_vocabulary(tokenizer),
                                    tokenizer->end_ids,
                                    tokenizer->end_count};
    return PERIGEE_OK;
}

static perigee_status encode(const perigee_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags,
                             bool markup, int32_t *ids, size_t capacity, size_t *count, perigee_error **err) {
    prg_clear(err);
    if (count) {
        *count = 0;
    }
    length = length_of(text, length);
    if (!tokenizer || !count || (!text && length > 0) || (!ids && capacity > 0)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, text, ids or count is NULL");
    }
    if (flags & ~PERIGEE_ENCODE_REPLACE) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "unknown flag");
    }
    prg_ids out = {ids, capacity, 0};
    perigee_status st = prg_tokenizer_encode(tokenizer, text, length, flags, markup, &out, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    *count = out.count;
    if (out.count > capacity && capacity > 0) {
        return prg_fail(err, PERIGEE_E_BUFFER, "%zu ids, room for %zu", out.count, capacity);
    }
    return PERIGEE_OK;
}

perigee_status perigee_encode_text(const perigee_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags,
                                   int32_t *ids, size_t capacity, size_t *count, perigee_error **err) {
    return encode(tokenizer, text, length, flags, false, ids, capacity, count, err);
}

perigee_status perigee_encode_markup(const perigee_tokenizer *tokenizer, const char *text, size_t length,
                                     uint32_t flags, int32_t *ids, size_t capacity, size_t *count,
                                     perigee_error **err) {
    return encode(tokenizer, text, length, flags, true, ids, capacity, count, err);
}

static perigee_status check_id(const perigee_tokenizer *tokenizer, int32_t id, perigee_error **err) {
    if (id < 0 || id >= prg_tokenizer_vocabulary(tokenizer)) {
        return prg_fail(err, PERIGEE_E_TOKEN, "token %ld is outside the vocabulary of %ld", (long)id,
                        (long)prg_tokenizer_vocabulary(tokenizer));
    }
    return PERIGEE_OK;
}

perigee_status perigee_decode(const perigee_tokenizer *tokenizer, const int32_t *ids, size_t count, uint32_t flags,
                              char *bytes, size_t capacity, size_t *length, perigee_error **err) {
    prg_clear(err);
    if (length) {
        *length = 0;
    }
    if (!tokenizer || !length || (!ids && count > 0) || (!bytes && capacity > 0)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, ids, bytes or length is NULL");
    }
    if (flags & ~PERIGEE_DECODE_SKIP_SPECIAL) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "unknown flag");
    }
    for (size_t i = 0; i < count; i++) {
        perigee_status st = check_id(tokenizer, ids[i], err);
        if (st != PERIGEE_OK) {
            return st;
        }
    }
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if ((flags & PERIGEE_DECODE_SKIP_SPECIAL) && prg_tokenizer_is_special(tokenizer, ids[i])) {
            continue;
        }
        size_t size;
        const unsigned char *token = prg_tokenizer_bytes(tokenizer, ids[i], &size);
        if (total < capacity) {
            memcpy(bytes + total, token, size < capacity - total ? size : capacity - total);
        }
        total += size;
    }
    *length = total;
    if (total > capacity && capacity > 0) {
        return prg_fail(err, PERIGEE_E_BUFFER, "%zu bytes, room for %zu", total, capacity);
    }
    return PERIGEE_OK;
}

perigee_status perigee_token_bytes(const perigee_tokenizer *tokenizer, int32_t id, const char **bytes, size_t *length,
                                   int32_t *special, perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !bytes || !length) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, bytes or length is NULL");
    }
    perigee_status st = check_id(tokenizer, id, err);
    if (st == PERIGEE_OK) {
        *bytes = (const char *)prg_tokenizer_bytes(tokenizer, id, length);
        if (special) {
            *special = prg_tokenizer_is_special(tokenizer, id);
        }
    }
    return st;
}

perigee_status perigee_token_id(const perigee_tokenizer *tokenizer, const char *name, size_t length, int32_t *id,
                                perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !name || !id) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer, name or id is NULL");
    }
    int32_t found = prg_specials_find(&tokenizer->specials, name, length_of(name, length));
    if (found < 0) {
        return prg_fail(err, PERIGEE_E_NOT_FOUND, "no special token of this name");
    }
    *id = found;
    return PERIGEE_OK;
}

perigee_status perigee_decoder_new(const perigee_tokenizer *tokenizer, uint32_t flags, perigee_decoder **out,
                                   perigee_error **err) {
    prg_clear(err);
    if (!tokenizer || !out || (flags & ~PERIGEE_DECODE_SKIP_SPECIAL)) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "tokenizer or out is NULL, or an unknown flag");
    }
    return prg_decoder_new(tokenizer, flags, out, err);
}

perigee_status perigee_decoder_push(perigee_decoder *decoder, int32_t id, const char **text, size_t *length,
                                    perigee_error **err) {
    prg_clear(err);
    if (!decoder || !text || !length) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "decoder, text or length is NULL");
    }
    perigee_status st = check_id(decoder->tokenizer, id, err);
    return st == PERIGEE_OK ? prg_decoder_push(decoder, id, text, length, err) : st;
}

perigee_status perigee_decoder_flush(perigee_decoder *decoder, const char **text, size_t *length, perigee_error **err) {
    prg_clear(err);
    if (!decoder || !text || !length) {
        return prg_fail(err, PERIGEE_E_ARGUMENT, "decoder, text or length is NULL");
    }
    return prg_decoder_flush(decoder, text, length, err);
}

void perigee_decoder_free(perigee_decoder *decoder) {
    prg_decoder_free(decoder);
}
