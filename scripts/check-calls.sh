#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks in the objects of a build that the library's sources can be put in an order in which each calls only those before it:
# no circles, not even through a header that declares other files' functions. docs/decisions/rooms.md says why.
# usage: scripts/check-calls.sh BUILD-DIR; the last line is "N passed, N failed, N skipped" (one per object).
set -u
cd "${1:?usage: check-calls.sh BUILD-DIR}" || exit 1

# Folders whose circles are still to be mended, as an extended regular expression: calls from one of their files to another are
# passed over. To be emptied.
pending='^(src/exec|graph/ir|graph/ops)/'

# libtool's objects; those for a shared library are in .libs.
objects() { find src graph backends -name '*.lo' | sort | while read -r lo; do
    so=${lo%/*}/.libs/${lo##*/}
    if [ -f "${so%.lo}.o" ]; then echo "${so%.lo}.o"; else echo "${lo%.lo}.o"; fi
done; }

# "USER DEFINER" for each symbol that one object needs and another defines.
calls()
{
    objects | xargs -r nm -A -P -g | awk -v pending="$pending" '
        function unit(file) { sub(/:$/, "", file); sub(/\.libs\//, "", file); sub(/\.o$/, "", file); return file }
        $3 ~ /^[Uw]$/ { user[++n] = unit($1); symbol[n] = $2; next }
        { definer[$2] = unit($1) }
        END {
            for (i = 1; i <= n; i++) {
                d = definer[symbol[i]]
                if (d != "" && d != user[i] && !(d ~ pending && user[i] ~ pending))
                    print user[i], d
            }
        }' | sort -u
}

total=$(objects | wc -l)
bad=$(calls | tsort 2>&1 >/dev/null | sed 's/^tsort: //; s/^-: input contains a loop:$/these call each other in a circle:/')
failed=$(echo "$bad" | grep -v circle: | grep . | sort -u | wc -l)
[ -n "$bad" ] && echo "$bad (docs/decisions/rooms.md)"
((total > 0)) || failed=1
echo "$((total - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
