#!/bin/sh
# Build everything and run all tests but the soaks: check.sh
# Longer ones, each alone: check.sh soak | tsan | tidy | valgrind
set -eu
. "$(dirname "$0")/steps.sh"

jobs=$(nproc)
build() {
    step "configure $1" configure "$2" "$1"
    step "build $1" cmake --build "$2" -j "$jobs"
}
run_tests() {
    where=$1
    shift
    echo "tests, after $(($(date +%s) - started)) s"
    ctest --test-dir "$where" -j "$jobs" --output-on-failure "$@"
}

all() {
    step "install missing packages" sh tools/setup.sh check
    build gcc build
    build clang build-clang
    build sanitize build-sanitize
    # one run, and one summary, over the builds that have tests to run
    mkdir -p build-check
    printf 'subdirs("%s" "%s")\n' "$PWD/build" "$PWD/build-sanitize" > build-check/CTestTestfile.cmake
    run_tests build-check -LE soak
}

case "${1:-all}" in
all) all ;;
soak)
    step "install missing packages" sh tools/setup.sh check
    build gcc build
    run_tests build -L soak
    ;;
tsan)
    step "install missing packages" sh tools/setup.sh check
    build tsan build-tsan
    run_tests build-tsan
    ;;
tidy)
    step "install missing packages" sh tools/setup.sh deep
    build clang build-clang
    find src tools examples -name '*.c' -not -path '*/plugins/*' -print0 |
        xargs -0 -n 4 -P "$jobs" clang-tidy-14 --quiet -p build-clang
    ;;
valgrind)
    step "install missing packages" sh tools/setup.sh deep
    build gcc build
    for program in build/tests/test_*; do
        valgrind -q --error-exitcode=9 --leak-check=full "$program"
    done
    ;;
*)
    echo "usage: check.sh [soak|tsan|tidy|valgrind]" >&2
    exit 2
    ;;
esac
