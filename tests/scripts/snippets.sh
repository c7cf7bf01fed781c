#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every block of code in a document is run by a test. A block says its language; "text" is a drawing. The comment above it may name who
# runs it, <!-- run by SCRIPT -->, or why nobody does, <!-- not run: REASON -->; otherwise its page is in the list of `runners`. Commands
# of the pages that stand below are run here, in a directory with the files that they name.
set -u
. "$(dirname "$0")/lib.sh"
build=$PWD
top=$(cd "$srcdir" && pwd)

# page:language, and the script that takes these blocks from the page; several pages by a pattern.
runners()
{
    cat <<'END'
README.md:c tests/scripts/readme.sh
docs/c.md:c tests/scripts/readme.sh
docs/cpp.md:cpp tests/scripts/readme.sh
README.md:python python/tests/test_docs.py
docs/python.md:python python/tests/test_docs.py
docs/onnxruntime.md:python python/tests/test_docs.py
python/README.md:python python/tests/test_docs.py
docs/ray.md:python serving/ray/tests
docs/triton.md:python serving/triton/tests
docs/triton.md:pbtxt serving/triton/tests
docs/triton.md:sh serving/triton/tests
docs/operator.md:sh tests/scripts/site.sh
README.md:sh tests/scripts/snippets.sh
docs/guide.md:sh tests/scripts/snippets.sh
docs/guide.md:c tests/scripts/snippets.sh
docs/quantize.md:sh tests/scripts/snippets.sh
END
}

