# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, and what `python -m build` should do besides: wheels come out with their libraries inside, source distributions with
the library's sources.

Config settings of our own: `repair=no` leaves a wheel as it was built, for the machine that it was built on.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from scikit_build_core import build as scikit
from scikit_build_core.build import (build_editable, get_requires_for_build_editable, get_requires_for_build_sdist,  # noqa: F401
                                     get_requires_for_build_wheel, prepare_metadata_for_build_editable)

from repair import repaired

HERE = Path(__file__).resolve().parent.parent
TOP = HERE.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    repair = settings.pop("repair", "yes") != "no"
    if not repair:
        return scikit.build_wheel(wheel_directory, settings, metadata_directory)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = scikit.build_wheel(scratch, settings, metadata_directory)
        return repaired(Path(scratch) / wheel, wheel_directory, strip=True)


def _tree_files():
    """What git has, but this folder and what only tests and benchmarks of the whole tree need."""
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
    left_out = ("python/", "tests/data/", "bench/results/")
    return ["python/sources.mk"] + [name for name in names.split("\0") if name and not name.startswith(left_out)]


def build_sdist(sdist_directory, config_settings=None):
    """The tree goes below tree/, where CMakeLists.txt looks for it first."""
    staged = HERE / "tree"
    if not (TOP / "configure.ac").exists():  # a source distribution itself
        return scikit.build_sdist(sdist_directory, config_settings)
    try:
        for name in _tree_files():
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, staged / name)
        return scikit.build_sdist(sdist_directory, config_settings)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
