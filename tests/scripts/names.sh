#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No two files define static functions of one name, and the script that checks it sees when they do. No pass has a list of ops:
# what holds for a class of ops is a trait in their rows (docs/decisions/passes.md).
set -u
. "$(dirname "$0")/lib.sh"

# A tree of two files, each with a function: $1 and $2 are the heads of their definitions, "~" for the end of a line.
tree_with()
{
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree"/{src/base,graph,backends/cuda,tools,serving}
    printf '%s\n{\n}\n' "${1//\~/$'\n'}" >"$scratch/tree/src/base/text.c"
    printf '%s\n{\n}\n' "${2//\~/$'\n'}" >"$scratch/tree/backends/cuda/copy.cu"
}
verdict() { "$srcdir/scripts/check-names.sh" "$scratch/tree"; }

while IFS='|' read -r want one other; do
    tree_with "$one" "$other"
    refuse "$want" "$one beside $other" verdict
done <<'END'
0|static void text_run(int a)|static void copy_run(int a)
1|static void run(int a)|static void run(int a)
1|static void run(int a,~                int b)|static void *run(void)
1|static void run(int a)|namespace~{~void run(int a)
0|void run(int a)|static void run(int a)
0|static void run(int a);~static void text_run(int a)|static void run(int a)
1|static __attribute__((noinline)) void run(int a)|template <typename T>~static void run(T a)
END
# Arrays of op names, and conditions that ask for three ops, in the C files $1...
lists_ops()
{
    awk 'BEGIN { RS = ";" }
        /const char \*const [a-z_]*\[\] = {"[A-Z]/ || gsub(/rewrite_is\(/, "&") > 2 && gsub(/\|\|/, "&") > 1 { print FILENAME ":" $0; bad = 1 }
        END { exit !bad }' "$@"
}
printf '%s\n' 'static const char *const moves[] = {"Reshape"};' >"$scratch/array.c"
printf '%s\n' 'return rewrite_is(n, "Add") || rewrite_is(n, "Sub") ||' 'rewrite_is(n, "Mul");' >"$scratch/chain.c"
printf '%s\n' 'return rewrite_is(n, "Add") || rewrite_is(n, "Sub");' >"$scratch/pair.c"
refuse 0 "a list of ops" lists_ops "$scratch/array.c"
refuse 0 "three ops in a condition" lists_ops "$scratch/chain.c"
refuse 1 "two ops in a condition" lists_ops "$scratch/pair.c"
refuse 1 "the passes" lists_ops "$srcdir"/graph/passes/*.c
check "this checkout" "$srcdir/scripts/check-names.sh" "$srcdir"
finish
