#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Static checks of C and CUDA sources and of scripts: clang-tidy (.clang-tidy), cppcheck (.cppcheck-suppressions), shellcheck.
# usage: scripts/lint.sh BUILD-DIR [FILE...]
# BUILD-DIR is a configured build with its generated headers made. Tools that are not installed are named and left out.
set -u
build=$(cd "${1:?usage: lint.sh BUILD-DIR [FILE...]}" && pwd) || exit 1
shift
cd "$(dirname "$0")/.." || exit 1
if (($# > 0)); then
    all=("$@")
else
    mapfile -t all < <(find src graph backends tools examples models -name '*.c' -o -name '*.cu' | sort)
fi
files=() cuda=()
for file in "${all[@]}"; do
    case $file in *.cu) cuda+=("$file") ;; *) files+=("$file") ;; esac
done
status=0

have()
{
    command -v "$1" >/dev/null && return 0
    echo "lint: $1 is not installed (scripts/setup.sh lint): left out"
    return 1
}

# tidy FLAG... -- FILE...: clang-tidy on a few files at a time. Its standard error holds nothing but counts of suppressed warnings.
tidy()
{
    local flags=()
    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift
    (($# > 0)) || return 0
    printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n 4 "$work/tidy" "${flags[@]}"
}

# check_cpp OPTION... FILE...
check_cpp()
{
    cppcheck --quiet -j "$(nproc)" --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
        --suppressions-list=.cppcheck-suppressions -I. -Iinclude "-I$build" "$@"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
includes=(-I. -Iinclude "-I$build")
if have clang-tidy; then
    # xargs appends files; clang-tidy wants flags of the compiler behind them.
    cat >"$work/tidy" <<'END'
#!/bin/bash
flags=() files=() checks=()
for argument; do
    case $argument in
    *.c | *.cu) files+=("$argument") ;;
    --checks=*) checks+=("$argument") ;;
    *) flags+=("$argument") ;;
    esac
done
exec clang-tidy --quiet "${checks[@]}" "${files[@]}" -- "${flags[@]}" 2>/dev/null
END
    chmod +x "$work/tidy"
    tidy -std=gnu11 "${includes[@]}" '-DGRT_MODULE_DIR=""' -- "${files[@]}" || status=1

    # clang 14 parses the host side of CUDA sources with newer toolkits too, without the texture functions, which those lack.
    # Each kernel declares the dynamic shared memory of its block anew.
    toolkit=$(sed -n 's/^CUDA_DIR = //p' "$build/Makefile")
    [ -n "$toolkit" ] || toolkit=/usr/local/cuda
    if [ -f "$toolkit/include/cuda_runtime.h" ] && [ -f "$toolkit/include/cudnn.h" ]; then
        : >"$work/texture_fetch_functions.h"
        tidy --checks=-readability-redundant-declaration -x cuda --cuda-host-only "--cuda-path=$toolkit" -nocudalib -std=c++17 \
            -Wno-unknown-cuda-version -D__CLANG_CUDA_TEXTURE_INTRINSICS_H__ '-D__noinline__=__attribute__((noinline))' \
            -isystem "$work" -isystem "$toolkit/include" "${includes[@]}" -- "${cuda[@]}" || status=1
    else
        echo "lint: no CUDA toolkit with cuDNN's headers: clang-tidy leaves .cu files out"
    fi
fi
if have cppcheck; then
    if ((${#files[@]} > 0)); then
        check_cpp --std=c11 "${files[@]}" || status=1
    fi
    if ((${#cuda[@]} > 0)); then
        check_cpp --language=c++ --std=c++17 -D__CUDACC__ -D__global__= -D__device__= -D__host__= -D__shared__= \
            '-D__launch_bounds__(...)=' -D__forceinline__=inline -D__noinline__= "${cuda[@]}" || status=1
    fi
fi
if have shellcheck; then
    shellcheck quickstart.sh run-tests.sh .ci/run scripts/*.sh tests/*/*.sh python/*.sh python/*/*.sh serving/*/*.sh packaging/*.sh || status=1
fi
exit $status
