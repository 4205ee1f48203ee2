#!/bin/sh
# A benchmark gives numbers that are possible: bench.sh PERIGEE WORK
set -eu
perigee=$1 work=$2
rm -rf "$work"
"$perigee" synth moonlight "$work" --layers 3 --experts 8 --vocab 320 --shrink 16 > /dev/null
"$perigee" bench "$work" --prompt 32 --gen 8 --repeat 3
"$perigee" bench "$work" --prompt 32 --gen 8 --repeat 3 --json > "$work.json"
# of each series: least <= median <= most, all above zero; shares of an arithmetic limit are no multiples of it (a busy machine may give a
# little more than 1); two series more where the processor has a loop of integers
awk '
    /"(prefill|decode|weight|read|multiply|int8)[a-z_0-9]*": \{/ { name = $1; series++ }
    /"median"/ { median = $2 + 0 } /"least"/ { least = $2 + 0 } /"most"/ { most = $2 + 0 }
    /\}/ && name != "" {
        if (!(least > 0 && least <= median && median <= most)) { print name, least, median, most; bad = 1 }
        if (name ~ /share_of_(multiply|int8)/ && most >= 3) { print name, most; bad = 1 }
        name = ""
    }
    END { exit bad || (series != 7 && series != 9) }' "$work.json"
