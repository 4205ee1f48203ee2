#!/bin/sh
# The model as blocks in blocks, as text, JSON and SVG: tree.sh PERIGEE JSON_GET FIXTURES WORK
set -eu
perigee=$1 json_get=$2 fixtures=$3 work=$4
for family in kimi_k3 moonlight; do
    . "$(dirname "$0")/checkpoint.sh"
    "$perigee" inspect "$model" --tree > "$work/tree"
    # every component has a place, and the blocks add up
    "$perigee" inspect "$model" | grep -o '^[a-z][A-Za-z_.]* .*= [0-9,]*$' | awk '{ print $1, $NF }' | grep -v '^family' | sort > "$work/components"
    [ "$(wc -l < "$work/components")" -ge 20 ]
    sed 's/^[^a-zA-Z]*//' "$work/tree" | awk 'NF > 3 && $2 ~ /^[0-9,]+$/ { print $1, $2 }' | grep -v "weights" | sort > "$work/leaves"
    cmp "$work/components" "$work/leaves"
    "$perigee" inspect "$model" --tree --json > "$work/json"
    same "$(get total < "$work/json")" "$("$perigee" inspect "$model" --json | get totals parameters)" "weights in all"
    grep -q 'layers × 5 ' "$work/tree"
    grep -q 'routed experts × 16 ' "$work/tree"
    grep -q 'dense × 1 ' "$work/tree"
    grep -q 'mixture of experts × 4 ' "$work/tree"
    # the drawing has the same labels, each block in a box, and well-formed text
    "$perigee" inspect "$model" --svg "$work/svg" > "$work/out"
    [ ! -s "$work/out" ]
    blocks=$(grep -o '"blocks"' "$work/json" | wc -l)
    same "$(grep -c '<rect' "$work/svg")" "$((blocks + 1))" "boxes"
    same "$(grep -c 'class="part"' "$work/svg")" "$(wc -l < "$work/components")" "components"
    same "$(grep -c '^<text[^<>]*>[^<>]*</text>$' "$work/svg")" "$(grep -c '<text ' "$work/svg")" "texts"
    # no box touches the line above it
    awk -F '"' '/class="part"/ { line = $4 } /<rect x/ { if (line && $4 - line < 12) exit 1; line = 0 }' "$work/svg" || fail "a box on a line"
    tail -1 "$work/svg" | grep -qx '</svg>'
done
grep -q 'multi-head latent attention × 5 ' "$work/tree" # moonlight has no other
wants 1 inspect "$model" --svg "$work/no/folder"
wants 0 inspect "$model/config.json" --tree
