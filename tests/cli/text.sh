#!/bin/sh
# run, tokenize and detokenize over text: text.sh PERIGEE JSON_GET FIXTURES WORK
set -eu
perigee=$1 json_get=$2 fixtures=$3 work=$4
. "$(dirname "$0")/checkpoint.sh"
run() { "$perigee" run "$model" --threads 1 --precision exact "$@"; }

# text to ids and back, for any text; special tokens only where markup is asked for
printf 'Grüße, 世界 👩‍👧!\r\n\tif (x) { return 0; }  \n[EOS]' > "$work/text"
"$perigee" tokenize "$model" --file "$work/text" > "$work/ids"
"$perigee" detokenize "$model" --file "$work/ids" | cmp - "$work/text"
"$perigee" tokenize "$model" < "$work/text" | cmp - "$work/ids"
"$perigee" tokenize "$model" '[EOS]' | grep -q , || fail "plain text made a special token"
same "$("$perigee" tokenize "$model" '[EOS]' --markup)" 3001 "markup"
same "$("$perigee" detokenize "$model" 3001)" '[EOS]' "name of a special token"
same "$("$perigee" detokenize "$model" 3001 --skip-special)" '' "special token left out"
same "$("$perigee" tokenize "$model" 'Hello world' --json | get tokens)" \
    "$("$perigee" tokenize "$model" 'Hello world' | tr ',' '\n' | wc -l)" "number of tokens"
same "$("$perigee" detokenize "$model" "$("$perigee" tokenize "$model" 'Hello')" --json | get text)" Hello "text as JSON"
wants 1 tokenize "$model" --file "$work/absent"
wants 1 detokenize "$model" 99999
wants 2 detokenize "$model" 1,x
wants 2 tokenize "$model" a --file "$work/text"
wants 2 tokenize
wants 1 tokenize "$work" a
printf '\377' > "$work/bad"
wants 1 tokenize "$model" --file "$work/bad"
grep -q PERIGEE_E_TEXT "$work/err"

# a prompt is its ids behind the first token; temperature 0 is greedy
ids=3000,$("$perigee" tokenize "$model" 'Once upon')
greedy=$(run --ids "$ids" --greedy 12)
same "$(run --prompt 'Once upon' --temperature 0 --max-tokens 12 --json | get ids)" "[$greedy]" "greedy ids"
same "$(run --ids "$ids" --temperature 0 --max-tokens 12)" "$greedy" "greedy ids from ids"
same "$(run --prompt 'Once upon' --top-k 1 --max-tokens 12 --json | get ids)" "[$greedy]" "ids with top-k 1"
same "$(run --prompt 'Once upon' --no-bos --json --max-tokens 1 | get prompt_tokens)" \
    "$("$perigee" tokenize "$model" 'Once upon' | tr ',' '\n' | wc -l)" "prompt without the first token"
first=${greedy%%,*}
run --prompt 'Once upon' --temperature 0 --max-tokens 12 --logit-bias "$first=-1000" --json | get ids > "$work/biased"
! grep -q "\\[$first,\\|,$first,\\|,$first\\]" "$work/biased" || fail "a token with a bias of -1000 came up"

# equal seeds, equal texts; a stream of JSON says the same
sample() { run --prompt 'Once upon' --temperature 1 --max-tokens 40 "$@"; }
sample --seed 7 > "$work/a"
sample --seed 7 > "$work/b"
cmp "$work/a" "$work/b"
sample --seed 8 > "$work/b"
! cmp -s "$work/a" "$work/b" || fail "another seed, the same text"
sample --seed 7 --json > "$work/json"
same "$(get finish < "$work/json")" length "finish"
same "$(get tokens < "$work/json")" 40 "tokens"
get text < "$work/json" > "$work/text"
cmp "$work/text" "$work/a"
sample --seed 7 --stream-json --log-probabilities 2 > "$work/lines"
same "$(wc -l < "$work/lines")" 41 "lines of the stream"
while read -r line; do
    echo "$line" | get text 2> /dev/null | head -c -1 || true
