/* A chat with one question: load, render, stream the reply.
 *   cc chat.c $(pkg-config --cflags --libs perigee) && ./a.out MODEL QUESTION [TOKENS] */
#include <perigee/perigee.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [{"role":"user","content":"…"}], to be freed. */
static char *message(const char *question) {
    char *json = malloc(strlen(question) * 6 + 64), *at = json;
    if (!json) {
        return NULL;
    }
    at += sprintf(at, "[{\"role\":\"user\",\"content\":\"");
    for (const char *c = question; *c; c++) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') {
            at += sprintf(at, "\\u%04x", (unsigned char)*c);
        } else {
            *at++ = *c;
        }
    }
    strcpy(at, "\"}]");
    return json;
}

static perigee_status show(perigee_parser *parser, int32_t id, perigee_error **error) {
    size_t count = 0;
    perigee_status status = perigee_parser_push(parser, id, &count, error);
    for (size_t i = 0; status == PERIGEE_OK && i < count; i++) {
        perigee_delta delta = {.struct_size = sizeof delta};
        status = perigee_parser_get_delta(parser, i, &delta, error);
        if (status == PERIGEE_OK && (delta.kind == PERIGEE_DELTA_THINKING || delta.kind == PERIGEE_DELTA_CONTENT)) {
            fwrite(delta.text, 1, delta.length, stdout);
            fflush(stdout);
        }
    }
    return status;
}

static perigee_status reply(perigee_context *context, perigee_model *model, const char *question, long tokens,
                            perigee_error **error) {
    const perigee_tokenizer *tokenizer = perigee_model_tokenizer(model);
    char *messages = message(question);
    perigee_chat *chat = NULL;
    perigee_parser *parser = NULL;
    perigee_session *session = NULL;
    perigee_generation_options *options = NULL;
    perigee_generation *generation = NULL;
    perigee_generated step = {.struct_size = sizeof step, .finish = PERIGEE_FINISH_NONE};
    size_t count = 0;
    perigee_status status = PERIGEE_E_MEMORY;
    if (!tokenizer) {
        fprintf(stderr, "the model has no tokenizer\n");
    }
    if (!tokenizer || !messages ||
        (status = perigee_chat_render(tokenizer, messages, SIZE_MAX, NULL, 0, NULL, &chat, error)) ||
        (status = perigee_parser_new(tokenizer, chat, &parser, error)) ||
        (status = perigee_session_new(model, NULL, &session, error)) ||
        (status = perigee_generation_options_new(context, &options, error)) ||
        (status = perigee_generation_options_set_max_tokens(options, tokens, error))) {
        goto done;
    }
    const int32_t *ids = perigee_chat_ids(chat, &count);
    status = perigee_generation_new(session, ids, count, options, &generation, error);
    while (status == PERIGEE_OK && step.finish == PERIGEE_FINISH_NONE) {
        status = perigee_generation_next(generation, &step, error);
        if (status == PERIGEE_OK && step.id >= 0) {
            status = show(parser, step.id, error);
        }
    }
    printf("\n");
done:
    perigee_generation_free(generation);
    perigee_generation_options_free(options);
    perigee_session_free(session);
    perigee_parser_free(parser);
    perigee_chat_free(chat);
    free(messages);
    return status;
}

int main(int argc, char **argv) {
    perigee_error *error = NULL;
    perigee_context *context = NULL;
    perigee_model *model = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: chat MODEL QUESTION [TOKENS]\n");
        return 2;
    }
    perigee_status status = perigee_context_new(NULL, NULL, NULL, NULL, &context, &error);
    if (status == PERIGEE_OK) {
        status = perigee_model_load(context, argv[1], SIZE_MAX, NULL, NULL, NULL, NULL, &model, &error);
    }
    if (status == PERIGEE_OK) {
        status = reply(context, model, argv[2], argc > 3 ? strtol(argv[3], NULL, 10) : 256, &error);
    }
    if (error) {
        fprintf(stderr, "%s: %s\n", perigee_status_name(status), perigee_error_message(error));
    }
    perigee_error_free(error);
    perigee_model_free(model);
    perigee_context_free(context);
    return status == PERIGEE_OK ? 0 : 1;
}
