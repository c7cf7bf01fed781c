# SPDX-License-Identifier: Apache-2.0
"""The commands graphc and graphrun, as pip installs them: the programs themselves take over this process."""

import os
import sys
from pathlib import Path


def _become(name):
    program = Path(__file__).parent / "bin" / name
    os.execv(program, [name, *sys.argv[1:]])


def graphc():
    _become("graphc")


def graphrun():
    _become("graphrun")
