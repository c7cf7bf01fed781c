#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""N small networks side by side in one graph, as a loop over them is exported: as one batch, and as they stand (`--disable-pass batch_branches`).

Claim: the batch is never slower, but for noise. Sides take turns, each in a fresh process; the figures are each side's best turn. On a GPU, plans are
made for it (`--device cuda:0`), and runs are CUDA graphs on both sides.
"""
import common

SIZES = [(n, 20, 10, batch) for n in (64, 1000) for batch in (1, 2, 32)] + [(64, 20, 10, 512)]
SIZES += [(16, 256, 256, batch) for batch in (1, 8, 32, 512)]
SIDES = {"apart": ["--disable-pass", "parallel"], "batch": []}


def plans(options, n, inputs, hidden, batch):
    """A plan of each side, made anew."""
    model = options.build / "bench" / f"branches_{n}_{inputs}_{hidden}_{batch}.onnx"
    model.parent.mkdir(parents=True, exist_ok=True)
    common.run([options.build / "models/generate/grt-models", "parallel_fcn", "--n", n, "--inputs", inputs, "--hidden", hidden,
                "--batch", batch, "-o", model])
    made = {}
    for side, more in SIDES.items():
        made[side] = model.with_suffix(f".{side}.grt")
        common.run([options.build / "graphc", "optimize", model, "-o", made[side], "--target", options.device.split(":")[0], *more])
    return made


def measure(options, made):
    """Least latency of each side, in milliseconds."""
    best = {}
    for _ in range(options.turns):
        for side, plan in made.items():
            result = common.grt_bench(options.build, plan, options.build / "none", "--device", options.device, "--threads",
                                      options.threads, "--seconds", options.seconds)
            best[side] = min(best.get(side, float("inf")), result["latency_ms"]["min"])
    return best


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    rows = []
    for n, inputs, hidden, batch in SIZES:
        common.note(f"{n} networks of {inputs}-{hidden}-1, batch {batch}")
        best = measure(options, plans(options, n, inputs, hidden, batch))
        rows.append({"networks": n, "layers": f"{inputs}-{hidden}-1", "batch": batch, "apart_ms": best["apart"],
                     "batch_ms": best["batch"], "times_faster": best["apart"] / best["batch"]})
    least = min(row["times_faster"] for row in rows)
    summary = {"least": least, "device": options.device, "threads": options.threads, "text": [
        f"the batch is {least:.2f} to {max(row['times_faster'] for row in rows):.2f} times as fast"]}
    common.report(options, "branches", summary, rows, {
        "networks": "networks", "layers": "layers", "batch": "batch", "apart_ms": ("apart ms", ".4f"), "batch_ms": ("batch ms", ".4f"),
        "times_faster": ("times faster", ".2f")})


if __name__ == "__main__":
    main()
