#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device time of single operators on one GPU beside what a copy of as many bytes takes, and beside PyTorch's own function in a CUDA graph.

    bench/operator_speed_gpu.py --bundle DIR [--beside FILE] [--only WORD]... [--output FILE]      (needs a GPU and PyTorch; make bundle makes DIR)

Models of one node (operator_catalogue_gpu.py), inputs on the GPU. The clock is that of gpu_speed.py: runs back to back on one stream between two events, many at a
time. Outputs whose size depends on data have no such clock: ours and PyTorch's then are times of a call that waits, from and to GPU memory. `of a copy`: the time that
a copy takes which reads and writes as many bytes as the operator has to move, over the operator's. Results are compared with PyTorch's. --beside: the
figures of an earlier call, of another bundle. Prints a row a case, then what is slower than PyTorch, below a quarter of a copy at more than 8 MB, or above 20 us where little is moved.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

import common
import device_run
import operator_catalogue_gpu as catalogue
from device_run import DEVICE, NUMBERS, Tensor
from gpu_rows import larger

LARGE, SMALL_US, LEAST_OF_COPY = 8 << 20, 20.0, 0.25


def described(tensor):
    """As the C interface has it."""
    t = Tensor(dtype=NUMBERS[catalogue.np.dtype(catalogue.DTYPES[tensor.dtype])], rank=tensor.dim(), data=tensor.data_ptr(), memory=DEVICE)
    t.dims[:tensor.dim()] = tensor.shape
    return t


class Clock:
    """Microseconds of functions that enqueue on one stream."""

    def __init__(self, seconds):
        self.stream, self.seconds, self.copies = torch.cuda.Stream(), seconds, {}

    def replays(self, run):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def measure(n):
            begin.record(self.stream)
            for _ in range(n):
                run()
            end.record(self.stream)
            end.synchronize()
            return 1e3 * begin.elapsed_time(end) / n
        one = measure(3)
        if one > 1e6 * self.seconds:
            return one
        n = max(3, min(1000, int(self.seconds * 2e5 / max(one, 1.0))))
        return statistics.median(measure(n) for _ in range(5))

    def waits(self, run):
        times, begin = [], time.perf_counter()
        while len(times) < 5 or (time.perf_counter() - begin < self.seconds and len(times) < 200):
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - start))
        return statistics.median(times)

    def graph(self, function):
        """A replay of what `function` enqueues."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(2):
                function()
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                kept = function()

        def replay(kept=kept):
            with torch.cuda.stream(self.stream):
                graph.replay()
        return replay

    def copy(self, moved):
        """Of a copy that reads and writes half as much each."""
        size = max(16, moved // 2 // 16 * 16)
        if size not in self.copies:
            source = torch.empty(size, dtype=torch.uint8, device="cuda").random_(0, 200)
            target = torch.empty_like(source)
            self.copies[size] = self.replays(self.graph(lambda: target.copy_(source)))
        return self.copies[size]


class Bundle:
    """Its library, with one runtime for all cases."""

    def __init__(self, path):
        os.environ.setdefault("GRAPHRT_BACKEND_PATH", str(path / "lib/graphrt"))
        self.path, self.library, self.runtime, self.cuda, self.kept = path, str(path / "lib/libgraphrt.so.1"), ctypes.c_void_p(), device_run.Cuda(0), []
        if ctypes.CDLL(self.library).grt_runtime_create(ctypes.byref(self.runtime)):
            raise RuntimeError("grt_runtime_create failed")

    def plan(self, model):
        path = model.with_suffix(".grt")
        common.run([self.path / "bin/graphc", "optimize", model, "--target", "cuda", "-o", path])
        return path

    def measure(self, case, path, tensors, clock):
        """Microseconds, and the results of a run."""
        torch.cuda.synchronize()
        session = device_run.Session(self.library, path, 0, self.runtime)
        try:
            session.bind(dict(zip(session.inputs, map(described, tensors))))
            if case.dynamic:
                session.allocate_outputs(self.memory)
            session.run()
            results = [self.copied(t) for t in session.tensors()] if not case.dynamic else []
            if case.dynamic:
                return clock.waits(session.run), results
            stream = ctypes.c_void_p(clock.stream.cuda_stream)
            for _ in range(3):
                session.enqueue(stream)
            clock.stream.synchronize()
            return clock.replays(lambda: session.enqueue(stream)), results
        finally:
            session.release()

    def memory(self, size):
        """Room for an output; that of the last few is kept."""
        self.kept = [*self.kept[-7:], torch.empty(size, dtype=torch.uint8, device="cuda")]
        return self.kept[-1].data_ptr()

    def copied(self, t):
        """A result as a tensor of PyTorch's."""
        dtype = next(k for k, v in catalogue.DTYPES.items() if v is device_run.DTYPES[t.dtype])
        out = torch.empty(tuple(t.dims[:t.rank]), dtype=dtype, device="cuda")
        if out.numel():
            self.cuda.call("cudaMemcpy", ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(t.data), ctypes.c_size_t(out.numel() * out.element_size()), 4)
        return out


