/* Speed of the tokenizer: bench_text TIKTOKEN_MODEL TEXT_FILE [IDS_FILE]
 * Prints load time, memory, MB/s over the text (best of several passes) and the time of 1 MB of one character. With a
 * third file, only writes the ids of the text there as 32-bit numbers, for tools/text_oracle/compare.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/tokenizer.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    if (!text || fread(text, 1, *length, file) != *length) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static double encode_best(const perigee_tokenizer *tokenizer, const char *text, size_t length, int passes, int32_t *ids,
                          size_t *count) {
    double best = 1e9;
    for (int i = 0; i < passes; i++) {
        double start = now();
        if (perigee_encode_text(tokenizer, text, length, 0, ids, length, count, NULL) != PERIGEE_OK) {
            fprintf(stderr, "not encoded\n");
            exit(1);
        }
        double took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "bench_text TIKTOKEN_MODEL TEXT_FILE [IDS_FILE]\n");
        return 2;
    }
    size_t ranks_length, length, count;
    char *ranks = read_whole(argv[1], &ranks_length), *text = read_whole(argv[2], &length);
    prg_allocator *allocator;
    perigee_tokenizer *tokenizer;
    perigee_error *error = NULL;
    prg_allocator_new(NULL, &allocator, NULL);
    double best = 1e9;
    int loads = argc > 3 ? 1 : 5;
    for (int i = 0; i < loads; i++) {
        double start = now();
        if (prg_tokenizer_make(allocator, "kimi_k2", 0, ranks, ranks_length, NULL, 0, &tokenizer, &error) !=
            PERIGEE_OK) {
            fprintf(stderr, "%s\n", perigee_error_message(error));
            return 1;
        }
        double took = now() - start;
        best = took < best ? took : best;
        if (i + 1 < loads) {
            prg_tokenizer_drop(tokenizer);
        }
    }
    int32_t *ids = malloc((length > 1 << 20 ? length : 1 << 20) * sizeof *ids);
    double took = encode_best(tokenizer, text, length, argc > 3 ? 1 : 7, ids, &count);
    if (argc > 3) {
        FILE *out = fopen(argv[3], "wb");
        bool written = out && fwrite(ids, sizeof *ids, count, out) == count && fclose(out) == 0;
        if (!written) {
            fprintf(stderr, "cannot write %s\n", argv[3]);
        }
        return written ? 0 : 1;
    }
    printf("load      %d ranks in %.4f s, %.1f MB\n", tokenizer->ranks.count, best, (double)allocator->bytes / 1e6);
    printf("text      %.2f MB, %zu ids, %.1f MB/s\n", (double)length / 1e6, count, (double)length / 1e6 / took);
    char *run = malloc(1 << 20);
    for (const char *c = "a A1!\n"; *c; c++) {
        memset(run, *c, 1 << 20);
        took = encode_best(tokenizer, run, 1 << 20, 3, ids, &count);
        printf("1 MB of 0x%02x  %.4f s, %zu ids\n", (unsigned)*c, took, count);
    }
    free(run);
    free(ids);
    free(text);
    free(ranks);
    prg_tokenizer_drop(tokenizer);
    prg_allocator_drop(allocator);
    return 0;
}
