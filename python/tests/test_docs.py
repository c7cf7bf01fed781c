# SPDX-License-Identifier: Apache-2.0
"""Every Python program in the documentation runs, and the table of programs is the list of them."""
import re
import subprocess
import sys

import pytest
from conftest import TOP
from ort_programs import PROGRAMS

PAGES = ["docs/python.md", "docs/onnxruntime.md", "README.md", "python/README.md"]


def snippets():
    for page in PAGES:
        for number, text in enumerate(re.findall(r"(?<! -->\n)^```python\n(.*?)^```$", (TOP / page).read_text(), re.MULTILINE | re.DOTALL), 1):
            yield pytest.param(text, id=f"{page}-{number}")


@pytest.mark.parametrize("text", list(snippets()))
def test_snippet(text, tmp_path):
    (tmp_path / "models").symlink_to(TOP / "models")
    (tmp_path / "build").mkdir()
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def test_table_of_programs():
    rows = ["| calls | program |", "|---|---|"]
    rows += [f"| {run.__doc__.strip()} | `{run.__name__}` |" for run in PROGRAMS]
    table = "\n".join(rows)
    page = (TOP / "docs/onnxruntime.md").read_text()
    found = re.search(r"<!-- programs:begin.*?-->\n(.*?)\n?<!-- programs:end -->", page, re.DOTALL).group(1)
    assert found == table, f"docs/onnxruntime.md should have:\n{table}"
    assert len(PROGRAMS) >= 30
