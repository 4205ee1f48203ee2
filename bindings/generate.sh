#!/bin/sh
# Write the generated files of the bindings anew: generate.sh [OUT]
# Without OUT they go to where they are kept; with it, to the same paths under OUT.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-$here}" && cd "${1:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# SWIG writes the path of its input into its output: the same everywhere
cd "$here"
include=../include

go=$out/go/internal/capi
mkdir -p "$go"
swig -DSWIGWORDSIZE64 -go -cgo -intgosize 64 -package capi -Werror -I"$include" -outdir "$go" \
    -o "$go/perigee_wrap.c" perigee.i

rust=$out/rust/perigee-sys
mkdir -p "$rust/src" "$rust/tests"
swig -DSWIGWORDSIZE64 -xml -I"$include" -o "$work/perigee.xml" perigee.i
lua5.4 rust/generate.lua "$work/perigee.xml" "$rust/src/bindings.rs" "$work/probe.c"
${CC:-cc} -std=c11 -I"$include" "$work/probe.c" -o "$work/probe"
"$work/probe" > "$rust/tests/layout.rs"
