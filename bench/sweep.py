#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares many models with ONNX Runtime: results, time to optimise, speed. Not a benchmark of one claim: it looks for models that fail.

    bench/sweep.py DIRECTORY...            every *.onnx below; a report line each, the worst last
    bench/sweep.py --no-speed --json out.json DIRECTORY
    bench/sweep.py --group '((qdq|qop|dynamic|4bits).*)$' DIRECTORY    a table of times beside ONNX Runtime's in Markdown, a line a group:
                                                                        what the first brackets match in the name of a model's directory

Inputs are the .npy files in MODEL's directory under set*/in.NAME.npy, one run for each set; without any, random ones, with every symbolic
dim 2. What is expected is in set*/out.NAME.npy, or what ONNX Runtime computes with its optimiser off, as fused kernels round in other places.
A model that only ONNX Runtime cannot run is reported as such and is no failure. "own_difference" is how far ONNX Runtime is from itself: with its optimiser on, or with inputs one
rounding away. Up to twice that is no difference between runtimes, but what the model makes of roundings. Exit status 1 if a model failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

TOP = Path(__file__).resolve().parent.parent
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64, "int32": np.int32, "int8": np.int8,
         "uint8": np.uint8, "bool": np.bool_, "int16": np.int16}


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=Path(os.environ.get("GRAPHRT_BUILD", TOP / "build")), help="build directory (default: build)")
    p.add_argument("--tolerance", type=float, default=1e-4, help="largest difference, as a share of the output's largest value (default: 1e-4)")
    p.add_argument("--seconds", type=float, default=1.0, help="time to measure each side for (default: 1)")
    p.add_argument("--rounds", type=int, default=3, help="times to measure either side, in turns: the least time is what counts on a busy machine (default: 3)")
    p.add_argument("--no-speed", action="store_true", help="results only")
    p.add_argument("--json", type=Path, help="write all figures here")
    p.add_argument("--group", metavar="REGEX", help="end with a table of times by this part of the name")
    p.add_argument("paths", type=Path, nargs="+")
    return p.parse_args(words)


def maker(doc):
    """The arguments of a program that makes models in a directory and sweeps them."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", type=Path)
    p.add_argument("--json", type=Path)
    p.add_argument("--no-speed", action="store_true")
    return p


def made(args, models):
    """Sweeps what such a program has made."""
    speed, file = ["--no-speed"] if args.no_speed else [], ["--json", str(args.json)] if args.json else []
    return main([*speed, *file, "--tolerance", "1e-3", *map(str, models)])


def session(path, optimise):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL if optimise else ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def input_sets(path, inputs):
    """Recorded inputs, else one set of random ones."""
    found = []
    for directory in sorted(path.parent.glob("set*")):
        found.append({i.name: np.load(directory / f"in.{i.name}.npy") for i in inputs})
    if found:
        return found
    random = np.random.default_rng(0)
    values = {}
    for i in inputs:
        dims = [d if isinstance(d, int) else 2 for d in i.shape]
        kind = NUMPY[i.type[len("tensor("):-1]]
        values[i.name] = random.standard_normal(dims).astype(kind) if np.dtype(kind).kind == "f" else random.integers(0, 2, dims).astype(kind)
    return [values]


def recorded(path, number, session):
    """What the set's out.NAME.npy say, if there are any."""
    directory = sorted(path.parent.glob("set*"))[number:number + 1]
    files = [directory[0] / f"out.{o.name}.npy" for o in session.get_outputs()] if directory else []
    return [np.load(f) for f in files] if files and files[0].exists() else None


def read_pb(path, kind):
    """What NumPy has no file for: strings, and sequences of tensors or maps, as ONNX Runtime gives them."""
    def read_map(m):
        return dict(zip([k.decode() for k in m.string_keys] or m.keys, (numpy_helper.to_array(v).item() for v in m.values.tensor_values)))

    if not kind.startswith("seq"):
        array = numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
        return np.array([s.decode() if isinstance(s, bytes) else s for s in array.reshape(-1)], object).reshape(array.shape)
    sequence = onnx.SequenceProto.FromString(path.read_bytes())
    return [read_map(m) for m in sequence.map_values] or [numpy_helper.to_array(t) for t in sequence.tensor_values]


def difference(ours, theirs):
    """The largest difference as a share of the largest value; infinite where shapes, types or special values differ."""
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], dict):
        if [sorted(m) for m in ours] != [sorted(m) for m in theirs]:
            return float("inf")
        ours, theirs = (np.array([[m[k] for k in sorted(m)] for m in maps]) for maps in (ours, theirs))
    if isinstance(theirs, list):
        return max(map(difference, ours, theirs), default=0.0) if len(ours) == len(theirs) else float("inf")
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if theirs.size == 0 or theirs.dtype.kind in "OUS":
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    special = ~np.isfinite(b)
    if not np.array_equal(a[special], b[special], equal_nan=True) or not np.isfinite(a[~special]).all():
        return float("inf")
    largest = np.abs(b[~special]).max(initial=0.0)
    return float(np.abs(a - b)[~special].max(initial=0.0) / (largest or 1.0))


def largest_difference(outputs, expected):
    return max(map(difference, outputs, expected), default=0.0)


