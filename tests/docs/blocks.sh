#!/bin/sh
# Every code block of a page is compiled or run: blocks.sh ROOT BUILD DOC WORK [TOOL…]
# Leaves with 77, "skipped", where one of the tools is missing. What the word behind ``` may be:
#   sh                 run with -eu, in a folder that is as the root of a clone for reading; all blocks of a page run in
#                      one folder, in their order. MODEL there is nano-k3, /path/to/perigee the root.
#   sh, beginning with `# not run in the tests: REASON`: parsed, and its options of perigee are looked up
#   LANGUAGE file=NAME written there, for a block of sh behind it; a C file is compiled too
#   c functions, c steps: the parts of one program, over the page; compiled and run
#   LANGUAGE quote=FILE: each line stands in that file of the root
#   text               for people: output, drawings, formulas
set -eu
root=$(cd "$1" && pwd) build=$(cd "$2" && pwd) doc=$3 work=$4
shift 4
for tool in "$@"; do
    command -v "$tool" > /dev/null || { echo "skipped: $tool is not installed; tools/setup.sh check brings it"; exit 77; }
done
case "$doc" in /*) ;; *) doc=$root/$doc ;; esac
rm -rf "$work"
mkdir -p "$work/blocks" "$work/scratch"
work=$(cd "$work" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
export PATH="$build:$PATH" PKG_CONFIG_PATH="$build" LD_LIBRARY_PATH="$build" CC="${CC:-cc}"
# nothing is fetched, and what the bindings' own tests built is used
export GOFLAGS=-mod=mod GOPROXY=off GOSUMDB=off GOTOOLCHAIN=local GOCACHE="$build/bindings/go/cache"
export CARGO_TARGET_DIR="$build/bindings/rust/target" CARGO_NET_OFFLINE=true
awk -v out="$work/blocks" -f "$here/blocks.awk" "$doc"
[ -f "$work/blocks/list" ] || { echo "no blocks"; exit 0; }

cd "$work/scratch"
for name in bindings docs examples include models src tests tools; do
    ln -s "$root/$name" "$name"
done
ln -s "$build" build
ln -s "$root/models/nano-k3" MODEL
: > "$work/functions.c"
: > "$work/steps.c"
warn="-std=c11 -Wall -Wextra -Wpedantic -Werror"
flags="$(pkg-config --cflags perigee) -pthread"
libs=$(pkg-config --libs perigee)
waiting= parts=

fail() {
    echo "$doc:$line: $*" >&2
    exit 1
}

compile() {
    # shellcheck disable=SC2086 # flags are several words
    $CC $warn $flags "$1" -o "$2" $libs > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "does not compile"; }
}

run_shell() {
    sed "s,/path/to/perigee/build,$build,g; s,/path/to/perigee,$root,g" "$1" > "$work/block.sh"
    sh -eu "$work/block.sh" > "$work/log" 2>&1 < /dev/null || { cat "$work/log" >&2; fail "the commands fail"; }
    waiting=
}

# Not run, but not unread: it parses, and perigee knows the verbs and options in it.
look_at_shell() {
    sed -n '1s/^# not run in the tests: *\([^ ].*\)/\1/p' "$1" | grep -q . || fail "not run, and no reason"
    sh -n "$1" 2> "$work/log" || { cat "$work/log" >&2; fail "does not parse"; }
    sed 's/#.*//; s/[|&;]/\n/g' "$1" | sed -nE 's,^ *(build/)?perigee ,,p' > "$work/calls"
    while read -r verb words; do
        case "$verb" in --*) continue ;; esac
        perigee "$verb" --help > "$work/help" 2>&1 || fail "no verb $verb"
        for word in $(echo "$words" | grep -oE -e '--[a-z][a-z_-]*' || true); do
            tr - _ < "$work/help" | grep -qE -e "$(echo "$word" | tr - _)( |\$)" || fail "perigee $verb has no $word"
        done
    done < "$work/calls"
}

quoted() {
    [ -f "$root/$2" ] || fail "no file $2"
    sed 's/^ *//' "$root/$2" > "$work/source"
    sed 's/^ *//; /^$/d; /^…$/d' "$1" > "$work/lines"
    while IFS= read -r text; do
        grep -qxF -e "$text" "$work/source" || fail "not in $2: $text"
    done < "$work/lines"
}

while read -r number line language words; do
    block=$work/blocks/$number
    case "$language:$words" in
    text:) ;;
    sh:)
        if head -n 1 "$block" | grep -q '^# not run'; then
            look_at_shell "$block"
        else
            run_shell "$block"
        fi
        ;;
    *:quote=*) quoted "$block" "${words#quote=}" ;;
    *:file=*)
        name=${words#file=}
        mkdir -p "$(dirname "$name")"
        sed "s,/path/to/perigee,$root,g" "$block" > "$name"
        waiting=$name
        [ "$language" != c ] || compile "$name" "$work/program"
        ;;
    c:functions)
        parts=$line
        { printf '#line %d "%s"\n' $((line + 1)) "$doc"; cat "$block"; } >> "$work/functions.c"
        ;;
    c:steps)
        parts=$line
        { printf '#line %d "%s"\n' $((line + 1)) "$doc"; cat "$block"; } >> "$work/steps.c"
        ;;
    *) fail "nothing is done with a block of '$language${words:+ }$words'" ;;
    esac
done < "$work/blocks/list"
[ -z "$waiting" ] || fail "no block runs $waiting"

if [ -n "$parts" ]; then
    line=$parts
    { cat "$work/functions.c"; echo 'int main(void) {'; cat "$work/steps.c"; echo 'return 0; }'; } > "$work/page.c"
    compile "$work/page.c" "$work/page"
    status=0
    "$work/page" > "$work/log" 2>&1 < /dev/null || status=$?
    [ "$status" = 0 ] || { cat "$work/log" >&2; fail "the page's program fails with status $status"; }
fi
echo "$(wc -l < "$work/blocks/list") blocks"
