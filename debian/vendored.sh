#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts what python3-graphrt is built with and Debian lacks, nanobind, into debian/vendored: sources, as python/requirements pins them by
# hash. Before the source package is made, as builds fetch nothing. usage: debian/vendored.sh
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk '/^nanobind==/ { on = 1 } on { print } on && !/\\$/ { exit }' python/requirements/build.txt >"$scratch/pinned"
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all: --no-compile --target "$scratch/vendored" -r "$scratch/pinned"
rm -rf debian/vendored
mv "$scratch/vendored" debian/vendored
