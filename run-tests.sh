#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds libgraphrt in build/ and runs all its tests.
#
#   ./run-tests.sh [--no-install] [--help] [SUITE...]
#
# Suites (default: all but ray):
#   check         make check: unit tests (at each level of instruction sets), tools, examples, README, include direction
#   conformance   official ONNX cases, and those in ../shared/data if it is there, on the CPU, and on a GPU if there is one; on the CPU
#                 every fourth again at each lower level of instruction sets that this processor has
#   python        the Python package: a wheel is built and installed into a fresh virtual environment below build/, and tested there;
#                 what it needs is fetched from PyPI (python/requirements) and named
#   triton        the backend for Triton Inference Server, in a real server, which is fetched from PyPI (serving/triton/requirements.txt)
#   ray           graphrt.ray on a local cluster of Ray, which is fetched from PyPI (serving/ray/requirements.txt); only where it is named,
#                 as 600 MB are fetched and installed
#   fuzz          libFuzzer targets over import, plan loading and runs, 60,000 executions each (needs clang), the same ones at every call;
#                 FUZZ_RUNS, FUZZ_SEED: so many, from another random seed (tests/fuzz/run.sh)
#   format        clang-format 14 finds nothing to change
# Installs the packages that scripts/packages.txt lists under "build" and "test" and that are missing, as quickstart.sh does.
# A suite that cannot run says why and counts as skipped. The last line is "N passed, N failed, N skipped" over all suites; the
# exit code is 0 if nothing failed. Run it again at any time.
set -u
cd "$(dirname "$0")" || exit 1
ui_logs=build/logs/tests
. scripts/ui.sh
. scripts/totals.sh
. scripts/gpu.sh

install=1
suites=
for arg; do
    case $arg in
    --no-install) install= ;;
    check | conformance | python | triton | ray | fuzz | format) suites="$suites $arg" ;;
    -h | --help)
        sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
        exit 0
        ;;
    *) die "unknown argument $arg (see --help)" ;;
    esac
done
suites=${suites:-check conformance python triton fuzz format}

suite()
{
    say "== $1"
    totals_run "build/logs/$1.log" "${@:2}"
}

# What this processor has below its highest level (GRAPHRT_CPU_ISA): every fourth case at each.
lower_levels()
{
    local levels level
    make -C build tests/unit/unit >build/logs/unit.log 2>&1
    levels=$(build/tests/unit/unit --isa) || { failed=$((failed + 1)) && return; }
    say "instruction sets: ${GRAPHRT_CPU_ISA:-${levels##* }} for all cases; levels of this machine: $levels"
    for level in $levels; do
        [ "$level" = "${levels##* }" ] || GRAPHRT_CPU_ISA=$level suite "conformance-$level" tests/conformance/run.sh build --every 4
    done
}

configure_build()
{
    [ -x configure ] || ./autogen.sh || return 1
    mkdir -p build && cd build || return 1
    # shellcheck disable=SC2046,SC2086 # lists of arguments
    [ -x config.status ] || ../configure $(gpu_configure) ${GRAPHRT_CONFIGURE:-}
}
build_all() { make -C build -j"$(nproc)"; }

set_up()
{
    if [ -n "$install" ]; then
        scripts/setup.sh build test || return 1
    fi
    step "configuring build/" configure_build && step "building" build_all
}

mkdir -p build/logs
if ! set_up; then
    failed=1
    totals_print
    exit
fi
for name in $suites; do
    case $name in
    check) suite check scripts/make-check.sh build ;;
    conformance)
        suite conformance tests/conformance/run.sh build
        lower_levels
        suite device tests/conformance/device.sh build mirror # what a GPU needs around its kernels
        if [ -n "$(gpu_module build)" ]; then
            suite cuda tests/conformance/device.sh build cuda
        fi
        ;;
    python) suite python python/test.sh build ;;
    ray) suite ray serving/ray/test.sh build ;;
    triton) suite triton serving/triton/test.sh build ;;
    fuzz) suite fuzz tests/fuzz/run.sh ;;
    format) suite format scripts/format.sh --check ;;
    esac
done
say "== all"
totals_print
