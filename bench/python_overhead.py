#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs from Python: over the C API on a tiny model, beside ONNX Runtime's own binding; and how many threads on one session scale
beside threads in C (examples/threads).

Run it with a Python that has the package and onnxruntime: build/python/cp311/venv/bin/python after `./run-tests.sh python`.
"""
import os
import re
import tempfile
import threading
import time
from pathlib import Path

import common
import numpy as np

ROUNDS, CALLS = 300, 500


def microseconds(calls):
    """name -> time of a call. All take turns in slices of about a millisecond, and the best slice counts: neighbours on the machine
    do not."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / CALLS)
    return {name: 1e6 * seconds for name, seconds in best.items()}


def tiny(path):
    """A product and a Relu on 16 numbers: nearly nothing but the call."""
    import onnx
    from onnx import TensorProto, helper
    weights = onnx.numpy_helper.from_array(np.ones((16, 8), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], "tiny",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def overhead(options, path):
    import graphrt
    import graphrt.ort
    import onnxruntime

    x = np.ones((1, 16), np.float32)
    feed, into = {"x": x}, {"y": np.empty((1, 8), np.float32)}
    session = graphrt.Session(path, threads=1)
    theirs = onnxruntime.SessionOptions()
    theirs.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(path, theirs, providers=["CPUExecutionProvider"])
    ours = graphrt.ort.SessionOptions()
    ours.intra_op_num_threads = 1
    compatible = graphrt.ort.InferenceSession(path, ours)
    in_c = common.grt_bench(options.build, path, Path(path).parent, "--threads", 1, "--seconds", 1)["latency_ms"]["min"] * 1e3
    rows = [{"call": "grt_context_run", "us": in_c}]
    measured = microseconds({"session(x)": lambda: session(x), "session.run({...})": lambda: session.run(feed),
                             "session.run({...}, into={...})": lambda: session.run(feed, None, into),
                             "graphrt.ort InferenceSession.run": lambda: compatible.run(None, feed),
                             "onnxruntime InferenceSession.run": lambda: peer.run(None, feed)})
    for name, us in measured.items():
        rows.append({"call": name, "us": us, "over_c_us": us - in_c if "onnxruntime" not in name else None})
    return rows


def python_rate(path, threads, runs):
    """Runs a second of so many threads on one session, as examples/threads measures it."""
    import graphrt

    session = graphrt.Session(path, threads=1)
    info = session.inputs[0]
    x = np.zeros([dim if isinstance(dim, int) else 1 for dim in info.shape], info.dtype)
    start = threading.Barrier(threads + 1)

    def work():
        session(x)
        start.wait()
        for _ in range(runs):
            session(x)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    begin = time.perf_counter()
    for worker in workers:
        worker.join()
    return threads * runs / (time.perf_counter() - begin)


def c_rate(options, path, threads, runs):
    said = common.run([options.build / "examples/threads", path, threads, runs])
    return float(re.findall(r"([0-9.]+) runs/s", said)[-1])


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--models", nargs="*", default=["mobilenet_v2"], help="to scale beside digits")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = str(Path(scratch) / "tiny.onnx")
        tiny(path)
        common.note("calls")
        rows = overhead(options, path)
    scaling = []
    models = [("digits", common.TOP / "models/digits/digits.onnx", 4000)]
    models += [(name, common.generated(options.build, name), 60) for name in options.models]
    for name, model, runs in models:
        for threads in options.threads:
            common.note(f"{name}, {threads} threads")
            each = max(5, runs // threads)
            rates = [(python_rate(str(model), threads, each), c_rate(options, str(model), threads, each)) for _ in range(5)]
            python, in_c = (max(side) for side in zip(*rates))
            scaling.append({"model": name, "threads": threads, "python_per_s": python, "c_per_s": in_c, "ratio": python / in_c})
    worst = max(row["over_c_us"] for row in rows if row["call"].startswith("session"))
    text = [f"a run from Python costs {worst:.1f} us over the C API at most; onnxruntime's takes {rows[-1]['us']:.1f} us in all"]
    for row in scaling:
        text.append(f"{row['model']}, {row['threads']} threads on one session: {row['python_per_s']:.0f} runs/s, in C {row['c_per_s']:.0f}")
    common.report(options, "python_overhead", {"over_c_us": worst, "onnxruntime_us": rows[-1]["us"], "text": text}, rows,
                  {"call": "call", "us": ("us", ".2f"), "over_c_us": ("over C", ".2f")}, scaling=scaling, load_average=os.getloadavg())


if __name__ == "__main__":
    main()
