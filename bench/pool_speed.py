#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput of a pool on the CPU beside ONNX Runtime's best setting: runs a second with all processors, in whichever way each side is best.

    bench/pool_speed.py --threads 2 resnet50.onnx bert.onnx

Both have one session; its operators have all threads and one client asks, or one thread each and as many clients ask. Sides take
turns, each turn in a fresh process; figures are the better setting's median of the turns. Inputs are random; dims that are not fixed are 1.
"""
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import common


def ours(build, model, threads, clients, seconds):
    report = json.loads(common.run([build / "graphrun", "bench", model, "--threads", threads, "--concurrency", clients, "--contexts", clients,
                                    "--repeat", 10, "--warmup", 2, "--seconds", seconds, "--json"]))
    return report[0]["load"][0]["throughput_per_s"]


def theirs(model, threads, clients, seconds):
    return float(common.run([sys.executable, __file__, "--peer", model, threads, clients, seconds]))


def peer(model, threads, clients, seconds):
    import numpy as np
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads, settings.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
    random = np.random.default_rng(0)
    feeds = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        feeds[i.name] = random.random(shape, np.float32) if i.type == "tensor(float)" else random.integers(0, 2, shape).astype(types[i.type])
    begin = time.perf_counter() + 0.2 * seconds
    end = begin + seconds
    rates = [0] * clients

    def ask(me):
        while time.perf_counter() < begin:
            session.run(None, feeds)
        began, n = time.perf_counter(), 0
        while n == 0 or time.perf_counter() < end:  # one at least, however long it takes
            session.run(None, feeds)
            n += 1
        rates[me] = n / (time.perf_counter() - began)

    asking = [threading.Thread(target=ask, args=(k,)) for k in range(clients)]
    for t in asking:
        t.start()
    for t in asking:
        t.join()
    print(sum(rates))


def measure(build, model, threads, seconds, turns):
    found = {}
    for _ in range(turns):
        for setting in ((threads, 1), (1, threads)):
            found.setdefault(("ours", *setting), []).append(ours(build, model, *setting, seconds))
            found.setdefault(("theirs", *setting), []).append(theirs(model, *setting, seconds))
    best = {side: max((statistics.median(v), k[1:]) for k, v in found.items() if k[0] == side) for side in ("ours", "theirs")}
    return best["ours"], best["theirs"]


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    p = common.parser(__doc__)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("models", nargs="+", type=Path)
    a = p.parse_args()
    ratios = []
    for model in a.models:
        try:
            (mine, how), (other, how_other) = measure(a.build, str(model), a.threads, a.seconds, a.turns)
        except (RuntimeError, subprocess.SubprocessError) as e:
            print(f"{model}: {e}", file=sys.stderr)
            continue
        ratios.append(mine / other)
        print(f"{model}: {mine:.2f} runs/s with {how[1]} x {how[0]} threads, ONNX Runtime {other:.2f} with {how_other[1]} x {how_other[0]}: {mine / other:.2f}", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}, of {len(ratios)} models")


if __name__ == "__main__":
    main()
