#!/bin/sh
# A small checkpoint with a tokenizer, and how the tests of text verbs use it; sourced with $perigee, $fixtures, $work and
# $json_get set.
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
model=$work/model
"$perigee" synth "${family:-kimi_k3}" "$model" --layers 5 --experts 16 --vocab 3256 --shrink 32 > /dev/null
cp "$fixtures/text/tiktoken.model" "$model/"

fail() { echo "$*" >&2; exit 1; }
# wants STATUS ARGUMENT…: that exit status; output in $work/out and $work/err
wants() {
    wanted=$1
    shift
    got=0
    "$perigee" "$@" > "$work/out" 2> "$work/err" < /dev/null || got=$?
    [ "$got" = "$wanted" ] || { cat "$work/err" >&2; fail "perigee $*: exit status $got, not $wanted"; }
    [ "$wanted" = 0 ] || [ -s "$work/err" ] || fail "perigee $*: says nothing"
}
get() { "$json_get" "$@"; }
same() { [ "$1" = "$2" ] || fail "$3: '$1', not '$2'"; }
