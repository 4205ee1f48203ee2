#!/bin/sh
# The checks of the documentation see what is wrong: can_fail.sh ROOT BUILD WORK
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"

# page: the page on standard input, its fences written ~~~
page() { sed 's/^~~~/```/' > "$work/page.md"; }
good() {
    page
    sh "$here/blocks.sh" "$root" "$build" "$work/page.md" "$work/run" > "$work/said" 2>&1 ||
        { echo "a good page fails:" >&2; cat "$work/page.md" "$work/said" >&2; exit 1; }
}
# bad MESSAGE
bad() {
    page
    if sh "$here/blocks.sh" "$root" "$build" "$work/page.md" "$work/run" > "$work/said" 2>&1; then
        echo "passes:" >&2
        cat "$work/page.md" >&2
        exit 1
    fi
    grep -qF -e "$1" "$work/said" || { echo "no '$1' in:" >&2; cat "$work/said" >&2; exit 1; }
}

good << 'END'
~~~text
anything
~~~
~~~c functions
#include <perigee/perigee.h>
static int version(void) { return perigee_abi_version(); }
~~~
~~~c steps
if (version() != PERIGEE_ABI_VERSION) {
    return 1;
}
~~~
~~~c file=own.c
#include <perigee/perigee.h>
#include <stdio.h>
int main(void) { puts(perigee_version()); }
~~~
~~~sh
cc own.c $(pkg-config --cflags --libs perigee) -o own
[ "perigee $(./own) (ABI 0)" = "$(perigee --version)" ]
~~~
~~~sh
# not run in the tests: it takes 1.5 TB
perigee run /mnt/kimi-k3 --prompt "Once" --max-tokens 10
~~~
~~~c quote=src/dtype/dtype.def
PRG_DTYPE(f32)
~~~
END
printf '```sh\nfalse | true\nfalse\n```\n' | bad "the commands fail"
printf '```sh\nperigee run MODEL --no-such-option 1\n```\n' | bad "the commands fail"
printf '```sh\n# not run in the tests:\ntrue\n```\n' | bad "no reason"
printf '```sh\n# not run in the tests: big\nperigee run M --no-such-option\n```\n' | bad "has no --no-such-option"
printf '```sh\n# not run in the tests: big\nx=1; build/perigee walk M\n```\n' | bad "no verb walk"
printf '```sh\n# not run in the tests: big\nif true\n```\n' | bad "does not parse"
printf '```c steps\nperigee_no_such();\n```\n' | bad "does not compile"
printf '```c steps\nreturn 3;\n```\n' | bad "fails with status 3"
printf '```c file=a.c\nint main(void) { return 0 }\n```\n```sh\ntrue\n```\n' | bad "does not compile"
printf '```c file=a.c\nint main(void) { return 0; }\n```\n' | bad "no block runs a.c"
printf '```c\nint x;\n```\n' | bad "nothing is done"
printf '```go\npackage main\n```\n' | bad "nothing is done"
printf '```c quote=src/dtype/dtype.def\nPRG_DTYPE(f33)\n```\n' | bad "not in src/dtype/dtype.def: PRG_DTYPE(f33)"
printf '```\nx\n```\n' | bad "without a language"
printf '```text\nx\n' | bad "does not end"
printf 'So:\n\n    perigee run\n' | bad "indented block"

# a page that points to nothing
mkdir "$work/root"
for name in CMakeLists.txt bindings cmake examples include src tests tools; do
    ln -s "$root/$name" "$work/root/$name"
done
# names are put together here: this file is among those that names are looked up in
printf '[one](nowhere.md) `src/none.c` `%s_such()` `%s_SUCH` `perigee_model_load()` `src/base/error.h`\n' prg_nothing PERIGEE_E_NONE \
    > "$work/root/page.md"
! sh "$here/links.sh" "$work/root" > "$work/said" 2>&1
for name in nowhere.md src/none.c prg_nothing PERIGEE_E_NONE; do
    grep -qF "page.md: no $name" "$work/said" || { echo "no word of $name" >&2; cat "$work/said" >&2; exit 1; }
done
! grep -qE 'perigee_model_load|error.h' "$work/said"
