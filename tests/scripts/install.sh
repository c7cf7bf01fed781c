#!/bin/bash
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
    grep -o '\bgrt_[a-z_]* *(' "$include/graphrt/graphrt.h" | tr -d ' (' | sort -u >"$scratch/header"
    awk '$2 == "GRAPHRT_0" { print $1 }' "$scratch/exported" | sort | diff - "$scratch/header" || return 1
    ! grep -Ev '^grt_[a-z0-9_]* GRAPHRT_0$|^grt_[a-z0-9_]* GRAPHRT_PRIVATE_[0-9_]*$' "$scratch/exported"
}
# package OPTION...: what pkg-config says, with the root before directories
package()
{
    PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
        pkg-config "$@" graphrt
}
# runs COMMAND...: with the installed library, on the digits
runs() { LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@" "$model" | tee "$scratch/run" && grep -q 'digit 9\|run ' "$scratch/run"; }
says() { local want=$1; shift; LD_LIBRARY_PATH=$libdir "$@" 2>&1 | tee "$scratch/said" | grep -q -- "$want" || { cat "$scratch/said"; return 1; }; }
# shellcheck disable=SC2046,SC2086 # lists of words
c_program() { ${CC:-cc} ${SANITIZE:-} -std=c11 -Wall -Wextra -pedantic -Werror "$scratch/program.c" -o "$scratch/program" $(package --cflags --libs); }
# shellcheck disable=SC2046,SC2086 # the same
static_program()
{
    ${CC:-cc} ${SANITIZE:-} $(package --cflags) "$scratch/program.c" -o "$scratch/static" "$libdir/libgraphrt.a" \
        $(package --static --libs | sed 's/ *-lgraphrt//')
}
# shellcheck disable=SC2046 # the same
cxx_header()
{
    echo '#include <graphrt/graphrt.h>' >"$scratch/header.cc"
    "$cxx" -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only $(package --cflags) "$scratch/header.cc"
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

check "make install" make -s install DESTDIR="$root"
libdir=$(dirname "$(find "$root" -name libgraphrt.so -print -quit)")
include=$(dirname "$(find "$root" -type d -path '*/include/graphrt' -print -quit)")
bin=$(dirname "$(find "$root" -path '*/bin/graphrun' -print -quit)")
check "files" installed libgraphrt.so.0 bin/graphc include/graphrt/graphrt.h pkgconfig/graphrt.pc graphrt/devices/h200.json doc/graphrt/LICENSE
if [ -e docs/man/graphc.1 ]; then check "man pages" installed man1/graphc.1 man1/graphrun.1; else skip "man pages" "there is no scdoc"; fi
if [ -e libgraphrt-cuda.so ]; then check "module" installed graphrt/libgraphrt-cuda.so; fi
check "exported names" exported
check "an installed tool" runs "$bin/graphrun"
check "descriptions of GPUs are found beside the tool" says "NVIDIA H200" "$bin/graphc" devices
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$srcdir/README.md" >"$scratch/program.c"
if command -v pkg-config >/dev/null; then
    check "a C program" c_program
    check "it runs" runs "$scratch/program"
    cxx=$(command -v "${CXX:-c++}") && check "the header in C++17" cxx_header
    if [ -e "$libdir/libgraphrt.a" ]; then
        check "a statically linked program" static_program
        check "it runs" runs "$scratch/static"
    else
        skip "static linking" "configured without --enable-static"
    fi
else
    skip "programs" "there is no pkg-config"
fi
check "an installation that was moved looks for modules there" says "$libdir/graphrt/libgraphrt-cuda.so\|NVIDIA\|run " \
    "$bin/graphrun" --device cuda "$model"
check "make uninstall" make -s uninstall DESTDIR="$root"
check "nothing is left" nothing_left
if git -C "$srcdir" ls-files --error-unmatch configure.ac >/dev/null 2>&1; then
    check "the tarball has every file" in_tarball
else
    skip "the tarball" "this is no checkout"
fi
finish
