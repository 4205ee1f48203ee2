#!/bin/sh
# A program of an older version's headers with the newest library: older.sh VERSION BUILD FIXTURES WORK
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$4"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$here/headers-$1" "$here/program.c" -L"$2" -lperigee -o "$4/program-$1"
LD_LIBRARY_PATH="$2" "$4/program-$1" "$3/golden/kimi_k2"
