# Takes the fenced blocks out of a Markdown file: awk -v out=FOLDER -f blocks.awk DOC
# Block N goes to FOLDER/N, and `N line language words…` to FOLDER/list. A fence names its language; code that is only
# indented is refused, since nothing says what it is.
function bad(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"
    failed = 1
}
/^ *```/ {
    if (open) {
        open = 0
        close(out "/" count)
    } else {
        words = $0
        sub(/^ *```/, "", words)
        if (words == "") {
            bad("a block without a language")
            words = "text"
        }
        open = 1
        begun = FNR
        indent = match($0, /`/) - 1
        printf "%d %d %s\n", ++count, FNR, words > (out "/list")
        printf "" > (out "/" count)
    }
    blank = 0
    next
}
open {
    print substr($0, indent + 1) > (out "/" count)
    next
}
/^    / && blank { bad("an indented block: give it a fence and a language") }
{ blank = $0 == "" }
END {
    if (open) {
        FNR = begun
        bad("a block that does not end")
    }
    exit failed
}
