#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several builds beside each other on one GPU, in turns: device time of runs back to back, and whether results are the same bits.

    device_turns.py --bundle BEFORE AFTER [--models NAME[:BATCHES[:EXPORTER]] ...] [--generated NAME[+WORD...][:BATCHES] ...] [--precisions fp16 tf32 fp32] [--rounds 2] [--torch] [--save FILE.json]

Models are exports as bench/exports.py makes them (by both exporters, or the one named), and models of grt-models. Each build compiles each model itself, and has one process that measures
(device_run.py): before, after, before, after, and so on, a plan at a time. fp32 is float32 without TF32. --torch: PyTorch's CUDA graph behind them, on the same terms (peers/torch_exports.py).
A row is printed as it is there; the last column is the least of the last build over the least of the first.

Needs no build trees: --bundle names what `make bundle` made. Needs a GPU, CUDA's runtime library, numpy; for exports PyTorch and the models' packages.
"""
import argparse
import contextlib
import datetime
import functools
import json
import os
import sys
import tempfile
from pathlib import Path

import exports
import gpu_ours
import gpu_peers
import gpu_words
from common import gpu, run
from gpu_stations import Station
from serving import reason

LIMIT = 300  # seconds for a measurement


def of_generator(text):
    """(words of grt-models, batches) of WORD+WORD[:BATCH,BATCH]."""
    words, _, batches = text.partition(":")
    return words.split("+"), [int(b) for b in batches.split(",") if b] or [1]


def sources(args):
    """(name, batch, exporter, function that makes the file) of each model; its inputs lie beside it as .npz."""
    generated = args.generated + [(gpu_ours.GENERATED[name], batches or [1]) for name, batches, exporters in args.models if exporters == ["generated"]]
    for words, batches in generated:
        for batch in batches:
            yield " ".join(words), batch, "generated", functools.partial(written, args, words, batch)
    for name, batches, exporters in args.models:
        for batch in batches or [1]:
            for exporter in (e for e in exporters if e != "generated"):
                yield name, batch, exporter, functools.partial(exported, args, name, batch, exporter)


def written(args, words, batch):
    path = args.work / f"{words[0]}.b{batch}.generated.onnx"
    gpu_ours.written(args.bundle[-1], words, batch, path, path.with_suffix(".npz"))
    return path


def exported(args, name, batch, exporter):
    path = exports.export_apart(args.work, name, "full", batch, exporter, False)
    if not path:
        raise RuntimeError("not exported, as said above")
    return path


class Side:
    """A build, and the process that measures its plans."""

    def __init__(self, args, number, bundle):
        self.args = argparse.Namespace(bundle=bundle, cuda=args.cuda, lock=args.work / "turn", seconds=args.seconds, keep_to=[])
        self.number, self.target, self.work = number, args.target, args.work
        self.station = Station("ours", *gpu_ours.station(self.args), args.work / f"side{number}.log")

    def plan(self, path, precision):
        made = path.with_suffix(f".{precision}.{self.number}.grt")
        run([self.args.bundle / "bin/graphc", "optimize", "--target", self.target, *(["--precision", precision] if precision != "fp32" else []), path, "-o", made],
            env=gpu_words.environment(self.args))
        return made

    def measure(self, plan, inputs):
        return self.station.answer({"key": [], "plan": plan, "inputs": inputs, "save": plan.with_suffix(".npz")}, LIMIT)["device_ms"]


def in_turns(rounds, sides):
    """Times of each side: the first of all, the second of all, and so on. `sides`: functions that measure once."""
    times = [[] for _ in sides]
    for _ in range(rounds):
        for of_side, measure in zip(times, sides):
            of_side.append(measure())
    return times


def same_bits(first, second):
    """Are the results of two runs the same?"""
    import numpy as np
    with np.load(first) as a, np.load(second) as b:
        return set(a.files) == set(b.files) and all(a[name].dtype == b[name].dtype and a[name].tobytes() == b[name].tobytes() for name in a.files)


def measured(sides, rounds, path, inputs, precision):
    """A row's figures; the plans are gone behind it."""
    plans = [side.plan(path, precision) for side in sides]
    try:
        times = in_turns(rounds, [lambda side=side, plan=plan: side.measure(plan, inputs) for side, plan in zip(sides, plans)])
        results = [plan.with_suffix(".npz") for plan in plans]
        return {"times": times, "same_bits": all(same_bits(results[0], other) for other in results[1:])}
    finally:
        for plan in plans:
            plan.unlink(missing_ok=True)
            plan.with_suffix(".npz").unlink(missing_ok=True)


