#!/bin/sh
# Decode and prefill beside llama.cpp, in turns, on the same shapes and stored types.
#
#     tests/bench/peers.sh MODEL GGUF
#
# MODEL: a folder that `perigee synth` wrote; GGUF: a file of the same shapes and types. Variables:
#   LLAMA_LIB      folder of libllama and ggml's libraries (as prebuilt for node-llama-cpp)
#   LLAMA_SOURCE   folder with include/llama.h and ggml/include
#   PERIGEE        the program [build/perigee]
#   PROBE          a program that prints the read bandwidth on a line, before and after each run [none]
#   RUN            words in front of each run, as a program that keeps a machine quiet [none]
#   THREADS [1]  PROMPT [512]  GEN [32]  REPEAT [1]  PAIRS [3]
#   OPTIONS        of `perigee bench`, choices apart by semicolons, as "--precision exact; --precision fast" [none]
#   PEER_OPTIONS   "mmap": llama.cpp maps its file; "plain": it does not lay weights anew [none]
#   CC [cc]  WORK  folder for the client [a new one]
set -eu

: "${PERIGEE:=build/perigee}" "${PROBE:=}" "${RUN:=}" "${THREADS:=1}" "${PROMPT:=512}" "${GEN:=32}" "${REPEAT:=1}"
: "${PAIRS:=3}" "${OPTIONS:=}" "${PEER_OPTIONS:=}" "${CC:=cc}" "${LLAMA_LIB:=}" "${LLAMA_SOURCE:=}"
here=$(dirname "$0")

if [ -z "$LLAMA_LIB" ] || [ -z "$LLAMA_SOURCE" ]; then
    echo "peers: no peer at hand (LLAMA_LIB and LLAMA_SOURCE are not set); nothing is compared"
    exit 0
fi
if [ $# -ne 2 ]; then
    echo "usage: $0 MODEL GGUF" >&2
    exit 2
fi

. "$here/peers/client.sh"

rate() {
    awk -v what="$1" '$1 == what { print $5 }' "$2"
}

# Of float32 in prefill and of the read limit in decode, in percent.
share() {
    awk '/ limit / { of = $1 }
         /share of it/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9.]+$/) { s[of] = $i; break } }
         END { printf " float32 %s %%, read limit %s %%", s["float32"], s["read"] }' "$1"
}

probe() {
    # shellcheck disable=SC2086
    [ -z "$PROBE" ] || $RUN "$PROBE"
}

# A run of ours with options; what came out lies in a file of its own.
ours() {
    probe
    # shellcheck disable=SC2086 # lists of words
    $RUN "$PERIGEE" bench "$1" --threads "$THREADS" --prompt "$PROMPT" --gen "$GEN" --repeat "$REPEAT" $2 >"$3"
    echo "ours    prefill $(rate prefill "$3")  decode $(rate decode "$3")  [$2 ]$(share "$3")"
}

theirs() {
    probe
    # shellcheck disable=SC2086
    $RUN "$client" bench "$1" "$LLAMA_LIB" "$THREADS" "$PROMPT" "$GEN" "$REPEAT" $PEER_OPTIONS >"$WORK/theirs"
    echo "theirs  prefill $(rate prefill "$WORK/theirs")  decode $(rate decode "$WORK/theirs")"
}

# Each choice of options once, numbered from 1.
all_of_ours() {
    number=0
    while read -r options; do
        number=$((number + 1))
        ours "$1" "$options" "$WORK/ours.$number" </dev/null
    done <"$WORK/choices"
}

quotient() {
    awk -v a="$(rate "$1" "$2")" -v b="$(rate "$1" "$WORK/theirs")" 'BEGIN { printf "%.3f\n", a / b }'
}

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

echo "$1 against $2: $THREADS threads"
printf '%s\n' "$OPTIONS" | tr ';' '\n' | sed 's/^ *//' >"$WORK/choices"
rm -f "$WORK"/prefill.* "$WORK"/decode.*
pair=0
while [ "$pair" -lt "$PAIRS" ]; do
    pair=$((pair + 1))
    # theirs comes first and last in turn
    if [ $((pair % 2)) -eq 1 ]; then
        all_of_ours "$1"
        theirs "$2"
    else
        theirs "$2"
        all_of_ours "$1"
    fi
    number=0
    while read -r options; do
        number=$((number + 1))
        for what in prefill decode; do
            quotient "$what" "$WORK/ours.$number" >>"$WORK/$what.$number"
        done
        echo "pair $pair: ours / theirs  prefill $(tail -n 1 "$WORK/prefill.$number")" \
            " decode $(tail -n 1 "$WORK/decode.$number")  [$options ]"
    done <"$WORK/choices"
done
probe
number=0
while read -r options; do
    number=$((number + 1))
    echo "median of $PAIRS: prefill $(median "$WORK/prefill.$number")  decode $(median "$WORK/decode.$number")  [$options ]"
done <"$WORK/choices"
