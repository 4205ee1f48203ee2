#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void prg_log_line(const prg_log *log, int level, const char *format, ...) {
    if (!log || !log->write || level > log->level) {
        return;
    }
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->write(level, line, log->user);
}