# blocks TREE: "PAGE:LINE LANGUAGE COMMENT" of each block of its documents; language "-": none, comment "-": none.
# shellcheck disable=SC2016 # awk's own variables
blocks()
{
    (cd "$1" && find README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs python bench serving examples models tests -name '*.md' 2>/dev/null | sort |
        xargs awk 'FNR == 1 { on = 0; above = "" }
            /^ *```/ { if (!on) { tag = $0; sub(/^ *```/, "", tag); print FILENAME ":" FNR, tag == "" ? "-" : tag, above ~ /^ *<!-- .* -->$/ ? above : "-" } on = !on }
            { above = $0 }')
}
# A name in "run by NAME", and what runs a page, exist; prints what does not, and blocks that nobody runs.
unclaimed()
{
    local tree=$1 place tag comment page by bad=0 language='^(c|cpp|cmake|python|sh|pbtxt|text)$'
    while read -r place tag comment; do
        page=${place%%:*} by=
        if ! [[ $tag =~ $language ]]; then
            echo "$place: a block whose language is '$tag'" && bad=1
        elif [ "$tag" = text ] || [[ $comment =~ ^'<!-- not run: '[a-z] ]]; then
            continue
        elif [[ $comment =~ ^'<!-- run by '([^ ,]+) ]]; then
            by=${BASH_REMATCH[1]}
        else
            by=$(runners | sed -n "s|^$page:$tag ||p")
        fi
        [ -n "$by" ] || { echo "$place: a block of $tag that no test runs" && bad=1 && continue; }
        [ -e "$tree/$by" ] || { echo "$place: there is no $by" && bad=1; }
    done < <(blocks "$tree")
    return "$bad"
}
# A drawing has no commands in it. Prints those that are.
# shellcheck disable=SC2016 # awk's own variables
no_commands_in_drawings()
{
    local found
    found=$(cd "$1" && find README.md CONTRIBUTING.md docs python bench serving models -name '*.md' 2>/dev/null | sort |
        xargs awk 'FNR == 1 { on = 0 } /^ *```/ { on = !on; text = on && /```text/ }
            on && text && /^ ? ? ?(graphc|graphrun|python3?|pip|cc|c\+\+|make|apt|apt-get|sudo|scripts\/|\.\/)/ { print FILENAME ":" FNR ": " $0 }')
    [ -z "$found" ] || { echo "$found" && return 1; }
}

# commands PAGE: its blocks of sh without a comment above.
commands()
{
    awk '/^```sh$/ && above !~ /^<!-- .* -->$/ { on = 1; next } /^```$/ { on = 0 } on { print } { above = $0 }' "$srcdir/$1"
}
# What the pages speak of: a model, samples, a case of a test.
directory()
{
    local digits=$top/models/digits i dims
    mkdir -p "$scratch/$1/samples" "$scratch/$1/my_case" && cd "$scratch/$1" || return 1
    cp "$digits/digits.onnx" model.onnx && cp -R "$top"/tests/data/cases/pointwise/. my_case/ || return 1
    dims="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    for i in 1 2 3 4 5 6 7 8; do
        { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$dims" && tail -c +$((129 + 256 * i)) "$digits/test_images.npy" | head -c 256; } >"samples/$i.npy"
    done
    cp samples/1.npy image.npy
}
# run_page PAGE NUMBER [PLAN]: all of at least NUMBER commands end well, one after the other. PLAN: model.grt is there before.
run_page()
{
    (
        commands "$1" >"$scratch/commands"
        [ "$(wc -l <"$scratch/commands")" -ge "$2" ] || { echo "$1 has fewer than $2 commands" && exit 1; }
        directory "${1//\//-}" || exit 1
        export PATH=$build:$PATH GRAPHRT_ALGO_CACHE=$PWD/algos.db
        [ $# = 2 ] || graphc optimize model.onnx -o model.grt || exit 1
        bash -ex "$scratch/commands"
    )
}
# The row of an operator in docs/guide.md, in a file of its own.
row_compiles()
{
    { printf '#include "graph/ir/op.h"\n' && awk '/^ *```c$/ { on = 1; next } /^ *```$/ { on = 0 } on' "$srcdir/docs/guide.md"; } >"$scratch/row.c"
    # shellcheck disable=SC2086 # a list of words
    grep -q OP_TABLE "$scratch/row.c" && ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Wno-unused-variable -D_GNU_SOURCE -I"$build" -I"$srcdir" -I"$srcdir/include" -fsyntax-only "$scratch/row.c"
}
lines_of_cmake() { awk '/^```cmake$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/docs/cpp.md" | { n=0; while read -r line; do n=$((n + 1)); grep -Fxq "$line" "$srcdir/tests/cmake/CMakeLists.txt" || exit 1; done; [ "$n" -ge 2 ]; }; }
same_compiler() { [ "$(grep -h '^cc program.c' "$srcdir/README.md" "$srcdir/docs/c.md" | sort | uniq -c | awk '{ print $1 }')" = 2 ]; }

mkdir -p "$scratch/tree/docs"
# shellcheck disable=SC2016 # backquotes of Markdown
printf '```\ngraphc x\n```\n' >"$scratch/tree/README.md"
refuse 1 "a block without a language" unclaimed "$scratch/tree"
# shellcheck disable=SC2016
printf '```sh\ngraphc x\n```\n' >"$scratch/tree/docs/new.md" && : >"$scratch/tree/README.md"
refuse 1 "a page that nobody runs" unclaimed "$scratch/tree"
# shellcheck disable=SC2016
printf '<!-- run by docs/gone.sh -->\n```sh\ngraphc x\n```\n' >"$scratch/tree/docs/new.md"
refuse 1 "a script that does not exist" unclaimed "$scratch/tree"
# shellcheck disable=SC2016
printf '```text\ngraphc x\n```\n' >"$scratch/tree/docs/new.md"
refuse 1 "a command in a drawing" no_commands_in_drawings "$scratch/tree"
check "every block of code has who runs it, or why nobody does" unclaimed "$srcdir"
check "drawings have no commands" no_commands_in_drawings "$srcdir"

check "the commands of README.md" run_page README.md 11
check "the commands of docs/guide.md" run_page docs/guide.md 5 plan
check "the commands of docs/quantize.md" run_page docs/quantize.md 5
check "the row of docs/guide.md compiles" row_compiles
check "the lines of docs/cpp.md are those that are built" lines_of_cmake
check "docs/c.md has the compiler's line of README.md" same_compiler
finish
