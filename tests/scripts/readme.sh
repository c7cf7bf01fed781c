#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the C program in README.md against the library, as a user would, and runs it.
set -u
. "$(dirname "$0")/lib.sh"
libs=$PWD/.libs

extract()
{
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/README.md" >"$scratch/readme.c"
    [ -s "$scratch/readme.c" ]
}
compile()
{
    # shellcheck disable=SC2086 # CC and SANITIZE are lists of words
    ${CC:-cc} ${SANITIZE:-} -Wall -Wextra -Werror -I"$srcdir/include" "$scratch/readme.c" -o "$scratch/readme" \
        -L"$libs" -lgraphrt "-Wl,-rpath,$libs"
}
run_on_digits()
{
    "$scratch/readme" "$srcdir/models/digits/digits.onnx" | tee "$scratch/readme.out" && grep -q 'digit' "$scratch/readme.out"
}

check "the program is in README.md" extract
check "it compiles" compile
check "it runs" run_on_digits
finish
