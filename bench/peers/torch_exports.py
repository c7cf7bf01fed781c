# SPDX-License-Identifier: Apache-2.0
"""Peer: PyTorch at its best on a module of bench/exports.py: channels last where that is faster, fused attention, a CUDA graph, and torch.compile's module in one.

    torch_exports.py --serve [--seconds S] [--lock FILE] [--cpus N,N/N,N]

answers the requests of bench/gpu_speed.py (serving.py): PyTorch's float32 results as a file, and the times of the CUDA graph in a layout. torch.compile is for processes that have the module
(gpu_peers.py): compiling takes a processor, and measuring the GPU for a moment.

The clock is that of bench/device_run.py: runs back to back between two events; wall time: inputs from page-locked host memory, outputs back to it.
"""
import argparse
import copy
import functools
import gc
import importlib
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import clock  # noqa: E402
import exports  # noqa: E402
import serving  # noqa: E402
import turns  # noqa: E402
from exports import tensors_of  # noqa: E402
from gpu_words import KEPT, difference, named  # noqa: E402
from turns import turn  # noqa: E402


def allow(tf32=True):
    """What PyTorch may use."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.backends.mha.set_fastpath_enabled(True)


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
    return clock.back_to_back(measure, seconds)


def captured(module, inputs):
    """A function that replays the module, and where its results lie."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = tensors_of(module(*inputs))
    return graph.replay, results


def wall_milliseconds(replay, inputs, results, seconds):
    """Host to host."""
    given, got = [x.cpu().pin_memory() for x in inputs], [torch.empty(x.shape, dtype=x.dtype, pin_memory=True) for x in results]

    def run():
        for x, host in zip(inputs, given):
            x.copy_(host, non_blocking=True)
        replay()
        for x, host in zip(results, got):
            host.copy_(x, non_blocking=True)
        torch.cuda.synchronize()

    return clock.host_to_host(run, seconds)


def placed(made, precision, channels_last):
    """The module and its inputs on the GPU: of a copy, as a module is moved itself."""
    module, inputs = made
    half = precision == "fp16"
    module = module.cuda()
    module = module.half() if half else module
    inputs = tuple((x.half() if half and x.is_floating_point() else x).cuda() for x in inputs)
    if channels_last:
        module = module.to(memory_format=torch.channels_last)
        inputs = tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs)
    torch.cuda.synchronize()
    return module, inputs


def on_host(tensors, keep):
    """Results as arrays; of one with more than `keep` elements the first rows."""
    return [(x[:max(1, keep * len(x) // x.numel())] if x.dim() and x.numel() > keep else x).cpu().numpy() for x in tensors]


def reference(made, keep, lock):
    """Results in float32 without TF32."""
    made = copy.deepcopy(made)
    with turn(lock):
        allow(tf32=False)
        torch.backends.cudnn.benchmark = False
        module, inputs = placed(made, "fp32", False)
        results = on_host(tensors_of(module(*inputs)), keep)
        allow()
        del module, inputs, made
        torch.cuda.empty_cache()
    return results


def measured(made, precision, channels_last, seconds, lock, keep, late=False):
    """Milliseconds of the CUDA graph, and host to host, and its results; precision fp16, tf32, or fp32 without TF32."""
    copied = copy.deepcopy(made)
    with turn(lock, late=late):
        allow(tf32=precision != "fp32")
        module, inputs = placed(copied, precision, channels_last)
        replay, there = captured(module, inputs)
        ms, results = milliseconds(replay, seconds), on_host(there, keep)
        wall = wall_milliseconds(replay, inputs, there, seconds)
        del copied, module, inputs, replay, there
        torch.cuda.empty_cache()
    return ms, wall, results


def saved(path, results):
    """A file that is complete when it has its name."""
    before = path.with_name(f"making.{path.name}")
    np.savez(before, **named(results))
    before.rename(path)


def answer(options, request, say):
    """A module at a batch, which is made here, too, while others measure: its float32 results as a file if one is named, and for each precision the times in a layout."""
    name, batch = request["key"]
    importlib.import_module(exports.CATALOGUE[name][0])
    module, inputs, _ = exports.make(name, "full", batch)
    expected, problems = {}, []
    with torch.inference_mode():
        if request["expected"]:
            results = reference((module, inputs), KEPT, options.lock)
            saved(Path(request["expected"]), results)
            expected = named(results)
        for precision in request["precisions"]:
            try:
                ms, wall, results = measured((module, inputs), precision, request["channels_last"], options.seconds, options.lock, KEPT, request["late"])
                say([name, batch, precision], {request["mode"]: ms, "wall_ms": wall} | ({"difference": difference(expected, named(results))} if expected else {}))
            except Exception as error:
                problems.append(serving.reason(error))
                say([name, batch, precision], {"problem": problems[-1]})
            gc.collect()  # modules have cycles, and what they have on the GPU is to go before the next one comes
    if problems:
        raise RuntimeError(problems[0])


def warm(lock):
    """What the first use of a device takes, before the first measurement."""
    with turn(lock):
        x = torch.ones(64, 64, device="cuda")
        torch.nn.functional.conv2d((x @ x).view(1, 1, 64, 64), torch.ones(1, 1, 3, 3, device="cuda"))
        torch.cuda.synchronize()


def measures_in_turns(lock):
    """What inductor measures or runs, happens while nobody else measures; what it compiles in between does not."""
    from torch._inductor import output_code, select_algorithm
    from torch._inductor.runtime import triton_heuristics

    def alone(function):
        def call(*given, **options):
            left = signal.alarm(0)  # waiting is not compiling
            with turn(lock, late=True):
                signal.alarm(left)
                found = function(*given, **options)
                if not torch.cuda.is_current_stream_capturing():
                    torch.cuda.synchronize()
                return found
        return call

    tuner, selector, graph = triton_heuristics.CachingAutotuner, select_algorithm.AlgorithmSelectorCache, output_code.CompiledFxGraph
    tuner.benchmark_all_configs = alone(tuner.benchmark_all_configs)
    selector.benchmark_choices = staticmethod(alone(selector.benchmark_choices))
    graph.__call__ = alone(graph.__call__)


def compiled(made, precision, channels_last, mode, seconds, limit, lock):
    """Milliseconds of what torch.compile makes of the module, in a CUDA graph, and the seconds that it took to compile."""
    def late(*_):
        raise TimeoutError(f"not compiled in {limit} s")

    measures_in_turns(lock)
    made = copy.deepcopy(made)
    with turn(lock, shared=True):
        torch.cuda.init()
        module, inputs = placed(made, precision, channels_last)
    begin, before = time.monotonic(), turns.spent()
    signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    module = torch.compile(module, mode=mode)
    module(*inputs)
    torch.cuda.synchronize()
    signal.alarm(0)
    took = time.monotonic() - begin - turns.since(before)["wait_s"]
    with turn(lock, late=True):
        return milliseconds(captured(module, inputs)[0], seconds), took


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--serve", action="store_true", required=True)
    p.add_argument("--seconds", type=float, default=0.1)
    p.add_argument("--lock")
    p.add_argument("--cpus", type=serving.cpus)
    options = p.parse_args()
    warnings.filterwarnings("ignore")
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    torch.set_num_threads(2)
    allow()
    warm(options.lock)
    return serving.serve(functools.partial(answer, options), options.cpus)


if __name__ == "__main__":
    sys.exit(main())
