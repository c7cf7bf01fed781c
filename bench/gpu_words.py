# SPDX-License-Identifier: Apache-2.0
"""What the processes of a model at a batch share (bench/gpu_family.py): their words to the starter, their files, how far results are from PyTorch's."""
import functools
import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np

import exports
from gpu_rows import larger
from turns import leave

KEPT = 1 << 24  # elements of a result that are compared; of larger ones the first rows
LINE = 4000  # what a pipe takes whole


def say(args, what, key, found):
    """A line to the starter; whole, as it is shorter than a pipe's buffer."""
    line = json.dumps([what, key, {k: v[-300:] if isinstance(v, str) else v for k, v in found.items()}])
    if len(line) > LINE:
        line = json.dumps([what, key, {"problem": "too long a report"}])
    os.write(args.words, f"{line}\n".encode())


def reason(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[-280:]}"


def guarded(args, what, key, word, function, *given):
    """A process: what goes wrong in it is the reason of its rows."""
    try:
        function(*given)
    except Exception as error:
        say(args, what, key, {word: reason(error)})
    import torch
    if torch.cuda.is_initialized():
        leave(args.lock)


def begun(args, what, key, word, function, *given):
    process = multiprocessing.get_context("fork").Process(target=guarded, args=(args, what, key, word, function, *given))
    process.start()
    return process


def difference(expected, results):
    """The largest from PyTorch's float32 results, relative to the largest of these; None where there are none."""
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
    def __init__(self, args, name, batch):
        self.args, self.name, self.batch = args, name, batch
        self.stem = args.work / f"{name}.full.b{batch}"
        self.inputs, self.expected = Path(f"{self.stem}.in.npz"), Path(f"{self.stem}.expected.npz")
        self.made = self.channels_last = None

    def path(self, exporter, half):
        return self.args.work / exports.file_name(self.name, "full", self.batch, exporter, half)


def awaited(path):
    """Is the file there? It is awaited until it is, or known not to come."""
    while not path.exists():
        if path.with_suffix(".failed").exists():
            return False
        time.sleep(0.05)
    return True


def or_failed(function):
    """Marks the file that a function was to make, its first argument behind the family, as not to come."""
    @functools.wraps(function)
    def call(family, path, *given):
        try:
            function(family, path, *given)
        except BaseException:
            path.with_suffix(".failed").touch()
            raise
    return call


def environment(args):
    return {**os.environ, "GRAPHRT_BACKEND_PATH": str(args.bundle / "lib/graphrt"),
            "LD_LIBRARY_PATH": f"{args.bundle / 'lib'}:{args.cuda}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
