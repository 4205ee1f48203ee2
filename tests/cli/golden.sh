#!/bin/sh
# Greedy continuations of the golden cases, from the command line: golden.sh PERIGEE FIXTURES
set -eu
perigee=$1 fixtures=$2
count=0
for case in "$fixtures"/golden/kimi_* "$fixtures"/golden/moonlight; do
    file="$case/expected/expected.safetensors"
    header=$(od -An -tu8 -N8 "$file" | tr -d ' ')
    text=$(tail -c +9 "$file" | head -c "$header")
    # the first tensor is ids, the last is greedy
    tokens=$(echo "$text" | sed 's/.*"ids":{"dtype":"I32","shape":\[\([0-9]*\)\].*/\1/')
    greedy=$(echo "$text" | sed 's/.*"greedy":{"dtype":"I32","shape":\[\([0-9]*\)\].*/\1/')
    join() { od -An -v -td4 | tr -s ' \n' ',' | sed 's/^,//; s/,$//'; }
    ids=$(tail -c +$((9 + header)) "$file" | head -c $((4 * tokens)) | join)
    wanted=$(tail -c $((4 * greedy)) "$file" | join)
    got=$("$perigee" run "$case" --precision exact --ids "$ids" --greedy "$greedy")
    [ "$got" = "$wanted" ] || { printf '%s\ngot    %s\nwanted %s\n' "$case" "$got" "$wanted" >&2; exit 1; }
    count=$((count + 1))
done
[ "$count" -ge 10 ] || { echo "only $count cases" >&2; exit 1; }
# a device that can't take the logits stays where it is
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s /dev/full "$work/device"
if "$perigee" run "$fixtures/golden/kimi_k3" --ids 1 --greedy 0 --logits "$work/device" 2> "$work/error"; then
    echo "a full device went unnoticed" >&2
    exit 1
fi
[ -h "$work/device" ] || { echo "a device was removed" >&2; exit 1; }
