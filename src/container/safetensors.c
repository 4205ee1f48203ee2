#include "container/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/error.h"
#include "base/json.h"

/* The format's own bound of a header. */
enum { LARGEST_HEADER = 100000000, PIECE = 256 * 1024, DEPTH = 32 };

typedef struct byte_range {
    uint64_t begin, end;
} byte_range;

typedef enum field { FIELD_NONE, FIELD_TYPE, FIELD_SHAPE, FIELD_OFFSETS, FIELD_IGNORED } field;

typedef struct reader {
    const prg_file *file;
    uint64_t data; /* where the bytes of tensors begin */
    prg_tensor_handler handler;
    void *user;
    size_t depth;
    bool metadata; /* inside of the member that is no tensor */
    field field;
    bool has_type, has_shape;
    size_t offset_count;
    uint64_t offsets[2];
    prg_tensor_entry entry;
    prg_allocator *allocator;
    byte_range *ranges;
    size_t range_count, range_capacity;
    bool keep_ranges;
} reader;

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [PRG_TENSOR_OTHER] = {"?", 0},         [PRG_TENSOR_F64] = {"F64", 8},        [PRG_TENSOR_F32] = {"F32", 4},
    [PRG_TENSOR_F16] = {"F16", 2},         [PRG_TENSOR_BF16] = {"BF16", 2},      [PRG_TENSOR_I64] = {"I64", 8},
    [PRG_TENSOR_I32] = {"I32", 4},         [PRG_TENSOR_I16] = {"I16", 2},        [PRG_TENSOR_I8] = {"I8", 1},
    [PRG_TENSOR_U8] = {"U8", 1},           [PRG_TENSOR_BOOL] = {"BOOL", 1},      [PRG_TENSOR_F8_E4M3] = {"F8_E4M3", 1},
    [PRG_TENSOR_F8_E5M2] = {"F8_E5M2", 1}, [PRG_TENSOR_F8_E8M0] = {"F8_E8M0", 1}};

const char *prg_tensor_type_name(prg_tensor_type type) {
    return types[type].name;
}

size_t prg_tensor_type_bytes(prg_tensor_type type) {
    return types[type].bytes;
}

#define FAIL(r, err, status, at, ...)                                                                                  \
    prg_fail_at(err, status, (prg_where){(r)->entry.name, (r)->file->path, (int64_t)(at), -1}, __VA_ARGS__)

static perigee_status bad_header(const reader *r, const char *what, perigee_error **err) {
    return prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){NULL, r->file->path, 8, -1}, "%s: %s", r->file->path, what);
}

static perigee_status bad_tensor(const reader *r, const char *what, perigee_error **err) {
    return FAIL(r, err, PERIGEE_E_FORMAT, -1, "%s: tensor %s: %s", r->file->path, r->entry.name, what);
}

static perigee_status start_tensor(reader *r, const char *name, size_t length, perigee_error **err) {
    if (length >= PRG_TENSOR_NAME || memchr(name, 0, length)) {
        return bad_header(r, "a tensor's name is longer than 1023 bytes or holds a NUL byte", err);
    }
    memcpy(r->entry.name, name, length);
    r->entry.name[length] = 0;
    r->entry.name_length = length;
    r->entry.rank = 0;
    r->has_type = r->has_shape = false;
    r->offset_count = 0;
    r->field = FIELD_NONE;
    r->metadata = strcmp(r->entry.name, "__metadata__") == 0;
    return PERIGEE_OK;
}

static field field_of(const char *key, size_t length) {
    static const struct {
        const char *name;
        field field;
    } fields[] = {{"dtype", FIELD_TYPE}, {"shape", FIELD_SHAPE}, {"data_offsets", FIELD_OFFSETS}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, key, length) == 0) {
            return fields[i].field;
        }
    }
    return FIELD_IGNORED;
}

static prg_tensor_type type_of(const char *name, size_t length) {
    for (size_t i = 1; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0) {
            return (prg_tensor_type)i;
        }
    }
    return PRG_TENSOR_OTHER;
}

/* Plain decimal digits only: a size is no fraction, not negative and has no exponent. */
static bool parse_size(const char *text, size_t length, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    return length > 0 && value <= INT64_MAX;
}

static perigee_status take_number(reader *r, const char *text, size_t length, perigee_error **err) {
    uint64_t value;
    if (!parse_size(text, length, &value)) {
        return bad_tensor(r, "a size or offset is not a whole number from 0 to 2^63 - 1", err);
    }
    if (r->field == FIELD_SHAPE) {
        if (r->entry.rank == PRG_TENSOR_RANK) {
            return bad_tensor(r, "more than 8 dimensions", err);
        }
        r->entry.shape[r->entry.rank++] = value;
        return PERIGEE_OK;
    }
    if (r->offset_count == 2) {
        return bad_tensor(r, "data_offsets is not a pair", err);
    }
    r->offsets[r->offset_count++] = value;
    return PERIGEE_OK;
}

