/* The operating system: files, memory and its limits. Nothing here knows errors as objects: 0 or an errno comes back.
 */
#ifndef PRG_OS_OS_H
#define PRG_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file for reading. A folder is EISDIR. */
int prg_os_open(const char *path, int *fd, uint64_t *size);
void prg_os_close(int fd);
/* Bytes read, 0 at the end of the file, or a negated errno. Interrupted calls are repeated. */
int64_t prg_os_read(int fd, void *buffer, size_t size, uint64_t offset);
bool prg_os_is_folder(const char *path);
/* Names of a folder in no order, without those that begin with a dot; `take` returns false to stop. */
int prg_os_list(const char *folder, bool (*take)(void *user, const char *name), void *user);
/* In English, whatever the locale; static. */
const char *prg_os_error_text(int error);

/* A file that takes the place of another as a whole or not at all: written aside in the same folder, synced, renamed.
 */
typedef struct prg_os_replacement {
    int fd;
    char *target, *aside; /* paths of the file that is replaced and of the new one; from malloc */
} prg_os_replacement;

/* A link at `path` stays: what it points to is replaced. The new file has the permissions of the old one. What is there
 * and no regular file is EISDIR or EINVAL. */
int prg_os_replace_begin(const char *path, prg_os_replacement *out);
/* All of `size` bytes, or an errno. */
int prg_os_write(int fd, const void *data, size_t size);
/* Either ends it, also on failure. */
int prg_os_replace_commit(prg_os_replacement *replacement);
void prg_os_replace_abandon(prg_os_replacement *replacement);

/* A read-only map of a whole file. */
int prg_os_map(int fd, size_t size, const void **out);
void prg_os_unmap(const void *start, size_t size);
/* Zeroed memory that starts at a multiple of 2 MB, of huge pages where the system has them. */
int prg_os_pages_new(size_t size, void **out);
void prg_os_pages_free(void *start, size_t size);
/* The same wish for memory that somebody else owns; what lies in it stays. */
void prg_os_pages_prefer_huge(void *start, size_t size);

/* Bytes that this process may still take: the smallest of what the system has free or can reclaim and of what every
 * memory cgroup (v1 and v2) above the process leaves. `root` stands before /proc and /sys; "" for the machine. */
int64_t prg_os_memory_available(const char *root);

#endif
