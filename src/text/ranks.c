#include "text/ranks.h"

#include "base/checked_math.h"
#include "base/error.h"

/* A walk over the lines of the file. */
typedef struct line_reader {
    const char *text;
    size_t length, at;
    const char *file;
    perigee_error **err;
} line_reader;

typedef struct line {
    size_t start;  /* offset of the line */
    size_t base64; /* characters of it */
    int64_t rank;
} line;

static perigee_status bad_line(const line_reader *r, size_t at, const char *what) {
    return prg_fail_at(r->err, PERIGEE_E_FORMAT, (prg_where){NULL, r->file, (int64_t)at, -1}, "rank file: %s", what);
}

static bool ends_line(const line_reader *r, size_t at) {
    return at == r->length || r->text[at] == '\n' ||
           (r->text[at] == '\r' && at + 1 < r->length && r->text[at + 1] == '\n');
}

/* The next line that is not empty; *more is false behind the last. */
static perigee_status next_line(line_reader *r, line *out, bool *more) {
    while (r->at < r->length && ends_line(r, r->at)) {
        r->at++;
    }
    *more = r->at < r->length;
    if (!*more) {
        return PERIGEE_OK;
    }
    out->start = r->at;
    while (r->at < r->length && r->text[r->at] != ' ' && r->text[r->at] != '\n') {
        r->at++;
    }
    out->base64 = r->at - out->start;
    if (r->at == r->length || r->text[r->at] != ' ') {
        return bad_line(r, r->at, "no space behind the token");
    }
    size_t digits = ++r->at;
    out->rank = 0;
    while (r->at < r->length && r->text[r->at] >= '0' && r->text[r->at] <= '9') {
        out->rank = out->rank * 10 + (r->text[r->at++] - '0');
        if (out->rank > INT32_MAX) {
            return bad_line(r, digits, "rank too large");
        }
    }
    if (r->at == digits || !ends_line(r, r->at)) {
        return bad_line(r, r->at, "no decimal rank");
    }
    return PERIGEE_OK;
}

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Bytes that `length` characters of base64 stand for, padding counted; 0 if that is no length of base64. */
static size_t decoded_size(const char *text, size_t length) {
    if (length == 0 || length % 4 != 0) {
        return 0;
    }
    size_t pads = text[length - 1] != '=' ? 0 : text[length - 2] != '=' ? 1 : 2;
    return length / 4 * 3 - pads;
}

static bool decode(const char *text, size_t size, unsigned char *out) {
    uint32_t bits = 0;
    unsigned have = 0;
    for (size_t done = 0; done < size;) {
        int digit = digit_of(*text++);
        if (digit < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[done++] = (unsigned char)(bits >> have);
        }
    }
    return (bits & ((1u << have) - 1)) == 0; /* one spelling for each token */
}

/* First pass: number of tokens, and offset[rank + 1] = size of each. */
static perigee_status measure(line_reader *r, prg_ranks *ranks) {
    line l;
    bool more;
    size_t lines = 0, total = 0;
    perigee_status st;
    while ((st = next_line(r, &l, &more)) == PERIGEE_OK && more) {
        lines++;
    }
    if (st != PERIGEE_OK) {
        return st;
    }
    if (lines < 256 || lines > INT32_MAX / 2) {
        return bad_line(r, 0, lines < 256 ? "fewer tokens than bytes" : "too many tokens");
    }
    ranks->count = (int32_t)lines;
    ranks->offset = prg_calloc(ranks->allocator, lines + 1, sizeof *ranks->offset);
    if (!ranks->offset) {
        return prg_fail_memory(r->err);
    }
    r->at = 0;
    while ((st = next_line(r, &l, &more)) == PERIGEE_OK && more) {
        size_t size = decoded_size(r->text + l.start, l.base64);
        if (size == 0) {
            return bad_line(r, l.start, "not base64");
        }
        if (l.rank >= ranks->count) {
            return bad_line(r, l.start, "ranks are not dense");
        }
        if (ranks->offset[l.rank + 1] != 0) {
            return bad_line(r, l.start, "a rank stands twice");
        }
        ranks->offset[l.rank + 1] = (uint32_t)size;
        ranks->longest = prg_max(ranks->longest, size);
        total += size; /* less than the file's length, which is below 4 GiB */
    }
    for (size_t i = 0; i < lines; i++) {
        ranks->offset[i + 1] += ranks->offset[i];
    }
    ranks->pool = prg_alloc(ranks->allocator, total);
    return ranks->pool ? PERIGEE_OK : prg_fail_memory(r->err);
}

