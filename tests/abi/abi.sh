#!/bin/sh
# The binary interface against what is committed beside this script:
#   abi.sh symbols LIBRARY              the exported names
#   abi.sh check LIBRARY SOURCES        types of all that is exported
#   abi.sh breaks SOURCES               ten kinds of break, each on a copy of the headers, each to be seen
#   abi.sh update LIBRARY SOURCES       write both baselines anew
set -eu
here=$(cd "$(dirname "$0")" && pwd)
action=$1
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need() {
    for tool in abidw "$cc"; do
        command -v "$tool" > /dev/null || { echo "skipped: $tool is not installed; tools/setup.sh check brings it"; exit 77; }
    done
}

exported() { # LIBRARY
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort
}

describe() { # SHARED-OBJECT INCLUDE OUT: the same flags wherever two descriptions meet
    abidw --headers-dir "$2" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$3" "$1"
    sed -i "s|path='[^']*/src/|path='src/|" "$3" # where a tree lies does not matter
    # without debug information the description is empty, and an empty one would pass
    functions=$(grep -c "<function-decl .*elf-symbol-id='" "$3" || true)
    names=$(exported "$1" | wc -l)
    [ "$functions" -ge "$names" ] || { echo "$functions functions described of $names exported by $1"; exit 1; }
}

# Release builds have too little debug information. The files that define what is exported are compiled again, whole and
# as they are, and linked without the rest of the library.
library() { # LIBRARY SOURCES OUT
    exported "$1" > "$work/names"
    objects=
    for file in $(cd "$2" && grep -rlE '^[a-z].*perigee_[a-z_0-9]+\(' src --include='*.c' | LC_ALL=C sort); do
        sed -n 's/^[a-z][^(]*[ *]\(perigee_[a-z_0-9]*\)(.*/\1/p' "$2/$file" | LC_ALL=C sort -u > "$work/defined"
        [ -n "$(LC_ALL=C comm -12 "$work/defined" "$work/names")" ] || continue
        object=$work/$(echo "$file" | tr / _).o
        $cc -std=c11 -D_GNU_SOURCE -DPERIGEE_BUILD -I"$2/include" -I"$2/src" -g -O0 -fPIC -fvisibility=hidden \
            -c "$2/$file" -o "$object"
        objects="$objects $object"
    done
    $cc -shared -Wl,-soname,libperigee.so.0 -Wl,--version-script="$2/src/perigee.map" $objects -o "$3"
    exported "$3" > "$work/names.described"
    diff "$work/names" "$work/names.described" || { echo "not all that is exported was found in the sources"; exit 1; }
}

# A library of the declarations of headers alone.
stub() { # INCLUDE OUT
    {
        echo '#include <perigee/perigee.h>'
        echo '#include <perigee/sys/kernel_set.h>'
        echo '#include <perigee/sys/kernel_watch.h>'
        find "$1" -name '*.h' -exec cat {} + | awk '
            /PERIGEE_API/ && !/#define/ { text = ""; taking = 1 }
            taking { text = text " " $0
                if (/;/) { sub(/PERIGEE_API/, "", text); sub(/;.*/, " { for (;;) {} }", text); print text; taking = 0 } }'
    } > "$work/stub.c"
    $cc -std=c11 -DPERIGEE_BUILD -I"$1" -g -O0 -fPIC -shared -Wl,-soname,libperigee.so.0 "$work/stub.c" -o "$2"
}

case "$action" in
symbols)
    exported "$2" > "$work/now"
    diff -u "$here/libperigee.so.0.symbols" "$work/now" || {
        echo "exported names changed; ninja abi-update takes the new ones (docs/abi.md)"
        exit 1
    }
    ;;
check)
    need
    library "$2" "$3" "$work/library.so"
    describe "$work/library.so" "$3/include" "$work/now.abi"
    abidiff --harmless "$here/libperigee.so.0.abi" "$work/now.abi" || {
        echo "the binary interface changed; see docs/abi.md"
        exit 1
    }
    ;;
breaks)
    need
    stub "$2/include" "$work/whole.so"
    describe "$work/whole.so" "$2/include" "$work/whole.abi"
    failed=0
    try() { # NAME FILE SED-SCRIPT, "same" for an edit that is no change
        rm -rf "$work/copy"
        cp -r "$2/include" "$work/copy"
        sed -i "$4" "$work/copy/perigee/$3"
        if [ "$1" != unchanged ] && cmp -s "$work/copy/perigee/$3" "$2/include/perigee/$3"; then
            echo "$1: the edit did not take"
            failed=1
            return
        fi
        stub "$work/copy" "$work/copy.so"
        describe "$work/copy.so" "$work/copy" "$work/copy.abi"
        code=0
        abidiff --harmless "$work/whole.abi" "$work/copy.abi" > "$work/said" || code=$?
        case "$1:$code" in
        unchanged:0) ;;
        unchanged:*) echo "$1: $code"; cat "$work/said"; failed=1 ;;
        *:0) echo "$1: not seen"; failed=1 ;;
        *) [ $((code & 3)) = 0 ] || { echo "$1: abidiff failed with $code"; failed=1; } ;;
        esac
    }
    try unchanged "$2" status.h ''
    try enumerator_renumbered "$2" status_codes.h 's/PERIGEE_E_TENSOR = 52/PERIGEE_E_TENSOR = 59/'
    try enumerator_removed "$2" session.h 's/,* *PERIGEE_LOGITS_ALL = 2.*//; s/\(PERIGEE_LOGITS_LAST = 1\),/\1/'
    try fields_swapped "$2" session.h 's/int64_t tokens; /int64_t x_; /; s/int64_t steps; /int64_t tokens; /; s/int64_t x_; /int64_t steps; /'
    try field_removed "$2" model.h '/int64_t kda_layers; *\/\*\*< of these/d'
    try field_narrowed "$2" batch.h 's/    size_t rows; /    uint32_t rows; /'
    try parameter_narrowed "$2" session.h 's/const int32_t \*tokens, size_t n,/const int32_t *tokens, uint32_t n,/'
    try parameter_added "$2" state.h 's/perigee_session_fork(perigee_session \*session,/perigee_session_fork(perigee_session *session, int x,/'
    try const_dropped "$2" text.h 's/PERIGEE_API const int32_t \*perigee_chat_ids/PERIGEE_API int32_t *perigee_chat_ids/'
    try result_changed "$2" session.h 's/PERIGEE_API int64_t perigee_session_position/PERIGEE_API int32_t perigee_session_position/'
    try function_removed "$2" status.h '/PERIGEE_API int32_t perigee_abi_version(void);/d'
    try callback_changed "$2" context.h 's/(\*perigee_log_fn)(int level,/(*perigee_log_fn)(int64_t level,/'
    exit "$failed"
    ;;
update)
    exported "$2" > "$here/libperigee.so.0.symbols"
    library "$2" "$3" "$work/library.so"
    describe "$work/library.so" "$3/include" "$here/libperigee.so.0.abi"
    ;;
*)
    echo "usage: abi.sh symbols|check|breaks|update …" >&2
    exit 2
    ;;
esac
