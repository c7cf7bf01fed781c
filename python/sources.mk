# SPDX-License-Identifier: Apache-2.0
# The Python package is built by its own pyproject.toml, out of this build's library: python/test.sh, ./run-tests.sh python.
EXTRA_DIST += python/.gitignore python/CMakeLists.txt python/LICENSE python/README.md python/pyproject.toml python/test.sh
EXTRA_DIST += python/graphrt python/native python/packaging python/requirements python/tests python/cuda
EXTRA_DIST += serving/ray/requirements.in serving/ray/requirements.txt serving/ray/test.sh serving/ray/tests
