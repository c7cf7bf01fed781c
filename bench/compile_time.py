#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `graphc optimize` takes, and how it grows with the graph. Claims: ResNet-50 and a graph of 1,000 branches in at most 2 s
each; near-linear passes.

Wall time of the whole process, median. Growth is the exponent e in time ~ nodes^e between two chains, with the time of a process that
compiles next to nothing taken off; 1 is linear.
"""
import json
import math
import statistics

import common

MODELS = ["resnet50", "parallel_fcn", "chain_1k", "chain_10k", "chain_50k"]


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    out = options.build / "bench" / "compile_time.grt"

    def measure(path):
        common.warm(path)
        return statistics.median(common.seconds([options.build / "graphc", "optimize", path, "-o", out]) for _ in range(options.rounds))

    floor = measure(common.TOP / "models/digits/digits.onnx")
    rows = []
    for name in MODELS:
        path = common.generated(options.build, name)
        common.note(name)
        elapsed = measure(path)
        needs = json.loads(common.run([options.build / "graphc", "inspect", out, "--json"]))
        nodes, steps = (n if isinstance(n, int) else len(n) for n in (needs["nodes"], needs["steps"]))
        rows.append({"model": name, "nodes": nodes, "steps": steps, "seconds": elapsed, "us_per_node": 1e6 * (elapsed - floor) / nodes})
    out.unlink(missing_ok=True)
    by_name = {r["model"]: r for r in rows}

    def growth(a, b):
        a, b = by_name[a], by_name[b]
        return math.log((b["seconds"] - floor) / (a["seconds"] - floor)) / math.log(b["nodes"] / a["nodes"])

    exponents = {"1k_to_10k": growth("chain_1k", "chain_10k"), "10k_to_50k": growth("chain_10k", "chain_50k")}
    summary = {"resnet50_s": by_name["resnet50"]["seconds"], "parallel_fcn_s": by_name["parallel_fcn"]["seconds"], "growth": exponents,
               "process_s": floor, "text": [f"growth of time with nodes: exponent {exponents['1k_to_10k']:.2f} from 1k to 10k, "
                                            f"{exponents['10k_to_50k']:.2f} from 10k to 50k"]}
    common.report(options, "compile_time", summary, rows, {
        "model": "model", "nodes": "nodes", "steps": "steps", "seconds": ("seconds", ".3f"), "us_per_node": ("us per node", ".2f")})


if __name__ == "__main__":
    main()