def flat(results):
    """PyTorch's results as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def difference(ours, theirs):
    """Largest, relative to the greatest number; None where shapes differ. Places of equal numbers may differ: results of integers behind the first are left out."""
    worst = 0.0
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if number and not b.is_floating_point():
            continue
        if a.numel() != b.numel():
            return None
        a, b = a.reshape(-1).double(), b.reshape(-1).double()
        both = torch.isfinite(b)
        worst = larger(worst, float((a - b)[both].abs().max() / (b[both].abs().max() + 1e-30)) if bool(both.any()) else 0.0)
    return worst


def measure(options, bundle, case, path, clock, former):
    tensors = [make() for make in case.inputs if callable(make)]
    theirs = flat(case.peer(*tensors)) if case.peer else []
    us, results, peer = math.inf, [], None
    for _ in range(options.turns):
        found, results = bundle.measure(case, path, tensors, clock)
        us = min(us, found)
    if case.peer and not options.no_peer:
        peer = clock.waits(lambda: case.peer(*tensors)) if case.dynamic else clock.replays(clock.graph(lambda: case.peer(*tensors)))
    moved = case.moved(tensors, theirs or results) if case.moved else catalogue.nbytes(*tensors, *(theirs or results))
    copy = clock.copy(moved)
    off = difference(results, theirs) if case.loose and theirs else None
    return {"family": case.family, "op": case.op, "case": case.name, "moved": moved, "us": us, "before_us": former.get((case.op, case.name)), "peer_us": peer, "ratio": us / peer if peer else None,
            "copy_us": copy, "of_copy": copy / us, "gb_s": moved / us / 1e3, "difference": off, "differs": bool(case.loose and theirs and not (off is not None and off <= case.loose))}


def text(row):
    def number(value, form):
        return format(value, form) if value is not None else "-"
    return (f"{row['op'][:17]:17} {row['case'][:34]:34} {row['moved'] / 1e6:8.1f} {row['us']:10.1f} {number(row['before_us'], '.1f'):>10} {number(row['peer_us'], '.1f'):>10} "
            f"{number(row['ratio'], '.2f'):>7} {row['of_copy']:6.2f} {row['gb_s']:7.0f} {number(row['difference'], '.0e'):>6}{'  DIFFERS' if row['differs'] else ''}")


def falls_short(row):
    """Why, or None."""
    if row["ratio"] and row["ratio"] > 1.1:
        return "slower than PyTorch"
    if row["family"] in ("MatMul", "Conv", "NonMaxSuppression"):
        return None
    if row["moved"] > LARGE:
        return "below a quarter of a copy" if row["of_copy"] < LEAST_OF_COPY else None
    return "above 20 us" if row["us"] > SMALL_US else None


def plans(options, bundle, chosen, directory):
    """Paths by case; an exception where there is none."""
    def make(numbered):
        number, model = numbered
        path = Path(directory) / f"{number}.onnx"
        try:
            path.write_bytes(model)
            return bundle.plan(path)
        except RuntimeError as error:  # reported with its case
            return error
    models = [case.model([make() for make in case.inputs if callable(make)]) for case in chosen]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(make, enumerate(models)))


def with_libraries(options):
    """Starts this program again where the bundle's libraries and CUDA's are found."""
    wanted = f"{options.bundle.resolve() / 'lib'}:{options.cuda}"
    found = os.environ.get("LD_LIBRARY_PATH", "")
    if not found.startswith(wanted):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_LIBRARY_PATH": f"{wanted}:{found}"})


def summary(rows):
    said = []
    for family in dict.fromkeys(r["family"] for r in rows):
        mine = [r for r in rows if r["family"] == family]
        ratios, shares = [r["ratio"] for r in mine if r["ratio"]], sorted(r["of_copy"] for r in mine if r["moved"] > LARGE)
        said.append({"family": family, "cases": len(mine), "ratio": common.geomean(ratios) if ratios else None, "largest": max(ratios, default=None),
                     "of_copy": statistics.median(shares) if shares else None, "least_of_copy": shares[0] if shares else None})
    return said


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--beside", type=Path, metavar="FILE", help="figures of an earlier call on this machine, shown as `before`")
    p.add_argument("--only", action="append", default=[], metavar="WORD", help="only cases whose operator, family or name matches; may be repeated")
    p.add_argument("--seconds", type=float, default=0.05, help="measured time of a turn (default 0.05)")
    p.add_argument("--turns", type=int, default=1, help="of each side; a row has the best (default 1)")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="compilations at a time")
    p.add_argument("--no-peer", action="store_true", help="measure ours only; results are compared all the same")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--output", type=Path, help="write the figures there, as JSON")
    options = p.parse_args()
    with_libraries(options)
    torch.manual_seed(1)
    chosen = [c for c in catalogue.cases() if not options.only or any(re.search(w, f"{c.family} {c.op} {c.name}") for w in options.only)]
    former = {(r["op"], r["case"]): r["us"] for r in json.loads(options.beside.read_text())["rows"]} if options.beside else {}
    bundle, clock, rows, failures = Bundle(options.bundle.resolve()), Clock(options.seconds), [], []
    print(f"{'operator':17} {'case':34} {'MB':>8} {'us':>10} {'before':>10} {'PyTorch':>10} {'ratio':>7} {'copy':>6} {'GB/s':>7} {'diff':>6}")
    with tempfile.TemporaryDirectory() as directory:
        for case, path in zip(chosen, plans(options, bundle, chosen, directory)):
            try:
                if isinstance(path, Exception):
                    raise path
                rows.append(measure(options, bundle, case, path, clock, former))
                print(text(rows[-1]), flush=True)
            except Exception as error:  # whatever a case raises; the others are measured
                failures.append({"op": case.op, "case": case.name, "error": str(error)[-300:]})
                print(f"{case.op} {case.name}: {str(error)[-300:]}", flush=True)
    print(f"\n{'family':18} {'cases':>5} {'ratio':>6} {'largest':>7} {'of a copy, median':>18} {'least':>6}")
    for s in (found := summary(rows)):
        print(f"{s['family']:18} {s['cases']:5} " + " ".join(f"{format(s[k], '.2f') if s[k] is not None else '-':>{w}}" for k, w in (("ratio", 6), ("largest", 7), ("of_copy", 18), ("least_of_copy", 6))))
    if options.output:
        options.output.write_text(json.dumps({"machine": {**common.gpu(), "torch": torch.__version__}, "seconds": options.seconds, "families": found, "failures": failures,
                                              "rows": [{**r, "short": falls_short(r)} for r in rows]}, indent=1))
    print(f"\n{len(rows)} cases, {len(failures)} failed")
    return 1 if failures or any(r["differs"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
