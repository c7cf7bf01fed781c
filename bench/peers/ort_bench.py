#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peer: ONNX Runtime on the CPU, measured like `graphrun bench --json`, for running side by side with it.

    ort_bench.py --threads 2 --inputs-dir DIR resnet50.onnx bert.onnx > ort.json

Prints a JSON list with one object per model: model, runtime, device, threads, load_ms {total}, first_run_ms,
latency_ms {min, p50, p90, p99}, processor_ms, throughput_per_s, runs, peak_rss_bytes. Each model gets a fresh process. The
file is read once beforehand, so that loading is measured from a warm page cache; load_ms is the creation of the
session with default optimisations, without Python's imports. fp32 models are computed in fp32.

Inputs are random, from a seeded generator, and kept as DIR/MODEL.INPUT.npy, to be given to graphrun with
--input INPUT=FILE. Integers are drawn below --int-limit: they are often indices into a table.
"""
import argparse
import json
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

DTYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
}


def read_once(path):
    for part in [path, *path.parent.glob(path.name + ".data")]:
        with open(part, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def make_input(info, dims, int_limit, rng):
    if info.type not in DTYPES:
        raise SystemExit(f"ort_bench: input {info.name} has type {info.type}; known are {', '.join(DTYPES)}")
    shape = [d if isinstance(d, int) else dims.get(d, 1) for d in info.shape]
    dtype = DTYPES[info.type]
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)
    return rng.integers(0, 2 if dtype is np.bool_ else int_limit, shape).astype(dtype)


def measure(path, options):
    import onnxruntime as ort

    read_once(path)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    for name, value in options.config:
        settings.add_session_config_entry(name, value)

    start = time.perf_counter()
    session = ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start

    rng = np.random.default_rng(options.seed)
    feeds = {i.name: make_input(i, options.dims, options.int_limit, rng) for i in session.get_inputs()}
    if options.inputs_dir:
        options.inputs_dir.mkdir(parents=True, exist_ok=True)
        for name, value in feeds.items():
            np.save(options.inputs_dir / f"{path.stem}.{name.replace('/', '_')}.npy", value)

    def run():
        start, used = time.perf_counter(), time.process_time()
        session.run(None, feeds)
        return time.perf_counter() - start, time.process_time() - used

    first, _ = run()
    for _ in range(options.warmup):
        run()
    times, end = [], time.perf_counter() + options.seconds
    while len(times) < options.min_runs or time.perf_counter() < end:
        times.append(run())
    ms, used_ms = 1e3 * np.array(times).T
    return {
        "model": str(path), "runtime": f"onnxruntime {ort.__version__}", "device": "cpu",
        "threads": options.threads, "load_ms": {"total": 1e3 * load}, "first_run_ms": 1e3 * first,
        "latency_ms": {"min": ms.min(), **{f"p{p}": np.percentile(ms, p) for p in (50, 90, 99)}},
        "processor_ms": used_ms.min(), "throughput_per_s": 1e3 / ms.mean(), "runs": len(ms),
        "peak_rss_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def dim(text):
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE")
    return name, int(size)


def entry(text):
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=1, help="intra-op threads (default 1)")
    parser.add_argument("--warmup", type=int, default=3, help="runs after the first that are not counted")
    parser.add_argument("--seconds", type=float, default=3.0, help="time to measure for, per model")
    parser.add_argument("--min-runs", type=int, default=10, help="runs to measure at least")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs")
    parser.add_argument("--dim", dest="dims", type=dim, action="append", default=[], metavar="NAME=SIZE",
                        help="size of a symbolic dim (default 1)")
    parser.add_argument("--config", type=entry, action="append", default=[], metavar="NAME=VALUE", help="an entry of the session's configuration")
    parser.add_argument("--int-limit", type=int, default=100, help="integer inputs are below this")
    parser.add_argument("--inputs-dir", type=Path, help="where to keep the inputs as .npy")
    options = parser.parse_args()
    options.dims = dict(options.dims)
    for path in options.models:
        if not path.is_file():
            parser.error(f"{path} is not a file")

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        results = []
        for path in options.models:
            if sys.stderr.isatty():
                print(f"measuring {path}", file=sys.stderr)
            results.append(pool.submit(measure, path, options).result())
    json.dump(results, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
