#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model in ONNX Runtime on the CPU, and its plan in this library, in one process: runs in turns, so that whatever else the machine does meets both sides alike.

    cpu_turns.py MODEL.onnx --inputs IN.npz --outputs OUT.npz
    cpu_turns.py MODEL.onnx --inputs IN.npz --library LIBGRAPHRT.SO --plan PLAN [--threads N] [--seconds S]

writes what ONNX Runtime computes to OUT.npz, or prints a line of JSON: of each side the least and the median milliseconds of a run, and how many runs there were. With one
thread these are processor time, with more wall time. A side runs for a block of runs at a time. With several threads a block begins with a pause and a run that does not count: the
other side's threads still spin, and its own have to be woken.
"""
import argparse
import ctypes
import json
import statistics
import time
from pathlib import Path

import numpy as np

import device_run

BLOCK, BLOCK_OF_THREADS = 0.03, 0.08  # seconds
PAUSE = 0.02
LEAST_BLOCKS, MOST_RUNS = 4, 60  # of each side; of a block


class SessionOptions(ctypes.Structure):
    """As much of grt_session_options as is used."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32)]


class HostSession(device_run.Session):
    """A plan on the CPU, its inputs bound."""

    def __init__(self, library, plan, threads, arrays):
        self.options = SessionOptions(ctypes.sizeof(SessionOptions), threads)
        super().__init__(library, plan, None)
        self.arrays = {name: np.ascontiguousarray(arrays[name]) for name in self.inputs}
        self.bind({name: device_run.host_tensor(array) for name, array in self.arrays.items()})

    def place(self):
        return b"cpu", ctypes.byref(self.options)


def timed(run, count, processor):
    """Seconds of each of so many runs."""
    clock, times = time.thread_time if processor else time.perf_counter, []
    for _ in range(count):
        begin = clock()
        run()
        times.append(clock() - begin)
    return times


def in_turns(sides, threads, seconds):
    """Seconds of the runs of each side: blocks in turns until `seconds` have passed, LEAST_BLOCKS of each at least."""
    alone = threads == 1
    slowest = max(min(timed(run, 2, False)) for run in sides)
    block = max(1, min(MOST_RUNS, int((BLOCK if alone else BLOCK_OF_THREADS) / max(slowest, 1e-6))))
    found, end = [[] for _ in sides], time.perf_counter() + seconds
    while time.perf_counter() < end or len(found[0]) < LEAST_BLOCKS * block:
        for run, times in zip(sides, found):
            if not alone:
                time.sleep(PAUSE)
                run()
            times += timed(run, block, alone)
    return found


def summary(ours, theirs):
    return {"ours_ms": 1e3 * min(ours), "onnxruntime_ms": 1e3 * min(theirs), "ours_median_ms": 1e3 * statistics.median(ours), "onnxruntime_median_ms": 1e3 * statistics.median(theirs),
            "runs": len(ours)}


def peer_session(path, threads):
    import onnxruntime as ort
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    return ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("--inputs", type=Path, required=True)
    p.add_argument("--outputs", type=Path)
    p.add_argument("--library", type=Path, help="libgraphrt.so")
    p.add_argument("--plan", type=Path)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1.0, help="of both sides (default 1)")
    args = p.parse_args()
    session = peer_session(args.model, args.threads)
    with np.load(args.inputs) as arrays:
        feeds = {i.name: arrays[i.name] for i in session.get_inputs()}
    if args.outputs:
        np.savez(args.outputs, **dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds))))
    if args.plan:
        ours = HostSession(str(args.library), args.plan, args.threads, feeds)
        print(json.dumps(summary(*in_turns([ours.run, lambda: session.run(None, feeds)], args.threads, args.seconds))))
        ours.release()


if __name__ == "__main__":
    main()
