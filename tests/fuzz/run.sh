#!/bin/sh
# Run a fuzz target for a while on its corpus: run.sh TARGET CORPUS [FOLDER…]. What it finds goes beside the target.
set -eu
target=$1
corpus=$2
shift 2
grown="$target.corpus"
mkdir -p "$grown" "$corpus" "$@"
exec "$target" -max_total_time="${PERIGEE_FUZZ_SECONDS:-5}" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="$target." "$grown" "$corpus" "$@"
