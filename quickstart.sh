#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone on Debian 12 or Ubuntu 24.04 to a trained network that reads handwritten digits.
#
#   ./quickstart.sh [--no-install] [--help]
#
# Installs the packages that scripts/packages.txt lists under "build" and that are missing (apt-get; with sudo if you are not
# root), builds libgraphrt in build/, optimises models/digits/digits.onnx into build/digits.grt and runs it on 450 held-out
# images. Where there is an NVIDIA GPU, and CUDA's nvcc with the headers of cuDNN and cuBLAS, the CUDA backend is built for that GPU and
# reads the images too. Nothing is written outside this directory except those packages. Run it again at any time: it does what is missing.
#
#   --no-install   install nothing; fail if something is missing
# CC, CFLAGS and GRAPHRT_CONFIGURE (arguments of ./configure) are used when build/ is configured for the first time.
set -eu
cd "$(dirname "$0")"
ui_steps=5
. scripts/ui.sh
. scripts/gpu.sh

install=1
for arg; do
    case $arg in
    --no-install) install= ;;
    -h | --help)
        sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
    *) die "unknown argument $arg (see --help)" ;;
    esac
done

if [ -n "$install" ]; then
    scripts/setup.sh build
fi

# ./configure and build/config.status are made once; make itself notices later changes of what they come from.
make_configure() { [ -x configure ] || ./autogen.sh; }
configure_build()
{
    mkdir -p build && cd build
    # shellcheck disable=SC2046,SC2086 # lists of arguments
    [ -x config.status ] || ../configure $(gpu_configure) ${GRAPHRT_CONFIGURE:-}
}
# What is used below; kernels for a GPU, which take minutes, only where there is one. `make -C build` makes the rest.
# shellcheck disable=SC2046 # no word, or one
build_all() { make -C build -j"$(nproc)" graphc graphrun examples/digits $(gpu_module build); }
optimize() { build/graphc optimize models/digits/digits.onnx -o build/digits.grt; }
read_on_gpu()
{
    build/graphc optimize models/digits/digits.onnx -o build/digits-gpu.grt --target cuda &&
        build/graphrun build/digits-gpu.grt --device cuda:0 --input image=models/digits/test_images.npy --repeat 100
}

step "making ./configure" make_configure
step "configuring build/" configure_build
sed -n '/^libgraphrt [0-9]/,$p' build/logs/step-2.log
step "building with $(nproc) jobs" build_all
step "optimising models/digits/digits.onnx" optimize
step "reading 450 handwritten digits" build/examples/digits build/digits.grt models/digits/test_images.npy \
    models/digits/test_labels.npy
say
cat build/logs/step-5.log
say
if [ -n "$(gpu_archs)" ] && [ -n "$(gpu_module build)" ]; then
    ui_steps=6
    step "the same on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" read_on_gpu
    say
    cat build/logs/step-6.log
    say
elif [ -n "$(gpu_archs)" ]; then
    say "There is a GPU, but the CUDA backend is not built: see \"CUDA backend\" above. It needs nvcc, cudnn.h and cublasLt.h;"
    say "GRAPHRT_CONFIGURE=--with-cudnn=DIR names a directory whose include/cudnn.h it is, such as PyPI's nvidia/cudnn; then remove build/ and try again."
    say
fi
say "Next: build/graphrun build/digits.grt --input image=models/digits/test_images.npy"
say "      build/graphc inspect build/digits.grt        ./run-tests.sh        README.md"
