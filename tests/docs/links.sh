#!/bin/sh
# What the pages point to is there: links, and paths, functions and names of the interface in backticks: links.sh ROOT
set -eu
export LC_ALL=C
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . -name '*.md' -not -path './build*' -not -path './.git/*' -not -path '*/target/*' | sed 's,^\./,,' | sort > "$work/pages"

# links to files
while read -r page; do
    sed '/^ *```/,/^ *```/d; s/`[^`]*`//g' "$page" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//' |
        grep -vE '^(https?:|#|mailto:)' | sed 's/#.*//' | sort -u > "$work/links" || true
    while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || echo "$page: no $link"
    done < "$work/links"
done < "$work/pages" > "$work/bad"

# what stands in backticks
while read -r page; do
    sed '/^ *```/,/^ *```/d' "$page" | grep -oE '`[^`]+`' | tr -d '`' | sed "s,^,$page ," || true
done < "$work/pages" | sort -u > "$work/ticks"

awk '$2 !~ /X\.Y/ && $2 ~ /^(src|docs|tests|tools|include|bindings|examples|models|cmake|pkgconfig)\/[A-Za-z0-9_.*\/-]*$/' "$work/ticks" |
    while read -r page path _; do
        # shellcheck disable=SC2086 # a pattern stands for what it finds
        ls -d $path > /dev/null 2>&1 || echo "$page: no $path"
    done >> "$work/bad"

grep -rohE '[A-Za-z_][A-Za-z0-9_]*' src include tools/*.c tools/*.h tools/*.sh tools/writer tests bindings examples cmake \
    CMakeLists.txt --include='*.[chi]' --include='*.def' --include='*.txt' --include='*.sh' --include='*.cmake' \
    --include='*.go' --include='*.rs' --include='*.lua' | sort -u > "$work/known"
awk '{ name = $2; sub(/\(\)[.,]?$/, "", name); sub(/,$/, "", name) }
    $2 ~ /^[a-z_0-9]+\(\)$/ || name ~ /^(perigee|PERIGEE|prg|PRG)_[A-Za-z0-9_]*[A-Za-z0-9]$/ { print name, $1 }' \
    "$work/ticks" | sort -u > "$work/used"
join -v 1 "$work/used" "$work/known" | while read -r name page; do
    echo "$page: no $name"
done >> "$work/bad"
[ "$(wc -l < "$work/used")" -ge 40 ] || echo "only $(wc -l < "$work/used") names found" >> "$work/bad"

cat "$work/bad" >&2
[ ! -s "$work/bad" ]
