/* perigee eval: bits per byte of a text, and how far two models or two ways of computing one are apart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_report.h"
#include "text_io.h"
#include "verbs.h"

static const cli_option options[] = {
    {"window", CLI_INT, "N", 1, INT32_MAX, "512",
     "tokens of a window, each predicted from those before it in the window"},
    {"stream", CLI_FLAG, NULL, 0, 0, NULL, "the whole text is one window"},
    {"no-bos", CLI_FLAG, NULL, 0, 0, NULL,
     "no first token of the model in front of a window; its first token isn't scored"},
    {"against", CLI_TEXT, "MODEL", 0, 0, NULL, "compare with another model of the same vocabulary"},
    {"against-kernels", CLI_TEXT, "NAME", 0, 0, NULL, "compare with the same model under another kernel table"},
    {"against-precision", CLI_TEXT, "NAME", 0, 0, NULL, "compare with the same model in another precision"},
};

enum { PIECE = 64 }; /* positions whose logits are held at once */

typedef struct evaluation {
    const cli_args *args;
    cli_host *one, *two; /* two: NULL unless something is compared */
    cli_ids ids;         /* of the text */
    int64_t bos;
    size_t window;
    int32_t *input; /* of one window */
    double *scores;
    int64_t scored, positions, agreed;
    double bits[2];
    double divergence, worst;
    cli_progress progress;
} evaluation;

static double log_sum(const float *logits, size_t count) {
    double greatest = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        greatest = logits[i] > greatest ? logits[i] : greatest;
    }
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += exp(logits[i] - greatest);
    }
    return greatest + log(sum);
}

