# SPDX-License-Identifier: Apache-2.0
"""The peers, for bench/gpu_family.py: PyTorch's CUDA graph and torch.compile, ONNX Runtime's CUDA provider."""
import ast
import importlib.util
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np

from common import run
from gpu_rows import ORT_MODES, best_of
from gpu_words import KEPT, awaited, difference, named, or_failed, reason, say
from turns import place, turn

HERE = Path(__file__).resolve().parent


def on_gpu(family, *_):
    import torch
    torch.set_num_threads(1)
    from peers import torch_exports
    torch_exports.allow()
    return torch_exports


@or_failed
def reference(family, path):
    """PyTorch's results in float32, on the GPU."""
    import torch
    with turn(family.args.lock, shared=True):
        torch.cuda.init()
    with turn(family.args.lock):
        results = on_gpu(family).reference(family.made, KEPT)
    before = path.with_name(f"making.{path.name}")
    np.savez(before, **named(results))
    before.rename(path)


def pytorch(family):
    """The reference, and the times of PyTorch's CUDA graph."""
    import torch
    args, peers = family.args, on_gpu(family)
    with torch.inference_mode(), place(args.work, "peer", 6):
        reference(family, family.expected)
        with np.load(family.expected) as file:
            expected = dict(file)
        torch.cuda.empty_cache()
        for precision in args.precisions if args.peers else ():
            key = [family.name, family.batch, precision]
            try:
                found, results = peers.measured(family.made, precision, family.channels_last, args.seconds, args.lock, KEPT)
                say(args, "peer", key, found | {"difference": difference(expected, named(results))})
            except Exception as error:
                say(args, "peer", key, {"problem": reason(error)})


def pytorch_generated(family):
    """PyTorch's own writing of a generated model (peers/torch_infer.py)."""
    args, types = family.args, {"fp16": "fp16", "tf32": "fp32"}
    with turn(args.lock):
        out = run([sys.executable, HERE / "peers/torch_infer.py", family.name, ",".join(types[p] for p in args.precisions), family.batch, "graph"])
    for dtype, row in re.findall(rf"^infer \S+ (\S+) b{family.batch} (\{{.*\}})$", out, re.M):
        precision = next(p for p, t in types.items() if t == dtype)
        say(args, "peer", [family.name, family.batch, precision], ast.literal_eval(row))


def compile_peer(family, precision, word, mode):
    """torch.compile in a mode; `word` is its column."""
    import torch
    args = family.args
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "4" if word == "compile_max" else "1"  # of those that prepare its choices
    with place(args.work, word, args.jobs, 10), torch.inference_mode():
        found, took = on_gpu(family).compiled(family.made, precision, family.channels_last, mode, args.seconds, args.compile_limit, args.lock)
    say(args, "peer", [family.name, family.batch, precision], {word: found, f"{word}_s": round(took, 1)})


def wheel_libraries():
    """Directories of CUDA's and cuDNN's libraries that came with PyTorch, which ONNX Runtime takes as well."""
    spec = importlib.util.find_spec("nvidia")
    return [str(path) for place_ in (spec.submodule_search_locations if spec else ()) for path in sorted(Path(place_).glob("*/lib"))]


def onnxruntime(family, exporters):
    """ONNX Runtime's times on the exporter's file that it runs fastest; what both exporters write of convolutions is alike."""
    args, found = family.args, {}
    paths = [p for p in (family.path(e, False) for e in exporters) if awaited(p)]
    awaited(family.expected)
    for path in paths:
        shutil.copyfile(family.inputs, path.with_suffix(".npz"))
        command = [sys.executable, HERE / "peers/ort_exports.py", f"{family.name}:{family.batch}={path}", "--precisions", *args.precisions, "--seconds", args.seconds, "--lock", args.lock,
                   *(["--expected", family.expected] if family.expected.exists() else [])]
        libraries = os.pathsep.join([*wheel_libraries(), os.environ.get("LD_LIBRARY_PATH", "")])
        with place(args.work, "ort", 5):
            rows = [json.loads(line) for line in run(command, env={**os.environ, "LD_LIBRARY_PATH": libraries}).splitlines() if line.startswith("{")]
        for row in rows:
            p, ms = row["precision"], best_of(row, ORT_MODES)
            if p not in found or ms and ms < (best_of(found[p], ORT_MODES) or 1e9):
                found[p] = row | {"file": path.name}
                say(args, "ort", [family.name, family.batch, p], found[p])
        if family.channels_last and all(best_of(found.get(p, {}), ORT_MODES) for p in args.precisions):
            break
