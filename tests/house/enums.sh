#!/bin/sh
# The public enumerations are those of the lists: enums.sh ROOT
set -eu
cd "$1"
sh tools/public_enums.sh status < src/base/status.def | diff -u include/perigee/status_codes.h -
sh tools/public_enums.sh options < src/base/options.def | diff -u include/perigee/option_keys.h -