done < "$work/lines" > "$work/text"
head -c "$(wc -c < "$work/text")" "$work/a" | cmp - "$work/text"
[ -s "$work/text" ]
head -1 "$work/lines" | get most_likely 1 log_probability | grep -q '^-[0-9.e-]*$'
same "$(tail -1 "$work/lines" | get finish)" length "finish of the stream"
sample --seed 7 --verbose 2>&1 > /dev/null | grep -q 'tokens/s; generated 40' || fail "no rates"
sample --seed 7 2> "$work/err" > /dev/null
[ ! -s "$work/err" ] || fail "not silent in a pipe"
run --prompt-file - --temperature 1 --max-tokens 40 --seed 7 < /dev/null > /dev/null 2>&1 || true
printf 'Once upon' | run --prompt-file - --temperature 1 --max-tokens 40 --seed 7 | cmp - "$work/a"

# a stop string ends the text in front of it
word=$(tr -d '\n' < "$work/text" | LC_ALL=C tr -c 'a-zA-Z' '\n' | awk 'length > 3 { last = $0 } END { print last }')
[ -n "$word" ] || fail "no word in the sample"
sample --seed 7 --json --stop "$word" --stop 'never to be found' > "$work/stopped"
same "$(get finish < "$work/stopped")" stop_string "finish"
get text < "$work/stopped" | head -c -1 > "$work/head"
! grep -qF "$word" "$work/head" || fail "the stop string was shown"
head -c "$(wc -c < "$work/head")" "$work/a" | cmp - "$work/head"
tail -c "+$(($(wc -c < "$work/head") + 1))" "$work/a" | head -c "${#word}" | grep -qxF "$word"

# constrained text is valid
cat > "$work/schema" << 'EOF'
{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 10, "maximum": 99},
 "sure": {"type": "boolean"}}, "required": ["name", "age", "sure"], "additionalProperties": false}
EOF
for seed in 1 2 3; do
    run --prompt x --schema "$work/schema" --temperature 1 --seed $seed --max-tokens 400 > "$work/out"
    get age < "$work/out" | grep -qx '[1-9][0-9]'
    get sure < "$work/out" | grep -qx 'true\|false'
    get name < "$work/out" > /dev/null
    run --prompt x --regex '[a-c]{3}-[0-9]{2}' --temperature 1 --seed $seed | grep -qx '[a-c]\{3\}-[0-9]\{2\}'
done
echo '{"type": 7}' > "$work/bad"
wants 1 run "$model" --prompt x --schema "$work/bad"
grep -q PERIGEE_E_SCHEMA "$work/err"

# conversations
echo '[{"role": "user", "content": "Hi"}]' > "$work/messages"
echo '[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]' > "$work/tools"
run --messages "$work/messages" --tools "$work/tools" --thinking on --effort low --tool-choice auto --max-tokens 9 --json > "$work/json"
same "$(get message role < "$work/json")" assistant "role"
same "$(get tokens < "$work/json")" 9 "tokens"
run --messages "$work/messages" --schema "$work/schema" --temperature 1 --max-tokens 400 | get age > /dev/null
run --messages "$work/messages" --regex 'ab+END' --stop END --json > "$work/json"
same "$(get finish < "$work/json")" stop_string "finish of a chat"
get message content < "$work/json" | grep -qx 'abb*'
run --messages "$work/messages" --regex 'ab{9}' --stop b{9}c | grep -qx 'ab\{9\}' # held back, and shown at the end
# of two stop strings the one that is complete first counts, in a chat as in a text
for source in "--messages $work/messages" "--prompt x"; do
    # shellcheck disable=SC2086
    same "$(run $source --regex 'aabxc' --stop abc --stop b)" aa "text before the first stop string"
done
wants 2 run "$model" --prompt x --stop ""
wants 1 run "$model" --messages "$work/tools"
wants 1 run "$model" --messages "$work/messages" --effort extreme
wants 2 run "$model" --messages "$work/messages" --prompt x
wants 2 run "$model" --messages "$work/messages" --thinking maybe
wants 2 run "$model" --messages "$work/messages" --thinking on --regex x
wants 2 run "$model" --prompt x --tools "$work/tools"
wants 2 run "$model" --prompt x --greedy 3
wants 2 run "$model" --prompt x --temperature warm
wants 2 run "$model" --prompt x --logit-bias 5
wants 1 run "$model" --prompt x --top-p 7
wants 1 run "$work/absent" --prompt x
wants 1 run "$model" --prompt ""  --no-bos
rm "$model/tiktoken.model"
wants 1 run "$model" --prompt x
grep -q tiktoken.model "$work/err"
