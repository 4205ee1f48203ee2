#!/bin/sh
# A conversation in a pipe, interrupts included: chat.sh PERIGEE JSON_GET FIXTURES WORK
set -eu
perigee=$1 json_get=$2 fixtures=$3 work=$4
. "$(dirname "$0")/checkpoint.sh"
chat() { "$perigee" chat "$model" --threads 1 "$@"; }
turn() { sed -n "$1p" "$work/out"; }

# an answer for each line; the second question comes after the first answer
printf 'Hello\n\nAnd then?\n' | chat --json --max-tokens 12 --thinking off --temperature 1 > "$work/out"
same "$(wc -l < "$work/out")" 2 "answers"
for i in 1 2; do
    turn $i | get message content > /dev/null
    turn $i | get tokens_per_second > /dev/null
done
# the same conversation, in one piece: what the session kept changes nothing
cat > "$work/messages" << EOF
[{"role": "user", "content": "Hello"}, $(turn 1 | get message), {"role": "user", "content": "And then?"}]
EOF
"$perigee" run "$model" --threads 1 --messages "$work/messages" --max-tokens 12 --thinking off --temperature 1 --seed 1 --json > "$work/json"
same "$(get ids < "$work/json")" "$(turn 2 | get ids)" "second answer"

# saved, forgotten, loaded; the state makes the next prompt short
printf 'Hello\n/save %s\n/reset\n/load %s\nAnd then?\n' "$work/kept" "$work/kept" |
    chat --json --max-tokens 12 --thinking off --temperature 1 > "$work/again" 2> "$work/err"
sed -n 2p "$work/again" | get ids > "$work/ids"
turn 2 | get ids | cmp - "$work/ids"
same "$(sed -n 2p "$work/again" | get prompt_tokens)" "$(turn 2 | get prompt_tokens)" "prompt behind a loaded state"
same "$(get 1 role < "$work/kept")" assistant "saved message"
rm "$work/kept.state"
printf '/load %s\nAnd then?\n' "$work/kept" | chat --json --max-tokens 12 --thinking off --temperature 1 2> /dev/null | get ids | cmp - "$work/ids"
printf 'Hello\n/reset\nHello\n' | chat --json --max-tokens 12 > "$work/out"
same "$(turn 1 | get ids)" "$(turn 2 | get ids)" "answer after a reset"
printf 'one \\\ntwo\n/save %s\n' "$work/long" | chat --max-tokens 1 > /dev/null 2>&1
same "$(get 0 content < "$work/long")" "$(printf 'one \ntwo')" "line that goes on"

printf '/help\n' | chat 2>&1 | grep -q /reset
got=0
printf '/nothing\n' | chat 2> /dev/null || got=$?
same "$got" 1 "exit status after a bad command"
same "$(chat < /dev/null 2>&1)" "" "no lines, no output"

got=0
printf 'Hello\nHello\n' | chat --context 48 --json > "$work/out" 2> "$work/err" || got=$?
same "$got" 1 "exit status with a full context"
same "$(turn 1 | get finish)" context_full "finish of the first answer"
grep -q '/reset begins anew' "$work/err"

# an interrupt ends the answer and not the program; what would end an answer by itself is out of reach
mkfifo "$work/in"
biases='--logit-bias 3000=-999 --logit-bias 3001=-999 --logit-bias 3002=-999'
# shellcheck disable=SC2086
"$perigee" chat "$model" --threads 1 --max-tokens 100000000 --show-thinking $biases < "$work/in" > "$work/out" 2> "$work/err" &
pid=$!
exec 3> "$work/in"
grown() { # waits until the output is longer than $1 bytes
    tries=0
    while [ "$(wc -c < "$work/out")" -le "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] && kill -0 $pid || { cat "$work/err" >&2; fail "no answer came"; }
        sleep 0.1
    done
}
# still: waits until the output no longer grows
still() {
    before=-1
    tries=0
    while now=$(wc -c < "$work/out"); [ "$now" != "$before" ]; do
        before=$now
        tries=$((tries + 1))
        [ $tries -lt 60 ] || fail "the answer goes on"
        sleep 0.5
    done
}
for round in 1 2; do
    before=$(wc -c < "$work/out")
    echo "Hello $round" >&3
    grown $((before + 20))
    kill -INT $pid
    still
    kill -0 $pid || fail "the interrupt ended the program"
done
kill -INT $pid # while it waits for a line
sleep 0.2
echo /help >&3
exec 3>&-
got=0
wait $pid || got=$?
same "$got" 0 "exit status at the end of the input"
grep -q /reset "$work/err"

# run ends with what it has, and says so in its exit status
: > "$work/out"
# shellcheck disable=SC2086
"$perigee" run "$model" --threads 1 --prompt Hello --max-tokens 100000000 $biases > "$work/out" 2> "$work/err" &
pid=$!
grown 20
kill -INT $pid
got=0
wait $pid || got=$?
same "$got" 1 "exit status of an interrupted run"
