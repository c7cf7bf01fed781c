#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests graphrt.ray on a local cluster, with the wheel of a build directory. usage: serving/ray/test.sh BUILD-DIR
#
# Fetches Ray from PyPI (600 MB when it is installed), pinned by hash in requirements.txt, into BUILD-DIR/serving. Where that cannot be done it says why
# and ends with 77: skipped. The last line is the totals.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: test.sh BUILD-DIR}" && pwd) || exit 1
. "$here/../../scripts/pypi.sh"
work=$build/serving
mkdir -p "$work"
unset PYTHONPATH PYTHONHOME MAKEFLAGS MAKELEVEL
python=${GRT_PYTHON3:-$(command -v python3)}

skip() { echo "skipped: Ray: $1" && exit 77; }
suits "$python" 3.11 || skip "needs Python 3.11 or later with venv and Python.h (python3-venv, python3-dev)"
free=$(df --output=avail -k "$work" | tail -n 1)
((free > 2000000)) || skip "needs 2 GB of disk, there are $((free / 1000)) MB"
memory=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
((memory > 4000000)) || skip "needs 4 GB of memory, $((memory / 1000)) MB are free"
wheel=$("$here/../../python/test.sh" --wheel "$build" | tail -n 1)
[ -e "$wheel" ] || { echo "there is no wheel: $wheel" && exit 1; }
pypi_venv "$python" "$work/ray" "$here/requirements.txt" Ray || exit 1
"$work/ray/bin/pip" --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall "$wheel" || exit 1
(cd "$here/tests" && RAY_USAGE_STATS_ENABLED=0 timeout 400 "$work/ray/bin/python" -m pytest -q -p no:cacheprovider --tb=short) >"$work/ray.pytest.log" 2>&1
grep -E '^(FAILED|ERROR)|^E  ' "$work/ray.pytest.log" | cut -c 1-300
read -r p f s < <(pytest_totals "$work/ray.pytest.log")
((f == 0)) || tail -n 40 "$work/ray.pytest.log"
echo "$p passed, $f failed, $s skipped"
((f == 0))
