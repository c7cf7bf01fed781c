#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/import.md lists the operators of com.microsoft that are refused: none of them has a row.
set -u
. "$(dirname "$0")/lib.sh"

refused() { sed -n '/^## Operators that are refused/,$p' "$1" | grep '^|' | sed '1,2d' | cut -d'|' -f2 | tr -d ' ' | tr ',' '\n'; }

# known FILE...: those of the names on standard input that a row of these files has.
known()
{
    local name bad=0
    while read -r name; do
        grep -qE "(\\.name = |FOREIGN\\(MS, )\"$name\"" "$@" && echo "$name is refused by docs/import.md and has a row" && bad=1
    done
    return "$bad"
}

rows() { known "$@" < <(refused "$srcdir/docs/import.md"); }
# Each name, with its reason, is what graphc check says.
told()
{
    local name bad=0
    while read -r name; do
        grep -q "[ \"]$name " "$1" || { echo "$name is refused by docs/import.md and not by $1"; bad=1; }
    done
    return "$bad"
}
reasons() { told "$1" < <(refused "$srcdir/docs/import.md"); }
many() { (($(refused "$srcdir/docs/import.md" | wc -l) > 20)); }
check "docs/import.md has the table" many
check "no row for what is refused" rows "$srcdir"/graph/ops/*.c
check "a reason in the message for what is refused" reasons "$srcdir/graph/ops/refused.c"
grep -v BeamSearch "$srcdir/graph/ops/refused.c" >"$scratch/refused.c"
refuse 1 "a reason that is missing" reasons "$scratch/refused.c"
printf '    FOREIGN(MS, "BeamSearch", 1, 1, 1, 1, NULL, rewrite_search),\n' >"$scratch/row.c"
refuse 1 "a row for what is refused" rows "$scratch/row.c"
finish
