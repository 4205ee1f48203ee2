#!/bin/sh
# The table in use, its benchmark, and runs that are traced and checked: kernels.sh PERIGEE MODEL PLUGIN
set -eu
perigee=$1 model=$2 plugin=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$perigee" kernels --kernels scalar --threads 1 | grep -q '^matmul_.*scalar' || { echo "no scalar products" >&2; exit 1; }
# with scalar asked for, no other row is in use
rows=$("$perigee" kernels --kernels scalar --json | grep -c '"isa": ')
scalar=$("$perigee" kernels --kernels scalar --json | grep -c '"isa": "scalar"')
[ "$rows" -gt 0 ] && [ "$rows" = "$scalar" ] || { echo "$scalar of $rows rows are scalar" >&2; exit 1; }
all=$("$perigee" kernels --all --json | grep -c '"isa": ')
used=$("$perigee" kernels --json | grep -c '"isa": ')
[ "$all" -ge "$used" ]
# every product has its rates, and every other row what it reads and writes
"$perigee" kernels --bench > "$work/bench"
awk 'NR > 1 && $2 ~ /^matmul/ { if (!($6 > 0 && $7 > 0 && $8 > 0 && $9 > 0)) exit 1; n++ }
     NR > 1 && $2 !~ /^matmul/ { if (!($5 > 0 && $6 == "-" && $7 > 0 && $8 == "-")) exit 1; n++ }
     END { if (n < 10) exit 1 }' "$work/bench" || { cat "$work/bench" >&2; exit 1; }
[ "$("$perigee" kernels --bench --json | grep -c '"bytes_per_second": [1-9]')" = $((2 * used)) ]
# switches take no value, and what was asked for stands in the one document
plain=$("$perigee" run "$model" --ids 1,2,3 --greedy 4)
"$perigee" run "$model" --check-kernels --trace-kernels --ids 1,2,3 --greedy 4 > "$work/ids" 2> "$work/said"
[ "$plain" = "$(cat "$work/ids")" ]
grep -q '^kernels: [1-9][0-9]* calls compared with scalar rows, 0 of them different' "$work/said"
grep -q '^kda_[a-z0-9]* *run  *0  *[0-9]*  *3 ' "$work/said" || { cat "$work/said" >&2; exit 1; }
"$perigee" run "$model" --check_kernels=1 --trace-kernels --ids 1,2,3 --greedy 4 --json > "$work/json" 2> "$work/said"
grep -q '"kernel_trace": \[' "$work/json" && grep -q '"different": 0' "$work/json" && grep -q '"calls": [1-9]' "$work/json"
"$perigee" run "$model" --check-kernels=0 --ids 1 --greedy 1 --json | grep -q kernel_ && exit 1
"$perigee" run "$model" --check-kernels=2 --ids 1 --greedy 1 2> "$work/said" && exit 1
grep -q check_kernels "$work/said"
# a row that JSON can't hold is an error, not left out
strange=$work/$(printf 'b\374cher').so
cp "$plugin" "$strange"
"$perigee" kernels --plugins "$plugin" --json | grep -q '"name": "sevens"'
"$perigee" kernels --plugins "$strange" | grep -q '^sevens '
"$perigee" kernels --plugins "$strange" --json > "$work/json" 2> "$work/said" && { echo "a row was dropped" >&2; exit 1; }
grep -q '"message": "kernel sevens: ' "$work/json"
