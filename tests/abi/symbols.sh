#!/bin/sh
# The library exports what the headers declare, no more and no less, and as released imports nothing that ends the process:
# symbols.sh LIBRARY INCLUDE CONFIGURATION
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort > "$work/exported"
# a declaration ends at its semicolon; its name is the word before the first parenthesis
find "$2" -name '*.h' -exec cat {} + | awk '
    /PERIGEE_API/ && !/#define/ { text = ""; taking = 1 }
    taking { text = text " " $0; if (/;/) { sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); print w[n]; taking = 0 } }' |
    LC_ALL=C sort > "$work/declared"
diff -u "$work/declared" "$work/exported"
[ -s "$work/exported" ]
soname=$(objdump -p "$1" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libperigee.so.0 ] || { echo "SONAME is $soname" >&2; exit 1; }
if [ "$3" != Debug ]; then
    ends=$(nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $2); print $2 }' |
        grep -xE '__assert_fail|abort|exit|_exit|quick_exit|getenv|secure_getenv|setlocale' || true)
    [ -z "$ends" ] || { echo "not for a library:" $ends >&2; exit 1; }
fi
