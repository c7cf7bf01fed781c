# SPDX-License-Identifier: Apache-2.0
"""Ours, for bench/gpu_family.py: the file of an exporter, its plans and their times."""
import json
import signal
import sys
import time
from pathlib import Path

import numpy as np

import exports
from common import run
from gpu_words import KEPT, awaited, begun, difference, environment, or_failed, say
from turns import place

HERE = Path(__file__).resolve().parent
GENERATED = {"parallel_fcn": ["parallel_fcn"], "llama_prefill": ["llama_stack", "--seq", "2048"], "llama_decode": ["llama_stack", "--seq", "1", "--past", "2048"]}


@or_failed
def written(family, path, exporter, half):
    """The exporter's file, complete when it has its name."""
    import torch
    args = family.args
    with place(args.work, "make", args.jobs, 5):
        signal.alarm(args.limit)
        torch.set_num_threads(2 if exporter == "script" and family.batch > 1 else 1)
        before = path.with_name(f"making.{path.name}")
        exports.write(before, *family.made, exporter, half)
        if args.quantised:
            before = quantised(before, args.quantised, family.inputs)
        before.rename(path)


def quantised(path, form, inputs):
    """The export in 8 bits, as ONNX Runtime's quantiser writes it, calibrated on its own inputs."""
    import quantised as quantiser
    made, prepared = path.with_suffix(f".{form}.onnx"), path.with_suffix(".prepared.onnx")
    quantiser.q.shape_inference.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    with np.load(inputs) as values:
        quantiser.quantise(prepared, made, form, dict(values))
    return made


def generated(family, path):
    """What grt-models writes, with inputs."""
    args = family.args
    run([args.bundle / "bin/grt-models", *GENERATED[family.name], "--batch", family.batch, "-o", path])
    random, types = np.random.default_rng(0), {"float32": np.float32, "float16": np.float16, "int64": np.int64}
    report = json.loads(run([args.bundle / "bin/graphc", "inspect", path, "--json"]))
    np.savez(family.inputs, **{i["name"]: random.standard_normal(i["shape"]).astype(types[i["dtype"]]) for i in report["inputs"]})
    family.expected.with_suffix(".failed").touch()


def compiled(args, path, precision, half, without=None):
    plan = path.with_suffix(f".{precision}{f'.{without}' if without else ''}.grt")
    with place(args.work, "make", args.jobs):
        run(["nice", "-n", "5", args.bundle / "bin/graphc", "optimize", "--target", args.target, *([] if half else ["--precision", precision]),
             *(["--disable-pass", without] if without else []), *(["--enable-pass", args.enable_pass] if args.enable_pass else []), path, "-o", plan], env=environment(args))
    return plan


def counts(args, plan):
    """How many steps there are, and of which ops that recognition makes."""
    report = json.loads(run([args.bundle / "bin/graphc", "inspect", plan, "--json"], env=environment(args)))
    found = {"steps": report["steps"]}
    for op, row in report["ops"].items():
        op = op.replace("graphrt::", "")
        if op in ("Attention", "Transpose", "Softmax"):
            found[op] = found.get(op, 0) + row["steps"]
    return found


def timed(args, plan, inputs, *options):
    with place(args.work, "measure", 6):
        return json.loads(run([sys.executable, HERE / "device_run.py", args.bundle / "lib/libgraphrt.so.1", plan, inputs, "--seconds", args.seconds,
                               "--lock", args.lock, *options], env=environment(args)))


def in_turns(args, path, plan, inputs, precision, half):
    """Pass -> [with, without]: milliseconds of two turns each; nothing of passes that the plan does not owe anything to."""
    found = {}
    for name in args.without:
        other = compiled(args, path, precision, half, name)
        if counts(args, other) != counts(args, plan) or other.stat().st_size != plan.stat().st_size:
            turns = [timed(args, p, inputs)["device_ms"] for p in (plan, other, plan, other)]
            found[name] = [min(turns[::2]), min(turns[1::2])]
    return found


def inputs_of(family, half):
    if not half:
        return family.inputs
    narrow = family.inputs.with_suffix(".half.npz")
    with np.load(family.inputs) as arrays:
        np.savez(narrow, **{k: a.astype(np.float16) if a.dtype == np.float32 else a for k, a in arrays.items()})
    return narrow


def ours(family, key, plan, inputs, path):
    args, saved = family.args, plan.with_suffix(".out.npz")
    row = timed(args, plan, inputs, "--save", saved, "--keep", KEPT)
    row |= counts(args, plan) | {"plan": str(plan)}
    if awaited(family.expected):
        with np.load(family.expected) as expected, np.load(saved) as results:
            row["difference"] = difference(expected, results)
    saved.unlink()
    if args.without:
        row["without"] = in_turns(args, path, plan, inputs, key[4], key[3])
    say(args, "row", key, row)


def chain(family, exporter, half):
    """An exporter's file, its plans, their times."""
    args, begin = family.args, time.monotonic()
    path = family.path(exporter, half)
    common = family.name, family.batch, exporter, half
    if exporter == "generated":
        generated(family, path)
    elif not path.exists():
        process = begun(args, "row", [*common, None], "problem", written, family, path, exporter, half)
        process.join()
        if not path.exists():
            path.with_suffix(".failed").touch()
            return
    say(args, "row", [*common, None], {"export_s": round(time.monotonic() - begin, 1)})
    inputs = inputs_of(family, half)
    plans = []
    for precision in ["fp16"] if half else args.precisions:
        if not half and precision == "fp16" and family.name.endswith("_step"):
            continue
        key = [*common, precision]
        plans.append(begun(args, "row", key, "problem", lambda key=key, p=precision: ours(family, key, compiled(args, path, p, half), inputs, path)))
    for process in plans:
        process.join()
    if half and not args.keep:
        path.unlink()
