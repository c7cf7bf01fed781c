#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs benchmarks with a Python that has the peers. usage: bench/run.sh [NAME...] [-- OPTIONS]
#   NAME   cpu_speed, startup, memory, compile_time, host_overhead (default: all)
# Uses $GRT_PYTHON, or makes a virtual environment in build/bench/venv with onnxruntime and numpy from PyPI.
# Afterwards writes the table of README.md anew.
set -eu
cd "$(dirname "$0")/.."
names=
while (($# > 0)) && [ "$1" != -- ]; do
    case $1 in
    -h | --help)
        sed -n '2,5s/^# //p' bench/run.sh
        exit 0
        ;;
    *) names="$names $1" ;;
    esac
    shift
done
[ "${1:-}" = -- ] && shift

python=${GRT_PYTHON:-build/bench/venv/bin/python}
if [ ! -x "$python" ]; then
    echo "making build/bench/venv with onnxruntime and numpy (PyPI)"
    python3 -m venv build/bench/venv
    build/bench/venv/bin/pip --quiet install onnxruntime numpy
fi
for name in ${names:-cpu_speed startup memory compile_time host_overhead}; do
    echo "== $name"
    "$python" "bench/$name.py" "$@"
done
"$python" bench/table.py
