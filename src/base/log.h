/* The host's log callback. Nothing is printed by the library itself. */
#ifndef PRG_BASE_LOG_H
#define PRG_BASE_LOG_H

typedef struct prg_log {
    int level; /* lines above it are dropped */
    void (*write)(int level, const char *message, void *user);
    void *user;
} prg_log;

enum { PRG_LOG_ERROR = 1, PRG_LOG_WARNING = 2, PRG_LOG_INFO = 3, PRG_LOG_ALL = 4 };

/* Formats into a buffer on the stack (cut at 1 KB). `log` may be NULL. Only on threads that called in. */
void prg_log_line(const prg_log *log, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
