# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, and behind it auditwheel, which gives the wheel the tag that is true for its symbols. The library itself, which the
module is linked to, is in the wheel graphrt."""

import subprocess
import sys
import tempfile
from pathlib import Path

from scikit_build_core import build as scikit
from scikit_build_core.build import get_requires_for_build_wheel, prepare_metadata_for_build_wheel  # noqa: F401


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        wheel = Path(scratch) / scikit.build_wheel(scratch, config_settings, metadata_directory)
        before = set(Path(wheel_directory).glob("*.whl"))
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--exclude", "libgraphrt.so.1", "--wheel-dir", wheel_directory, wheel],
                       check=True)
        made, = set(Path(wheel_directory).glob("*.whl")) - before
        return made.name


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("graphrt-cuda13 is built from a checkout; there is no source distribution")
