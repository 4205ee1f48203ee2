#include "text_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_append(cli_buffer *buffer, const char *data, size_t length) {
    if (length >= SIZE_MAX / 2 - buffer->length) {
        return false;
    }
    if (buffer->length + length >= buffer->room) {
        size_t room = 2 * (buffer->length + length) + 64;
        char *grown = realloc(buffer->data, room);
        if (!grown) {
            return false;
        }
        buffer->data = grown;
        buffer->room = room;
    }
    if (length) {
        memcpy(buffer->data + buffer->length, data, length);
    }
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
    return true;
}

int cli_read_file(const cli_args *args, const char *path, cli_buffer *out) {
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file) {
        return cli_fail_text(args, "%s: %s", path, strerror(errno));
    }
    char piece[65536];
    size_t got = 0;
    bool memory = cli_append(out, "", 0);
    while (memory && (got = fread(piece, 1, sizeof piece, file)) > 0) {
        memory = cli_append(out, piece, got);
    }
    int status = CLI_DONE;
    if (!memory) {
        status = cli_fail_text(args, "out of memory");
    } else if (ferror(file)) {
        status = cli_fail_text(args, "%s: %s", path, strerror(errno));
    }
    if (!standard) {
        fclose(file);
    }
    return status;
}

bool cli_parse_ids(const char *text, cli_ids *out) {
    size_t room = 1;
    for (const char *c = text; *c; c++) {
        room += *c == ',';
    }
    out->count = 0;
    out->ids = calloc(room, sizeof *out->ids);
    while (out->ids) {
        char *end = NULL;
        errno = 0;
        long value = strtol(text, &end, 10);
        if (errno || end == text || value < INT32_MIN || value > INT32_MAX) {
            break;
        }
        out->ids[out->count++] = (int32_t)value;
        if (*end != ',') {
            if (end[strspn(end, " \r\n")] == '\0') {
                return true;
            }
            break;
        }
        text = end + 1;
    }
    free(out->ids);
    *out = (cli_ids){NULL, 0};
    return false;
}

int cli_encode(const cli_args *args, const perigee_tokenizer *tokenizer, const cli_buffer *text, bool markup,
               int64_t bos, cli_ids *out) {
    perigee_error *error = NULL;
    size_t first = bos >= 0;
    size_t count = 0;
    /* never more ids than bytes */
    *out = (cli_ids){calloc(text->length + first + 1, sizeof *out->ids), 0};
    if (!out->ids) {
        return cli_fail_text(args, "out of memory");
    }
    perigee_status status = (markup ? perigee_encode_markup : perigee_encode_text)(
        tokenizer, text->data, text->length, 0, out->ids + first, text->length + 1, &count, &error);
    if (status != PERIGEE_OK) {
        return cli_fail(args, error);
    }
    if (first) {
        out->ids[0] = (int32_t)bos;
    }
    out->count = count + first;
    return CLI_DONE;
}

void cli_print_ids(const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        printf("%s%d", i ? "," : "", (int)ids[i]);
    }
    printf("\n");
}

json_t *cli_ids_json(const int32_t *ids, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_integer(ids[i]));
    }
    return array;
}

json_t *cli_text_json(const perigee_tokenizer *tokenizer, const int32_t *ids, size_t count, uint32_t flags) {
    perigee_decoder *decoder = NULL;
    cli_buffer text = {NULL, 0, 0};
    bool good = tokenizer && perigee_decoder_new(tokenizer, flags, &decoder, NULL) == PERIGEE_OK;
    for (size_t i = 0; i <= count && good; i++) {
        const char *piece = NULL;
        size_t length = 0;
        good = (i < count ? perigee_decoder_push(decoder, ids[i], &piece, &length, NULL)
                          : perigee_decoder_flush(decoder, &piece, &length, NULL)) == PERIGEE_OK &&
               cli_append(&text, piece, length);
    }
    json_t *json = good ? json_stringn(text.data ? text.data : "", text.length) : json_null();
    perigee_decoder_free(decoder);
    free(text.data);
    return json;
}

void cli_progress_begin(cli_progress *progress, const char *what) {
    double now = cli_now();
    *progress = (cli_progress){what, now, now, isatty(STDERR_FILENO) != 0, false};
}

void cli_progress_show(cli_progress *progress, int64_t done, int64_t total) {
    double now = cli_now();
    if (!progress->terminal || now - progress->shown < 0.5 || done <= 0) {
        return;
    }
    progress->shown = now;
    progress->visible = true;
    double rate = (double)done / (now - progress->begun);
    fprintf(stderr, "\r%s: %s of %s tokens, %.1f tokens/s, %.0f s left\033[K", progress->what, cli_number(done),
            cli_number(total), rate, (double)(total - done) / rate);
}

void cli_progress_end(cli_progress *progress) {
    if (progress->visible) {
        fprintf(stderr, "\r\033[K");
    }
    progress->visible = false;
    progress->terminal = false;
}
