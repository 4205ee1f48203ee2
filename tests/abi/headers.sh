#!/bin/sh
# Every public header compiles alone as C99 and C++17 without a warning: headers.sh INCLUDE CC CXX
set -eu
include=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
for header in $(cd "$include" && find perigee -name '*.h' | LC_ALL=C sort); do
    # twice: the guard works too
    printf '#include "%s"\n#include "%s"\nint main(void) { return 0; }\n' "$header" "$header" > "$work/a.c"
    cp "$work/a.c" "$work/a.cc"
    "$2" -std=c99 -Wall -Wextra -Wpedantic -Werror -I "$include" -fsyntax-only "$work/a.c"
    "$3" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I "$include" -fsyntax-only "$work/a.cc"
    count=$((count + 1))
done
[ "$count" -ge 8 ] || { echo "only $count headers found" >&2; exit 1; }
# SWIG reads them: no varargs, inline functions, bit fields or function-like macros
if grep -rnE '^[^*/]*(\.\.\.|\binline\b)|^ *#define [A-Z_a-z0-9]+\(|^ +[a-z0-9_]+ +[a-z0-9_]+ *: *[0-9]+;' "$include"; then
    echo "not for a public header" >&2
    exit 1
fi
