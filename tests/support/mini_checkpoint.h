/* Copies of a golden checkpoint in a folder of their own, to be damaged. */
#ifndef PRG_TESTS_MINI_CHECKPOINT_H
#define PRG_TESTS_MINI_CHECKPOINT_H

#include <check.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct mini_checkpoint {
    char folder[256];
} mini_checkpoint;

static inline const char *mini_path(const mini_checkpoint *m, const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", m->folder, name);
    return path;
}

/* A whole file; free() it. */
static inline char *mini_read(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, f), *size);
    bytes[*size] = 0;
    fclose(f);
    return bytes;
}

static inline void mini_write(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static inline void mini_each(const char *folder, void (*act)(const char *path, const char *name, void *user),
                             void *user) {
    DIR *d = opendir(folder);
    ck_assert_msg(d != NULL, "%s", folder);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type == DT_REG) {
            act(path, e->d_name, user);
        }
    }
    closedir(d);
}

static inline void mini_copy_one(const char *path, const char *name, void *user) {
    size_t size;
    char *bytes = mini_read(path, &size);
    mini_write(mini_path(user, name), bytes, size);
    free(bytes);
}

static inline void mini_remove_one(const char *path, const char *name, void *user) {
    (void)name;
    (void)user;
    unlink(path);
}

static inline void mini_empty(mini_checkpoint *m) {
    snprintf(m->folder, sizeof m->folder, "perigee-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(m->folder));
}

static inline void mini_copy(mini_checkpoint *m, const char *golden) {
    char from[512];
    mini_empty(m);
    snprintf(from, sizeof from, PRG_FIXTURES "/golden/%s", golden);
    mini_each(from, mini_copy_one, m);
}

static inline void mini_remove(const mini_checkpoint *m) {
    mini_each(m->folder, mini_remove_one, NULL);
    ck_assert_int_eq(rmdir(m->folder), 0);
}

/* Replace the first `old` behind byte `from` of a file by a text of the same length. False if there is none. */
static inline int mini_patch(const mini_checkpoint *m, const char *name, const char *old, const char *new) {
    size_t size, n = strlen(old);
    char path[512];
    snprintf(path, sizeof path, "%s", mini_path(m, name));
    char *bytes = mini_read(path, &size);
    ck_assert_uint_eq(n, strlen(new));
    for (size_t i = 0; i + n <= size; i++) {
        if (memcmp(bytes + i, old, n) == 0) {
            memcpy(bytes + i, new, n);
            mini_write(path, bytes, size);
            free(bytes);
            return 1;
        }
    }
    free(bytes);
    return 0;
}

/* A safetensors file of a header's text and some bytes of data. */
static inline void mini_safetensors(const char *path, const char *header, const void *data, size_t data_size) {
    size_t length = strlen(header);
    unsigned char *all = malloc(8 + length + data_size);
    for (size_t i = 0; i < 8; i++) {
        all[i] = (unsigned char)((uint64_t)length >> (8 * i));
    }
    memcpy(all + 8, header, length);
    if (data_size) {
        memcpy(all + 8 + length, data, data_size);
    }
    mini_write(path, all, 8 + length + data_size);
    free(all);
}

#endif
