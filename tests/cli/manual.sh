#!/bin/sh
# The manual page and completion know every option of every verb: manual.sh PERIGEE
set -eu
perigee=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$perigee" manual man | sed 's/\\&//g; s/\\e/\n/g; s/\\//g' > "$work/man"
for verb in $("$perigee" --help | awk '/^  / { print $1 }'); do
    for name in $("$perigee" "$verb" --help | grep -o '^  --[a-z_-]*' | tr -d ' '); do
        grep -qFe "$name" "$work/man" || { echo "perigee.1: no $name of $verb" >&2; exit 1; }
        "$perigee" manual bash | grep "^    $verb) " | grep -qFe "$name" || { echo "completion: no $name of $verb" >&2; exit 1; }
    done
    # what --help says of an option stands in the page too; a default of the verb's own has a sentence of its own there
    "$perigee" "$verb" --help | sed -nE 's/^  --[a-z_-]+( [^ ]+)? +([^ ].*)$/\2/p' | sed -E 's/ \[[^]]*\]$//' > "$work/help"
    while IFS= read -r text; do
        case "$text" in "for machines: one JSON document" | this) continue ;; esac
        grep -qF -e "$text" "$work/man" || { echo "perigee.1: not what $verb --help says: $text" >&2; exit 1; }
    done < "$work/help"
done
verbs=$("$perigee" --help | awk '/^  / { print $1 }' | tr '\n' ' ')
[ "$verbs" = "$(sed -n 's/^.SS perigee \([a-z]*\).*/\1/p' "$work/man" | tr '\n' ' ')" ] || { echo "perigee.1: other verbs" >&2; exit 1; }
if command -v man > /dev/null; then
    "$perigee" manual man | man --warnings -E UTF-8 -l - 2>&1 > /dev/null | grep . && exit 1
fi
command -v bash > /dev/null || exit 0
"$perigee" manual bash | bash -c '
    . /dev/stdin
    COMP_WORDS=(perigee "ch"); COMP_CWORD=1; _perigee
    [ "${COMPREPLY[*]}" = chat ] || { echo "verbs: ${COMPREPLY[*]}" >&2; exit 1; }
    COMP_WORDS=(perigee run --temp); COMP_CWORD=2; _perigee
    [ "${COMPREPLY[*]}" = --temperature ] || { echo "options: ${COMPREPLY[*]}" >&2; exit 1; }
    COMP_WORDS=(perigee run --thinking of); COMP_CWORD=3; _perigee
    [ "${COMPREPLY[*]}" = off ] || { echo "values: ${COMPREPLY[*]}" >&2; exit 1; }
    COMP_WORDS=(perigee bench --precision ""); COMP_CWORD=3; _perigee
    [ "${COMPREPLY[*]}" = "exact balanced fast" ] || { echo "choices: ${COMPREPLY[*]}" >&2; exit 1; }
    COMP_WORDS=(perigee bench --threads ""); COMP_CWORD=3; _perigee
    [ "${#COMPREPLY[@]}" = 0 ] || { echo "numbers: ${COMPREPLY[*]}" >&2; exit 1; }
    COMP_WORDS=(perigee bench --plugins ""); COMP_CWORD=3; _perigee
    [ "${#COMPREPLY[@]}" -gt 0 ] || { echo "no files for plugins" >&2; exit 1; }'
