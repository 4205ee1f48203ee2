#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/os.h"
#include "store/store.h"
#include "support/suite.h"

enum { FILES = 2, FILE_SIZE = 10 << 20 };

static prg_allocator *allocator;
static char paths[FILES][64];
static const char *files[FILES];

static unsigned char byte_at(size_t file, uint64_t offset) {
    return (unsigned char)((offset * 2654435761U >> 13) + file * 101);
}

static void setup(void) {
    ck_assert_int_eq(prg_allocator_new(NULL, &allocator, NULL), PERIGEE_OK);
    unsigned char *bytes = malloc(FILE_SIZE);
    for (size_t f = 0; f < FILES; f++) {
        snprintf(paths[f], sizeof paths[f], "/tmp/perigee-XXXXXX");
        int fd = mkstemp(paths[f]);
        for (uint64_t i = 0; i < FILE_SIZE; i++) {
            bytes[i] = byte_at(f, i);
        }
        ck_assert_int_eq(write(fd, bytes, FILE_SIZE), FILE_SIZE);
        close(fd);
        files[f] = paths[f];
    }
    free(bytes);
}

static void teardown(void) {
    for (size_t f = 0; f < FILES; f++) {
        unlink(paths[f]);
    }
    ck_assert_uint_eq(allocator->bytes, 0);
    prg_allocator_drop(allocator);
}

/* Odd sizes and offsets, one part of several blocks, groups out of the order of the files, an empty part. */
static const prg_part parts[] = {{1, 2, 17, 1000},         {0, 0, 3, (9 << 20) + 5}, {1, 1, 5000, 64},
                                 {0, 2, 9 << 20, 1},       {1, 0, 9000, 4 << 20},    {0, 1, 0, 0},
                                 {1, 1, (10 << 20) - 7, 7}};
enum { PARTS = sizeof parts / sizeof *parts };

static prg_store_plan plan_of(const prg_io *io) {
    return (prg_store_plan){files, FILES, parts, PARTS, 3, io, NULL, 0};
}

static void check_bytes(prg_store *store) {
    for (uint32_t g = 0; g < 3; g++) {
        ck_assert_int_eq(prg_store_want(store, &g, 1, NULL), PERIGEE_OK);
        ck_assert_int_eq(prg_store_pin(store, g, NULL), PERIGEE_OK);
    }
    ck_assert_int_eq(prg_store_pin(store, 3, NULL), PERIGEE_E_INTERNAL);
    for (uint32_t i = 0; i < PARTS; i++) {
        const unsigned char *at = prg_store_at(store, i);
        uint64_t good = 0;
        while (good < parts[i].size && at[good] == byte_at(parts[i].file, parts[i].offset + good)) {
            good++;
        }
        ck_assert_msg(good == parts[i].size, "part %u, byte %llu", i, (unsigned long long)good);
    }
    for (uint32_t g = 0; g < 3; g++) {
        prg_store_release(store, g);
    }
}

START_TEST(test_resident) {
    prg_store_plan plan = plan_of(NULL);
    for (size_t threads = 1; threads <= 40; threads += 13) {
        prg_store *store = NULL;
        ck_assert_int_eq(prg_store_open_resident(allocator, &plan, threads, NULL, &store, NULL), PERIGEE_OK);
        check_bytes(store);
        int64_t sum = 0;
        for (size_t i = 0; i < PARTS; i++) {
            ck_assert_uint_eq((uintptr_t)prg_store_at(store, (uint32_t)i) % 64, 0);
            sum += (int64_t)((parts[i].size + 63) / 64 * 64);
        }
        ck_assert_int_eq(prg_store_bytes(store), sum);
        ck_assert_int_eq(prg_store_resident_bytes(parts, PARTS), sum);
        /* parts of a group lie side by side, the first of all at a multiple of 2 MB */
        const char *first = prg_store_at(store, 1), *second = prg_store_at(store, 4);
        ck_assert_uint_eq((uintptr_t)first % (2 << 20), 0);
        ck_assert_int_eq(second - first, ((9 << 20) + 5 + 63) / 64 * 64);
        prg_store_free(store);
    }
}
END_TEST

START_TEST(test_mapped) {
    prg_store_plan plan = plan_of(NULL);
    prg_store *store = NULL;
    ck_assert_int_eq(prg_store_open_mapped(allocator, &plan, &store, NULL), PERIGEE_OK);
    check_bytes(store);
    ck_assert_int_eq(prg_store_bytes(store), 0);
    prg_store_free(store);
    /* a file that has become shorter since its header was read */
    perigee_error *e = NULL;
    ck_assert_int_eq(truncate(paths[1], 9000), 0);
    store = NULL;
    ck_assert_int_eq(prg_store_open_mapped(allocator, &plan, &store, &e), PERIGEE_E_TRUNCATED);
    ck_assert_str_eq(perigee_error_file(e), paths[1]);
    ck_assert_ptr_null(store);
    perigee_error_free(e);
    e = NULL;
    ck_assert_int_eq(prg_store_open_resident(allocator, &plan, 2, NULL, &store, &e), PERIGEE_E_TRUNCATED);
    ck_assert_str_eq(perigee_error_file(e), paths[1]);
    perigee_error_free(e);
    unlink(paths[1]);
    ck_assert_int_eq(prg_store_open_mapped(allocator, &plan, &store, NULL), PERIGEE_E_NOT_FOUND);
    ck_assert_int_eq(prg_store_open_resident(allocator, &plan, 2, NULL, &store, NULL), PERIGEE_E_NOT_FOUND);
}
END_TEST

/* Reads come in dribs and drabs, and are put together. */
static int64_t read_slowly(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    (void)user;
    return prg_os_read(fd, buffer, size < 70001 ? size : 70001, offset);
}

static int64_t read_half(void *user, int fd, void *buffer, size_t size, uint64_t offset) {
    (void)user;
    return offset > (5 << 20) ? -EIO : prg_os_read(fd, buffer, size, offset);
}

START_TEST(test_odd_devices) {
    prg_io slow = {read_slowly, NULL}, half = {read_half, NULL};
    prg_store_plan plan = plan_of(&slow);
    prg_store *store = NULL;
    ck_assert_int_eq(prg_store_open_resident(allocator, &plan, 2, NULL, &store, NULL), PERIGEE_OK);
    check_bytes(store);
    prg_store_free(store);
    plan.io = &half;
    store = NULL;
    for (size_t threads = 1; threads < 4; threads++) {
        perigee_error *e = NULL;
        ck_assert_int_eq(prg_store_open_resident(allocator, &plan, threads, NULL, &store, &e), PERIGEE_E_IO);
        ck_assert_int_gt(perigee_error_offset(e), 5 << 20);
        ck_assert_ptr_nonnull(perigee_error_file(e));
        ck_assert_ptr_null(store);
        perigee_error_free(e);
    }
}
END_TEST

PRG_SUITE("store", setup, teardown, test_resident, test_mapped, test_odd_devices)
