#!/bin/sh
# Build and test one binding against the library in a build folder: test.sh generated|lua|go|rust BUILD WORK
# Leaves with 77, which CTest takes for "skipped", where the language's tools are missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
language=$1 build=$(cd "$2" && pwd)
work=$(mkdir -p "$3" && cd "$3" && pwd)

need() {
    for tool in "$@"; do
        command -v "$tool" > /dev/null || {
            echo "skipped: $tool is not installed; tools/setup.sh check brings it"
            exit 77
        }
    done
}

export PKG_CONFIG_PATH="$build" LD_LIBRARY_PATH="$build"
export PERIGEE_FIXTURES="$here/../tests/fixtures"

# A model of random weights with the tokenizer of the fixtures, and one with a tensor that nothing knows: made once.
models() {
    models=$build/bindings/models
    export PERIGEE_TEXT_MODEL="$models/text" PERIGEE_STRAY_MODEL="$models/stray"
    [ -f "$models/done" ] && return
    rm -rf "$models"
    mkdir -p "$models"
    "$build/perigee" synth kimi_k3 "$models/text" --layers 4 --experts 8 --vocab 3256 --shrink 32 > "$work/log"
    cp "$PERIGEE_FIXTURES/text/tiktoken.model" "$models/text/"
    cp -r "$PERIGEE_FIXTURES/golden/kimi_k3" "$models/stray"
    printf '\110\0\0\0\0\0\0\0%-72s\0\0\0\0' \
        '{"stray.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' > "$models/stray/stray.safetensors"
    sed -i 's/"weight_map": *{/&"stray.weight": "stray.safetensors",/' "$models/stray/model.safetensors.index.json"
    touch "$models/done"
}

# The example plugin, for the tests to load.
plugin() {
    export PERIGEE_PLUGIN="$work/perigee_example.so"
    ${CC:-cc} -std=c11 -O2 -fPIC -shared -fvisibility=hidden -I"$here/../include" "$here/../examples/plugin/plugin.c" \
        -o "$PERIGEE_PLUGIN" -lm
}

# The example of a binding says what that in C says.
same_as_c() {
    "$build/examples/example_chat" "$PERIGEE_TEXT_MODEL" Hello 8 > "$work/said.c"
    [ -s "$work/said.c" ] && cmp "$work/said.c" "$work/said"
}

case "$language" in
models) models ;;
generated)
    need swig lua5.4
    rm -rf "$work/new"
    sh "$here/generate.sh" "$work/new"
    for file in go/internal/capi/perigee.go go/internal/capi/perigee_wrap.c rust/perigee-sys/src/bindings.rs \
        rust/perigee-sys/tests/layout.rs; do
        diff -u "$here/$file" "$work/new/$file" > "$work/diff" || {
            head -n 40 "$work/diff"
            echo "$file is not what generate.sh writes"
            exit 1
        }
    done
    ;;
lua)
    need swig lua5.4 pkg-config
    pkg-config --exists lua5.4 || { echo "skipped: liblua5.4-dev is not installed"; exit 77; }
    models
    plugin
    sh "$here/lua/build.sh" "$work"
    cd "$here/lua"
    export LUA_CPATH="$work/?.so"
    lua5.4 test.lua
    if command -v valgrind > /dev/null; then
        valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=1 \
            lua5.4 test.lua short
    else
        echo "valgrind is not installed: no look for leaks"
    fi
    lua5.4 chat.lua "$PERIGEE_TEXT_MODEL" Hello 8 > "$work/said"
    same_as_c
    ;;
go)
    need go pkg-config
    models
    plugin
    export GOFLAGS=-mod=mod GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local CGO_ENABLED=1 GOCACHE="$work/cache"
    cd "$here/go"
    [ -z "$(gofmt -l *.go examples)" ] || { gofmt -d *.go examples; exit 1; }
    # generated code turns uintptr into unsafe.Pointer
    go vet -unsafeptr=false ./...
    go test -count=1 -v . > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    grep -E 'overhead|^ok' "$work/log"
    case $(go version) in
    *go1.19* | *go1.20*) GODEBUG=cgocheck=2 go test -count=1 -race -short . ;;
    *) GOEXPERIMENT=cgocheck2 go test -count=1 -race -short . ;;
    esac
    go run ./examples/chat "$PERIGEE_TEXT_MODEL" Hello 8 > "$work/said"
    same_as_c
    ;;
rust)
    need cargo rustc pkg-config
    models
    plugin
    export CARGO_TARGET_DIR="$work/target" CARGO_NET_OFFLINE=true
    cd "$here/rust"
    cargo test --offline --workspace --release -q -- --nocapture > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    grep 'overhead' "$work/log"
    if cargo clippy --version > /dev/null 2>&1; then
        cargo clippy --offline --workspace --all-targets -q -- -D warnings
    fi
    if cargo fmt --version > /dev/null 2>&1; then
        cargo fmt --check
    fi
    cargo run --offline --release -q --example chat "$PERIGEE_TEXT_MODEL" Hello 8 > "$work/said"
    same_as_c
    ;;
*)
    echo "usage: test.sh generated|lua|go|rust BUILD WORK" >&2
    exit 2
    ;;
esac
