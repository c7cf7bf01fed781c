#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An op is found by one file name: the file in graph/ops/ that has its row, and those in backends/*/ops/ that have its kernels,
# have one stem; a kernel's file may add what is special about it (matmul_exact).
set -u
. "$(dirname "$0")/lib.sh"

# rows FILE: the names of ops that rows in it are of, given as fields or to macros that make rows.
rows()
{
    grep -oE '(\.(op|name) = |\<[A-Z][A-Z_]*\((""|"graphrt")?[^()"]*)"[A-Z][A-Za-z0-9]*"' "$1" | grep -oE '"[A-Z][A-Za-z0-9]*"$' | tr -d '"'
}

# row_files TREE: a line "OP STEM" for each row in graph/ops.
row_files()
{
    local file
    for file in "$1"/graph/ops/*.c; do
        rows "$file" | sed "s/\$/ $(basename "${file%.c}")/"
    done | sort -u
}

# op_files TREE: fails with a line for each kernel whose file says another op, and for each file that says none. Rows in fused.c
# are of ops that have kernels beside those of their plain forms; kernels in pointwise.c and .cu are of all that pointwise.def lists.
op_files()
{
    local file stem op bad=0 list
    list=$(row_files "$1")
    for file in "$1"/backends/*/ops/*.c "$1"/backends/*/ops/*.cu; do
        [ -e "$file" ] || continue
        stem=$(basename "${file%.*}")
        while [ ! -e "$1/graph/ops/$stem.c" ] && [ "$stem" != "${stem%_*}" ]; do stem=${stem%_*}; done
        if [ ! -e "$1/graph/ops/$stem.c" ]; then
            echo "${file#"$1"/}: no graph/ops/$stem.c"
            bad=1
            continue
        fi
        [ "$stem" = pointwise ] && continue
        for op in $(rows "$file"); do
            grep -qx "$op $stem" <<<"$list" && continue
            echo "${file#"$1"/}: kernels of $op, whose row is in graph/ops/$(sed -n "s/^$op //p" <<<"$list" | tr '\n' ' ')"
            bad=1
        done
    done
    return $bad
}

tree() { mkdir -p "$scratch/tree"/{graph,backends/cpu}/ops; }
tree
echo '    {.domain = "", .name = "MatMul",' >"$scratch/tree/graph/ops/matmul.c"
echo '    {.domain = "", .op = "MatMul",' | tee "$scratch/tree/backends/cpu/ops"/matmul{,_exact}.c >"$scratch/out"
check "files of one name" op_files "$scratch/tree"
touch "$scratch/tree/backends/cpu/ops/tricks.c"
refuse 1 "a file whose name says no op" op_files "$scratch/tree"
rm "$scratch/tree/backends/cpu/ops/tricks.c"
echo '    {.domain = "", .name = "TopK",' >"$scratch/tree/graph/ops/top_k.c"
echo '    ROW("TopK"),' >>"$scratch/tree/backends/cpu/ops/matmul.c"
refuse 1 "a kernel in the file of another op" op_files "$scratch/tree"
check "this checkout" op_files "$srcdir"
finish
