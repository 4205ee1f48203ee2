#!/bin/sh
# Bits per byte and comparisons: eval.sh PERIGEE JSON_GET FIXTURES WORK
set -eu
perigee=$1 json_get=$2 fixtures=$3 work=$4
. "$(dirname "$0")/checkpoint.sh"
evaluate() { "$perigee" eval "$model" "$work/text" --threads 1 "$@"; }
near() { awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { exit !(a - b < d && b - a < d) }' || fail "$4: $1, not $2"; }

head -c 1200 "$fixtures/text/k2_cases.json" > "$work/text"
tokens=$("$perigee" tokenize "$model" --file "$work/text" | tr ',' '\n' | wc -l)
evaluate --window 100 --json > "$work/json"
bits=$(get bits_per_byte < "$work/json")
same "$(get tokens < "$work/json")" "$tokens" "tokens"
same "$(get scored < "$work/json")" "$tokens" "scored tokens"
same "$(get bytes < "$work/json")" 1200 "bytes"
# perplexity is that of a token
near "$(awk -v b="$bits" -v n="$tokens" 'BEGIN { printf "%.6f\n", exp(b * 1200 * log(2) / n) }')" "$(get perplexity < "$work/json")" 1 perplexity
# one token of a window: its log-probability behind the first token, as a generation says it
id=$("$perigee" tokenize "$model" x)
printf x > "$work/x"
alone=$("$perigee" eval "$model" "$work/x" --json | get bits_per_byte)
said=$("$perigee" run "$model" --ids 3000 --logit-bias "$id=1000" --max-tokens 1 --log-probabilities 0 --temperature 0 --json |
    get log_probabilities 0 log_probability)
near "$alone" "$(awk -v l="$said" 'BEGIN { printf "%.12f\n", -l / log(2) }')" 0.00001 "bits of one byte"
# the stream is the window that is long enough, and not the sum of short ones
stream=$(evaluate --stream --json | get bits_per_byte)
same "$(evaluate --window 100000 --json | get bits_per_byte)" "$stream" "one long window"
[ "$stream" != "$bits" ] || fail "windows do not matter"
same "$(evaluate --window 100 --no-bos --json | get scored)" "$((tokens - (tokens + 99) / 100))" "scored without the first token"

# a model is as good as itself, under another table bit by bit
for other in "--against $model" '--against-precision balanced'; do
    # shellcheck disable=SC2086
    evaluate --window 100 $other --json > "$work/json"
    near "$(get bits_per_byte < "$work/json")" "$bits" 0.00001 "bits per byte beside another"
    near "$(get other_bits_per_byte < "$work/json")" "$bits" 0.00001 "bits per byte of the other"
    same "$(get first_choice_agreement < "$work/json")" 1.0 "agreement with itself"
    same "$(get divergence_max < "$work/json")" 0.0 "divergence from itself"
done
head -c 150 "$work/text" > "$work/x"
"$perigee" eval "$model" "$work/x" --against-kernels scalar --json > "$work/json"
near "$(get divergence_max < "$work/json")" 0 0.001 "divergence of the scalar table"
# other weights are not
"$perigee" synth kimi_k3 "$work/other" --layers 5 --experts 16 --vocab 3256 --shrink 32 --seed 2 > /dev/null
cp "$model/tiktoken.model" "$work/other/"
evaluate --window 100 --against "$work/other" --json > "$work/json"
get divergence_mean < "$work/json" | awk '{ exit !($1 > 0.001) }' || fail "no divergence from other weights"
get first_choice_agreement < "$work/json" | awk '{ exit !($1 < 0.9) }' || fail "agreement with other weights"
evaluate --window 100 --against "$work/other" | grep -q 'divergence, mean'

wants 2 eval "$model"
wants 2 eval "$model" "$work/text" --stream --window 5
wants 2 eval "$model" "$work/text" --against "$model" --against-kernels scalar
wants 1 eval "$model" "$work/absent"
wants 2 eval "$model" "$work/text" --against-kernels no_such_table
wants 1 eval "$model" "$work/text" --stream --context 64
: > "$work/empty"
wants 1 eval "$model" "$work/empty"
