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
finish
