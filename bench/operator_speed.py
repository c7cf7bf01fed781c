#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of single operators on the CPU beside ONNX Runtime: models of one node in float32 (operator_catalogue.py), the same inputs and threads.

    bench/operator_speed.py [--threads 1 2] [--isa avx2] [--only WORD]...      (pip install onnx onnxruntime)

A figure is the smallest latency of a run, which other work on the machine disturbs least; sides take turns, and a row keeps each side's best. Prints the
operators above --above times ONNX Runtime's time, worst first, then those that could not be compared; the JSON has all of them. Each operator is alone, so
that changes of layout that whole models avoid count here.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

import common
import operator_catalogue

COLUMNS = {"operator": "operator", "threads": "threads", "ours_us": ("libgraphrt us", ".1f"), "onnxruntime_us": ("onnxruntime us", ".1f"), "ratio": ("ratio", ".2f")}


def peer():
    """The other side: one process that answers each line of standard input, {model, inputs, threads, seconds}, with {us} or {error}."""
    import time

    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    kept = {}
    for line in sys.stdin:
        asked = json.loads(line)
        key = asked["model"], asked["threads"]
        try:
            if key not in kept:
                kept.clear()
                settings = ort.SessionOptions()
                settings.intra_op_num_threads, settings.inter_op_num_threads = asked["threads"], 1
                session = ort.InferenceSession(asked["model"], settings, providers=["CPUExecutionProvider"])
                binding = session.io_binding()
                for name, path in asked["inputs"].items():
                    binding.bind_cpu_input(name, np.load(path))
                for output in session.get_outputs():
                    binding.bind_output(output.name, "cpu")
                kept[key] = session, binding
            session, binding = kept[key]
            for _ in range(3):
                session.run_with_iobinding(binding)
            best, runs, end = float("inf"), 0, time.perf_counter() + asked["seconds"]
            while runs < 5 or time.perf_counter() < end:
                start = time.perf_counter()
                session.run_with_iobinding(binding)
                best, runs = min(best, time.perf_counter() - start), runs + 1
            answer = {"us": 1e6 * best}
        except Exception as error:  # whatever the peer's operators raise
            answer = {"error": str(error)[:300]}
        print(json.dumps(answer), flush=True)


class Peer:
    def __init__(self, env):
        self.process = subprocess.Popen([sys.executable, __file__, "--peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)

    def measure(self, **asked):
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "its process ended"}')
        if "error" in answer:
            raise RuntimeError(f"ONNX Runtime: {answer['error']}")
        return answer["us"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ours(options, model, inputs, threads, env):
    given = [word for name, path in inputs.items() for word in ("--input", f"{name}={path}")]
    report = json.loads(common.run([options.build / "graphrun", "bench", model, "--json", "--threads", threads, "--warmup", 3, "--seconds", options.seconds, *given], env=env))[0]
    return 1e3 * report["latency_ms"]["min"]


def measure(options, directory, theirs, env, name, model, inputs, threads):
    path, files = directory / "model.onnx", {}
    onnx.save(model, path)
    for key, value in inputs.items():
        files[key] = str(directory / f"{key}.npy")
        np.save(files[key], value)
    best = [float("inf"), float("inf")]
    for turn in range(options.rounds):
        us = ours(options, path, files, threads, env), theirs.measure(model=f"{path}", inputs=files, threads=threads, seconds=options.seconds)
        best = [min(a, b) for a, b in zip(best, us)]
    return {"operator": name, "threads": threads, "ours_us": best[0], "onnxruntime_us": best[1], "ratio": best[0] / best[1]}


def main():
    parser = common.parser(__doc__)
    common.add_turns(parser, rounds=2, seconds=0.1, limit=None)
    parser.add_argument("--above", type=float, default=1.0, help="print operators whose ratio is above this (default 1.0; 0: all)")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="only operators whose name or family has this word; may be repeated")
    options = parser.parse_args()
    ours_env, peer_env = common.environments(options)
    theirs, rows, failures = Peer(peer_env), [], []
    with tempfile.TemporaryDirectory() as directory:
        for number, (family, name, model, inputs) in enumerate(operator_catalogue.cases()):
            if options.only and not any(word in name or word == family for word in options.only):
                continue
            for threads in options.threads:
                common.note(f"{name}, {threads} threads")
                own = Path(directory) / f"{number}"
                own.mkdir(exist_ok=True)
                try:
                    rows.append({"family": family, **measure(options, own, theirs, ours_env, name, model, inputs, threads)})
                except RuntimeError as error:
                    failures.append({"operator": name, "threads": threads, "error": str(error)})
    theirs.close()
    shown = sorted((r for r in rows if r["ratio"] > options.above), key=lambda r: -r["ratio"])
    summary = {"text": [f"{f['operator']}, {f['threads']} threads: {f['error'].strip().splitlines()[-1]}" for f in failures]}
    for threads in options.threads:
        ratios = [r["ratio"] for r in rows if r["threads"] == threads]
        if ratios:
            summary[f"threads_{threads}"] = {"geomean": common.geomean(ratios), "above_1": sum(r > 1 for r in ratios), "operators": len(ratios)}
            summary["text"].append(f"{threads} threads: geometric mean of {len(ratios)} ratios {common.geomean(ratios):.3f}, {sum(r > 1 for r in ratios)} above 1.0")
    common.report(options, "operator_speed" + (f"_{options.isa}" if options.isa else ""), summary, shown, COLUMNS, failures=failures, all_rows=rows)


if __name__ == "__main__":
    peer() if sys.argv[1:] == ["--peer"] else main()
