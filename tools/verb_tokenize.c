/* perigee tokenize, perigee detokenize: text to ids and back, without the weights of a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text_io.h"
#include "verbs.h"

static const cli_option encode_options[] = {
    {"file", CLI_TEXT, "FILE", 0, 0, NULL, "the text is in this file"},
    {"markup", CLI_FLAG, NULL, 0, 0, NULL, "names of special tokens are those tokens"},
};
static const cli_option decode_options[] = {
    {"file", CLI_TEXT, "FILE", 0, 0, NULL, "the ids are in this file"},
    {"skip-special", CLI_FLAG, NULL, 0, 0, NULL, "leave special tokens out"},
};

/* The word behind MODEL, the file, or what comes in. */
static int read_source(const cli_args *args, cli_buffer *out) {
    const char *word = args->words[1];
    const char *file = cli_text(args, "file");
    if (word && file) {
        return cli_usage(args, "takes either a word behind MODEL or --file");
    }
    if (word) {
        return cli_append(out, word, strlen(word)) ? CLI_DONE : cli_fail_text(args, "out of memory");
    }
    return cli_read_file(args, file ? file : "-", out);
}

static int open_tokenizer(const cli_args *args, cli_host *host, perigee_tokenizer **out) {
    perigee_error *error = NULL;
    int status = cli_open_context(args, host);
    if (status == CLI_DONE &&
        perigee_tokenizer_open(host->context, args->words[0], SIZE_MAX, out, &error) != PERIGEE_OK) {
        status = cli_fail(args, error);
    }
    return status;
}

static int encode(const cli_args *args, const perigee_tokenizer *tokenizer, const cli_buffer *text) {
    cli_ids ids = {NULL, 0};
    int status = cli_encode(args, tokenizer, text, cli_given(args, "markup"), -1, &ids);
    if (status == CLI_DONE && args->json) {
        status = cli_print_json(json_pack("{s:o,s:I,s:I}", "ids", cli_ids_json(ids.ids, ids.count), "tokens",
                                          (json_int_t)ids.count, "bytes", (json_int_t)text->length));
    } else if (status == CLI_DONE) {
        cli_print_ids(ids.ids, ids.count);
    }
    free(ids.ids);
    return status;
}

static int decode(const cli_args *args, const perigee_tokenizer *tokenizer, const cli_buffer *text) {
    cli_ids ids = {NULL, 0};
    /* no ids are no error: the text is empty, as tokenize prints it */
    bool blank = text->data[strspn(text->data, " \r\n")] == '\0';
    if (!blank && !cli_parse_ids(text->data, &ids)) {
        return cli_usage(args, "takes token ids, as 1,2,3");
    }
    uint32_t flags = cli_given(args, "skip-special") ? PERIGEE_DECODE_SKIP_SPECIAL : 0;
    perigee_error *error = NULL;
    size_t length = 0;
    char *bytes = NULL;
    int status = CLI_DONE;
    if (perigee_decode(tokenizer, ids.ids, ids.count, flags, NULL, 0, &length, &error) != PERIGEE_OK) {
        status = cli_fail(args, error);
    } else if ((bytes = malloc(length + 1)) == NULL) {
        status = cli_fail_text(args, "out of memory");
    } else if (perigee_decode(tokenizer, ids.ids, ids.count, flags, bytes, length + 1, &length, &error) != PERIGEE_OK) {
        status = cli_fail(args, error);
    } else if (args->json) {
        status = cli_print_json(json_pack("{s:o,s:I,s:I}", "text", cli_text_json(tokenizer, ids.ids, ids.count, flags),
                                          "tokens", (json_int_t)ids.count, "bytes", (json_int_t)length));
    } else {
        fwrite(bytes, 1, length, stdout);
        if (isatty(STDOUT_FILENO)) {
            printf("\n");
        }
    }
    free(bytes);
    free(ids.ids);
    return status;
}

static int run(const cli_args *args, int (*work)(const cli_args *, const perigee_tokenizer *, const cli_buffer *)) {
    cli_host host = {NULL, NULL, NULL, NULL, {0}, 0};
    perigee_tokenizer *tokenizer = NULL;
    cli_buffer text = {NULL, 0, 0};
    int status = open_tokenizer(args, &host, &tokenizer);
    if (status == CLI_DONE) {
        status = read_source(args, &text);
    }
    if (status == CLI_DONE) {
        status = work(args, tokenizer, &text);
    }
    free(text.data);
    perigee_tokenizer_free(tokenizer);
    cli_close(&host);
    return status;
}

static int run_encode(const cli_args *args) {
    return run(args, encode);
}

static int run_decode(const cli_args *args) {
    return run(args, decode);
}

const cli_verb verb_tokenize = {
    .name = "tokenize",
    .words = "MODEL [TEXT]",
    .word_count = 2,
    .optional_words = 1,
    .options = encode_options,
    .option_count = sizeof encode_options / sizeof *encode_options,
    .help = "text to token ids\nWithout TEXT and --file, standard input is read. Prints the ids on one line, as "
            "--ids and detokenize take them.",
    .run = run_encode,
};

const cli_verb verb_detokenize = {
    .name = "detokenize",
    .words = "MODEL [IDS]",
    .word_count = 2,
    .optional_words = 1,
    .options = decode_options,
    .option_count = sizeof decode_options / sizeof *decode_options,
    .help = "token ids to text\nIDS as 1,2,3; without them and --file, standard input is read. Prints the bytes and "
            "nothing else.",
    .run = run_decode,
};
