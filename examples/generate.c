/* The smallest complete program: load a model, take in a prompt of ids, generate ten more.
 *   cc generate.c $(pkg-config --cflags --libs perigee) && ./a.out MODEL 1 2 3 */
#include <perigee/perigee.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROMPT = 64, GENERATE = 10 };

static int32_t most_likely(const float *logits, int64_t vocabulary) {
    int64_t best = 0;
    for (int64_t i = 1; i < vocabulary; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

int main(int argc, char **argv) {
    perigee_error *error = NULL;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    perigee_session *session = NULL;
    perigee_model_info info = {.struct_size = sizeof info};
    int32_t ids[PROMPT];
    size_t count = 0;
    while (count < PROMPT && count + 2 < (size_t)argc) {
        ids[count] = (int32_t)strtol(argv[count + 2], NULL, 10);
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "usage: generate MODEL ID…\n");
        return 2;
    }
    const float *logits = NULL;
    if (perigee_context_new(NULL, NULL, NULL, NULL, &context, &error) != PERIGEE_OK ||
        perigee_model_load(context, argv[1], SIZE_MAX, NULL, NULL, NULL, NULL, &model, &error) != PERIGEE_OK ||
        perigee_model_get_info(model, &info, &error) != PERIGEE_OK ||
        perigee_session_new(model, NULL, &session, &error) != PERIGEE_OK ||
        perigee_decode_step(session, ids, count, PERIGEE_LOGITS_LAST, &logits, NULL, NULL, &error) != PERIGEE_OK) {
        goto done;
    }
    for (int i = 0; i < GENERATE; i++) {
        int32_t id = most_likely(logits, info.vocabulary);
        printf("%s%d", i ? "," : "", (int)id);
        if (perigee_decode_step(session, &id, 1, PERIGEE_LOGITS_LAST, &logits, NULL, NULL, &error) != PERIGEE_OK) {
            break;
        }
    }
    printf("\n");
done:
    if (error) {
        fprintf(stderr, "%s: %s\n", perigee_status_name(perigee_error_status(error)), perigee_error_message(error));
    }
    int status = error ? 1 : 0;
    perigee_error_free(error);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    return status;
}
