#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --device cuda with something missing: the message must name it. The driver is a stub.
set -u
. "$(dirname "$0")/lib.sh"

model=$srcdir/models/digits/digits.onnx
export GRAPHRT_BACKEND_PATH=$PWD

# says_on_cuda PATTERN VARIABLE=VALUE...: the run fails with status 2, and this on stderr
says_on_cuda()
{
    local want=$1 status=0
    shift
    env "$@" ./graphrun "$model" --device cuda >"$scratch/stdout" 2>"$scratch/stderr" || status=$?
    [ "$status" = 2 ] && grep -q -- "$want" "$scratch/stderr" && return 0
    echo "exit status $status"
    cat "$scratch/stderr"
    return 1
}

# driver VERSION: a libcuda.so.1 that knows its version and nothing else
driver()
{
    cat >"$scratch/driver.c" <<'C'
int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}
int cuDriverGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}
int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}
int cuGetProcAddress(const char *name, void **out, int version, unsigned long flags)
{
    (void)name, (void)version, (void)flags;
    *out = 0;
    return 500;
}
C
    mkdir -p "$scratch/driver$1"
    # shellcheck disable=SC2086 # a compiler and its options
    ${CC:-cc} -shared -fPIC -DVERSION="$1" -o "$scratch/driver$1/libcuda.so.1" "$scratch/driver.c"
}

if [ -e libgraphrt-cuda.so ]; then
    driver 11040
    check "a driver that is too old" says_on_cuda "the NVIDIA driver is too old: it supports CUDA 11.4, this build wants [0-9]*.0 or newer" \
        LD_LIBRARY_PATH="$scratch/driver11040"
    driver 99000
    check "a driver that lacks what is wanted" says_on_cuda "no usable NVIDIA GPU: " LD_LIBRARY_PATH="$scratch/driver99000"
    if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
        skip "no driver" "this machine has one"
    else
        check "no driver" says_on_cuda "there is no NVIDIA driver: libcuda.so.1, which comes with it, cannot be opened; install one" A=
    fi
else
    skip "drivers" "built without CUDA"
fi
finish
