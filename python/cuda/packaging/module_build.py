# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, and behind it what makes wheels for older systems, as for the wheel graphrt. The library itself, which the
module is linked to, is in the wheel graphrt."""

import sys
import tempfile
from pathlib import Path

from scikit_build_core import build as scikit
from scikit_build_core.build import get_requires_for_build_wheel, prepare_metadata_for_build_wheel  # noqa: F401


sys.path.append(str(Path(__file__).resolve().parents[2] / "packaging"))
from repair import repaired  # noqa: E402


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        wheel = Path(scratch) / scikit.build_wheel(scratch, config_settings, metadata_directory)
        return repaired(wheel, wheel_directory, strip=False, exclude=["libgraphrt.so.1"])


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("graphrt-cuda13 is built from a checkout; there is no source distribution")
