#!/bin/sh
# Install what is missing from Debian's packages: setup.sh build | check
# `build` is what compiling and running takes, `check` what the tests take beyond it. The lists stand here and nowhere
# else. Nothing is fetched when nothing is missing.
set -eu

build="ca-certificates check cmake gcc g++ libc6-dev libffi-dev libjansson-dev libopenblas-dev libpcre2-dev libutf8proc-dev
    libxxhash-dev libyajl-dev ninja-build pkg-config"
check="abigail-tools binutils cargo clang-14 clang-format-14 doxygen golang-go libclang-rt-14-dev liblua5.4-dev llvm-14 lua5.4 make
    rustc swig"
# asked for by `tools/check.sh tidy`, `tools/check.sh valgrind` and `tools/aarch64.sh`
deep="clang-tidy-14 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user valgrind"

case "${1:-}" in
build) wanted="$build" ;;
check) wanted="$build $check" ;;
deep) wanted="$build $check $deep" ;;
*)
    echo "usage: setup.sh build|check|deep" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
    echo "setup: not a Debian system; needed are: $(echo $wanted)" >&2
    exit 0
fi
missing=
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "setup: all packages are installed"
    exit 0
fi

echo "setup: installing$missing"
root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "setup: run as root, or with sudo: apt-get install$missing" >&2
        exit 1
    fi
    root=sudo
fi
fetch() { $root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" < /dev/null; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { fetch update && fetch install -y --no-install-recommends $missing; } > "$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "setup: apt-get failed" >&2
    exit 1
fi
