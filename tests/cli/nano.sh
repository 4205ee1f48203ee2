#!/bin/sh
# The models in the box, from the command line: nano.sh PERIGEE JSON_GET MODELS
set -eu
perigee=$1 json_get=$2 models=$3
fail() { echo "$*" >&2; exit 1; }

# bits per byte are those of the training framework, in float32 within 0.001 and in fast within 0.01
for model in nano-k3 nano-k2; do
    wanted=$("$json_get" bits_per_byte < "$models/$model/expected/reference.json")
    window=$("$json_get" window < "$models/$model/expected/reference.json")
    for limit in 'exact 0.001' 'fast 0.01'; do
        got=$("$perigee" eval "$models/$model" "$models/heldout.txt" --window "$window" --precision "${limit% *}" --json |
            "$json_get" bits_per_byte)
        echo "$model ${limit% *}: $got bits per byte, $wanted wanted"
        awk -v a="$got" -v b="$wanted" -v d="${limit#* }" 'BEGIN { exit !(a - b < d && b - a < d) }' || fail "too far"
    done
done

# without a model it is nano-k3; what it writes looks like text: letters and spaces, and words of the books
text=$("$perigee" run --prompt 'And it came to pass' --max-tokens 120 --seed 1)
echo "$text"
[ "$text" = "$("$perigee" run "$models/nano-k3" --prompt 'And it came to pass' --max-tokens 120 --seed 1)" ] ||
    fail "another text with the model named"
letters=$(printf %s "$text" | tr -cd 'a-zA-Z ' | wc -c)
[ $((10 * letters)) -gt $((8 * ${#text})) ] || fail "$letters letters and spaces of ${#text}"
words=$(printf '%s\n' "$text" | tr -cs 'a-zA-Z' '\n' | grep -cixE 'the|and|of|to|in|that|he|was|it|his|her|unto|with|be|not|for|she' || true)
[ "$words" -ge 10 ] || fail "$words common words"

# a stop string, a schema and a conversation, where sense matters
"$perigee" run --prompt 'And it came to pass' --max-tokens 120 --seed 1 --stop the --json > "${TMPDIR:-/tmp}/nano.$$"
finish=$("$json_get" finish < "${TMPDIR:-/tmp}/nano.$$")
rm -f "${TMPDIR:-/tmp}/nano.$$"
[ "$finish" = stop_string ] || fail "finish: $finish"
"$perigee" run --prompt 'The names:' --regex '[A-Z][a-z]{2,9}(, [A-Z][a-z]{2,9}){2}' | grep -qxE '[A-Z][a-z]{2,9}(, [A-Z][a-z]{2,9}){2}'
[ "$(printf 'Hello!\nTell me a story.\n' | "$perigee" chat --max-tokens 40 --json | wc -l)" = 2 ] || fail "not two answers"
