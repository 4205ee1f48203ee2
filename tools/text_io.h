/* Files, ids and growing text, and progress on a terminal. */
#ifndef PERIGEE_TOOLS_TEXT_IO_H
#define PERIGEE_TOOLS_TEXT_IO_H

#include "cli.h"

/* Bytes that grow; a NUL stands behind them once there are any. */
typedef struct cli_buffer {
    char *data;
    size_t length, room;
} cli_buffer;

bool cli_append(cli_buffer *buffer, const char *data, size_t length);
/* Read a file, or with "-" what comes in. */
int cli_read_file(const cli_args *args, const char *path, cli_buffer *out);

typedef struct cli_ids {
    int32_t *ids;
    size_t count;
} cli_ids;

/* 1,2,3; false if the text is anything else. White space may stand at the end. */
bool cli_parse_ids(const char *text, cli_ids *out);
/* Encode text into out->ids, behind `bos` unless that is negative. */
int cli_encode(const cli_args *args, const perigee_tokenizer *tokenizer, const cli_buffer *text, bool markup,
               int64_t bos, cli_ids *out);
void cli_print_ids(const int32_t *ids, size_t count);
json_t *cli_ids_json(const int32_t *ids, size_t count);
/* Text that may hold bytes that are no UTF-8: these become U+FFFD. */
json_t *cli_text_json(const perigee_tokenizer *tokenizer, const int32_t *ids, size_t count, uint32_t flags);

/* A line on a terminal, rewritten as work goes on; silent elsewhere and while the work is short. */
typedef struct cli_progress {
    const char *what;
    double begun, shown;
    bool terminal, visible;
} cli_progress;

void cli_progress_begin(cli_progress *progress, const char *what);
void cli_progress_show(cli_progress *progress, int64_t done, int64_t total);
void cli_progress_end(cli_progress *progress);

#endif
