#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An installation from its users' side: what is where, programs that see nothing but it, and that nothing stays behind. The tarball
# has every file of the checkout.
set -u
. "$(dirname "$0")/lib.sh"
root=$scratch/root
model=$srcdir/models/digits/digits.onnx
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR

installed() # PATTERN...: each names something below the root
{
    local pattern
    for pattern; do
        find "$root" -path "*/$pattern" | grep -q . || { echo "no $pattern" && return 1; }
    done
}
# Every function of the header is exported with the public version; the rest is for modules, and has the private one.
exported()
{
    nm -D --defined-only "$libdir/libgraphrt.so" | awk '$2 != "A" { print $3 }' | sed 's/@@*/ /' >"$scratch/exported"
    awk 'BEGIN { RS = ";" } /GRT_API/ { sub(/.*GRT_API/, ""); if (match($0, /grt_[a-z0-9_]* *\(/)) print substr($0, RSTART, RLENGTH - 1) }' \
        "$include"/graphrt/*.h | tr -d ' ' | sort -u >"$scratch/header"
    awk '$2 == "GRAPHRT_1" { print $1 }' "$scratch/exported" | sort | diff - "$scratch/header" || return 1
    ! grep -Ev '^grt_[a-z0-9_]* GRAPHRT_1$|^grt_[a-z0-9_]* GRAPHRT_PRIVATE_[0-9_]*$' "$scratch/exported"
}
# package OPTION...: what pkg-config says about the installation where it is now
package() { PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config "$@" graphrt; }
# Nothing but the files themselves says where the library is.
runs() { env -u LD_LIBRARY_PATH "$@" "$model" | tee "$scratch/run" && grep -q 'digit 9\|run ' "$scratch/run"; }
says() { local want=$1; shift; env -u LD_LIBRARY_PATH "$@" 2>&1 | tee "$scratch/said" | grep -q -- "$want" || { cat "$scratch/said"; return 1; }; }
# What README.md says: its commands, in a directory with program.c and models/.
as_in_readme()
{
    awk '/^```/ { on = !on } on && /^(cc program.c|\.\/a\.out) /' "$srcdir/README.md" >"$scratch/commands"
    [ "$(wc -l <"$scratch/commands")" = 2 ] || return 1
    mkdir -p "$scratch/user/bin" && cp "$scratch/program.c" "$scratch/user/" && ln -sfn "$(realpath "$srcdir")/models" "$scratch/user/models"
    printf '#!/bin/sh\nexec env PATH=%q %s %s -std=c11 -Wall -Wextra -pedantic -Werror "$@"\n' "$PATH" "${CC:-cc}" "${SANITIZE:-}" >"$scratch/user/bin/cc"
    chmod +x "$scratch/user/bin/cc"
    (cd "$scratch/user" && env -u LD_LIBRARY_PATH PATH="$PWD/bin:$PATH" PKG_CONFIG_PATH="$libdir/pkgconfig" sh -e "$scratch/commands") | tee "$scratch/run" &&
        grep -q 'digit 9' "$scratch/run"
}
# shellcheck disable=SC2046,SC2086 # lists of words
static_program()
{
    ${CC:-cc} ${SANITIZE:-} $(package --cflags) "$scratch/program.c" -o "$scratch/static" "$libdir/libgraphrt.a" \
        $(package --static --libs | sed 's/ *-lgraphrt//')
}
# The way of the tools to the library, and no other: not the build's directory, not the prefix.
runpath() { [ "$(readelf -d "$bin/$1" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p')" = "\$ORIGIN/$("$srcdir/scripts/relative-path.sh" "$bin" "$libdir")" ]; }
backend_finds_library()
{
    env -u LD_LIBRARY_PATH ldd "$libdir/graphrt/triton/graphrt/libtriton_graphrt.so" | tee "$scratch/ldd"
    grep "libgraphrt.so.1 => /.*" "$scratch/ldd" | sed 's/.*=> \([^ ]*\).*/\1/' | xargs realpath | grep "^$(realpath "$libdir")/"
}
no_absolute_path() { ! grep '=/' "$libdir/pkgconfig/graphrt.pc"; }
links()
{
    local bad=0 link document
    while read -r document; do
        while read -r link; do
            [ -e "$(dirname "$document")/$link" ] || { echo "$document: $link" && bad=1; }
        done < <(grep -oE '\]\([^)#: ]+' "$document" | sed 's/^](//' | grep -vx 'https\?')
    done < <(find "$root" -name '*.md')
    return "$bad"
}
find_installed()
{
    libdir=$(dirname "$(find "$root" -name libgraphrt.so -print -quit)")
    include=$(dirname "$(find "$root" -type d -path '*/include/graphrt' -print -quit)")
    bin=$(dirname "$(find "$root" -path '*/bin/graphrun' -print -quit)")
}
# shellcheck disable=SC2046 # the same
cxx_header()
{
    echo '#include <graphrt/graphrt.h>' >"$scratch/header.cc"
    "$cxx" -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only $(package --cflags) "$scratch/header.cc"
}
by_cmake()
{
    mkdir -p "$scratch/cmake" && cp "$srcdir/tests/cmake/CMakeLists.txt" "$scratch/cmake/" && cp "$srcdir/examples/digits.cc" "$scratch/cmake/program.cc" || return 1
    cmake -S "$scratch/cmake" -B "$scratch/cmake/build" -DCMAKE_PREFIX_PATH="$(dirname "$libdir")" -DCMAKE_CXX_FLAGS="-Wall -Wextra ${SANITIZE:-}" &&
        cmake --build "$scratch/cmake/build" && env -u LD_LIBRARY_PATH "$scratch/cmake/build/program" "$model" | tee "$scratch/run" && grep 'digit 9' "$scratch/run"
}
# The prefix itself may have our name in it.
nothing_left() { ! find "$root" ! -type d -o -path '*/include/graphrt' -o -path '*/lib/graphrt' -o -path '*/share/graphrt' -o -path '*/doc/graphrt' | grep .; }
in_tarball()
{
    make -s distfiles | sed "s|^$srcdir/||" | sort -u >"$scratch/dist"
    [ -s "$scratch/dist" ] || return 1
    # A directory brings all that is in it.
    git -C "$srcdir" ls-files | grep -v '^\.git' |
        awk 'NR == FNR { have[$0] = 1; next }
             { part = ""; n = split($0, parts, "/"); found = 0
               for (i = 1; i <= n; i++) { part = part (i > 1 ? "/" : "") parts[i]; found = found || part in have }
               if (!found) { print "not in the tarball: " $0; missing = 1 } }
             END { exit missing }' "$scratch/dist" -
}

