#!/bin/sh
# Install what is missing, build, and generate from a small checkpoint that is written here: demo.sh
set -eu
. "$(dirname "$0")/steps.sh"

model=build/demo/kimi_k3
checkpoint() {
    if [ -f "$model/done" ]; then
        echo "setup: all there"
        return
    fi
    rm -rf "$model"
    mkdir -p "${model%/*}"
    build/perigee synth kimi_k3 "$model" --layers 8 --experts 32 --vocab 4096 --shrink 16
    touch "$model/done"
}
# say a command, run it, and say how long it took
show() {
    printf '\n$ %s\n' "$*"
    begun=$(date +%s%N)
    "$@"
    ms=$((($(date +%s%N) - begun) / 1000000))
    printf '(%d.%03d s)\n' $((ms / 1000)) $((ms % 1000))
}

step "install missing packages" sh tools/setup.sh build
step "configure" configure build gcc
step "build" cmake --build build --target perigee_cli -j "$(nproc)"
step "write a small Kimi K3 checkpoint" checkpoint
show build/perigee run "$model" --ids 1,2,3,4,5,6,7,8 --greedy 24
printf '\nThese ids come from random weights; build/perigee --help says what else there is.\n'
