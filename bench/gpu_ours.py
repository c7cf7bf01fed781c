# SPDX-License-Identifier: Apache-2.0
"""Ours, for bench/gpu_speed.py: tasks that make the file of an exporter and its plans, in a child of the family's process, and what is asked of the process that measures."""
import argparse
import json
import sys
from pathlib import Path

import exports
from common import run
from gpu_words import KEPT, difference, environment, say

HERE = Path(__file__).resolve().parent
GENERATED = {"parallel_fcn": ["parallel_fcn"], "llama_prefill": ["llama_stack", "--seq", "2048"], "llama_decode": ["llama_stack", "--seq", "1", "--past", "2048"]}


def parsed(text):
    """(name, batches, exporters) of NAME[:BATCH,BATCH[:EXPORTER]]."""
    parts = text.split(":")
    name, batches, exporter = [*parts, *("", "", "both")[len(parts):]]
    if name not in exports.CATALOGUE and name not in GENERATED:
        raise argparse.ArgumentTypeError(f"no model {name}")
    if exporter not in (*exports.EXPORTERS, "both"):
        raise argparse.ArgumentTypeError(f"no exporter {exporter}")
    exporters = ["generated"] if name in GENERATED else list(exports.EXPORTERS) if exporter == "both" else [exporter]
    return name, [int(b) for b in batches.split(",") if b], exporters


def export(family, exporter, half):
    """The exporter's file, complete when it has its name."""
    import torch
    torch.set_num_threads(2 if exporter == "script" and family.batch > 1 else 1)  # the TorchScript exporter runs the module
    path = family.path(exporter, half)
    before = path.with_name(f"making.{path.name}")
    exports.write(before, *family.made, exporter, half)
    if family.args.quantised:
        before = quantised(before, family.args.quantised, family.inputs)
    before.rename(path)


def quantised(path, form, inputs):
    """The export in 8 bits, as ONNX Runtime's quantiser writes it, calibrated on its own inputs."""
    import numpy as np

    import quantised as quantiser
    made, prepared = path.with_suffix(f".{form}.onnx"), path.with_suffix(".prepared.onnx")
    quantiser.q.shape_inference.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    with np.load(inputs) as values:
        quantiser.quantise(prepared, made, form, dict(values))
    return made


def generated(family):
    """What grt-models writes, with inputs."""
    written(family.args.bundle, GENERATED[family.name], family.batch, family.path("generated", False), family.inputs)


def written(bundle, words, batch, path, inputs):
    """A model of grt-models as `words` ask for it, and random inputs."""
    import numpy as np
    run([bundle / "bin/grt-models", *words, "--batch", batch, "-o", path])
    random, types = np.random.default_rng(0), {"float32": np.float32, "float16": np.float16, "int64": np.int64}
    report = json.loads(run([bundle / "bin/graphc", "inspect", path, "--json"]))
    np.savez(inputs, **{i["name"]: random.standard_normal(i["shape"]).astype(types[i["dtype"]]) for i in report["inputs"]})


def compiled(family, exporter, half, precision, without=None):
    args, made = family.args, family.plan(exporter, half, precision, without)
    run([args.bundle / "bin/graphc", "optimize", "--target", args.target, *([] if half else ["--precision", precision]), *(["--disable-pass", without] if without else []),
         *(["--enable-pass", args.enable_pass] if args.enable_pass else []), family.path(exporter, half), "-o", made], env=environment(args))
    return made


def counts(args, plan):
    """How many steps there are, and of which ops that recognition makes."""
    report = json.loads(run([args.bundle / "bin/graphc", "inspect", plan, "--json"], env=environment(args)))
    found = {"steps": report["steps"]}
    for op, row in report["ops"].items():
        op = op.replace("graphrt::", "")
        if op in ("Attention", "Transpose", "Softmax"):
            found[op] = found.get(op, 0) + row["steps"]
    return found


def plan(family, exporter, half, precision):
    """The plan; plans without passes that it owes something to; inputs in half if the export has them. Found: the row's counts, and the passes."""
    args, made = family.args, compiled(family, exporter, half, precision)
    row, beside = counts(args, made), []
    for name in args.without:
        other = compiled(family, exporter, half, precision, name)
        if counts(args, other) != row or other.stat().st_size != made.stat().st_size:
            beside.append(name)
        else:
            other.unlink()
    if half:
        narrow_inputs(family)
    say(args, "row", [family.name, family.batch, exporter, half, precision], row)
    return {"beside": beside}


def narrow_inputs(family):
    """Both exporters' tasks may come to it at a time."""
    import numpy as np
    path = family.inputs_of(True)
    before = path.with_name(f"making.{id(family)}.{path.name}")
    with np.load(family.inputs) as arrays:
        np.savez(before, **{k: a.astype(np.float16) if a.dtype == np.float32 else a for k, a in arrays.items()})
    before.rename(path)


def compare(family, exporter, half, precision):
    """How far the results are from PyTorch's, where these are known."""
    import numpy as np
    if family.expected.exists():
        with np.load(family.expected) as expected, np.load(family.results(exporter, half, precision)) as results:
            say(family.args, "row", [family.name, family.batch, exporter, half, precision], {"difference": difference(expected, results)})


def station(args):
    """The command that measures plans, and its environment."""
    return [sys.executable, HERE / "device_run.py", args.bundle / "lib/libgraphrt.so.1", "--serve", "--seconds", args.seconds, "--keep", KEPT, "--lock", args.lock,
            *args.keep_to], environment(args)


def request(family, task, planned):
    """`planned`: what the plan's task found."""
    of = task.name[3:]
    return {"key": task.name[1:], "plan": family.plan(*of), "inputs": family.inputs_of(of[1]), "save": family.results(*of),
            "beside": {name: family.plan(*of, name) for name in planned["beside"]}}
