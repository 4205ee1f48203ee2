#!/bin/sh
# The example plugin, built by itself against the installed copy, in a run whose kernels are compared with the scalar ones:
# plugin.sh cmake|make SOURCE INSTALLED WORK MODEL
set -eu
kind=$1 source=$2 installed=$3 work=$4 model=$5
lib=$(dirname "$(find "$installed" -name libperigee.so)")
rm -rf "$work"
mkdir -p "$work"
cp "$source"/* "$work"
case "$kind" in
cmake)
    cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$installed" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" > "$work/log"
    cmake --build "$work/build" >> "$work/log"
    plugin=$work/build/perigee_example.so
    ;;
make)
    PKG_CONFIG_PATH="$lib/pkgconfig" make -s -C "$work" CC="${CC:-cc}" CFLAGS="-O2 -Wall -Wextra -Wpedantic -Werror"
    plugin=$work/perigee_example.so
    ;;
esac
if nm -D --undefined-only "$plugin" | grep perigee; then
    echo "it calls the library" >&2
    exit 1
fi
[ "$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | sort | tr '\n' ' ')" = \
    "perigee_kernel_plugin perigee_kernel_plugin_version " ]
perigee=$installed/bin/perigee
for row in matmul_bf16_example rms_norm_example; do
    "$perigee" kernels --plugins "$plugin" | grep "^$row " | grep -qF "$plugin" || { echo "no $row" >&2; exit 1; }
done
wanted=$("$perigee" run "$model" --ids 1,2,3,4 --greedy 8)
got=$("$perigee" run "$model" --ids 1,2,3,4 --greedy 8 --plugins "$plugin" --check-kernels --trace-kernels 2> "$work/said")
[ "$got" = "$wanted" ] || { echo "it says $got, not $wanted" >&2; exit 1; }
grep -q ' calls compared with scalar rows, 0 of them different; at most 0\.' "$work/said" || { cat "$work/said" >&2; exit 1; }
grep -q '^matmul_bf16_example *function ' "$work/said" && grep -q '^rms_norm_example *rms_norm ' "$work/said"
