/* Reading a small file of a checkpoint folder as a whole. */
#ifndef PRG_TEXT_READ_FILE_H
#define PRG_TEXT_READ_FILE_H

#include "base/alloc.h"

typedef struct prg_file {
    char *text; /* NUL behind; NULL: no such file */
    size_t length;
    prg_allocator *allocator;
} prg_file;

/* Read folder/name. Success with `text` NULL where it does not exist; larger than `limit`: PERIGEE_E_FORMAT. */
perigee_status prg_read_file(prg_allocator *allocator, const char *folder, const char *name, size_t limit,
                             prg_file *out, perigee_error **err);
void prg_file_free(prg_file *file);

#endif
