#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks in the objects of a build that no room calls one above it, and that the library's files can be put in an order in which
# each calls only those before it: no circles, not even through a header that declares other files' functions.
# docs/decisions/rooms.md says why.
# usage: scripts/check-calls.sh BUILD-DIR; the last line is "N passed, N failed, N skipped" (one per object).
set -u
rooms=$("$(dirname "$0")/check-includes.sh" --rooms)
cd "${1:?usage: check-calls.sh BUILD-DIR}" || exit 1

# libtool's objects; those for a shared library are in .libs.
objects() { find src graph backends -name '*.lo' | sort | while read -r lo; do
    so=${lo%/*}/.libs/${lo##*/}
    if [ -f "${so%.lo}.o" ]; then echo "${so%.lo}.o"; else echo "${lo%.lo}.o"; fi
done; }

# "USER DEFINER" for each symbol that one object needs and another defines.
calls()
{
    objects | xargs -r nm -A -P -g | awk '
        function unit(file) { sub(/:$/, "", file); sub(/\.libs\//, "", file); sub(/\.o$/, "", file); return file }
        $3 ~ /^[Uw]$/ { user[++n] = unit($1); symbol[n] = $2; next }
        { definer[$2] = unit($1) }
        END {
            for (i = 1; i <= n; i++) {
                d = definer[symbol[i]]
                if (d != "" && d != user[i])
                    print user[i], d
            }
        }' | sort -u
}

# Tables that gather the rows of rooms above: the only files that name what is there.
registries='^(graph/ir/op|backends/registry) '

all=$(calls)
circles=$(echo "$all" | grep -vE "$registries" | tsort 2>&1 >/dev/null |
    sed 's/^tsort: \(-: input contains a loop:\)*//; s/^$/in a circle of calls:/')
upwards=$({ echo "$rooms"; echo; echo "$all" | grep -vE "$registries"; } | awk '
    function rank_of(path,    r, best) {
        best = ""
        for (r in rank)
            if (index(path, r "/") == 1 && length(r) > length(best))
                best = r
        return rank[best]
    }
    !rows { if (NF == 0) rows = 1; else rank[$1] = ++n; next }
    rank_of($2) > rank_of($1) { print $1 " calls " $2 ", which is in a room above" }')
bad=$(printf '%s\n%s\n' "$upwards" "$circles" | grep .)
total=$(objects | wc -l)
failed=$(echo "$bad" | grep -v circle | awk 'NF { print $1 }' | sort -u | wc -l)
[ -n "$bad" ] && echo "$bad (docs/decisions/rooms.md)"
((total > 0)) || failed=1
echo "$((total - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
