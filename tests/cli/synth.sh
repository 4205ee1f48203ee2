#!/bin/sh
# A small checkpoint of a family, through inspect and run: synth.sh PERIGEE FAMILY WORK
set -eu
perigee=$1 family=$2 work=$3
rm -rf "$work"
"$perigee" synth "$family" "$work" --layers 5 --experts 16 --vocab 320 --shrink 32
"$perigee" inspect "$work" > "$work.inspect"
grep -q 'adds up' "$work.inspect" && ! grep -q 'ON DISK' "$work.inspect" || { cat "$work.inspect" >&2; exit 1; }

run() { "$perigee" run "$work" --ids 5,300,17,17,254,9,77,130,41 --greedy 12 "$@"; }
ids=$(run)
echo "$ids"
echo "$ids" | grep -qE '^[0-9]+(,[0-9]+){11}$'
[ "$(echo "$ids" | tr ',' '\n' | sort -un | wc -l)" -ge 3 ] || { echo "the same id again and again" >&2; exit 1; }
for id in $(echo "$ids" | tr ',' ' '); do
    [ "$id" -lt 320 ]
done
# neither chunks nor threads change a bit, so they change no id
[ "$(run --chunk 1)" = "$ids" ] && [ "$(run --chunk 4 --threads 1)" = "$ids" ] && [ "$(run --weights mapped)" = "$ids" ]
# the stored logits and traces are there in full: 9 positions
run --logits "$work.logits" --trace "$work.trace" > /dev/null
[ "$(wc -c < "$work.logits")" -gt $((9 * 320 * 4)) ] && [ "$(wc -c < "$work.trace")" -gt $((5 * 9 * 32 * 4)) ]
# another seed, other weights
rm -rf "$work.2"
"$perigee" synth "$family" "$work.2" --layers 5 --experts 16 --vocab 320 --shrink 32 --seed 2 > /dev/null
[ "$("$perigee" run "$work.2" --ids 5,300,17 --greedy 12)" != "$("$perigee" run "$work" --ids 5,300,17 --greedy 12)" ]
