#!/bin/sh
# Kimi K3 at its full size, all names and no data: sparse.sh PERIGEE WORK
set -eu
perigee=$1 work=$2
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
"$perigee" synth kimi_k3 "$work" --sparse | tee "$work.log"
grep -q '497,220 tensors in 96 files, 1,560,860,324,864 bytes' "$work.log"
begun=$(date +%s%N)
"$perigee" inspect "$work" > "$work.inspect"
ms=$((($(date +%s%N) - begun) / 1000000))
echo "inspect: $ms ms"
grep -q '2,779,484,476,000' "$work.inspect"
grep -q 'adds up' "$work.inspect" && ! grep -q 'ON DISK' "$work.inspect"
