#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the programs of README.md, docs/c.md and docs/cpp.md against the library, as a user would, and runs them.
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
# The same of docs/c.md, whose program is in pieces.
extract_c()
{
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/docs/c.md" >"$scratch/c.c"
    [ -s "$scratch/c.c" ]
}
compile_c()
{
    # shellcheck disable=SC2086 # CC and SANITIZE are lists of words
    ${CC:-cc} ${SANITIZE:-} -Wall -Wextra -Werror -I"$srcdir/include" "$scratch/c.c" -o "$scratch/c" -L"$libs" -lgraphrt "-Wl,-rpath,$libs"
}
run_c()
{
    "$scratch/c" "$srcdir/models/digits/digits.onnx" | tee "$scratch/c.out" &&
        printf '%s\n' '2 dims, the last is 10' '320 results' 'late before it began' '8 requests' | cmp - "$scratch/c.out"
}
# The same of docs/cpp.md.
extract_cpp()
{
    awk '/^```cpp$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/docs/cpp.md" >"$scratch/cpp.cc"
    [ -s "$scratch/cpp.cc" ]
}
compile_cpp()
{
    # shellcheck disable=SC2086 # CXX and SANITIZE are lists of words
    ${CXX:-c++} ${SANITIZE:-} -std=c++17 -Wall -Wextra -Werror -I"$srcdir/include" "$scratch/cpp.cc" -o "$scratch/cpp" -L"$libs" -lgraphrt "-Wl,-rpath,$libs"
}
run_cpp()
{
    (cd "$srcdir" && "$scratch/cpp") | tee "$scratch/cpp.out" && grep -q '^9$' "$scratch/cpp.out" && grep -q 'the model has no input' "$scratch/cpp.out"
}
run_on_digits()
{
    "$scratch/readme" "$srcdir/models/digits/digits.onnx" | tee "$scratch/readme.out" && grep -q 'digit' "$scratch/readme.out"
}

check "the program is in README.md" extract
check "it compiles" compile
check "it runs" run_on_digits
check "the program is in docs/c.md" extract_c
check "it compiles" compile_c
check "it runs" run_c
check "the program is in docs/cpp.md" extract_cpp
check "it compiles as C++17" compile_cpp
check "it runs" run_cpp
finish
