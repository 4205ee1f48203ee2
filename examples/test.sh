#!/bin/sh
# The example says what the command line says: test.sh EXAMPLE PERIGEE WORK
set -eu
rm -rf "$3"
"$2" synth kimi_linear "$3" --layers 4 --experts 8 --vocab 320 --shrink 32 > /dev/null
[ "$("$1" "$3" 1 2 3)" = "$("$2" run "$3" --ids 1,2,3 --greedy 10)" ]
! "$1" "$3" 1 320 2> "$3.error"
grep -q PERIGEE_E_TOKEN "$3.error"