static size_t first_choice(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Kullback-Leibler divergence of the second model's distribution from the first one's: sum of p (ln p - ln q). */
static void compare(evaluation *e, const float *p, const float *q, size_t count, int32_t next) {
    double log_p = log_sum(p, count);
    double log_q = log_sum(q, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double log_pi = p[i] - log_p;
        sum += exp(log_pi) * (log_pi - (q[i] - log_q));
    }
    sum = sum > 0 ? sum : 0; /* rounding of equal distributions */
    e->divergence += sum;
    e->worst = sum > e->worst ? sum : e->worst;
    e->agreed += first_choice(p, count) == first_choice(q, count);
    e->positions++;
    e->bits[0] -= (p[next] - log_p) / M_LN2;
    e->bits[1] -= (q[next] - log_q) / M_LN2;
}

/* Positions begin … of a window of `count` ids, both models side by side. */
static int compare_window(evaluation *e, size_t count) {
    for (size_t at = 0; at + 1 < count; at += PIECE) {
        size_t n = count - 1 - at < PIECE ? count - 1 - at : PIECE;
        const float *logits[2] = {NULL, NULL};
        cli_host *const hosts[2] = {e->one, e->two};
        for (size_t i = 0; i < 2; i++) {
            perigee_error *error = NULL;
            size_t rows = 0;
            if (perigee_decode_step(hosts[i]->session, e->input + at, n, PERIGEE_LOGITS_ALL, &logits[i], &rows,
                                    e->one->cancel, &error) != PERIGEE_OK) {
                return cli_fail(e->args, error);
            }
        }
        size_t vocabulary = perigee_session_vocabulary(e->one->session);
        for (size_t i = 0; i < n; i++) {
            compare(e, logits[0] + i * vocabulary, logits[1] + i * vocabulary, vocabulary, e->input[at + i + 1]);
        }
        cli_progress_show(&e->progress, e->scored + (int64_t)(at + n), (int64_t)e->ids.count);
    }
    return CLI_DONE;
}

static int score_window(evaluation *e, size_t count) {
    perigee_error *error = NULL;
    if (perigee_score(e->one->session, e->input, count, e->scores, e->one->cancel, &error) != PERIGEE_OK) {
        return cli_fail(e->args, error);
    }
    for (size_t i = 0; i + 1 < count; i++) {
        e->bits[0] -= e->scores[i] / M_LN2;
    }
    return CLI_DONE;
}

static int walk(evaluation *e) {
    size_t front = e->bos >= 0;
    int status = CLI_DONE;
    cli_progress_begin(&e->progress, "eval");
    for (size_t at = 0; at < e->ids.count && status == CLI_DONE; at += e->window) {
        size_t n = e->ids.count - at < e->window ? e->ids.count - at : e->window;
        perigee_session_reset(e->one->session);
        if (e->two) {
            perigee_session_reset(e->two->session);
        }
        e->input[0] = (int32_t)e->bos;
        memcpy(e->input + front, e->ids.ids + at, n * sizeof *e->input);
        if (n + front >= 2) { /* a lone token without anything in front has no prediction */
            status = e->two ? compare_window(e, n + front) : score_window(e, n + front);
            e->scored += (int64_t)(n + front - 1);
        }
        cli_progress_show(&e->progress, e->scored, (int64_t)e->ids.count);
    }
    cli_progress_end(&e->progress);
    return status;
}

static json_t *number_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static int report(const evaluation *e, size_t bytes, double seconds) {
    double per_byte[2] = {e->bits[0] / (double)bytes, e->bits[1] / (double)bytes};
    double perplexity = exp(e->bits[0] * M_LN2 / (double)e->scored);
    double mean = e->positions ? e->divergence / (double)e->positions : 0;
    double agreement = e->positions ? (double)e->agreed / (double)e->positions : 0;
    double rate = seconds > 0 ? (double)e->scored / seconds : 0;
    if (e->args->json) {
        json_t *json = json_pack("{s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:f,s:f}", "family", e->one->info.family, "bytes",
                                 (json_int_t)bytes, "tokens", (json_int_t)e->ids.count, "scored", (json_int_t)e->scored,
                                 "window", (json_int_t)e->window, "bits_per_byte", number_json(per_byte[0]),
                                 "perplexity", number_json(perplexity), "seconds", seconds, "tokens_per_second", rate);
        if (e->two) {
            json_object_set_new(json, "other_bits_per_byte", number_json(per_byte[1]));
            json_object_set_new(json, "divergence_mean", number_json(mean));
            json_object_set_new(json, "divergence_max", number_json(e->worst));
            json_object_set_new(json, "first_choice_agreement", number_json(agreement));
        }
        return cli_print_json(json);
    }
    printf("%-28s %12s bytes, %s tokens, %s of them scored\n", "text", cli_number((int64_t)bytes),
           cli_number((int64_t)e->ids.count), cli_number(e->scored));
    printf("%-28s %12s tokens%s\n", "window", cli_number((int64_t)e->window),
           e->bos >= 0 ? " behind the first one" : "");
    printf("%-28s %12.5f\n", "bits per byte", per_byte[0]);
    printf("%-28s %12.3f of a token\n", "perplexity", perplexity);
    if (e->two) {
        printf("%-28s %12.5f\n", "bits per byte, other", per_byte[1]);
        printf("%-28s %12.3e nats, %.3e at most\n", "divergence, mean", mean, e->worst);
        printf("%-28s %12.4f %%\n", "same first choice", 100 * agreement);
    }
    printf("%-28s %12.1f tokens/s, %.2f s\n", "rate", rate, seconds);
    return CLI_DONE;
}

/* The second model, or the first one computed otherwise. */
static int open_other(const cli_args *args, const cli_host *one, cli_host *two) {
    static const char *const names[] = {"kernels", "precision"};
    const char *const values[] = {cli_text(args, "against-kernels"), cli_text(args, "against-precision")};
    perigee_error *error = NULL;
    for (size_t i = 0; i < 2; i++) {
        if (values[i] && perigee_options_set_text(args->context, names[i], values[i], &error) != PERIGEE_OK) {
            return cli_fail(args, error);
        }
    }
    const char *path = cli_text(args, "against");
    int status = cli_open_model(args, path ? path : args->words[0], two);
    if (status == CLI_DONE) {
        status = cli_open_session(args, two);
    }
    if (status == CLI_DONE && one->info.vocabulary != two->info.vocabulary) {
        status = cli_fail_text(args, "vocabularies of %s and %s tokens can't be compared",
                               cli_number(one->info.vocabulary), cli_number(two->info.vocabulary));
    }
    return status;
}

static int prepare(evaluation *e, const cli_buffer *text) {
    const perigee_tokenizer *tokenizer = perigee_model_tokenizer(e->one->model);
    if (!tokenizer) {
        return cli_fail_text(e->args, "the checkpoint has no tiktoken.model");
    }
    int status = cli_encode(e->args, tokenizer, text, false, -1, &e->ids);
    if (status == CLI_DONE && e->two && cli_text(e->args, "against")) {
        const perigee_tokenizer *other = perigee_model_tokenizer(e->two->model);
        cli_ids ids = {NULL, 0};
        status = other ? cli_encode(e->args, other, text, false, -1, &ids)
                       : cli_fail_text(e->args, "the other checkpoint has no tiktoken.model");
        if (status == CLI_DONE && (ids.count != e->ids.count ||
                                   (ids.count && memcmp(ids.ids, e->ids.ids, ids.count * sizeof *ids.ids) != 0))) {
            status = cli_fail_text(e->args, "the two models have other tokens for this text");
        }
        free(ids.ids);
    }
    if (status != CLI_DONE) {
        return status;
    }
    size_t front = e->bos >= 0;
    if (e->ids.count + front < 2) {
        return cli_fail_text(e->args, "the text is too short");
    }
    e->window = cli_given(e->args, "stream") ? e->ids.count : (size_t)cli_int(e->args, "window");
    e->window = e->window < e->ids.count ? e->window : e->ids.count;
    int64_t room = perigee_session_context(e->one->session);
    if (e->two && perigee_session_context(e->two->session) < room) {
        room = perigee_session_context(e->two->session);
    }
    if ((int64_t)(e->window + front) > room) {
        return cli_fail_text(e->args, "a window of %s tokens does not fit in a context of %s",
                             cli_number((int64_t)(e->window + front)), cli_number(room));
    }
    e->input = calloc(e->window + front, sizeof *e->input);
    e->scores = calloc(e->window + front, sizeof *e->scores);
    return e->input && e->scores ? CLI_DONE : cli_fail_text(e->args, "out of memory");
}

static int evaluate(const cli_args *args, cli_host *one, cli_host *two, const cli_buffer *text) {
    evaluation e = {.args = args, .one = one, .two = two};
    e.bos = cli_given(args, "no-bos") ? -1 : one->info.bos;
    int status = prepare(&e, text);
    double begun = cli_now();
    if (status == CLI_DONE) {
        status = walk(&e);
    }
    if (status == CLI_DONE) {
        status = report(&e, text->length, cli_now() - begun);
    }
    free(e.ids.ids);
    free(e.input);
    free(e.scores);
    return status;
}

static int run(const cli_args *args) {
    int others =
        cli_given(args, "against") + (cli_given(args, "against-kernels") || cli_given(args, "against-precision"));
    if (others > 1 || (cli_given(args, "stream") && cli_given(args, "window"))) {
        return cli_usage(args, others > 1 ? "--against excludes --against-kernels and --against-precision"
                                          : "--stream and --window exclude one another");
    }
    cli_host one = {NULL, NULL, NULL, NULL, {0}, 0};
    cli_host two = {NULL, NULL, NULL, NULL, {0}, 0};
    cli_buffer text = {NULL, 0, 0};
    int status = cli_read_file(args, args->words[1], &text);
    if (status == CLI_DONE) {
        status = cli_open_model(args, args->words[0], &one);
    }
    if (status == CLI_DONE) {
        status = cli_open_session(args, &one);
    }
    if (status == CLI_DONE && others) {
        status = open_other(args, &one, &two);
    }
    if (status == CLI_DONE) {
        status = evaluate(args, &one, others ? &two : NULL, &text);
    }
    free(text.data);
    status = kernel_report(args, &one, status);
    cli_close(&two);
    cli_close(&one);
    return status;
}

const cli_verb verb_eval = {
    .name = "eval",
    .words = "MODEL FILE",
    .word_count = 2,
    .scopes = CLI_LOAD,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .help =
        "bits per byte and perplexity of a text\nThe text is encoded as a whole and cut in windows, each a sequence "
        "of its own behind the model's first token. Two models, kernel tables or precisions are compared by "
        "Kullback-Leibler divergence and by how often their first choice is the same.",
    .run = run,
};
