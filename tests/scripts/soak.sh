#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pool under 20,000 requests from 8 threads: each answered once, right results, memory that does not grow. The whole run is
# tests/soak/soak --requests 1000000 --threads 32 models/digits/digits.onnx cpu mirror:0 mirror:1.
set -u
. "$(dirname "$0")/lib.sh"

check "requests" timeout 240 tests/soak/soak --requests 20000 --threads 8 "$srcdir/models/digits/digits.onnx" cpu mirror:0
finish
