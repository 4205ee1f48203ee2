# Sourced by demo.sh and check.sh: `step WHAT COMMAND…` says what is done and how long it took; the output of a command
# is shown only when it fails.
cd "$(dirname "$0")/.."
step_log=$(mktemp)
trap 'rm -f "$step_log"' EXIT
started=$(date +%s)

step() {
    what=$1
    shift
    printf '%-44s' "$what"
    begun=$(date +%s%N)
    if ! "$@" > "$step_log" 2>&1; then
        printf 'failed\n'
        tail -n 200 "$step_log" >&2
        exit 1
    fi
    ms=$((($(date +%s%N) - begun) / 1000000))
    printf '%4d.%01d s' $((ms / 1000)) $((ms % 1000 / 100))
    # the last line says what was found done already
    case "$(tail -n 1 "$step_log")" in
    "setup: all"* | "ninja: no work"*) printf '   (nothing to do)' ;;
    esac
    printf '\n'
}

# configure PRESET unless that was done with these lists; ninja runs cmake again where a list changed
configure() { [ -f "$1/build.ninja" ] || cmake --preset "$2"; }
