# SPDX-License-Identifier: Apache-2.0
"""What makes a wheel for other machines of one for this machine: the libraries that it needs inside, for older systems, too."""

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from older_glibc import TooNew, set_back_wheel


def _auditwheel(wheel, directory, *options):
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", *options, "--wheel-dir", directory, wheel], check=True)
    made, = Path(directory).glob("*.whl")
    return made


def _older(wheel, out):
    """The wheel for older systems; where that cannot be, the wheel itself, whose tag will say so."""
    if platform.machine() != "x86_64":
        return wheel
    try:
        set_back_wheel(wheel, out)
        return out
    except TooNew as reason:
        print(f"WARNING: this wheel is not for systems older than this one: {reason}", file=sys.stderr)
        return wheel


def repaired(wheel, directory, *, strip, exclude=()):
    """Write the wheel with its libraries inside, but those of `exclude`, to the directory, under the lowest manylinux tag that auditwheel
    finds to be true. Returns the name."""
    options = [f"--exclude={library}" for library in exclude]
    with tempfile.TemporaryDirectory() as scratch:
        stages = [Path(scratch) / name for name in ("whole", "older", "tagged")]
        for stage in stages:
            stage.mkdir()
        # Stripped first: what has been patched cannot be stripped any more.
        whole = _auditwheel(wheel, stages[0], "--no-update-tags", *options, *(["--strip"] if strip else []))
        older = _older(whole, stages[1] / whole.name)
        # A wheel is made once and downloaded often: the last stage takes its time.
        tagged = _auditwheel(older, stages[2], "--zip-compression-level=9", *options)
        shutil.move(tagged, Path(directory) / tagged.name)
        return tagged.name
