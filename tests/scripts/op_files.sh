#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An op is found by one file name: kernels in backends/*/ops/ have the stem of the file in graph/ops/ that has their rows, or
# that stem and what is special about them (matmul_exact). Files that are not have a reason here.
set -u
. "$(dirname "$0")/lib.sh"

reasons()
{
    cat <<'END'
backends/cuda/ops/axis.cu one thread a line along an axis, of ops that are rarely worth more: cumulate, arg, einsum, select, shape, signal
backends/cuda/ops/line.cu one block a line along an axis, with shared prefix sums and sorting: cumulate, arg, top_k
backends/cuda/ops/move.cu copies by strides, one kernel: concat, expand, pad, slice, transpose
backends/cuda/ops/norm.cu statistics of a row and one pass over it, one kernel: batch_norm, layer_norm, group_norm, lrn
END
}

# op_files TREE: fails with a line for each file whose name says no op.
op_files()
{
    local file stem bad=0
    for file in "$1"/backends/*/ops/*.c "$1"/backends/*/ops/*.cu; do
        [ -e "$file" ] || continue
        stem=$(basename "${file%.*}")
        while [ ! -e "$1/graph/ops/$stem.c" ] && [ "$stem" != "${stem%_*}" ]; do stem=${stem%_*}; done
        [ -e "$1/graph/ops/$stem.c" ] && continue
        reasons | grep -q "^${file#"$1"/} " && continue
        echo "${file#"$1"/}: no graph/ops/$stem.c"
        bad=1
    done
    return $bad
}

tree() { mkdir -p "$scratch/tree"/{graph,backends/cpu}/ops; }
tree
touch "$scratch/tree/graph/ops/matmul.c" "$scratch/tree/backends/cpu/ops"/matmul{,_exact}.c
check "files of one name" op_files "$scratch/tree"
touch "$scratch/tree/backends/cpu/ops/tricks.c"
refuse 1 "a file whose name says no op" op_files "$scratch/tree"
check "this checkout" op_files "$srcdir"
reasons | while read -r file _; do
    [ -e "$srcdir/$file" ] || echo "$file"
done >"$scratch/gone"
check "no reason for a file that is not there" test ! -s "$scratch/gone"
finish
