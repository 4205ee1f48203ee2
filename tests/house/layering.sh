#!/bin/sh
# No #include runs against the arrows of src/README.md: layering.sh ROOT
set -eu
cd "$1"
find src tools examples \( -name '*.c' -o -name '*.h' \) 2> /dev/null | LC_ALL=C sort | awk '
BEGIN {
    # a folder may include itself and what stands behind it
    allow["os"] = "base"
    allow["base"] = "os"
    allow["text"] = "base os"
    allow["dtype"] = "base os"
    allow["container"] = "dtype base os"
    allow["store"] = "dtype base os"
    allow["kernels"] = "dtype base os"
    allow["ops"] = "kernels dtype base os"
    allow["layers"] = "store ops kernels dtype base os"
    allow["model"] = "layers ops kernels dtype base os container store text"
    allow["session"] = "model layers ops kernels dtype base os store"
    allow["generate"] = "text session model layers ops kernels dtype base os"
    allow["api"] = "generate session model layers ops kernels dtype base os container store text"
    allow["plugins"] = ""
    allow["tools"] = ""
    allow["writer"] = "dtype base os"
    allow["examples"] = ""
    for (from in allow) {
        n = split(allow[from], below, " ")
        for (i = 1; i <= n; i++) ok[from, below[i]] = 1
    }
    # instructions: a file of kernels for one CPU sees block layouts, its table and nothing more
    isa = "^src/kernels/(scalar|avx2|avx512|avx512_vnni|avx512_bf16|amx|neon)/"
}
{
    file = $0
    split(file, part, "/")
    from = part[1] == "src" ? part[2] : part[1]
    if (file ~ /^tools\/writer\//) from = "writer"
    while ((getline line < file) > 0) {
        if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/) continue
        sub(/^[^"]*"/, "", line)
        sub(/".*/, "", line)
        if (line ~ /^perigee\//) continue
        slash = index(line, "/")
        to = slash ? substr(line, 1, slash - 1) : ""
        if (line ~ /\.\.\//) problem(file, line, "leaves its folder")
        else if (from == "tools" && (to == "" || to == "writer")) continue
        else if (to == "" && (from == "examples" || from == "plugins" || from == "writer")) continue
        else if (to == "") problem(file, line, "has no path from src/")
        else if (to == from) continue
        else if (!((from, to) in ok)) problem(file, line, "is not below")
        else if (file ~ isa && to == "os") problem(file, line, "is not for kernels")
    }
    close(file)
    files++
}
function problem(file, line, why) { printf "%s includes \"%s\", which %s\n", file, line, why; bad++ }
END {
    if (!files) { print "no files found"; exit 1 }
    exit bad > 0
}'
