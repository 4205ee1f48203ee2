#!/bin/sh
# The table in use: kernels.sh PERIGEE
set -eu
perigee=$1
"$perigee" kernels --kernels scalar --threads 1 | grep -q '^matmul_.*scalar' || { echo "no scalar products" >&2; exit 1; }
# with scalar asked for, no other row is in use
rows=$("$perigee" kernels --kernels scalar --json | grep -c '"isa": ')
scalar=$("$perigee" kernels --kernels scalar --json | grep -c '"isa": "scalar"')
[ "$rows" -gt 0 ] && [ "$rows" = "$scalar" ] || { echo "$scalar of $rows rows are scalar" >&2; exit 1; }
all=$("$perigee" kernels --all --json | grep -c '"isa": ')
used=$("$perigee" kernels --json | grep -c '"isa": ')
[ "$all" -ge "$used" ]
