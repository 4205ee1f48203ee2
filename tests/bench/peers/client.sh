# Sourced by peers.sh and accuracy.sh: makes a work folder and the client of llama.cpp in it. LLAMA_LIB, LLAMA_SOURCE,
# CC and `here` are set.

if [ -z "${WORK:-}" ]; then
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 1' INT TERM
fi

# Libraries with a version in their names can't be found by -l.
library() {
    for candidate in "$LLAMA_LIB/$1.so" "$LLAMA_LIB/$1".*.so "$LLAMA_LIB/$1".so.*; do
        if [ -e "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
    echo "peers: no $1 in $LLAMA_LIB" >&2
    exit 1
}

client=$WORK/peer_llama
"$CC" -std=gnu11 -O2 -o "$client" -I "$LLAMA_SOURCE/include" -I "$LLAMA_SOURCE/ggml/include" \
    "$here/peers/peer_llama.c" "$(library libllama)" "$(library libggml)" "$(library libggml-base)" \
    -Wl,-rpath,"$LLAMA_LIB"
