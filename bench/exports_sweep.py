#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as users export them, one line each: do they open, are they right, what do their plans cost, how fast are they beside ONNX Runtime on the CPU.

    exports_sweep.py DIRECTORY [--only NAME ...] [--exporters dynamo script] [--sizes small full] [--batches 1 8] [--open-dims] [--threads 1 2] [--isa avx2] [--json FILE]

A model is exported (bench/exports.py) unless DIRECTORY has it, is optimised to a plan, and the plan's results are put beside PyTorch's in float32: "error" is the largest
difference as a share of an output's largest value, "peer error" ONNX Runtime's own. "optimise s" and "MB" are processor time and peak memory of graphc optimize, "plan" is the
plan's size as a share of the model's. Times are the least processor time of a run with one thread, and the least wall time with more; both sides are in one process and run in
turns (bench/cpu_turns.py), which is meant for machines with other work; median_ratio is of the medians. --open-dims exports with an open batch, and an open length where inputs are tokens, and compares other dims too. Rows go to FILE
one by one; what is there already is not measured again. Exit status 1 if a model failed, or is further from PyTorch than --tolerance and twice what the peer is.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

import common
import exports


def arguments():
    p = common.parser(__doc__)
    p.add_argument("directory", type=Path)
    p.add_argument("--only", nargs="+", default=exports.names(), choices=list(exports.CATALOGUE), metavar="NAME")
    p.add_argument("--exporters", nargs="+", default=list(exports.EXPORTERS), choices=list(exports.EXPORTERS))
    p.add_argument("--sizes", nargs="+", default=["full"], choices=["small", "full"])
    p.add_argument("--batches", nargs="+", type=int, default=[1])
    p.add_argument("--open-dims", action="store_true", help="export with open dims, and compare with other sizes")
    p.add_argument("--threads", type=int, nargs="*", default=[1], help="thread counts to measure with; none: results only (default: 1)")
    p.add_argument("--seconds", type=float, default=1.5, help="measured time of a model with one number of threads (default 1.5)")
    p.add_argument("--tolerance", type=float, default=1e-4, help="largest difference from PyTorch that is right in any case (default 1e-4)")
    p.add_argument("--json", type=Path, help="where rows are kept (default: rows.json in DIRECTORY)")
    common.add_isa(p)
    return p.parse_args()


def error(ours, theirs):
    """The largest difference as a share of the largest value; infinite where shapes or special values differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    if not theirs.size:
        return 0.0
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    special = ~np.isfinite(b)
    if not np.array_equal(a[special], b[special], equal_nan=True) or not np.isfinite(a[~special]).all():
        return float("inf")
    return float(np.abs(a - b)[~special].max(initial=0.0) / (np.abs(b[~special]).max(initial=0.0) or 1.0))


# A process inherits the peak of the one that it was forked from, so commands are started by a small one.
WRAPPER = """import json, resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], open(sys.argv[1], "w"))
sys.exit(status)"""


def measured(command, directory, env=None):
    """Processor seconds and peak MB of a command that must succeed."""
    used = directory / "used.json"
    common.run([sys.executable, "-I", "-S", "-c", WRAPPER, used, *command], env=env)
    return json.loads(used.read_text())


def turns(path, inputs, environment, *options):
    """What bench/cpu_turns.py says, in a process of its own."""
    done = subprocess.run([str(word) for word in (sys.executable, common.TOP / "bench/cpu_turns.py", path, "--inputs", inputs, *options)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"bench/cpu_turns.py: {done.stderr.strip()[-300:]}")
    return done.stdout


def peer_outputs(path, inputs, directory, environment):
    """Of ONNX Runtime, by name."""
    results = directory / "peer.npz"
    turns(path, inputs, environment, "--outputs", results)
    with np.load(results) as arrays:
        return dict(arrays)


def library(build):
    """libgraphrt.so of a build directory, or of a bundle."""
    return next((path for path in (build / ".libs/libgraphrt.so", build / "lib/libgraphrt.so") if path.exists()), build / "lib/libgraphrt.so.1")


def given(feeds, directory):
    options = []
    for name, value in feeds.items():
        np.save(directory / f"{name}.npy", value)
        options += ["--input", f"{name}={directory / name}.npy"]
    return options


def our_outputs(options, model, feeds, names, directory, env):
    out = directory / "out"
    common.run([options.build / "graphrun", model, "--threads", 1, *given(feeds, directory), "--output-dir", out], env=env)
    return [np.load(out / (re.sub("[^0-9A-Za-z._-]", "_", n) + ".npy")) for n in names]


def compare(options, path, plan, row, directory):
    """Results of the plan with all sets of inputs, and of the model itself with the first, beside PyTorch's."""
    ours_env, peer_env = common.environments(options)
    names = {i.name for i in onnx.load(path, load_external_data=False).graph.input}
    for file in (path.with_suffix(".npz"), path.with_suffix(".other.npz")):
        if not file.exists():
            continue
        with np.load(file) as arrays:
            feeds = {k: arrays[k] for k in arrays.files if k in names}
            expected = {k: arrays[k] for k in arrays.files if k.startswith("out")}
        for model in (plan, path) if file.suffixes[-2:] != [".other", ".npz"] else (plan,):
            outputs = our_outputs(options, model, feeds, list(expected), directory, ours_env)
            row["error"] = max(row.get("error", 0.0), *map(error, outputs, expected.values()))
        try:
            theirs = peer_outputs(path, file, directory, peer_env)
            row["peer_error"] = max(row.get("peer_error", 0.0), *(error(theirs[n], expected[n]) for n in expected))
        except RuntimeError as refused:
            row["peer_problem"] = str(refused)
    row["right"] = row["error"] <= max(options.tolerance, 2 * row.get("peer_error", 0.0))


