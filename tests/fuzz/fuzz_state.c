/* Arbitrary bytes as a saved state of a small model, or, where they don't begin as one, as a saved sampler: refused, or
 * loaded whole; never a crash, never a session in between. Damage that a checksum would catch is let through by mending
 * them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "generate/sampler.h"
#include "model/model.h"
#include "perigee/perigee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static perigee_context *context;
static perigee_model *model;

static void open_model(void) {
    if (perigee_context_new(NULL, NULL, NULL, NULL, &context, NULL) != PERIGEE_OK ||
        perigee_model_load(context, PRG_FIXTURES "/golden/kimi_linear", SIZE_MAX, NULL, NULL, NULL, NULL, &model,
                           NULL) != PERIGEE_OK) {
        fprintf(stderr, "no model to load states into\n");
        exit(1);
    }
}

static void require(int holds) {
    if (!holds) {
        abort();
    }
}

/* What was loaded goes on: a sample from a row of logits, and a step. */
static void use(perigee_session *session, perigee_sampler *sampler) {
    static const int32_t token = 1;
    const float *logits = NULL;
    int32_t id = -1;
    const perigee_status st = perigee_decode_step(session, &token, 1, PERIGEE_LOGITS_LAST, &logits, NULL, NULL, NULL);
    require(st == PERIGEE_OK || st == PERIGEE_E_NOT_FINITE || st == PERIGEE_E_CONTEXT_FULL);
    const size_t vocabulary = perigee_session_vocabulary(session);
    if (st == PERIGEE_OK && perigee_sampler_sample(sampler, logits, vocabulary, &id, NULL) == PERIGEE_OK) {
        require(id >= 0 && (size_t)id < vocabulary);
    }
}

static void try_load(const uint8_t *data, size_t size, int with_sampler) {
    perigee_session *session = NULL;
    perigee_sampler *sampler = NULL;
    if (perigee_session_new(model, NULL, &session, NULL) != PERIGEE_OK ||
        perigee_sampler_new(context, &sampler, NULL) != PERIGEE_OK) {
        perigee_session_free(session);
        return;
    }
    perigee_error *err = NULL;
    const perigee_status st = perigee_state_load(session, with_sampler ? sampler : NULL, data, size, &err);
    require(st == PERIGEE_OK || perigee_session_position(session) == 0);
    require((st == PERIGEE_OK) == (err == NULL));
    if (st == PERIGEE_OK) {
        use(session, sampler);
    }
    perigee_error_free(err);
    perigee_sampler_free(sampler);
    perigee_session_free(session);
}

/* What is taken is saved as the same bytes again, and it samples. */
static void try_sampler(const uint8_t *data, size_t size) {
    perigee_sampler *s = NULL;
    if (prg_sampler_load(context->allocator, data, size, &s, NULL) != PERIGEE_OK) {
        return;
    }
    require(prg_sampler_save_size(s) == size);
    uint8_t *again = malloc(size);
    require(again != NULL);
    prg_sampler_save(s, again);
    require(memcmp(again, data, size) == 0);
    free(again);
    float logits[300];
    for (int i = 0; i < 300; i++) {
        logits[i] = (float)(i * 7919 % 300) / 30 - 5;
    }
    for (int i = 0; i < 3; i++) {
        int32_t id = -1;
        const perigee_status st = perigee_sampler_sample(s, logits, 300, &id, NULL);
        require(st == PERIGEE_E_NOT_FINITE || (st == PERIGEE_OK && id >= 0 && id < 300));
        perigee_sampler_accept(s, &id, st == PERIGEE_OK, NULL);
    }
    perigee_sampler_free(s);
}

/* Checksums and fingerprint as they have to be, so that what lies behind them is reached. */
static void mend(uint8_t *data, size_t size, const uint8_t *fingerprint) {
    memcpy(data + 24, fingerprint, 16);
    const uint64_t head = XXH3_64bits(data, 56);
    memcpy(data + 56, &head, sizeof head);
    for (size_t at = 64; size - at >= 24;) {
        uint64_t length;
        memcpy(&length, data + at + 8, sizeof length);
        if (length > size - at - 24) {
            return;
        }
        const uint64_t checksum = XXH3_64bits(data + at, 16 + (size_t)length);
        memcpy(data + at + 16 + length, &checksum, sizeof checksum);
        at += 24 + (size_t)length;
    }
}

static uint8_t fingerprint[16];

static void learn_fingerprint(void) {
    perigee_session *session = NULL;
    size_t size = 0;
    require(perigee_session_new(model, NULL, &session, NULL) == PERIGEE_OK);
    require(perigee_state_size(session, NULL, &size, NULL) == PERIGEE_OK);
    uint8_t *bytes = malloc(size);
    require(bytes && perigee_state_save(session, NULL, bytes, size, NULL, NULL) == PERIGEE_OK);
    memcpy(fingerprint, bytes + 24, sizeof fingerprint);
    free(bytes);
    perigee_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!model) {
        open_model();
        learn_fingerprint();
    }
    if (size > 0 && data[0] != 'P') {
        try_sampler(data, size);
        return 0;
    }
    try_load(data, size, 0);
    if (size >= 64) {
        uint8_t *copy = malloc(size);
        require(copy != NULL);
        memcpy(copy, data, size);
        mend(copy, size, fingerprint);
        try_load(copy, size, data[size - 1] & 1);
        free(copy);
    }
    return 0;
}
