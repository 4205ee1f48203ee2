#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "container/safetensors.h"
#include "support/suite.h"

static prg_allocator *allocator;

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
}

static void teardown(void) {
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

typedef struct memory {
    unsigned char bytes[65536];
    size_t size;
} memory;

static int64_t read_memory(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    const memory *m = user;
    (void)fd;
    if (offset >= m->size) {
        return 0;
    }
    /* at most seven bytes at once, so that short reads are met */
    size = size < 7 ? size : 7;
    size = size < m->size - offset ? size : m->size - (size_t)offset;
    memcpy(buffer, m->bytes + offset, size);
    return (int64_t)size;
}

static memory file;

static void make(const char *header, size_t data) {
    size_t length = strlen(header);
    memset(&file, 0, sizeof file);
    for (size_t i = 0; i < 8; i++) {
        file.bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    }
    memcpy(file.bytes + 8, header, length);
    file.size = 8 + length + data;
}

typedef struct seen {
    size_t count;
    prg_tensor_entry last;
} seen;

static perigee_status note(void *user, const prg_tensor_entry *entry, perigee_error **err) {
    seen *s = user;
    (void)err;
    s->count++;
    s->last = *entry;
    return PERIGEE_OK;
}

static perigee_status run(seen *s, perigee_error **err) {
    prg_io io = {read_memory, &file};
    prg_file opened = {"m.safetensors", -1, file.size, &io};
    *s = (seen){0};
    return prg_safetensors_read(allocator, &opened, note, s, err);
}

START_TEST(test_entries) {
    seen s;
    make("{\"__metadata__\":{\"format\":\"pt\",\"shape\":\"x\"},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
         "\"scalar\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[24,32]},"
         "\"none\":{\"dtype\":\"U8\",\"shape\":[0,5],\"data_offsets\":[32,32]},"
         "\"b\\u00e9\":{\"extra\":{\"x\":[1,{}]},\"data_offsets\":[32,34],\"shape\":[1],\"dtype\":\"BF16\"}}   ",
         34);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_OK);
    ck_assert_uint_eq(s.count, 4);
    ck_assert_str_eq(s.last.name, "b\xc3\xa9");
    ck_assert_int_eq(s.last.type, PRG_TENSOR_BF16);
    ck_assert_uint_eq(s.last.rank, 1);
    ck_assert_uint_eq(s.last.size, 2);
    ck_assert_uint_eq(s.last.offset, file.size - 2);
}
END_TEST

/* {"a": <body>} with 64 bytes of data */
static perigee_status run_body(const char *body, perigee_error **err) {
    char header[1024];
    seen s;
    snprintf(header, sizeof header, "{\"a\":%s}", body);
    make(header, 64);
    return run(&s, err);
}

START_TEST(test_bad_tensors) {
    static const struct {
        const char *body;
        perigee_status status;
        const char *text;
    } cases[] = {
        {"{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]}", PERIGEE_E_FORMAT, "its shape and dtype say 24"},
        {"{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[4,68]}", PERIGEE_E_TRUNCATED, "the file has only 64"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}", PERIGEE_E_FORMAT, "backwards"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}", PERIGEE_E_FORMAT, "whole number"},
        {"{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "whole number"},
        {"{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "whole number"},
        {"{\"dtype\":\"F32\",\"shape\":[18446744073709551617],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT,
         "whole number"},
        {"{\"dtype\":\"F32\",\"shape\":[4611686018427387905,4],\"data_offsets\":[0,16]}", PERIGEE_E_FORMAT, "absurd"},
        {"{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "dimensions"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}", PERIGEE_E_FORMAT, "pair"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}", PERIGEE_E_FORMAT, "missing"},
        {"{\"dtype\":\"F32\",\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "missing"},
        {"{\"shape\":[1],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "missing"},
        {"{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "wrong kind"},
        {"{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "wrong kind"},
        {"{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}", PERIGEE_E_FORMAT, "wrong kind"},
        {"[]", PERIGEE_E_FORMAT, "object of tensors"},
        {"5", PERIGEE_E_FORMAT, "object of tensors"},
        {"{]", PERIGEE_E_FORMAT, "not well-formed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perigee_error *e = NULL;
        perigee_status st = run_body(cases[i].body, &e);
        ck_assert_msg(st == cases[i].status, "%s: %d", cases[i].body, (int)st);
        ck_assert_msg(strstr(perigee_error_message(e), cases[i].text), "%s: %s", cases[i].body,
                      perigee_error_message(e));
        ck_assert_str_eq(perigee_error_file(e), "m.safetensors");
        perigee_error_free(e);
    }
}
END_TEST

START_TEST(test_overlap) {
    perigee_error *e = NULL;
    seen s;
    /* neither in the order of their names nor side by side in the header */
    make("{\"c\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[20,28]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[14],\"data_offsets\":[7,21]}}",
         64);
    ck_assert_int_eq(run(&s, &e), PERIGEE_E_FORMAT);
    ck_assert_str_eq(perigee_error_tensor(e), "b");
    ck_assert_int_eq(perigee_error_offset(e), (int64_t)file.size - 64 + 7);
    perigee_error_free(e);
    /* neighbours touch, and an empty tensor may lie anywhere */
    make("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"n\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
         16);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_OK);
}
END_TEST

START_TEST(test_bad_headers) {
    seen s;
    perigee_error *e = NULL;
    make("{}", 0);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_OK);
    file.size = 5;
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_TRUNCATED);
    make("{}", 0);
    file.bytes[0] = 3; /* one byte more than the file has */
    ck_assert_int_eq(run(&s, &e), PERIGEE_E_TRUNCATED);
    ck_assert_ptr_nonnull(strstr(perigee_error_message(e), "a header of 3 bytes in a file of 10"));
    perigee_error_free(e);
    memset(file.bytes, 0xff, 8);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
    make("[]", 0);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
    make("", 0);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
    static char deep[10001];
    memset(deep, '[', 10000);
    make(deep, 0);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
    /* deep where unknown members are let pass */
    snprintf(deep, sizeof deep, "{\"a\":{\"x\":");
    memset(deep + strlen(deep), '[', 9000);
    make(deep, 0);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
}
END_TEST

START_TEST(test_bad_names) {
    static char header[3000];
    seen s;
    snprintf(header, sizeof header, "{\"%01100d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 0);
    make(header, 1);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
    make("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    ck_assert_int_eq(run(&s, NULL), PERIGEE_E_FORMAT);
}
END_TEST

static int64_t read_failing(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    return offset >= 30 ? -EIO : read_memory(user, fd, buffer, size, offset);
}

START_TEST(test_failing_device) {
    perigee_error *e = NULL;
    seen s = {0};
    make("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    prg_io io = {read_failing, &file};
    prg_file opened = {"m.safetensors", -1, file.size, &io};
    ck_assert_int_eq(prg_safetensors_read(allocator, &opened, note, &s, &e), PERIGEE_E_IO);
    ck_assert_int_ge(perigee_error_offset(e), 30);
    perigee_error_free(e);
}
END_TEST

PRG_SUITE("safetensors", setup, teardown, test_entries, test_bad_tensors, test_overlap, test_bad_headers,
          test_bad_names, test_failing_device)
