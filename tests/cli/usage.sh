#!/bin/sh
# Exit status, help and errors: usage.sh PERIGEE
set -eu
perigee=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# wants STATUS ARGUMENT…: that exit status, and on failure something on stderr and nothing on stdout
wants() {
    status=$1
    shift
    got=0
    "$perigee" "$@" > "$work/out" 2> "$work/err" < /dev/null || got=$?
    if [ "$got" != "$status" ]; then
        echo "perigee $*: exit status $got, not $status" >&2
        cat "$work/err" >&2
        exit 1
    fi
    [ "$status" = 0 ] || [ -s "$work/err" ] || { echo "perigee $*: says nothing" >&2; exit 1; }
}
says() { grep -qF -e "$1" "$work/$2" || { echo "no '$1' in:" >&2; cat "$work/$2" >&2; exit 1; }; }

wants 2
wants 2 no_such_verb
wants 0 --help
says synth out
wants 0 --version
says "perigee 0." out
for verb in run chat eval tokenize detokenize inspect bench synth kernels; do
    wants 0 "$verb" --help
    says "Usage: perigee $verb" out
    says --json out
done
# options of the library come from its own list, where the verb takes that scope
wants 0 run --help
says --cache_type out
says --threads out
says --weights out
wants 0 kernels --help
says --threads out
! grep -q -e --cache_type "$work/out"

wants 2 run
wants 2 run "$work"
wants 2 run "$work" --ids
wants 2 run "$work" --ids 1,x
wants 2 run "$work" --ids 1,,2
wants 2 run "$work" --ids ""
wants 2 run "$work" --ids 4294967296
wants 2 run "$work" --ids 1 --greedy -1
wants 2 run "$work" --ids 1 --greedy 1e3
wants 2 run "$work" --ids 1 --threads lots
wants 2 run "$work" --ids 1 --threads 100000
wants 2 run "$work" --ids 1 --no-such-option 1
wants 2 run "$work" --ids 1 -x
wants 2 run "$work" another --ids 1
wants 2 kernels --context 3
wants 2 synth no_family "$work/out"
wants 2 synth kimi_k3

wants 1 run "$work/absent" --ids 1
says PERIGEE_E_ err
wants 1 run "$work/absent" --ids=1 --json
says '"status": "PERIGEE_E_' out
wants 1 inspect "$work/absent"
# values that the library calls bad
wants 2 kernels --kernels no_such_table
says "none of auto, scalar" err
wants 2 kernels --precision no_such
wants 2 kernels --cpus 0-
wants 2 tokenize "$work" x --kernels no_such_table
wants 1 kernels --plugins "$work/absent.so"
printf x > "$work/file"
wants 1 synth moonlight "$work/file"
wants 1 synth moonlight "$work"
says "not empty" err

# what can't be written is a failure
if [ -w /dev/full ]; then
    for words in --help --version "kernels --help" kernels "manual man"; do
        got=0
        "$perigee" $words > /dev/full 2> "$work/err" || got=$?
        [ "$got" = 1 ] || { echo "perigee $words > /dev/full: exit status $got" >&2; exit 1; }
        says "standard output" err
    done
fi
# a checkpoint that could not be written whole is not left behind: the second shard passes 2 MiB
got=0
(trap '' XFSZ; ulimit -f 4096; "$perigee" synth moonlight "$work/half" --layers 3 --experts 64 --vocab 320 --shrink 16) \
    2> "$work/err" || got=$?
[ "$got" = 1 ] && [ ! -e "$work/half" ] || { echo "synth without room: $got, $(ls "$work/half")" >&2; exit 1; }
says half/model-00002-of-00003.safetensors err
mkdir "$work/mine"
got=0
(trap '' XFSZ; ulimit -f 4096; "$perigee" synth moonlight "$work/mine" --layers 3 --experts 64 --vocab 320 --shrink 16) \
    2> "$work/err" || got=$?
[ "$got" = 1 ] && [ -d "$work/mine" ] && [ -z "$(ls "$work/mine")" ]
