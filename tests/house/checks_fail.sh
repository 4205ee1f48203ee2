#!/bin/sh
# Each check of this folder fails on a tree that breaks its rule, and passes on the same tree mended: checks_fail.sh ROOT
set -eu
root=$1
here="$root/tests/house"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/ops" "$tree/src/kernels/scalar" "$tree/src/base" "$tree/include/perigee" "$tree/tools"
cp "$root/.clang-format" "$tree/"

# expect CHECK FILE BAD GOOD
expect() {
    printf '%b' "$4" > "$tree/$2"
    sh "$here/$1.sh" "$tree" > "$tree/out" 2>&1 || { echo "$1 refuses: $4"; cat "$tree/out"; exit 1; }
    printf '%b' "$3" > "$tree/$2"
    if sh "$here/$1.sh" "$tree" > "$tree/out" 2>&1; then
        echo "$1 lets pass: $3"
        exit 1
    fi
    rm "$tree/$2"
}

expect format src/ops/a.c 'int  a;\n' 'int a;\n'
expect layering src/ops/a.c '#include "model/model.h"\n' '#include "kernels/table.h"\n#include "perigee/model.h"\n'
expect layering src/ops/a.c '#include "store/store.h"\n' '#include "base/alloc.h"\n'
expect layering src/ops/a.c '#include "norm.h"\n' '#include "ops/norm.h"\n'
expect layering tools/a.c '#include "base/json.h"\n' '#include "cli.h"\n#include "perigee/perigee.h"\n'
expect library_calls src/ops/a.c 'void f(void) {\n    abort();\n}\n' '/* never calls abort() */\nint abort_at(int);\n'
expect library_calls src/ops/a.c 'int f(void) {\n    return !getenv("A");\n}\n' 'char *f = "getenv()";\n'
expect library_calls src/ops/a.c 'void f(void) {\n    printf("");\n}\n' 'void f(void) {\n    snprintf(0, 0, "");\n}\n'
lines=$(yes '    a++;' | head -n 101 | tr '\n' '~' | sed 's/~/\\n/g')
expect sizes src/ops/a.c "static void f(int a) {\n$lines}\n" 'static void f(int a) {\n    a++;\n}\n'
expect sizes src/ops/a.c "static void f(int a,\n              int b) {\n$lines}\n" 'int a;\n'
