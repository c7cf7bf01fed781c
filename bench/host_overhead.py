#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs outside kernels, and what that means for a graph of tiny operators beside ONNX Runtime.

host_us is `graphrun bench`'s: host time of a run outside kernels. The chain's 1,000 nodes work on tensors of a few elements, so its latency
is nearly all overhead on both sides.
"""
import json

import common

MODELS = ["chain_1k", "parallel_fcn", "mobilenet_v2", "resnet50"]


def main():
    options = common.parser(__doc__).parse_args()
    rows = []
    for name in MODELS:
        plan, peer, ours = common.generated_beside(options, name, ["--threads", 1, "--seconds", 1], ["--threads", 1, "--seconds", 1])
        steps = json.loads(common.run([options.build / "graphc", "inspect", plan, "--json"]))["steps"]
        steps = steps if isinstance(steps, int) else len(steps)
        rows.append({"model": name, "steps": steps, "host_us": ours["host_us"], "ns_per_step": 1e3 * ours["host_us"] / max(steps, 1),
                     "ours_us": 1e3 * ours["latency_ms"]["p50"], "onnxruntime_us": 1e3 * peer["latency_ms"]["p50"]})
    summary = {"chain_ns_per_step": rows[0]["ns_per_step"], "text": [
        f"chain of 1,000 nodes: {rows[0]['ns_per_step']:.0f} ns of host time a step"]}
    common.report(options, "host_overhead", summary, rows, {
        "model": "model", "steps": "steps", "host_us": ("host us", ".1f"), "ns_per_step": ("ns per step", ".0f"),
        "ours_us": ("latency us", ".1f"), "onnxruntime_us": ("onnxruntime us", ".1f")})


if __name__ == "__main__":
    main()
