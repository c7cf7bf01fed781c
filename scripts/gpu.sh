# SPDX-License-Identifier: Apache-2.0
# The machine's GPUs, for scripts that build for them: sourced, not run.
# shellcheck shell=bash

# Architectures of the NVIDIA GPUs here, as configure's --with-cuda-archs takes them: "90", "80,90"; nothing where there are none.
gpu_archs() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -nE 's/^ *([0-9]+)\.([0-9]+) *$/\1\2/p' | sort -nu | paste -sd, -; }

# What a first ./configure is told of them: kernels for other GPUs would take minutes more.
gpu_configure()
{
    local archs
    archs=$(gpu_archs)
    [ -z "$archs" ] || echo "--with-cuda-archs=$archs"
}

# gpu_module BUILD-DIR: the CUDA backend's module, if this build can have it and the machine has a GPU for it.
gpu_module()
{
    [ -n "$(gpu_archs)" ] && grep -qE '^CUDA_DIR = .' "$1/Makefile" && echo libgraphrt-cuda.so
}
