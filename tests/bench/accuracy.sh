#!/bin/sh
# Divergence of each kernel table and precision from expected logits in float64, and of llama.cpp where it is at hand.
#
#     tests/bench/accuracy.sh MODEL EXPECTED [GGUF]
#
# EXPECTED: a safetensors file of ids and logits, as the golden cases and nano models have it; GGUF: the same weights.
# Variables: LLAMA_LIB, LLAMA_SOURCE, PEER_OPTIONS, CC, WORK as for peers.sh;
#   BENCH  the program [build/tests/bench/bench_accuracy]
set -eu

: "${BENCH:=build/tests/bench/bench_accuracy}" "${CC:=cc}" "${LLAMA_LIB:=}" "${LLAMA_SOURCE:=}" "${PEER_OPTIONS:=}"
here=$(dirname "$0")

if [ $# -lt 2 ]; then
    echo "usage: $0 MODEL EXPECTED [GGUF]" >&2
    exit 2
fi
if [ $# -lt 3 ] || [ -z "$LLAMA_LIB" ] || [ -z "$LLAMA_SOURCE" ]; then
    echo "accuracy: no peer at hand (no GGUF, or LLAMA_LIB and LLAMA_SOURCE are not set)"
    exec "$BENCH" "$1" "$2"
fi
. "$here/peers/client.sh"
"$BENCH" --ids "$2" "$WORK/ids"
# shellcheck disable=SC2086 # a list of words; and a library may write lines of its own
"$client" logits "$3" "$LLAMA_LIB" 1 "$WORK/ids" "$WORK/logits" $PEER_OPTIONS >&2
"$BENCH" "$1" "$2" "$WORK/logits"
