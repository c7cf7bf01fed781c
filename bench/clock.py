# SPDX-License-Identifier: Apache-2.0
"""How long runs are measured: one rule for ours and for peers on a GPU (device_run.py, peers/torch_exports.py, peers/ort_exports.py)."""
import statistics
import time

TURNS = 5  # of which the median counts


def back_to_back(measure, seconds):
    """Milliseconds of a run. `measure(n)`: of a run, of n that follow each other. About `seconds` in all."""
    n = max(5, min(2000, int(seconds * 1e3 / TURNS / max(measure(5), 1e-3))))
    return statistics.median(measure(n) for _ in range(TURNS))


def host_to_host(run, seconds):
    """Milliseconds of a run that returns when its results are there; the first one is left out."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 4 or (time.perf_counter() < end and len(times) < 1000):
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])
