#!/bin/sh
# Build the Lua module: build.sh OUT [LUA]
# Writes OUT/perigee.so for the Lua that pkg-config knows as LUA: lua5.4 (as without it) or luajit. The library is found through pkg-config too:
# set PKG_CONFIG_PATH to a build folder, or to lib/pkgconfig of where it is installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
lua=${2:-lua5.4}
include=$(pkg-config --cflags-only-I perigee)
cd "$here/.."
swig -DSWIGWORDSIZE64 -lua -nomoduleglobal -Werror $include -o "$out/perigee_lua.c" perigee.i
# Lua's headers come as those of the system: nothing is said of what is in them
${CC:-cc} -std=c11 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wno-unused-function -Wno-unused-variable \
    -Wno-unused-but-set-variable $include $(pkg-config --cflags "$lua") "$out/perigee_lua.c" \
    $(pkg-config --libs perigee) -o "$out/perigee.so"
