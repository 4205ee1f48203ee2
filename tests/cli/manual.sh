#!/bin/sh
# The manual page and completion know every option of every verb: manual.sh PERIGEE
set -eu
perigee=$1
"$perigee" manual man > /dev/null
for verb in $("$perigee" --help | awk '/^  / { print $1 }'); do
    for name in $("$perigee" "$verb" --help | grep -o '^  --[a-z_-]*' | tr -d ' '); do
        "$perigee" manual man | tr -d '\\' | grep -qFe "$name" || { echo "perigee.1: no $name of $verb" >&2; exit 1; }
        "$perigee" manual bash | grep "^    $verb) " | grep -qFe "$name" || { echo "completion: no $name of $verb" >&2; exit 1; }
    done
done
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
    [ "${COMPREPLY[*]}" = off ] || { echo "values: ${COMPREPLY[*]}" >&2; exit 1; }'
