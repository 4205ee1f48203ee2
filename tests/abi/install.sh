#!/bin/sh
# Install under DESTDIR, then move the tree, so that nothing may rely on where it was: install.sh CMAKE BUILD OUT
set -eu
cmake=$1 build=$2 out=$3
rm -rf "$out" "$out.staged"
DESTDIR="$out.staged" "$cmake" --install "$build" --prefix /opt/perigee > "$out.log"
mv "$out.staged/opt/perigee" "$out"
rm -rf "$out.staged"
for what in include/perigee/perigee.h include/perigee/sys/kernel.h; do
    [ -f "$out/$what" ] || { echo "$what is not installed" >&2; exit 1; }
done
lib=$(dirname "$(find "$out" -name libperigee.so)")
[ "$(readlink "$lib/libperigee.so")" = libperigee.so.0 ] || { echo "libperigee.so is no link to .so.0" >&2; exit 1; }
[ -f "$lib/pkgconfig/perigee.pc" ] && [ -f "$lib/cmake/perigee/perigeeConfig.cmake" ]
if grep -rlF -e "$build" -e /opt/perigee "$lib/pkgconfig" "$lib/cmake" "$out/include"; then
    echo "these name where they were built or installed" >&2
    exit 1
fi
# the installed program has nano-k3 at hand, and takes the installed one
if [ -x "$out/bin/perigee" ] && [ -d "$out/share/perigee/models/nano-k3" ]; then
    moved=$out/share/perigee/models/nano-k3/config.json
    wrote=$(cd / && "$out/bin/perigee" run --prompt "And it came" --max-tokens 4 --json)
    echo "$wrote" | grep -q '"finish": "length"' || { echo "$wrote" >&2; exit 1; }
    mv "$moved" "$moved.away"
    ! (cd / && "$out/bin/perigee" run --prompt "And it came" --max-tokens 4) 2> "$out.error"
    mv "$moved.away" "$moved"
    grep -qF "$out/bin/../share/perigee/models/nano-k3/config.json" "$out.error" || { cat "$out.error" >&2; exit 1; }
fi
