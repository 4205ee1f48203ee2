#!/bin/sh
# All C is as clang-format-14 leaves it, generated files apart: format.sh ROOT
set -eu
cd "$1"
if ! command -v clang-format-14 > /dev/null; then
    echo "clang-format-14 is not installed: tools/setup.sh check" >&2
    exit 1
fi
folders=
for folder in include src tools tests examples bindings; do
    [ ! -d "$folder" ] || folder_list="${folder_list:-} $folder"
done
find ${folder_list:-.} \( -name '*.c' -o -name '*.h' \) -not -name status_codes.h -not -name option_keys.h \
    -not -name '*_wrap.c' -print0 | xargs -0 -r clang-format-14 --style=file --dry-run -Werror