static perigee_status keep_range(reader *r, perigee_error **err) {
    if (!r->keep_ranges || r->entry.size == 0) {
        return PERIGEE_OK;
    }
    if (r->range_count == r->range_capacity) {
        size_t capacity = r->range_capacity ? r->range_capacity * 2 : 256;
        byte_range *grown = prg_realloc(r->allocator, r->ranges, capacity * sizeof *grown);
        if (!grown) {
            return prg_fail_memory(err);
        }
        r->ranges = grown;
        r->range_capacity = capacity;
    }
    r->ranges[r->range_count++] = (byte_range){r->entry.offset, r->entry.offset + r->entry.size};
    return PERIGEE_OK;
}

static perigee_status finish_tensor(reader *r, perigee_error **err) {
    prg_tensor_entry *e = &r->entry;
    if (!r->has_type || !r->has_shape || r->offset_count != 2) {
        return bad_tensor(r, "dtype, shape or data_offsets is missing", err);
    }
    uint64_t begin = r->offsets[0], end = r->offsets[1], room = r->file->size - r->data;
    if (begin > end) {
        return bad_tensor(r, "data_offsets run backwards", err);
    }
    if (end > room) {
        return FAIL(r, err, PERIGEE_E_TRUNCATED, r->data + begin,
                    "%s: tensor %s lies at bytes %llu to %llu of the data, but the file has only %llu", r->file->path,
                    e->name, (unsigned long long)begin, (unsigned long long)end, (unsigned long long)room);
    }
    uint64_t bytes = types[e->type].bytes;
    for (uint32_t i = 0; i < e->rank; i++) {
        if (__builtin_mul_overflow(bytes, e->shape[i], &bytes)) {
            return bad_tensor(r, "its shape is absurd", err);
        }
    }
    e->offset = r->data + begin;
    e->size = end - begin;
    if (e->type != PRG_TENSOR_OTHER && bytes != e->size) {
        return FAIL(r, err, PERIGEE_E_FORMAT, e->offset, "%s: tensor %s has %llu bytes, its shape and dtype say %llu",
                    r->file->path, e->name, (unsigned long long)e->size, (unsigned long long)bytes);
    }
    perigee_status st = keep_range(r, err);
    return st == PERIGEE_OK ? r->handler(r->user, e, err) : st;
}

static perigee_status on_scalar(reader *r, prg_json_event event, const char *text, size_t length, perigee_error **err) {
    if (r->depth < 2) {
        return bad_header(r, "the header is not an object of tensors", err);
    }
    if (r->metadata || r->field == FIELD_IGNORED) {
        return PERIGEE_OK;
    }
    if (r->depth == 2 && r->field == FIELD_TYPE && event == PRG_JSON_EV_STRING) {
        r->entry.type = type_of(text, length);
        r->has_type = true;
        return PERIGEE_OK;
    }
    if (r->depth == 3 && r->field != FIELD_TYPE && event == PRG_JSON_EV_NUMBER) {
        return take_number(r, text, length, err);
    }
    return bad_tensor(r, "a member is of the wrong kind", err);
}

static perigee_status on_open(reader *r, prg_json_event event, perigee_error **err) {
    bool object = event == PRG_JSON_EV_OBJECT;
    r->depth++;
    if (r->depth <= 2) {
        return object ? PERIGEE_OK : bad_header(r, "the header is not an object of tensors", err);
    }
    if (r->metadata || r->field == FIELD_IGNORED) {
        return PERIGEE_OK;
    }
    if (object || r->depth > 3 || r->field == FIELD_TYPE) {
        return bad_tensor(r, "a member is of the wrong kind", err);
    }
    if (r->field == FIELD_SHAPE) {
        r->has_shape = true;
        r->entry.rank = 0;
    } else {
        r->offset_count = 0;
    }
    return PERIGEE_OK;
}

static perigee_status on_event(void *user, prg_json_event event, const char *text, size_t length, perigee_error **err) {
    reader *r = user;
    switch (event) {
    case PRG_JSON_EV_OBJECT:
    case PRG_JSON_EV_ARRAY:
        return on_open(r, event, err);
    case PRG_JSON_EV_OBJECT_END:
    case PRG_JSON_EV_ARRAY_END:
        r->depth--;
        return r->depth == 1 && !r->metadata ? finish_tensor(r, err) : PERIGEE_OK;
    case PRG_JSON_EV_KEY:
        if (r->depth == 1) {
            return start_tensor(r, text, length, err);
        }
        if (r->depth == 2 && !r->metadata) {
            r->field = field_of(text, length);
        }
        return PERIGEE_OK;
    default:
        return on_scalar(r, event, text, length, err);
    }
}