static perigee_status insert(line_reader *r, prg_ranks *ranks, int32_t rank, size_t at) {
    size_t size, other;
    const unsigned char *bytes = prg_ranks_bytes(ranks, rank, &size);
    uint64_t hash = XXH3_64bits(bytes, size);
    uint32_t tag = (uint32_t)(hash >> 32);
    size_t i = (size_t)hash & ranks->mask;
    for (; ranks->slots[i].rank != PRG_NO_RANK; i = (i + 1) & ranks->mask) {
        if (ranks->slots[i].tag == tag) {
            const unsigned char *token = prg_ranks_bytes(ranks, ranks->slots[i].rank, &other);
            if (other == size && memcmp(token, bytes, size) == 0) {
                return bad_line(r, at, "a token stands twice");
            }
        }
    }
    ranks->slots[i] = (prg_rank_slot){tag, rank};
    return PERIGEE_OK;
}

/* Second pass: the bytes, and the table over them. */
static perigee_status fill(line_reader *r, prg_ranks *ranks) {
    size_t slots = 1024;
    while (slots < (size_t)ranks->count + (size_t)ranks->count / 2) {
        slots *= 2;
    }
    size_t bytes;
    if (!prg_mul(slots, sizeof *ranks->slots, &bytes) || !(ranks->slots = prg_alloc(ranks->allocator, bytes))) {
        return prg_fail_memory(r->err);
    }
    memset(ranks->slots, 0xFF, bytes); /* every rank PRG_NO_RANK */
    ranks->mask = slots - 1;
    line l;
    bool more;
    perigee_status st;
    r->at = 0;
    while ((st = next_line(r, &l, &more)) == PERIGEE_OK && more) {
        uint32_t from = ranks->offset[l.rank];
        if (!decode(r->text + l.start, ranks->offset[l.rank + 1] - from, ranks->pool + from)) {
            return bad_line(r, l.start, "not base64");
        }
        st = insert(r, ranks, (int32_t)l.rank, l.start);
        if (st != PERIGEE_OK) {
            return st;
        }
    }
    for (int b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        ranks->one_byte[b] = prg_ranks_find(ranks, &byte, 1);
        if (ranks->one_byte[b] == PRG_NO_RANK) {
            return bad_line(r, 0, "a single byte is no token");
        }
    }
    return PERIGEE_OK;
}

perigee_status prg_ranks_parse(prg_allocator *allocator, const char *text, size_t length, const char *file,
                               prg_ranks *out, perigee_error **err) {
    line_reader r = {text, length, 0, file, err};
    *out = (prg_ranks){.allocator = allocator};
    if (length > UINT32_MAX) {
        return bad_line(&r, 0, "too large");
    }
    perigee_status st = measure(&r, out);
    if (st == PERIGEE_OK) {
        st = fill(&r, out);
    }
    if (st != PERIGEE_OK) {
        prg_ranks_free(out);
    }
    return st;
}

void prg_ranks_free(prg_ranks *ranks) {
    prg_free(ranks->allocator, ranks->pool);
    prg_free(ranks->allocator, ranks->offset);
    prg_free(ranks->allocator, ranks->slots);
    ranks->pool = NULL;
    ranks->offset = NULL;
    ranks->slots = NULL;
}
