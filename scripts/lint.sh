#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Static checks: clang-tidy (.clang-tidy), cppcheck (.cppcheck-suppressions), shellcheck. usage: scripts/lint.sh BUILD-DIR [FILE...]
# BUILD-DIR is a configured build with its generated headers made. Tools that are not installed are named and left out.
set -u
build=$(cd "${1:?usage: lint.sh BUILD-DIR [FILE...]}" && pwd) || exit 1
shift
cd "$(dirname "$0")/.." || exit 1
if (($# > 0)); then
    files=("$@")
else
    mapfile -t files < <(find src graph backends tools examples models -name '*.c' | sort)
fi
status=0

have()
{
    command -v "$1" >/dev/null && return 0
    echo "lint: $1 is not installed (scripts/setup.sh lint): left out"
    return 1
}

flags=(-std=gnu11 -fopenmp -I. -Iinclude "-I$build")
if have clang-tidy; then
    # Its standard error holds nothing but counts of suppressed warnings.
    # shellcheck disable=SC2016 # expanded by the inner shell
    printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 sh -c '
        build=$0
        clang-tidy --quiet "$@" -- -std=gnu11 -I. -Iinclude -I"$build" -DGRT_MODULE_DIR="\"\"" 2>/dev/null' "$build" || status=1
fi
if have cppcheck; then
    cppcheck --quiet --std=c11 -j "$(nproc)" --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
        --suppressions-list=.cppcheck-suppressions "${flags[@]:2}" "${files[@]}" || status=1
fi
if have shellcheck; then
    shellcheck quickstart.sh run-tests.sh .ci/run scripts/*.sh tests/*/*.sh python/*.sh python/*/*.sh || status=1
fi
exit $status