static perigee_status read_length(const prg_file *file, uint64_t *length, perigee_error **err) {
    unsigned char bytes[8];
    prg_where start = {NULL, file->path, 0, -1};
    if (file->size < sizeof bytes) {
        return prg_fail_at(err, PERIGEE_E_TRUNCATED, start, "%s has %llu bytes and no header", file->path,
                           (unsigned long long)file->size);
    }
    perigee_status st = prg_file_read(file, 0, bytes, sizeof bytes, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    uint64_t value = 0;
    for (size_t i = sizeof bytes; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    if (value > LARGEST_HEADER) {
        return prg_fail_at(err, PERIGEE_E_FORMAT, start, "%s: a header of %llu bytes; the format allows %d", file->path,
                           (unsigned long long)value, LARGEST_HEADER);
    }
    if (value > file->size - sizeof bytes) {
        return prg_fail_at(err, PERIGEE_E_TRUNCATED, start, "%s: a header of %llu bytes in a file of %llu", file->path,
                           (unsigned long long)value, (unsigned long long)file->size);
    }
    *length = value;
    return PERIGEE_OK;
}

static perigee_status scan(prg_allocator *allocator, reader *r, perigee_error **err) {
    prg_json_stream *stream = NULL;
    char *piece = NULL;
    uint64_t length = 0;
    perigee_status st = read_length(r->file, &length, err);
    if (st != PERIGEE_OK) {
        return st;
    }
    r->data = 8 + length;
    size_t room = length < PIECE ? (size_t)length : PIECE;
    st = prg_json_stream_new(allocator, DEPTH, r->file->path, on_event, r, &stream, err);
    if (st == PERIGEE_OK && !(piece = prg_alloc(allocator, room))) {
        st = prg_fail_memory(err);
    }
    for (uint64_t done = 0; st == PERIGEE_OK && done < length;) {
        size_t take = length - done < room ? (size_t)(length - done) : room;
        st = prg_file_read(r->file, 8 + done, piece, take, err);
        if (st == PERIGEE_OK) {
            st = prg_json_stream_feed(stream, piece, take, err);
        }
        done += take;
    }
    if (st == PERIGEE_OK) {
        st = prg_json_stream_end(stream, err);
    }
    prg_free(allocator, piece);
    prg_json_stream_free(stream);
    return st;
}

typedef struct name_search {
    uint64_t offset;
    char name[PRG_TENSOR_NAME];
} name_search;

static perigee_status match_offset(void *user, const prg_tensor_entry *entry, perigee_error **err) {
    name_search *search = user;
    (void)err;
    if (entry->offset == search->offset && entry->size > 0) {
        memcpy(search->name, entry->name, entry->name_length + 1);
    }
    return PERIGEE_OK;
}

static int by_begin(const void *a, const void *b) {
    const byte_range *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static perigee_status check_overlap(reader *r, perigee_error **err) {
    bool ordered = true;
    for (size_t i = 1; i < r->range_count; i++) {
        ordered &= r->ranges[i - 1].begin <= r->ranges[i].begin;
    }
    if (!ordered) {
        qsort(r->ranges, r->range_count, sizeof *r->ranges, by_begin);
    }
    for (size_t i = 1; i < r->range_count; i++) {
        if (r->ranges[i].begin >= r->ranges[i - 1].end) {
            continue;
        }
        /* names were not kept: the header is read once more for this one */
        name_search search = {r->ranges[i].begin, "?"};
        reader again = {.file = r->file, .handler = match_offset, .user = &search};
        perigee_status st = scan(r->allocator, &again, err);
        if (st != PERIGEE_OK) {
            return st;
        }
        return prg_fail_at(err, PERIGEE_E_FORMAT, (prg_where){search.name, r->file->path, (int64_t)search.offset, -1},
                           "%s: tensor %s overlaps another one at byte %llu", r->file->path, search.name,
                           (unsigned long long)search.offset);
    }
    return PERIGEE_OK;
}

perigee_status prg_safetensors_read(prg_allocator *allocator, const prg_file *file, prg_tensor_handler handler,
                                    void *user, perigee_error **err) {
    reader r = {.file = file, .handler = handler, .user = user, .allocator = allocator, .keep_ranges = true};
    perigee_status st = scan(allocator, &r, err);
    if (st == PERIGEE_OK) {
        st = check_overlap(&r, err);
    }
    prg_free(allocator, r.ranges);
    return st;
}
