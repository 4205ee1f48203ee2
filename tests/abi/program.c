/* A program as one of 0.1 would be: built against the headers of that version, run with the newest library. It goes
 * through structs, options, callbacks and enumerations, and leaves with 0 if all is as it was: program MODEL */
#include <perigee/perigee.h>
#include <stdio.h>
#include <string.h>

static int on_progress(int64_t done, int64_t total, void *user) {
    *(int *)user += done <= total;
    return 0;
}

static void on_log(int level, const char *message, void *user) {
    *(int *)user += level >= 1 && message != NULL;
}

static int on_step(const perigee_generated *step, void *user) {
    int32_t **ids = user;
    if (step->id >= 0) {
        *(*ids)++ = step->id;
    }
    return 0;
}

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        perigee_status status_ = (call);                                                                               \
        if (status_ != PERIGEE_OK) {                                                                                   \
            fprintf(stderr, "%s: %s: %s\n", #call, perigee_status_name(status_), perigee_error_message(err));          \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    perigee_error *err = NULL;
    perigee_options *options;
    perigee_context *context;
    perigee_model *model;
    perigee_session *session, *fork;
    perigee_generation_options *how;
    perigee_finish finish;
    const int32_t prompt[] = {1, 2, 3};
    int32_t generated[4], *next = generated, id = 0;
    const float *logits;
    size_t rows = 0, i;
    int calls = 0, lines = 0;
    perigee_log log = {sizeof log, on_log, NULL, NULL};
    perigee_model_info info = {.struct_size = sizeof info};
    perigee_plan plan = {.struct_size = sizeof plan};
    perigee_statistics statistics = {.struct_size = sizeof statistics};
    perigee_kernel_info kernel = {.struct_size = sizeof kernel};
    perigee_batch_item item = {.struct_size = sizeof item, .tokens = prompt, .n = 3, .which = PERIGEE_LOGITS_LAST};
    if (argc < 2 || perigee_abi_version() != PERIGEE_ABI_VERSION) {
        return 2;
    }
    log.user = &lines;
    OK(perigee_options_new(&options, &err));
    OK(perigee_options_set_int(options, PERIGEE_OPTION_THREADS, 1, &err));
    OK(perigee_context_new(options, NULL, &log, NULL, &context, &err));
    OK(perigee_context_kernel(context, 0, &kernel, &err));
    OK(perigee_model_plan(context, argv[1], SIZE_MAX, NULL, &plan, &err));
    OK(perigee_model_load(context, argv[1], SIZE_MAX, NULL, on_progress, &calls, NULL, &model, &err));
    OK(perigee_model_get_info(model, &info, &err));
    OK(perigee_session_new(model, NULL, &session, &err));
    OK(perigee_session_fork(session, &fork, &err));
    OK(perigee_generation_options_new(context, &how, &err));
    OK(perigee_generation_options_set_max_tokens(how, 4, &err));
    OK(perigee_generation_options_set_default_stops(how, 0, &err));
    OK(perigee_generate(session, prompt, 3, how, on_step, &next, &finish, &err));
    item.session = fork;
    OK(perigee_decode_batch(&item, 1, NULL, &err));
    for (i = 0; i < 4; i++) { /* the same by steps */
        OK(perigee_argmax(i ? logits : item.logits, (size_t)info.vocabulary, &id, &err));
        if (id != generated[i]) {
            return 3;
        }
        OK(perigee_decode_step(fork, &id, 1, PERIGEE_LOGITS_LAST, &logits, &rows, NULL, &err));
    }
    OK(perigee_session_statistics(fork, &statistics, &err));
    if (finish != PERIGEE_FINISH_LENGTH || rows != 1 || statistics.tokens != 7 || calls == 0 || !plan.fits ||
        plan.context != info.context || strlen(kernel.op) == 0) {
        return 4;
    }
    id = (int32_t)info.vocabulary;
    if (perigee_decode_step(fork, &id, 1, PERIGEE_LOGITS_LAST, &logits, &rows, NULL, &err) != PERIGEE_E_TOKEN) {
        return 5;
    }
    perigee_error_free(err);
    perigee_generation_options_free(how);
    perigee_session_free(fork);
    perigee_session_free(session);
    perigee_model_free(model);
    perigee_context_free(context);
    perigee_options_free(options);
    return 0;
}
