/* Arbitrary bytes as a saved state of a small model: refused, or loaded whole; never a crash, never a session in
 * between. Damage that a checksum would catch is let through by mending the header's first. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "perigee/perigee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static perigee_model *model;

static void open_model(void) {
    perigee_context *context = NULL;
    if (perigee_context_new(NULL, NULL, NULL, NULL, &context, NULL) != PERIGEE_OK ||
        perigee_model_load(context, PRG_FIXTURES "/golden/kimi_linear", SIZE_MAX, NULL, NULL, NULL, NULL, &model,
                           NULL) != PERIGEE_OK) {
        fprintf(stderr, "no model to load states into\n");
        exit(1);
    }
    perigee_context_free(context);
}

static void try_load(const uint8_t *data, size_t size) {
    perigee_session *session = NULL;
    if (perigee_session_new(model, NULL, &session, NULL) != PERIGEE_OK) {
        return;
    }
    perigee_error *err = NULL;
    const perigee_status st = perigee_state_load(session, NULL, data, size, &err);
    if (st != PERIGEE_OK && perigee_session_position(session) != 0) {
        abort();
    }
    perigee_error_free(err);
    perigee_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!model) {
        open_model();
    }
    try_load(data, size);
    if (size >= 64) {
        uint8_t *copy = malloc(size);
        memcpy(copy, data, size);
        const uint64_t checksum = XXH3_64bits(copy, 56);
        memcpy(copy + 56, &checksum, sizeof checksum);
        try_load(copy, size);
        free(copy);
    }
    return 0;
}
