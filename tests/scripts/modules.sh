#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Modules beside the library: one of another release says so, oneDNN is opened by who needs it, and NVIDIA's libraries are found where Python's packages have them.
set -u
. "$(dirname "$0")/lib.sh"

if [ -n "${SANITIZE:-}" ]; then
    skip "modules" "objects without sanitizers cannot be mixed with a library that has them"
    finish
    exit
fi
compile() { ${CC:-cc} -shared -fPIC "$@"; }

# A library of a release that never was, and a module that is linked to it.
other_release()
{
    mkdir -p "$scratch/other" "$scratch/modules"
    echo 'GRAPHRT_PRIVATE_9_8_7 { global: grt_*; };' >"$scratch/other/map"
    echo 'int grt_secret(void) { return 1; }' >"$scratch/other/library.c"
    echo 'extern int grt_secret(void); int grt_backend_elsewhere(void); int grt_backend_elsewhere(void) { return grt_secret(); }' >"$scratch/other/module.c"
    compile -Wl,-soname,libgraphrt.so.1 -Wl,--version-script="$scratch/other/map" -o "$scratch/other/libgraphrt.so.1" "$scratch/other/library.c" &&
        compile -o "$scratch/modules/libgraphrt-elsewhere.so" "$scratch/other/module.c" "$scratch/other/libgraphrt.so.1"
}
says_so()
{
    local status=0
    GRAPHRT_BACKEND_PATH=$scratch/modules ./graphrun "$srcdir/models/digits/digits.onnx" --device elsewhere:0 >"$scratch/stdout" 2>"$scratch/stderr" || status=$?
    cat "$scratch/stderr"
    [ "$status" = 2 ] && grep -q "libgraphrt-elsewhere.so: it is of another release than this library, which is $("$srcdir/scripts/version.sh")" "$scratch/stderr" &&
        grep -q 'it wants 9_8_7' "$scratch/stderr"
}
check "a module of another release can be made" other_release
check "a module of another release says so" says_so

# oneDNN: neither it nor C++ is loaded before a convolution wants it, and nothing takes its place.
model=$srcdir/models/digits/digits.onnx
other_onednn()
{
    mkdir -p "$scratch/onednn"
    echo 'const char *const grt_dnnl_calls[64] = {"9.8.7 for oneDNN 1.x"};' >"$scratch/calls.c"
    compile -o "$scratch/onednn/libgraphrt-onednn.so" "$scratch/calls.c"
}
loads_cxx() { LD_DEBUG=files "$@" 2>&1 | grep -E 'calling init.*lib(dnnl|stdc)'; }
graphrt_alone() # COMMAND...: with a copy of the library that has no modules beside it
{
    mkdir -p "$scratch/alone" && cp -L .libs/libgraphrt.so.1 "$scratch/alone/" && LD_LIBRARY_PATH=$scratch/alone "$@" 2>"$scratch/stderr"
    local status=$?
    cat "$scratch/stderr" >&2
    return "$status"
}
fails_for() { local want=$1; shift; "$@" 2>&1 | tee "$scratch/said"; [ "${PIPESTATUS[0]}" = 2 ] && grep -q "Conv node .*: convolutions are computed by oneDNN: $want" "$scratch/said"; }
no_convolution() { graphrt_alone .libs/graphrun "$scratch/fold.onnx" && ! loads_cxx .libs/graphrun "$scratch/fold.onnx"; }
check "a model without convolutions" tar -xJf "$srcdir/tests/data/onnx-node-opset28.tar.xz" -C "$scratch" --strip-components=2 node/test_softmax_example/model.onnx
mv "$scratch/model.onnx" "$scratch/fold.onnx"
check "it needs neither oneDNN nor C++" no_convolution
check "a model with convolutions loads oneDNN" loads_cxx ./graphrun "$model"
# In the programs that embed it, LeakSanitizer of GCC 12 may crash on them (backends/cpu/dnnl_calls.cc).
no_late_tls() { readelf -rW libgraphrt-onednn.so >"$scratch/relocations" && ! grep -E 'DTPMOD|TLSDESC' "$scratch/relocations"; }
check "the module of oneDNN has no thread-local variables that are allocated late" no_late_tls
check "a module of oneDNN for another release can be made" other_onednn
GRAPHRT_BACKEND_PATH=$scratch/onednn check "it says so" fails_for "the module 'onednn' is of 9.8.7 for oneDNN 1.x" ./graphrun "$model"
installed=$(sed -n 's/^libdir = //p' Makefile | sed "s|[$]{exec_prefix}|$(sed -n 's/^prefix = //p' Makefile)|")/graphrt/libgraphrt-onednn.so
if [ -e "$installed" ]; then
    skip "a module that is missing" "$installed is there"
else
    check "a module that is missing is an error" fails_for "the module 'onednn' cannot be opened" graphrt_alone .libs/graphrun "$model"
fi

# A directory of packages: graphrt/ has the module, nvidia/NAME/lib a library. Its name has what a pattern would mean something by.
packages()
{
    site="$scratch/[a] site"
    mkdir -p "$site/graphrt" "$site/nvidia/cu13/lib" "$site/nvidia/empty/lib"
    echo 'int grt_wheels_probe; int probe(void); int probe(void) { return 42; }' >"$scratch/library.c"
    compile -o "$site/nvidia/cu13/lib/libprobe.so.13" "$scratch/library.c" &&
        compile -I "$srcdir" -o "$site/graphrt/module.so" "$srcdir/backends/cuda/wheels.c" || return 1
    cat >"$scratch/main.c" <<'C'
#include <dlfcn.h>
#include <string.h>
int main(int n, char **arguments)
{
    void *module = n > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
    void *(*find)(const char *) = 0;
    int (*probe)(void) = 0;
    void *symbol = module ? dlsym(module, "cuda_wheels_open") : 0;
    memcpy(&find, &symbol, sizeof find);
    void *found = find ? find("libprobe.so.13") : 0;
    symbol = found ? dlsym(found, "probe") : 0;
    memcpy(&probe, &symbol, sizeof probe);
    return probe && probe() == 42 && !find("libprobe.so.14") ? 0 : 1;
}
C
    ${CC:-cc} -o "$scratch/main" "$scratch/main.c" -ldl && "$scratch/main" "$site/graphrt/module.so"
}
check "libraries are found in packages beside the module" packages
finish