# `make graphc` in a fresh build: objects wait for the headers that are made.
waits_for_headers() { make -qp graphc 2>/dev/null | grep -m 1 "^$1: .*| .*proto/onnx.pb-c.h"; }
check "the library's objects wait for headers that are made" waits_for_headers src/session/model.lo
check "the models' generator, too" waits_for_headers models/generate/builder.o
check "make install" make -s install DESTDIR="$root"
find_installed
check "files" installed libgraphrt.so.1 graphrt/libgraphrt-onednn.so bin/graphc include/graphrt/graphrt.h include/graphrt/pool.h include/graphrt/quantize.h pkgconfig/graphrt.pc graphrt/graphrt.hpp cmake/graphrt/graphrt-config.cmake graphrt/devices/h200.json doc/graphrt/LICENSE doc/graphrt/NOTICE \
    doc/graphrt/CONTRIBUTING.md $(cd "$srcdir" && printf 'doc/graphrt/%s ' examples/*.c examples/*.cc) graphrt/triton/graphrt/libtriton_graphrt.so
if [ -e docs/man/graphc.1 ]; then check "man pages" installed man1/graphc.1 man1/graphrun.1; else skip "man pages" "there is no scdoc"; fi
if [ -e libgraphrt-cuda.so ]; then check "module" installed graphrt/libgraphrt-cuda.so; fi
no_test_devices() { ! find "$root" -name '*mirror*' | grep . && ! nm -D "$libdir/libgraphrt.so" | grep mirror; }
check "devices of tests stay in the build tree" no_test_devices
check "exported names" exported
check "links between the installed documents" links
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/README.md" >"$scratch/program.c"
if grep -q pcfiledir graphrt.pc; then
    # As a whole, to where nobody configured it for; `make uninstall` finds it in its old place.
    moved=$scratch/moved
    mv "$root" "$moved"
    root=$moved find_installed
    check "a tool of the moved installation" runs "$bin/graphrun"
    check "the way of graphrun to the library" runpath graphrun
    check "the way of graphc to the library" runpath graphc
    check "descriptions of GPUs are found beside the tool" says "NVIDIA H200" "$bin/graphc" devices
    check "modules are looked for beside the library" says "$moved/.*/graphrt/libgraphrt-cuda.so\|NVIDIA\|run " \
        "$bin/graphrun" --device cuda "$model"
    check "the way of the backend for Triton to the library" backend_finds_library
    check "graphrt.pc speaks of no place" no_absolute_path
else
    moved=
    skip "a moved installation" "configured with --disable-relocatable"
fi
if command -v pkg-config >/dev/null; then
    [ -n "$moved" ] && check "a C program, by the commands of README.md" as_in_readme
    cxx=$(command -v "${CXX:-c++}") && check "the header in C++17" cxx_header
    if [ -n "$moved" ] && command -v cmake >/dev/null; then check "a program in C++17, by CMake" by_cmake; fi
    if [ -e "$libdir/libgraphrt.a" ]; then
        check "a statically linked program" static_program
        check "it runs" runs "$scratch/static"
    else
        skip "static linking" "configured without --enable-static"
    fi
else
    skip "programs" "there is no pkg-config"
fi
[ -z "$moved" ] || mv "$moved" "$root"
check "make uninstall" make -s uninstall DESTDIR="$root"
check "nothing is left" nothing_left
# What others are given: with the licences of what is not ours, and what programs need.
bundled()
{
    "$srcdir/scripts/bundle.sh" . "$scratch/bundle" 2>&1 | tee "$scratch/bundling"
    ! grep -q 'licence of' "$scratch/bundling" && [ -s "$scratch/bundle/share/doc/graphrt/LICENSE" ] && [ -s "$scratch/bundle/share/doc/graphrt/NOTICE" ] && ls "$scratch"/bundle/share/doc/graphrt/licences/*.txt
}
from_bundle()
{
    local lib=$scratch/bundle/lib
    # shellcheck disable=SC2046,SC2086 # lists of words
    LD_LIBRARY_PATH=$lib ${CC:-cc} ${SANITIZE:-} "$scratch/program.c" -o "$scratch/bundled" $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs graphrt) &&
        LD_LIBRARY_PATH=$lib "$scratch/bundled" "$model" | grep 'digit 9'
}
if command -v dpkg >/dev/null; then check "a bundle, with licences" bundled; else skip "a bundle" "there is no dpkg to say what libraries belong to"; fi
if [ -e "$scratch/bundle/lib" ] && command -v pkg-config >/dev/null; then check "a program from a bundle" from_bundle; fi
if git -C "$srcdir" ls-files --error-unmatch configure.ac >/dev/null 2>&1; then
    check "the tarball has every file" in_tarball
else
    skip "the tarball" "this is no checkout"
fi
finish
