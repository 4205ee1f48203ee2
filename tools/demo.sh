#!/bin/sh
# Install what is missing, build, and let the small model in the box write: demo.sh
set -eu
. "$(dirname "$0")/steps.sh"

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
show build/perigee run --prompt "And it came to pass" --max-tokens 120 --verbose
printf '\nThat was models/nano-k3. Next: build/perigee chat, build/perigee --help.\n'
