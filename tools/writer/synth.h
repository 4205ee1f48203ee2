/* Random checkpoints in the layouts in which the families are published. */
#ifndef PERIGEE_WRITER_SYNTH_H
#define PERIGEE_WRITER_SYNTH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct synth_request {
    const char *family;
    const char *folder; /* made if need be; must be empty */
    int64_t layers;     /* 0: as published */
    int64_t experts;    /* 0: as published */
    int64_t vocabulary; /* 0: as published */
    int64_t shrink;     /* widths are divided by it */
    uint64_t seed;
    bool sparse;                       /* data are holes: all names, no disk */
    const volatile sig_atomic_t *stop; /* not 0: stop soon, and take back what was written; may be NULL */
    /* called after each file; may be NULL; return false to stop */
    bool (*progress)(size_t done, size_t total, void *user);
    void *user;
} synth_request;

typedef struct synth_report {
    uint64_t tensors, files, data_bytes;
    char error[5120]; /* empty on success */
} synth_report;

/* Names of families, NULL at the end. */
const char *const *synth_families(void);
bool synth_write(const synth_request *request, synth_report *report);

#endif
