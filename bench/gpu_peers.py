# SPDX-License-Identifier: Apache-2.0
"""The peers, for bench/gpu_speed.py: tasks that compile or convert for them, in a child of the family's process, and what is asked of the processes that measure."""
import ast
import importlib.util
import os
import re
import sys
from pathlib import Path

from common import run
from gpu_words import say
from serving import reason
from turns import turn

HERE = Path(__file__).resolve().parent


def torch_generated(family):
    """PyTorch's own writing of a generated model (peers/torch_infer.py)."""
    args, types = family.args, {"fp16": "fp16", "tf32": "fp32"}
    with turn(args.lock):
        out = run([sys.executable, HERE / "peers/torch_infer.py", family.name, ",".join(types[p] for p in args.precisions), family.batch, "graph"])
    for dtype, row in re.findall(rf"^infer \S+ (\S+) b{family.batch} (\{{.*\}})$", out, re.M):
        precision = next(p for p, t in types.items() if t == dtype)
        say(args, "peer", [family.name, family.batch, precision], ast.literal_eval(row))


def compile_peer(family, word, mode, precisions):
    """torch.compile in a mode, each precision in turn; `word` is its column."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "4" if word == "compile_max" else "1"  # of those that prepare its choices
    import torch._dynamo

    from peers import torch_exports
    args = family.args
    torch_exports.allow()
    for precision in precisions:
        key = [family.name, family.batch, precision]
        torch._dynamo.reset()
        try:
            with torch.inference_mode():
                found, took = torch_exports.compiled(family.made, precision, family.channels_last, mode, args.seconds, args.compile_limit, args.lock)
            say(args, "peer", key, {word: found, f"{word}_s": round(took, 1)})
        except Exception as error:
            say(args, "peer", key, {f"{word}_problem": reason(error)})


def narrow(family, exporter, half):
    """ONNX Runtime's own float16 conversion of the file. Found: whether there are convolutions, and why there is no conversion."""
    from peers import ort_exports
    path = family.path(exporter, half)
    found = {"convolutions": ort_exports.has_convolutions(path)}
    if "fp16" in family.args.precisions:
        try:
            ort_exports.narrowed(path)
        except Exception as error:
            found["unconverted"] = reason(error)
    return found


def wheel_libraries():
    """Directories of CUDA's and cuDNN's libraries that came with PyTorch, which ONNX Runtime takes as well."""
    spec = importlib.util.find_spec("nvidia")
    return [str(path) for place_ in (spec.submodule_search_locations if spec else ()) for path in sorted(Path(place_).glob("*/lib"))]


def torch_station(args):
    return [sys.executable, HERE / "peers/torch_exports.py", "--serve", "--seconds", args.seconds, "--lock", args.lock, *args.keep_to], dict(os.environ)


def torch_request(family, task, _):
    """PyTorch's float32 results, and its times in the layout that suits it; the task "layout": those in the other one."""
    other = task.name[0] == "layout"
    return {"key": task.name[1:], "expected": None if other else family.expected, "precisions": family.args.precisions if family.args.peers else [],
            "mode": "graph_channels_first" if other else "graph", "channels_last": bool(family.channels_last) and not other, "late": other}


def ort_station(args):
    libraries = os.pathsep.join([*wheel_libraries(), os.environ.get("LD_LIBRARY_PATH", "")])
    return [sys.executable, HERE / "peers/ort_exports.py", "--serve", "--seconds", args.seconds, "--lock", args.lock, *args.keep_to], {**os.environ, "LD_LIBRARY_PATH": libraries}


def ort_request(family, task, narrowed):
    """`narrowed`: what that task found."""
    name, batch, exporter, half, precision = task.name[1:]
    path = family.path(exporter, half)
    if precision == "fp16" and "unconverted" in narrowed:
        raise ValueError(narrowed["unconverted"])
    return {"key": [name, batch, precision], "file": family.narrowed(path) if precision == "fp16" else path, "inputs": family.inputs, "expected": family.expected,
            "convolutions": narrowed["convolutions"]}
