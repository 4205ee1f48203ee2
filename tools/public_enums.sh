#!/bin/sh
# Write the public enumerations from their lists: public_enums.sh status|options < LIST > HEADER
set -eu
case "$1" in
status)
    awk 'BEGIN {
        print "/* Written by tools/public_enums.sh from src/base/status.def. */"
        print "#ifndef PERIGEE_STATUS_CODES_H\n#define PERIGEE_STATUS_CODES_H\n"
        print "/** What a call says of how it went. Numbers never change; new ones may appear between them. */"
        print "typedef enum perigee_status {" }
    /^PRG_STATUS\(/ { s = $0; sub(/^PRG_STATUS\(/, "", s); sub(/\)[ \t]*$/, "", s)
        name = s; sub(/,.*/, "", name); rest = s; sub(/^[^,]*, */, "", rest); number = rest; sub(/,.*/, "", number)
        text = rest; sub(/^[^,]*, */, "", text); gsub(/"/, "", text)
        line[n++] = sprintf("    PERIGEE_%s = %s", name, number); note[n - 1] = text }
    END { for (i = 0; i < n; i++) printf "%s%s /**< %s */\n", line[i], (i < n - 1 ? "," : ""), note[i]
        print "} perigee_status;\n\n#endif" }' ;;
options)
    awk 'BEGIN {
        print "/* Written by tools/public_enums.sh from src/base/options.def. */"
        print "#ifndef PERIGEE_OPTION_KEYS_H\n#define PERIGEE_OPTION_KEYS_H\n"
        print "/** Keys of options. Numbers never change. perigee_option_describe() tells type, scope and bounds. */"
        print "typedef enum perigee_option {" }
    /^PRG_OPTION\(/ { s = $0; sub(/^PRG_OPTION\(/, "", s); name = s; sub(/,.*/, "", name)
        split(s, f, /, */); help = s; sub(/"\)[ \t]*$/, "", help); sub(/.*, "/, "", help)
        line[n++] = sprintf("    PERIGEE_OPTION_%s = %s", name, f[3]); note[n - 1] = help }
    END { for (i = 0; i < n; i++) printf "%s%s /**< %s */\n", line[i], (i < n - 1 ? "," : ""), note[i]
        print "} perigee_option;\n\n#endif" }' ;;
*) echo "usage: public_enums.sh status|options" >&2; exit 2 ;;
esac
