#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the backend of a build directory in a real Triton Inference Server. usage: serving/triton/test.sh BUILD-DIR
#
# Fetches the server (the wheel nvidia-pytriton, 53 MB) and its clients from PyPI, pinned by hash in requirements.txt, into
# BUILD-DIR/serving. GRAPHRT_TRITON_REQUESTS=100000 adds that many requests under reloads and kills: minutes. Where that cannot be done it says why and ends with 77: skipped. The last line is the totals.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: test.sh BUILD-DIR}" && pwd) || exit 1
. "$here/../../scripts/pypi.sh"
work=$build/serving
mkdir -p "$work"
unset PYTHONPATH PYTHONHOME MAKEFLAGS MAKELEVEL
python=${GRT_PYTHON3:-$(command -v python3)}

skip() { echo "skipped: Triton: $1" && exit 77; }
[ "$(uname -m)" = x86_64 ] || skip "there is no tritonserver on PyPI for $(uname -m)"
suits "$python" 3.11 || skip "needs Python 3.11 or later with venv and Python.h (python3-venv, python3-dev)"
make -s -C "$build" libtriton_graphrt.la libgraphrt-mirror.so graphc >"$work/make.log" 2>&1 || { cat "$work/make.log" && exit 1; }
pypi_venv "$python" "$work/triton" "$here/requirements.txt" Triton || exit 1
(cd "$here/tests" && GRAPHRT_BUILD=$build timeout 300 "$work/triton/bin/python" -m pytest -q -p no:cacheprovider --tb=short) >"$work/triton.pytest.log" 2>&1
grep -E '^(FAILED|ERROR)|^E  ' "$work/triton.pytest.log" | cut -c 1-300
read -r p f s < <(pytest_totals "$work/triton.pytest.log")
((f == 0)) || tail -n 40 "$work/triton.pytest.log"
echo "$p passed, $f failed, $s skipped"
((f == 0))
