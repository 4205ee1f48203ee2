#!/bin/sh
# A checkpoint that is broken off leaves nothing behind, and a folder that was there as it was: synth_stop.sh PERIGEE WORK
set -eu
perigee=$1 work=$2
rm -rf "$work"
mkdir -p "$work/there" "$work/full"
echo mine > "$work/full/config.json"
stop() {
    "$perigee" synth moonlight "$work/$1" --layers 4 2> "$work/said" &
    job=$!
    tries=0
    until [ -n "$(find "$work/$1" -name '*.safetensors' -size +1M 2> /dev/null)" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { kill -KILL "$job"; echo "nothing is written" >&2; exit 1; }
        sleep 0.05
    done
    kill -TERM "$job"
    status=0
    wait "$job" || status=$?
    [ "$status" = 1 ] || { echo "status $status" >&2; cat "$work/said" >&2; exit 1; }
    grep -q 'stopped' "$work/said"
}
# an interrupt does the same, but jobs in the background ignore it
stop new
[ ! -e "$work/new" ] || { find "$work/new" >&2; exit 1; }
stop there
[ -d "$work/there" ] && [ -z "$(ls -A "$work/there")" ] || { find "$work/there" >&2; exit 1; }
# what is not its own stays
"$perigee" synth moonlight "$work/full" --layers 2 2> /dev/null && exit 1
[ "$(cat "$work/full/config.json")" = mine ]
rm -rf "$work"
