#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rooms depend on each other as docs/decisions/rooms.md says, and the script that checks it sees when they do not.
set -u
. "$(dirname "$0")/lib.sh"

# A tree of one file: $1 its path, $2 what it includes.
tree_with()
{
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree"/{include,src,graph,backends,tools,examples,models} "$scratch/tree/$(dirname "$1")"
    echo "#include \"$2\"" >"$scratch/tree/$1"
}
verdict() { "$srcdir/scripts/check-includes.sh" "$scratch/tree"; }

while read -r want file header; do
    tree_with "$file" "$header"
    refuse "$want" "$file including $header" verdict
done <<'END'
0 tools/graphc.c graphrt/graphrt.h
1 tools/graphc.c src/base/text.h
1 graph/passes/fold.c backends/backend.h
1 graph/passes/fold.c cuda_runtime.h
1 backends/cpu/backend.c graph/passes/passes.h
1 backends/cpu/ops/add.c oneapi/dnnl/dnnl.h
1 src/base/text.c src/plan/plan.h
1 graph/ir/view.c src/plan/plan.h
1 backends/cuda/ops/norm.cu src/exec/context.h
1 backends/cuda/number.cuh backends/cpu/cpu.h
0 src/session/session.c backends/backend.h
1 examples/digits.c tools/npy.h
END
check "this checkout" "$srcdir/scripts/check-includes.sh" "$srcdir"

# Each room has its words in the table of docs/architecture.md; those of backends stand in one row.
described()
{
    local room missing=0
    for room in $("$srcdir/scripts/check-includes.sh" --rooms); do
        grep -E '^\| `' "$1" | grep -qF "\`${room#backends/}/" || { echo "$room/ is not in the table of $1" && missing=1; }
    done
    return "$missing"
}
check "every room is described" described "$srcdir/docs/architecture.md"
# shellcheck disable=SC2016 # backquotes of Markdown
grep -v '^| `src/exec/`' "$srcdir/docs/architecture.md" >"$scratch/architecture.md"
refuse 1 "a room that is not described" described "$scratch/architecture.md"
finish
