#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a run beside what the model needs. Claim: at most weights + planned arena + 40 MB.

Peak resident memory of a process that loads the plan and runs it a few times, as the kernel counted it. Pages of the mapped plan
count once they are touched. ONNX Runtime's peak for the same model stands beside (its process holds Python and NumPy as well).
"""
import json

import common

MODELS = ["resnet50", "mobilenet_v2", "densenet121", "vit_b16", "bert"]
MB = 1e6


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name in MODELS:
        plan, peer, ours = common.generated_beside(options, name, ["--threads", options.threads, "--seconds", 0.1], ["--threads", options.threads, "--repeat", 5])
        needs = json.loads(common.run([options.build / "graphc", "inspect", plan, "--json"]))
        bound = needs["weights_bytes"] + needs["arena_bytes"] + 40 * MB
        rows.append({"model": name, "weights_mb": needs["weights_bytes"] / MB, "arena_mb": needs["arena_bytes"] / MB,
                     "peak_mb": ours["peak_rss_bytes"] / MB, "bound_mb": bound / MB,
                     "above_mb": (ours["peak_rss_bytes"] - bound) / MB, "onnxruntime_peak_mb": peer["peak_rss_bytes"] / MB})
    worst = max(rows, key=lambda r: r["above_mb"])
    summary = {"worst_above_mb": worst["above_mb"], "within": worst["above_mb"] <= 0, "text": [
        f"worst: {worst['model']}, {worst['above_mb']:+.1f} MB from weights + arena + 40 MB"]}
    common.report(options, "memory", summary, rows, {
        "model": "model", "weights_mb": ("weights MB", ".1f"), "arena_mb": ("arena MB", ".1f"), "bound_mb": ("bound MB", ".1f"),
        "peak_mb": ("peak MB", ".1f"), "above_mb": ("peak - bound", "+.1f"), "onnxruntime_peak_mb": ("onnxruntime MB", ".1f")})


if __name__ == "__main__":
    main()
