#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peer: ONNX Runtime on the CPU with one model, measured when it is told to, so that sides can take turns without loading anew.

    ort_turns.py MODEL.onnx --threads N --inputs IN.npz --outputs OUT.npz

writes what it computes to OUT.npz, prints a line when it has, and for every line of standard input, a number of seconds, a line of JSON: the least wall_ms and processor_ms of
a run in that time.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--inputs", type=Path, required=True)
    p.add_argument("--outputs", type=Path, required=True)
    args = p.parse_args()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = args.threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    session = ort.InferenceSession(str(args.model), settings, providers=["CPUExecutionProvider"])
    arrays = np.load(args.inputs)
    feeds = {i.name: arrays[i.name] for i in session.get_inputs()}
    outputs = session.run(None, feeds)
    np.savez(args.outputs, **dict(zip((o.name for o in session.get_outputs()), outputs)))
    print("ready", flush=True)
    for line in sys.stdin:
        times, end = [], time.perf_counter() + float(line)
        while len(times) < 4 or time.perf_counter() < end:
            wall, used = time.perf_counter(), time.process_time()
            session.run(None, feeds)
            times.append((time.perf_counter() - wall, time.process_time() - used))
        wall, used = (1e3 * min(column) for column in zip(*times))
        print(json.dumps({"wall_ms": wall, "processor_ms": used}), flush=True)


if __name__ == "__main__":
    main()
