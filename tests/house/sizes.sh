#!/bin/sh
# Files of code stay under 40 KB and functions under 100 lines: sizes.sh ROOT
set -eu
cd "$1"
found=$(find src include tools examples \( -name '*.c' -o -name '*.h' \) 2> /dev/null | LC_ALL=C sort | while read -r file; do
    size=$(wc -c < "$file")
    [ "$size" -le 40960 ] || [ "${file%_table.h}" != "$file" ] || [ "${file%_table.c}" != "$file" ] ||
        echo "$file: $size bytes"
    # a function, as clang-format leaves it, opens with a line that is not indented and ends in {
    awk -v file="$file" '
        /^[A-Za-z_].*\) *\{$/ { name = $0; sub(/\(.*/, "", name); start = NR }
        /^[A-Za-z_].*\($/ || (/^[A-Za-z_].*,$/ && /\(/) { name = $0; sub(/\(.*/, "", name) }
        /^ .*\) \{$/ && !start && name != "" && !/^ *(if|for|while|switch|else|\})/ { start = NR }
        /^\}/ {
            if (start && NR - start > 100) printf "%s:%d: %s has %d lines\n", file, start, name, NR - start
            start = 0
            name = ""
        }' "$file"
done)
[ -z "$found" ] || { echo "$found"; exit 1; }