def own_difference(plain, path, values, expected):
    """Of the peer, from its optimiser or one rounding of the inputs."""
    nudged = {k: v * np.asarray(1 + 2 * np.finfo(v.dtype).eps, v.dtype) if v.dtype.kind == "f" else v for k, v in values.items()}
    return max(largest_difference(outputs, expected) for outputs in (session(path, True).run(None, values), plain.run(None, nudged)))


def command(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip()[-1000:] or f"status {done.returncode}")
    return done.stdout


def given(values, directory):
    options = []
    for number, (name, value) in enumerate(values.items()):
        np.save(directory / f"{number}.npy", value)
        options += ["--input", f"{name}={directory / f'{number}.npy'}"]
    return options


def ort_milliseconds(run, seconds):
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"min": 1e3 * min(times), "median": 1e3 * float(np.median(times))}


def tolerance(args, path):
    """A few roundings more for a model with weights of 16 bits, as the peer keeps wider values in between; two steps of 8 bits over a range of
    twice the largest value for one that rounds values to them."""
    graph = onnx.load(path, load_external_data=False).graph
    half = any(w.data_type in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16) for w in graph.initializer)
    rounds = any(n.op_type in ("DynamicQuantizeLinear", "DynamicQuantizeLSTM", "QuantizeLinear") for n in graph.node)
    return max(args.tolerance, 4 * float(np.finfo(np.float16).eps) if half else 0, 2 * 2 / 255 if rounds else 0)


def measure(args, plan, path, values, directory):
    """Both sides in turns: of each, the round with the least time."""
    fast, rounds = session(path, True), []
    for _ in range(args.rounds):
        ours = json.loads(command(args.build / "graphrun", "bench", plan, "--json", "--threads", 1, "--seconds", args.seconds / args.rounds,
                                  "--warmup", 2, *given(values, directory)))[0]
        try:
            peer = ort_milliseconds(lambda: fast.run(None, values), args.seconds / args.rounds)
        except Exception as problem:  # what its optimiser has made of the model does not run
            return {"bench": ours, "peer_speed": str(problem)[:300]}
        rounds.append((ours, peer))
    return {"bench": min((ours for ours, _ in rounds), key=lambda b: b["latency_ms"]["min"]), "ort": min((o for _, o in rounds), key=lambda o: o["min"])}


def results(args, plan, model, values, directory):
    """Our outputs for these inputs, in the model's order."""
    command(args.build / "graphrun", plan, "--threads", 1, *given(values, directory), "--output-dir", directory / "out")
    files = [(directory / "out" / re.sub("[^0-9A-Za-z._-]", "_", o.name), o.type) for o in model.get_outputs()]
    return [np.load(f"{f}.npy") if Path(f"{f}.npy").exists() else read_pb(Path(f"{f}.pb"), kind) for f, kind in files]


def sweep(args, path, directory):
    row = {"model": str(path), "mib": round(path.stat().st_size / 2**20, 1)}
    try:
        plain = session(path, False)
    except Exception as problem:  # a model that is no model to the peer is not ours to judge
        return row | {"status": "peer", "why": str(problem)[:300]}
    plan, allowed = directory / "model.grt", tolerance(args, path)
    try:
        command(args.build / "graphc", "check", path)
        start = time.perf_counter()
        command(args.build / "graphc", "optimize", path, "-o", plan)
        row["optimize_s"] = round(time.perf_counter() - start, 2)
        sets = input_sets(path, plain.get_inputs())
        row["difference"] = 0.0
        for number, values in enumerate(sets):
            try:
                expected = recorded(path, number, plain) or plain.run(None, values)
            except Exception as problem:
                row["peer_run"] = str(problem)[:300]
                continue
            row["difference"] = max(row["difference"], largest_difference(results(args, plan, plain, values, directory), expected))
            if row["difference"] > allowed:
                row["own_difference"] = max(row.get("own_difference", 0.0), own_difference(plain, path, values, expected))
        row["status"] = "ok" if row["difference"] <= max(allowed, 2 * row.get("own_difference", 0.0)) else "wrong"
        if not args.no_speed:
            row |= measure(args, plan, path, sets[0], directory)
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        row |= {"status": "failed", "why": str(problem)}
    return row


def table(rows, pattern):
    """Ratios of least times by group."""
    groups = {}
    for row in rows:
        found = re.search(pattern, Path(row["model"]).parent.name)
        if found and "ort" in row:
            groups.setdefault(found.group(1), []).append(row["bench"]["latency_ms"]["min"] / row["ort"]["min"])
    print("| form | models | time, of ONNX Runtime's: geometric mean | least | most |\n|---|---|---|---|---|")
    for name, ratios in sorted(groups.items()):
        print(f"| {name} | {len(ratios)} | {np.exp(np.mean(np.log(ratios))):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")


def main(words=None):
    args = arguments(words)
    models = sorted(m for p in args.paths for m in ([p] if p.is_file() else p.rglob("*.onnx")))
    rows = []
    for path in models:
        with tempfile.TemporaryDirectory() as directory:
            rows.append(sweep(args, path, Path(directory)))
        print(json.dumps(rows[-1]), flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    if args.group:
        table(rows, args.group)
    return any(r["status"] in ("wrong", "failed") for r in rows)


if __name__ == "__main__":
    sys.exit(main())
