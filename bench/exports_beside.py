#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many exports on one GPU beside PyTorch's CUDA graph, in minutes: processes make models side by side and have the GPU in turns.

    exports_beside.py --bundle DIR --models NAME[:BATCH,BATCH[:EXPORTER]] ... [--without PASS ...] [--minutes M] [--save FILE]

For each model, in a process of its own that is forked when all packages are imported: the export (bench/exports.py), plans in fp16 and TF32, then our device time (device_run.py) and that of
PyTorch's CUDA graph (fused attention, channels last, cudnn.benchmark) right behind it, both while nobody else computes on the GPU; copies of weights and CUDA's start of others go on meanwhile.
fp16 is the float32 export, narrowed by graphc; of steps of decoding, whose caches are inputs, the export in half.
difference is the largest from PyTorch's float32 results on the CPU, relative to the largest of these, peer_difference that of PyTorch on the GPU. Plans that take more than --profile of the peer's
time leave their steps' times in --work. --without PASS also measures plans that graphc made with --disable-pass PASS, where these are others: with, without, with, without, the least of both.
A row a line; a table sorted by ratio at the end. --bundle names what `make bundle` made.
"""
import argparse
import datetime
import fcntl
import importlib
import json
import math
import multiprocessing
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import exports
from common import gpu, run
from gpu_speed import counts, difference, version_of

HERE = Path(__file__).resolve().parent
HALF = [name for name in exports.CATALOGUE if name.endswith("_step")]  # their caches are inputs and results: float32 ones would be cast in every run


class Turn:
    """The GPU for oneself."""

    def __init__(self, args):
        self.path = args.work / "turn"

    def __enter__(self):
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def environment(args):
    return {**os.environ, "GRAPHRT_BACKEND_PATH": str(args.bundle / "lib/graphrt"),
            "LD_LIBRARY_PATH": f"{args.bundle / 'lib'}:{args.cuda}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def compiled(args, path, precision, half=False, without=None):
    plan = path.with_suffix(f".{precision}{f'.{without}' if without else ''}.grt")
    run([args.bundle / "bin/graphc", "optimize", "--target", args.target, *([] if half else ["--precision", precision]), *(["--disable-pass", without] if without else []), path, "-o", plan])
    return plan


def in_half(path):
    """Inputs and results of the float32 export, inputs in float16 where they are floats."""
    with np.load(path) as arrays:
        np.savez(path, **{k: a.astype(np.float16) if k.startswith("in") and a.dtype == np.float32 else a for k, a in arrays.items()})


def timed(args, path, plan, *options):
    return json.loads(run([sys.executable, HERE / "device_run.py", args.bundle / "lib/libgraphrt.so.1", plan, path.with_suffix(".npz"), "--seconds", args.seconds,
                           "--lock", args.work / "turn", *options], env=environment(args)))


def ours(args, path, plan):
    saved = plan.with_suffix(".npz")
    report = timed(args, path, plan, "--save", saved)
    return {**report, **counts(args, plan), "difference": difference(path.with_suffix(".npz"), saved)}


def in_turns(args, path, plan, precision, half):
    """Pass -> [with, without]: milliseconds of two turns each; nothing of passes that the plan does not owe anything to."""
    found = {}
    for name in args.without:
        other = compiled(args, path, precision, half, name)
        if counts(args, other) != counts(args, plan) or other.stat().st_size != plan.stat().st_size:
            turns = [timed(args, path, p)["device_ms"] for p in (plan, other, plan, other)]
            found[name] = [min(turns[::2]), min(turns[1::2])]
    return found


def theirs(args, path, module, inputs, channels_last):
    """Milliseconds of PyTorch's CUDA graph, and how far its results are from its own on the CPU."""
    import torch
    from peers import torch_exports
    with torch.inference_mode():
        if channels_last:
            module = module.to(memory_format=torch.channels_last)
            inputs = tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs)
        with Turn(args):
            results = exports.tensors_of(module(*inputs))
            found = {"pytorch_ms": torch_exports.milliseconds(torch_exports.captured(module, inputs), float(args.seconds))}
        saved = path.with_suffix(".peer.npz")
        np.savez(saved, **{f"out{k}": x.cpu().numpy() for k, x in enumerate(results)})
    return {**found, "peer_difference": difference(path.with_suffix(".npz"), saved)}


def profile(args, path, plan):
    with np.load(path.with_suffix(".npz")) as arrays:
        given = []
        for name in (n for n in arrays.files if n.startswith("in")):
            np.save(plan.with_suffix(f".{name}.npy"), arrays[name])
            given += ["--input", f"{name}={plan.with_suffix(f'.{name}.npy')}"]
    with Turn(args):
        text = run([args.bundle / "bin/graphrun", "bench", plan, "--device", "cuda:0", "--profile", 10, "--json", *given], env=environment(args))
    plan.with_suffix(".profile.json").write_text(text)


