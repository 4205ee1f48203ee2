#!/bin/sh
# The library never prints, exits, reads the environment or touches the process: library_calls.sh ROOT
set -eu
cd "$1"
banned='getenv|secure_getenv|setenv|putenv|abort|exit|_exit|quick_exit|atexit|printf|fprintf|vprintf|vfprintf|puts|fputs'
banned="$banned|putchar|fputc|perror|setlocale|signal|sigaction|strtok|system|popen|fork|srand|rand|fesetround|alloca"
# words inside comments and strings do not count
if find src \( -name '*.c' -o -name '*.h' \) -not -path 'src/plugins/*' -print0 | xargs -0 awk '
    FNR == 1 { inside = 0 }
    {
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        if (inside) { if (match(line, /\*\//)) { line = substr(line, RSTART + 2); inside = 0 } else next }
        while (match(line, /\/\*/)) {
            head = substr(line, 1, RSTART - 1); tail = substr(line, RSTART + 2)
            if (match(tail, /\*\//)) line = head " " substr(tail, RSTART + 2)
            else { line = head; inside = 1 }
        }
        sub(/\/\/.*/, "", line)
        print FILENAME ":" FNR ": " line
    }' | grep -E "[^A-Za-z0-9_.>]($banned) *\(" | grep -vE '(->|\.)[a-z_]+ *\(' ; then
    echo "these calls are not for a library" >&2
    exit 1
fi
