# SPDX-License-Identifier: Apache-2.0
"""What is generated and checked in is up to date: the stub of the compiled part is that of the module (to write it anew: python
tests/test_stubs.py), and the table of inputs' dtypes is what the schemas of onnx say."""
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TOP

STUB = Path(__file__).resolve().parent.parent / "graphrt/_core.pyi"


def generated(directory):
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "graphrt._core", "--exclude-values", "-O", directory]
    subprocess.run(command, check=True, cwd=directory)
    return "# SPDX-License-Identifier: Apache-2.0\n" + (Path(directory) / "_core.pyi").read_text()


def test_the_stub_is_up_to_date(tmp_path):
    assert STUB.read_text() == generated(tmp_path)


def test_the_table_of_dtypes_is_up_to_date():
    ran = subprocess.run([sys.executable, TOP / "scripts/input_types.py", "--check"], capture_output=True, text=True, check=False)
    if ran.returncode == 77:
        pytest.skip(ran.stdout)
    assert ran.returncode == 0, ran.stderr


def test_every_public_name_is_documented():
    import graphrt
    for name in graphrt.__all__:
        thing = getattr(graphrt, name)
        assert (thing.__doc__ or "").strip(), name
        for member in vars(thing) if isinstance(thing, type) else ():
            if not member.startswith("_") and callable(getattr(thing, member)) and not issubclass(thing, (tuple, BaseException)):
                assert (getattr(thing, member).__doc__ or "").strip(), f"{name}.{member}"


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as scratch:
        STUB.write_text(generated(scratch))
