#!/bin/sh
# Cross-compile for 64-bit ARM and run the kernel tests and the golden cases under qemu: aarch64.sh [ctest arguments]
# Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user of Debian; the libraries that perigee links are
# fetched into build-aarch64/sysroot, outside the system. Says so and does nothing where a part is missing.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build-aarch64
sysroot=$folder/sysroot
packages="check libffi-dev libffi8 libjansson-dev libjansson4 libpcre2-8-0 libpcre2-dev libsubunit-dev libsubunit0 libutf8proc-dev libutf8proc2
    libxxhash-dev libxxhash0 libyajl-dev libyajl2"

skip() {
    echo "aarch64: skipped, $1"
    exit 0
}

for program in aarch64-linux-gnu-gcc qemu-aarch64 cmake ninja; do
    command -v "$program" > /dev/null || skip "no $program"
done

# Lists and packages of the other architecture are kept apart from the system's.
fetch() {
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    : > "$apt/status"
    set -- -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::Lists="$apt/lists" \
        -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root \
        -o Debug::NoLocking=1
    apt-get "$@" update && (
        cd "$apt/debs"
        # shellcheck disable=SC2086 # a list of words
        apt-get "$@" download $packages
    ) && for deb in "$apt/debs"/*.deb; do
        dpkg-deb -x "$deb" "$sysroot.new" || return 1
    done && mv "$sysroot.new" "$sysroot"
}

if [ ! -d "$sysroot" ]; then
    command -v apt-get > /dev/null || skip "no apt-get for the libraries"
    mkdir -p "$folder"
    fetch > "$folder/fetch.log" 2>&1 || skip "the libraries can't be fetched (build-aarch64/fetch.log)"
fi
[ -f "$folder/build.ninja" ] || cmake --preset aarch64 > "$folder/configure.log" 2>&1 || {
    tail -n 30 "$folder/configure.log" >&2
    exit 1
}
tests=$(find tests/kernels -name 'test_*.c' -exec basename {} .c ';')
# shellcheck disable=SC2086
ninja -C "$folder" $tests test_golden
exec ctest --test-dir "$folder" -R '^(kernels\.|model\.golden)' --output-on-failure "$@"