def row_of(args, path, plan, row, module, inputs, channels_last, half):
    try:
        row |= ours(args, path, plan)
    except RuntimeError as error:
        row["problem"] = str(error)[-300:]
    try:
        row["without"] = in_turns(args, path, plan, row["precision"], half) if args.without else {}
        row |= theirs(args, path, module, inputs, channels_last)
    except Exception as error:
        row["peer_problem"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if row.get("device_ms") and row.get("pytorch_ms"):
        row["ratio"] = row["device_ms"] / row["pytorch_ms"]
        if row["ratio"] > args.profile:
            profile(args, path, plan)
    print(json.dumps(row), file=sys.__stderr__, flush=True)
    return row


def family(args, name, batches, exporter, give):
    """All rows of a model, one by one to `give`."""
    import torch
    os.setsid()  # what it starts is stopped with it
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    begin = time.monotonic()
    made, half = [], name in HALF
    for batch in batches:
        common = {"model": name, "batch": batch, "exporter": exporter}
        try:
            path = exports.export(args.work, name, "full", batch, exporter, False)
            plans = {"tf32": (path, compiled(args, path, "tf32"))}
            if half:
                path = exports.export(args.work, name, "full", batch, exporter, True)
                in_half(path.with_suffix(".npz"))
            plans["fp16"] = path, compiled(args, path, "fp16", half)
            made.append((common | {"export_s": round(time.monotonic() - begin, 1)}, plans))
        except Exception as error:
            give.put({**common, "problem": f"{type(error).__name__}: {' '.join(str(error).split())[-300:]}"})
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    for common, plans in made:
        module, inputs, channels_last = exports.make(name, "full", common["batch"])
        module, inputs = module.cuda(), tuple(x.cuda() for x in inputs)
        for precision, (path, plan) in plans.items():
            if precision == "fp16":
                module, inputs = module.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
            give.put(row_of(args, path, plan, {**common, "precision": precision}, module, inputs, channels_last, half and precision == "fp16"))


def parsed(text):
    parts = text.split(":")
    name, batches, exporter = [*parts, *("", "1,32", "script")[len(parts):]]
    if name not in exports.CATALOGUE:
        raise argparse.ArgumentTypeError(f"no model {name}")
    return name, [int(b) for b in batches.split(",")], exporter


def side_by_side(args):
    """Rows of all models; a process that takes too long is stopped, and none is started when the time is up."""
    processes, rows, left, give = {}, [], list(args.models), multiprocessing.get_context("fork").Queue()
    deadline = time.monotonic() + 60 * args.minutes
    while left or processes:
        now = time.monotonic()
        while left and len(processes) < args.jobs and now < deadline:
            model = left.pop(0)
            processes[model[0], model[2]] = process, _ = multiprocessing.get_context("fork").Process(target=family, args=(args, *model, give)), now + args.limit
            process.start()
        time.sleep(0.05)
        while not give.empty():
            rows.append(give.get())
        for key, (process, until) in list(processes.items()):
            if not process.is_alive() or now > min(until, deadline):
                if process.is_alive():
                    os.killpg(process.pid, signal.SIGKILL)
                    print(f"{key[0]}: stopped", file=sys.stderr)
                process.join()
                del processes[key]
        if now > deadline and left:
            print(f"not reached: {' '.join(m[0] for m in left)}", file=sys.stderr)
            left.clear()
    while not give.empty():
        rows.append(give.get())
    return rows


def show(rows):
    nan = float("nan")
    print(f"{'model':30} {'exporter':8} {'':4} {'batch':>5} {'ours ms':>9} {'torch ms':>9} {'ratio':>6} {'steps':>5} {'attn':>4} {'moves':>5} {'diff':>8} {'peer':>8}")
    for row in sorted(rows, key=lambda r: -r.get("ratio", 99)):
        if "device_ms" in row:
            print(f"{row['model'][:30]:30} {row['exporter']:8} {row['precision']:4} {row['batch']:5} {row['device_ms']:9.4f} {row.get('pytorch_ms', nan):9.4f} {row.get('ratio', nan):6.2f} "
                  f"{row['steps']:5} {row.get('Attention', 0):4} {row.get('Transpose', 0):5} {nan if row['difference'] is None else row['difference']:8.1e} {row.get('peer_difference') or nan:8.1e}")
        for name, (ours_ms, other_ms) in row.get("without", {}).items():
            print(f"    with {name} {ours_ms:.4f}, without {other_ms:.4f}: {ours_ms / other_ms:.3f}")
        for problem in ("problem", "peer_problem"):
            if problem in row:
                print(f"{row['model'][:30]:30} {row.get('precision', '')} {row['batch']}: {problem}: {row[problem][-160:]}")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of {len(ratios)} rows, largest {max(ratios):.2f}, above 1: {sum(r > 1 for r in ratios)}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--models", nargs="+", type=parsed, required=True, metavar="NAME[:BATCHES[:EXPORTER]]")
    p.add_argument("--work", type=Path, default=Path("/tmp/exports_beside"), help="where models, plans and profiles are kept")
    p.add_argument("--target", default="sm_90", help="of graphc optimize (default: sm_90)")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes at a time")
    p.add_argument("--seconds", default="0.1", help="to measure each for")
    p.add_argument("--profile", type=float, default=0.9, help="profile plans that take more than this of the peer's time")
    p.add_argument("--without", nargs="+", default=[], metavar="PASS", help="passes to measure plans without")
    p.add_argument("--limit", type=float, default=120, help="seconds that a model may take")
    p.add_argument("--minutes", type=float, default=8, help="for all")
    p.add_argument("--save", type=Path)
    args = p.parse_args()
    args.bundle, args.work = args.bundle.resolve(), args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    import torch
    for package in sorted({exports.CATALOGUE[m[0]][0] for m in args.models}):
        importlib.import_module(package)
    torch.set_num_threads(1)
    machine = gpu()
    rows = side_by_side(args)
    show(rows)
    if args.save:
        result = {"benchmark": "exports_beside", "date": datetime.date.today().isoformat(), "machine": machine, "target": args.target, "versions": {"pytorch": version_of("torch")},
                  "what": "device time of runs back to back, inputs and outputs on the GPU, beside PyTorch's CUDA graph; many processes, the GPU in turns", "rows": rows}
        args.save.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
