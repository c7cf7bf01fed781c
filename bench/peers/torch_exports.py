#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peer: PyTorch at its best on the models of bench/exports.py: channels last, fused attention, a CUDA graph, and with --compile torch.compile.

    torch_exports.py --models NAME:BATCH ... --precisions fp16 tf32 [--compile]

A JSON line for each: name, batch, precision, milliseconds by mode, error. The clock is that of bench/device_run.py: runs back to back between two events.
"""
import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import exports  # noqa: E402


def milliseconds(run, seconds):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def measure(n):
        begin.record()
        for _ in range(n):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / n

    measure(3)
    n = max(5, min(2000, int(seconds * 200 / max(measure(5), 1e-3))))
    return statistics.median(measure(n) for _ in range(5))


def captured(module, inputs):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*inputs)
    return graph.replay


def measure(name, batch, precision, options):
    begin = time.perf_counter()
    module, inputs, channels_last = exports.make(name, "full", batch)
    half = precision == "fp16"
    module = module.cuda()
    module = module.half() if half else module
    inputs = tuple((x.half() if half and x.is_floating_point() else x).cuda() for x in inputs)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        inputs = tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs)
    module(*inputs)
    torch.cuda.synchronize()
    row = {"first_s": time.perf_counter() - begin}
    row["graph"] = milliseconds(captured(module, inputs), options.seconds)
    if options.compile:
        torch._dynamo.reset()
        compiled = torch.compile(module, mode="max-autotune")
        row["compile"] = milliseconds(lambda: compiled(*inputs), options.seconds)
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="+", required=True)
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"])
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--compile", action="store_true")
    options = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    for model in options.models:
        name, batch = model.split(":")
        for precision in options.precisions:
            row = {"name": name, "batch": int(batch), "precision": precision}
            try:
                with torch.inference_mode():
                    row |= measure(name, int(batch), precision, options)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            print(json.dumps(row), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
