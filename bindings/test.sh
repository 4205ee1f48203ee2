#!/bin/sh
# Build and test one binding against the library in a build folder: test.sh generated|lua|luajit|go|rust|installed BUILD WORK
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
luajit)
    need swig pkg-config
    command -v luajit > /dev/null && pkg-config --exists luajit || {
        echo "skipped: luajit and libluajit-5.1-dev are not installed"
        exit 77
    }
    models
    plugin
    sh "$here/lua/build.sh" "$work" luajit
    cd "$here/lua"
    export LUA_CPATH="$work/?.so"
    luajit test.lua
    # finalizers run whenever they may
    luajit -e 'collectgarbage("setpause", 1) collectgarbage("setstepmul", 1000)' test.lua short
    luajit chat.lua "$PERIGEE_TEXT_MODEL" Hello 8 > "$work/said"
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
installed) # what -DPERIGEE_BINDINGS=ON installs, moved afterwards, with programs that know the installed copy alone
    need swig lua5.4 go cargo pkg-config cmake ninja
    rm -rf "$work/installed" "$work/staged" "$work/programs"
    cmake -S "$here/.." -B "$work/build" -G Ninja -DPERIGEE_BINDINGS=ON -DPERIGEE_TESTS=OFF -DPERIGEE_TOOLS=OFF \
        > "$work/log"
    ninja -C "$work/build" >> "$work/log" || { tail -n 30 "$work/log"; exit 1; }
    DESTDIR="$work/staged" cmake --install "$work/build" --prefix /opt/perigee >> "$work/log"
    mv "$work/staged/opt/perigee" "$work/installed"
    lib=$(dirname "$(find "$work/installed" -name libperigee.so)")
    export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
    model=$PERIGEE_FIXTURES/golden/kimi_k3
    mkdir -p "$work/programs/go" "$work/programs/rust/src"
    cd "$work/programs"
    LUA_CPATH="$lib/lua/5.4/?.so" lua5.4 - "$model" > said.lua << 'END'
local p = require "perigee"
local s = p.Session(p.Model(p.Context(), arg[1]))
print(p.argmax(s:decode { 1, 2, 3 }))
END
    cat > go/main.go << 'END'
package main

import (
	"context"
	"fmt"
	"os"

	"perigee.example/perigee"
)

func main() {
	model, err := perigee.Load(os.Args[1])
	if err != nil {
		panic(err)
	}
	session, err := model.NewSession()
	if err != nil {
		panic(err)
	}
	logits, err := session.Decode(context.Background(), []int32{1, 2, 3}, perigee.Last)
	if err != nil {
		panic(err)
	}
	id, err := perigee.Argmax(logits[0])
	fmt.Println(id)
}
END
    export GOFLAGS=-mod=mod GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local CGO_ENABLED=1 GOCACHE="$build/bindings/go/cache"
    (cd go && go mod init program 2> /dev/null &&
        go mod edit -require perigee.example/perigee@v0.1.0 -replace "perigee.example/perigee=$work/installed/share/perigee/go" &&
        go run . "$model") > said.go
    cat > rust/Cargo.toml << END
[package]
name = "program"
version = "0.1.0"
edition = "2018"
[dependencies]
perigee = { path = "$work/installed/share/perigee/rust/perigee" }
[workspace]
END
    cat > rust/src/main.rs << 'END'
use perigee::{argmax, Context, Model, Session, Which};
fn main() -> perigee::Result<()> {
    let context = Context::new(None)?;
    let model = Model::load(&context, std::env::args().nth(1).unwrap(), None)?;
    let mut session = Session::new(&model, None)?;
    println!("{}", argmax(session.decode(&[1, 2, 3], Which::Last)?.row(0))?);
    Ok(())
}
END
    CARGO_TARGET_DIR="$work/target" CARGO_NET_OFFLINE=true cargo run --offline -q --manifest-path rust/Cargo.toml "$model" > said.rust
    LD_LIBRARY_PATH="$build" "$build/perigee" run "$model" --ids 1,2,3 --greedy 1 > said.c
    for language in lua go rust; do
        [ -s "said.$language" ] && cmp said.c "said.$language"
    done
    ;;
*)
    echo "usage: test.sh models|generated|lua|luajit|go|rust|installed BUILD WORK" >&2
    exit 2
    ;;
esac