def time_both(options, path, plan, row):
    ours_env, peer_env = common.environments(options)
    both = {**peer_env, "GRAPHRT_CPU_ISA": ours_env["GRAPHRT_CPU_ISA"]} if options.isa else None
    for threads in options.threads:
        said = json.loads(turns(path, path.with_suffix(".npz"), both, "--library", library(options.build), "--plan", plan, "--threads", threads, "--seconds", options.seconds))
        row |= {f"ours_{threads}_ms": said["ours_ms"], f"onnxruntime_{threads}_ms": said["onnxruntime_ms"], f"ratio_{threads}": said["ours_ms"] / said["onnxruntime_ms"],
                f"median_ratio_{threads}": said["ours_median_ms"] / said["onnxruntime_median_ms"], f"runs_{threads}": said["runs"]}


def sweep(options, path, row):
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        plan = directory / "model.grt"
        row["optimise_s"], row["optimise_mb"] = measured([options.build / "graphc", "optimize", path, "-o", plan], directory, common.environments(options)[0])
        row["model_mb"] = path.stat().st_size / 2**20
        row["plan"] = plan.stat().st_size / path.stat().st_size
        compare(options, path, plan, row, directory)
        if "peer_problem" not in row:
            time_both(options, path, plan, row)


def shown(row, threads):
    if "problem" in row:
        return f"{row['model']}: {row['problem']}"
    text = f"{row['model']}: {'right' if row['right'] else 'WRONG'} error {row['error']:.1e} (peer {row.get('peer_error', float('nan')):.1e}), optimise {row['optimise_s']:.1f} s " \
           f"{row['optimise_mb']:.0f} MB, model {row['model_mb']:.1f} MB, plan {row['plan']:.2f}"
    for n in threads:
        if f"ratio_{n}" in row:
            text += f"; {n}: {row[f'ours_{n}_ms']:.3f} / {row[f'onnxruntime_{n}_ms']:.3f} ms = {row[f'ratio_{n}']:.2f}"
    return text + (f"; peer: {row['peer_problem']}" if "peer_problem" in row else "")


def main():
    options = arguments()
    options.directory.mkdir(parents=True, exist_ok=True)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    kept = options.json or options.directory / "rows.json"
    rows = json.loads(kept.read_text()) if kept.exists() else []
    done = {row["model"] for row in rows}
    for name in options.only:
        for size in options.sizes:
            for batch in options.batches:
                for exporter in options.exporters:
                    file = exports.file_name(name, size, batch, exporter, False, options.open_dims)
                    if file in done:
                        continue
                    row = {"model": file}
                    path = exports.export_apart(options.directory, name, size, batch, exporter, False, options.open_dims)
                    if not path:
                        continue
                    try:
                        sweep(options, path, row)
                    except (RuntimeError, OSError, KeyError) as problem:
                        row["problem"] = f"{type(problem).__name__}: {problem}"
                    rows.append(row)
                    kept.write_text(json.dumps(rows, indent=1))
                    print(shown(row, options.threads), flush=True)
    for n in options.threads:
        ratios = [row[f"ratio_{n}"] for row in rows if f"ratio_{n}" in row]
        if ratios:
            print(f"{n} threads: geometric mean of {len(ratios)} ratios {common.geomean(ratios):.3f}, worst {max(ratios):.3f}")
    return any("problem" in row or not row["right"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
