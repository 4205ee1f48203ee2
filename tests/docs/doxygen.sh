#!/bin/sh
# The reference of the public headers comes without a warning, and a member without a word is one:
# doxygen.sh DOXYFILE ROOT OUT
set -eu
doxyfile=$1 root=$2 out=$3
command -v doxygen > /dev/null || {
    echo "skipped: doxygen is not installed; tools/setup.sh check brings it"
    exit 77
}
# write ROOT TO: the reference of the headers in ROOT; what doxygen says goes to TO.log
write() {
    mkdir -p "$2"
    sed "s,^\(INPUT *=\).*,\1 $1/include/perigee $root/docs/api.md," "$doxyfile" > "$2/Doxyfile"
    printf 'OUTPUT_DIRECTORY = %s\nSTRIP_FROM_PATH = %s/include\n' "$2" "$1" >> "$2/Doxyfile"
    doxygen "$2/Doxyfile" > "$2.log" 2>&1
}
rm -rf "$out"
write "$root" "$out/html" || { cat "$out/html.log" >&2; exit 1; }
[ ! -s "$out/html.log" ] || { cat "$out/html.log" >&2; exit 1; }
# every function that is exported has its place in it
for name in $(grep -hoE '\bperigee_[a-z_]+\(' "$root"/include/perigee/*.h |
    tr -d '(' | sort -u); do
    grep -rqF -e "$name" "$out/html/html" --include='*.html' || { echo "no word of $name" >&2; exit 1; }
done
# a member that nobody says anything about is seen
mkdir -p "$out/bad/include"
cp -r "$root/include/perigee" "$out/bad/include/"
printf 'typedef struct perigee_riddle {\n    int what;\n} perigee_riddle;\n' >> "$out/bad/include/perigee/queue.h"
! write "$out/bad" "$out/bad/html"
grep -q 'perigee_riddle.*not documented' "$out/bad/html.log" || { cat "$out/bad/html.log" >&2; exit 1; }
