#!/bin/sh
# Build a program against the installed copy and run it: consumer.sh KIND INSTALLED WORK
set -eu
kind=$1 installed=$2 work=$3
here=$(cd "$(dirname "$0")" && pwd)
lib=$(dirname "$(find "$installed" -name libperigee.so)")
rm -rf "$work"
mkdir -p "$work"
export PKG_CONFIG_PATH="$lib/pkgconfig"
strict="-Wall -Wextra -Wpedantic -Werror"
case "$kind" in
pkgconfig_c99)
    ${CC:-cc} -std=c99 $strict "$here/consumer.c" -o "$work/consumer" $(pkg-config --cflags --libs perigee)
    ;;
pkgconfig_cxx17)
    ${CXX:-c++} -std=c++17 $strict -x c++ "$here/consumer.c" -x none -o "$work/consumer" \
        $(pkg-config --cflags --libs perigee)
    ;;
cmake_c)
    cat > "$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(perigee 0.1 REQUIRED)
add_executable(consumer $here/consumer.c)
target_link_libraries(consumer PRIVATE perigee::perigee)
END
    cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$installed" > "$work/log"
    cmake --build "$work/build" >> "$work/log"
    cp "$work/build/consumer" "$work/consumer"
    ;;
*) exit 2 ;;
esac
[ "$(pkg-config --modversion perigee)" = "$(LD_LIBRARY_PATH="$lib" "$work/consumer")" ]
