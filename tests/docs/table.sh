#!/bin/sh
# The README's table says what `perigee inspect` says: table.sh PERIGEE JSON_GET ROOT
set -eu
export LC_ALL=C
perigee=$1 json_get=$2 root=$3
work=$(mktemp)
trap 'rm -f "$work"' EXIT

# row CONFIG NAME FORMS: the row as it should be
row() {
    "$perigee" inspect "$root/tests/fixtures/golden/configs/$1/config.json" --json > "$work"
    for key in 'totals parameters' 'totals active' 'plan disk_bytes' 'plan token_bytes' 'plan session_fixed_bytes' \
        'plan session_token_bytes'; do
        # shellcheck disable=SC2086 # two words
        "$json_get" $key < "$work"
    done | awk -v name="$2" -v forms="$3" '
        { v[NR] = $1 }
        END {
            billions = int(v[1] / 1e9 + 0.5)
            if (billions >= 1000)
                billions = sprintf("%d,%03d", billions / 1000, billions % 1000)
            printf "| %s | %s billion, %.0f active | %s | %.1f GB | %.1f GB | %.1f MB | %.1f kB |\n",
                name, billions, v[2] / 1e9, forms, v[3] / 1e9, v[4] / 1e9, v[5] / 1e6, v[6] / 1e3
        }' > "$work.row"
    grep -qxF -f "$work.row" "$root/README.md" || {
        echo "the README should have:" >&2
        cat "$work.row" >&2
        bad=1
    }
    rm -f "$work.row"
}
bad=0
row kimi_k3 "Kimi K3" "BF16, experts MXFP4"
row kimi_k2_instruct "Kimi K2 Instruct" FP8
row kimi_k25 "Kimi K2 Thinking, K2.5" "BF16, experts INT4"
row kimi_linear_48b "Kimi Linear 48B" BF16
row moonlight_16b "Moonlight 16B" BF16
exit $bad
