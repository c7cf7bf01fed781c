#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No file of the library calls another that calls it back, and the script that checks it sees when one does.
set -u
. "$(dirname "$0")/lib.sh"

# A build of two files of a room: $1 what a.c calls, $2 what b.c calls.
verdict()
{
    local room=$scratch/build/src/base
    rm -rf "$scratch/build"
    mkdir -p "$room/.libs" "$scratch/build"/{graph,backends}
    for file in a b; do
        called=$1
        [ "$file" = b ] && called=$2
        echo "void $called(void); void $file(void); void $file(void) { $called(); }" >"$room/$file.c"
        ${CC:-gcc} -c "$room/$file.c" -o "$room/.libs/$file.o" || return 2
        : >"$room/$file.lo"
    done
    "$srcdir/scripts/check-calls.sh" "$scratch/build"
}
refuse 0 "one direction" verdict b abort
refuse 1 "a circle" verdict b a
refuse 1 "no objects" "$srcdir/scripts/check-calls.sh" "$scratch"
check "this build" "$srcdir/scripts/check-calls.sh" .
finish