def torch_of(station, name, batch, precision):
    """PyTorch's CUDA graph in the layout that suits the module."""
    request = {"key": [name, batch], "expected": None, "precisions": [precision], "mode": "graph", "channels_last": exports.CATALOGUE[name][1], "late": False}
    return station.answer(request, LIMIT).get("graph")


def head(sides):
    bundles = [side.args.bundle for side in sides]
    names = [bundle.name for bundle in bundles]
    columns = ["model", "batch", "exporter", "", *(names if len(set(names)) == len(names) else map(str, bundles)), "PyTorch", "last / first", "bits"]
    return ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


def line(row):
    """A row of the table, as documents have it; one that failed says why."""
    begin = f"| {row['model']} | {row['batch']} | {row['exporter']} | {row['precision']} | "
    if "problem" in row:
        return f"{begin}{row['problem']} |"
    least = [min(times) for times in row["times"]]
    cells = [", ".join(f"{ms:.4g}" for ms in times) for times in row["times"]]
    theirs = f"{row['torch']:.4g}" if row.get("torch") else "-"
    return begin + " | ".join([*cells, theirs, f"{least[-1] / least[0]:.3f}", "same" if row["same_bits"] else "others"]) + " |"


def rows(args, sides, torch):
    """What fails is a row with its reason."""
    for name, batch, exporter, make in sources(args):
        row = {"model": name, "batch": batch, "exporter": exporter}
        try:
            path = make()
        except RuntimeError as error:
            yield row | {"precision": "", "problem": reason(error)}
            continue
        for precision in args.precisions:
            yield row | {"precision": precision} | row_of(args, sides, torch, name, batch, exporter, path, precision)
        path.unlink()
        path.with_suffix(".npz").unlink()


def row_of(args, sides, torch, name, batch, exporter, path, precision):
    try:
        found = measured(sides, args.rounds, path, path.with_suffix(".npz"), precision)
        if torch and exporter != "generated":
            found["torch"] = torch_of(torch, name, batch, precision)
        return found
    except RuntimeError as error:
        return {"problem": reason(error)}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, nargs="+", required=True, help="what make bundle made, in the order of turns")
    p.add_argument("--models", type=gpu_ours.parsed, nargs="*", default=[], metavar="NAME[:BATCHES[:EXPORTER]]", help="as of gpu_speed.py")
    p.add_argument("--generated", type=of_generator, nargs="*", default=[], metavar="NAME[+WORD...][:BATCHES]", help="models of grt-models, with further words of its command")
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"], choices=["fp16", "tf32", "fp32"])
    p.add_argument("--rounds", type=int, default=2, help="turns of each build (default: 2)")
    p.add_argument("--seconds", type=float, default=0.2, help="to measure a turn for (default: 0.2)")
    p.add_argument("--torch", action="store_true", help="PyTorch's CUDA graph, too, for exports")
    p.add_argument("--target", default="sm_90", help="of graphc optimize (default: sm_90)")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--save", type=Path, metavar="FILE.json")
    args = p.parse_args()
    args.bundle = [bundle.resolve() for bundle in args.bundle]
    return args


def save(args, found):
    result = {"benchmark": "device_turns", "date": datetime.date.today().isoformat(), "machine": gpu(), "target": args.target, "bundles": [str(bundle) for bundle in args.bundle],
              "what": "milliseconds of device time of runs back to back, builds in turns", "rows": found}
    args.save.write_text(json.dumps(result, indent=1) + "\n")


def main():
    args, found = arguments(), []
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        args.work = Path(directory)
        sides = [Side(args, number, bundle) for number, bundle in enumerate(args.bundle)]
        peer_args = argparse.Namespace(seconds=args.seconds, lock=args.work / "turn", keep_to=[])
        torch = Station("torch", *gpu_peers.torch_station(peer_args), args.work / "torch.log") if args.torch else None
        for station in [side.station for side in sides] + ([torch] if torch else []):
            stack.callback(station.stop)
        print("\n".join(head(sides)))
        for row in rows(args, sides, torch):
            found.append(row)
            print(line(row), flush=True)
            if args.save:
                save(args, found)
    return int(any("problem" in row for row in found))


if __name__ == "__main__":
    sys.exit(main())
