# SPDX-License-Identifier: Apache-2.0
"""Peer: PyTorch at its best on a module: channels last where that is faster, fused attention, a CUDA graph, and torch.compile's module in one.

The clock is that of bench/device_run.py: runs back to back between two events; wall time: inputs from page-locked host memory, outputs back to it.
"""
import copy
import signal
import statistics
import time

import torch

from exports import tensors_of
from turns import turn


def allow():
    """What PyTorch may use."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
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
    n = max(5, min(2000, int(seconds * 200 / max(measure(5), 1e-3))))
    return statistics.median(measure(n) for _ in range(5))


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
    times, end = [], time.perf_counter() + seconds
    while len(times) < 4 or (time.perf_counter() < end and len(times) < 1000):
        begin = time.perf_counter()
        for x, host in zip(inputs, given):
            x.copy_(host, non_blocking=True)
        replay()
        for x, host in zip(results, got):
            host.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def placed(made, precision, channels_last, lock=None):
    """A copy of the module and its inputs on the GPU."""
    module, inputs = made
    half = precision == "fp16"
    module = copy.deepcopy(module)
    with turn(lock, shared=True):
        torch.cuda.init()
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


def reference(made, keep):
    """Results in float32 without TF32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    module, inputs = placed(made, "fp32", False)
    results = on_host(tensors_of(module(*inputs)), keep)
    allow()
    return results


def measured(made, precision, channels_last, seconds, lock, keep):
    """Milliseconds of the CUDA graph by layout, those host to host of the faster one, and its results."""
    found, results, best = {}, None, None
    for mode, last in (("graph", True), ("graph_channels_first", False)) if channels_last else (("graph", False),):
        module, inputs = placed(made, precision, last, lock)
        with turn(lock):
            replay, there = captured(module, inputs)
            found[mode] = milliseconds(replay, seconds)
            if best is None or found[mode] < best:
                best = found[mode]
                results = on_host(there, keep)
                found["wall_ms"] = wall_milliseconds(replay, inputs, there, seconds)
        del module, inputs, replay, there
        torch.cuda.empty_cache()
    return found, results


def measures_in_turns(lock):
    """What inductor measures or runs, happens while nobody else measures; what it compiles in between does not."""
    from torch._inductor import output_code, select_algorithm
    from torch._inductor.runtime import triton_heuristics

    def alone(function):
        def call(*given, **options):
            with turn(lock):
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
    module, inputs = placed(made, precision, channels_last, lock)
    begin = time.monotonic()
    signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    module = torch.compile(module, mode=mode)
    module(*inputs)
    torch.cuda.synchronize()
    signal.alarm(0)
    took = time.monotonic() - begin
    with turn(lock):
        return milliseconds(captured(module, inputs)[0], seconds), took
