# SPDX-License-Identifier: Apache-2.0
"""What the processes of bench/gpu_speed.py share: their words to the starter, the files of a model at a batch, how far results are from PyTorch's. Plain Python but for what compares arrays."""
import json
import os

from gpu_rows import larger

KEPT = 1 << 24  # elements of a result that are compared; of larger ones the first rows
LINE = 4000  # what a pipe takes whole


def say(args, what, key, found):
    """A line to the starter; whole, as it is shorter than a pipe's buffer."""
    line = json.dumps([what, key, {k: v[-300:] if isinstance(v, str) else v for k, v in found.items()}])
    if len(line) > LINE:
        line = json.dumps([what, key, {"problem": "too long a report"}])
    os.write(args.words, f"{line}\n".encode())


def difference(expected, results):
    """The largest from PyTorch's float32 results, relative to the largest of these; None where there are none."""
    import numpy as np
    worst = None
    for name in (n for n in expected if n.startswith("out") and n in results):
        a, b = np.asarray(expected[name]), np.asarray(results[name])
        b = b[:len(a)] if a.ndim else b
        if a.shape == b.shape and a.size:
            a, b = a.astype(np.float64), b.astype(np.float64)
            worst = larger(worst or 0.0, float(np.abs(a - b).max() / (np.abs(a).max() + 1e-30)))
    return worst


def named(results):
    return {f"out{k}": x for k, x in enumerate(results)}


class Family:
    """A model at a batch: its name, and where its files lie."""

    def __init__(self, args, name, batch):
        self.args, self.name, self.batch = args, name, batch
        self.stem = f"{name}.full.b{batch}"
        self.inputs, self.expected = args.work / f"{self.stem}.in.npz", args.work / f"{self.stem}.expected.npz"
        self.made = self.channels_last = None

    def inputs_of(self, half):
        return self.inputs.with_suffix(".half.npz") if half else self.inputs

    def path(self, exporter, half):
        import exports
        return self.args.work / exports.file_name(self.name, "full", self.batch, exporter, half)

    def plan(self, exporter, half, precision, without=None):
        return self.path(exporter, half).with_suffix(f".{precision}{f'.{without}' if without else ''}.grt")

    def results(self, exporter, half, precision):
        return self.plan(exporter, half, precision).with_suffix(".out.npz")

    def narrowed(self, path):
        """ONNX Runtime's float16 conversion."""
        return path.with_suffix(".ort16.onnx")


def environment(args):
    """Of a process that loads the bundle's library."""
    return {**os.environ, "GRAPHRT_BACKEND_PATH": str(args.bundle / "lib/graphrt"),
            "LD_LIBRARY_PATH": f"{args.bundle / 'lib'}:{args.cuda}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
