# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as it runs on a processor with fewer instructions, for comparing like with like where this library is capped by GRAPHRT_CPU_ISA.

ONNX Runtime has no such setting: it asks the processor. So the installed package is copied, in the copy every CPUID instruction is replaced by one that is
undefined, and a preloaded library (older_cpu.c) answers in its place and leaves out what is to be hidden. For measurements only; nothing of the copy is
used otherwise. Needs objdump and a C compiler, on x86-64.
"""
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

# GRAPHRT_CPU_ISA -> what older_cpu.c leaves.
LEVELS = {"avx2": "avx2", "avx512": "avx512_vnni"}
CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"
HERE = Path(__file__).resolve().parent


def sections(library):
    """(address, offset in the file, size) of each section with code."""
    found = []
    listing = subprocess.run(["objdump", "-h", "-w", library], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) > 6 and fields[0].isdigit() and "CODE" in line:
            size, address, _, offset = (int(field, 16) for field in fields[2:6])
            found.append((address, offset, size))
    return found


def cpuid_addresses(library):
    """Of instructions, as a disassembler finds them: the two bytes alone are also parts of others."""
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE, text=True) as disassembly:
        for line in disassembly.stdout:
            match = re.match(r"\s*([0-9a-f]+):\s+cpuid\b", line)
            if match:
                yield int(match.group(1), 16)
    if disassembly.returncode:
        raise RuntimeError(f"objdump failed on {library}")


def replace_cpuid(library):
    code = sections(library)
    with open(library, "r+b") as file:
        for address in cpuid_addresses(library):
            start, offset, _ = next(s for s in code if s[0] <= address < s[0] + s[2])
            file.seek(offset + address - start)
            if file.read(len(CPUID)) != CPUID:
                raise RuntimeError(f"{library}: no CPUID at {address:#x}")
            file.seek(-len(CPUID), os.SEEK_CUR)
            file.write(UD2)


def prepared(directory):
    """Below `directory`, made once for a version of the package: the copy's parent and the library to preload."""
    package = Path(importlib.util.find_spec("onnxruntime").origin).parent
    version = re.search(r'__version__\s*=\s*["\']([^"\']+)', (package / "__init__.py").read_text()).group(1)
    copy, preload = directory / f"older_cpu-{version}", directory / "older_cpu.so"
    if not preload.exists() or preload.stat().st_mtime < (HERE / "older_cpu.c").stat().st_mtime:
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", preload, HERE / "older_cpu.c"], check=True)
    if not copy.exists():
        part = copy.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(package, part / "onnxruntime")
        for library in (part / "onnxruntime/capi").glob("onnxruntime_pybind11_state*.so"):
            replace_cpuid(library)
        part.rename(copy)
    return copy, preload


def environment(directory, level):
    """For a process with the peer on a processor that has what GRAPHRT_CPU_ISA=level leaves this library."""
    copy, preload = (path.resolve() for path in prepared(directory))
    path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "LD_PRELOAD": str(preload), "PYTHONPATH": path, "PEER_CPU": LEVELS[level]}
