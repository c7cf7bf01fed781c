#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No file of the library calls another that calls it back, and the script that checks it sees when one does.
set -u
. "$(dirname "$0")/lib.sh"

# A build of two files: $1 the room of a.c, $2 what it calls, $3 what b.c in src/plan calls.
verdict()
{
    rm -rf "$scratch/build"
    mkdir -p "$scratch/build"/{graph,backends}
    for file in a b; do
        local room=$scratch/build/$1 called=$2
        [ "$file" = b ] && room=$scratch/build/src/plan && called=$3
        mkdir -p "$room/.libs"
        echo "void $called(void); void $file(void); void $file(void) { $called(); }" >"$room/$file.c"
        ${CC:-gcc} -c "$room/$file.c" -o "$room/.libs/$file.o" || return 2
        : >"$room/$file.lo"
    done
    "$srcdir/scripts/check-calls.sh" "$scratch/build"
}
refuse 0 "one direction" verdict src/algos b abort
refuse 1 "upwards" verdict src/base b abort
refuse 1 "a circle" verdict src/plan b a
refuse 1 "no objects" "$srcdir/scripts/check-calls.sh" "$scratch"
check "this build" "$srcdir/scripts/check-calls.sh" .
finish
