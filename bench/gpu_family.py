# SPDX-License-Identifier: Apache-2.0
"""What bench/gpu_speed.py does for a model at a batch, in a process of its own that was forked when all packages were imported: the module once, then side by side the exports with their
plans and times, PyTorch's times, ONNX Runtime's; behind these torch.compile. What is found goes to the starter a line at a time.
"""
import os
import signal

import numpy as np

import exports
from gpu_ours import chain
from gpu_peers import compile_peer, onnxruntime, pytorch, pytorch_generated
from gpu_words import Family, begun, guarded, say
from turns import place


def made(family):
    """The module, and its inputs as a file."""
    import torch
    torch.set_num_threads(1)
    with place(family.args.work, "make", family.args.jobs):
        module, inputs, family.channels_last = exports.make(family.name, "full", family.batch)
        family.made = module, inputs
        np.savez(family.inputs, **{f"in{k}": x.numpy() for k, x in enumerate(inputs)})


def first_stage(family, exporters):
    args, any_row = family.args, [family.name, family.batch, None, None, None]
    halves = [False, True] if args.half or family.name.endswith("_step") else [False]
    if exporters == ["generated"]:
        processes = [begun(args, "row", any_row, "problem", chain, family, "generated", False)]
        if args.peers:
            processes.append(begun(args, "row", any_row, "peer_problem", pytorch_generated, family))
    else:
        made(family)
        processes = [begun(args, "row", any_row, "peer_problem", pytorch, family)]
        processes += [begun(args, "row", [family.name, family.batch, e, half, None], "problem", chain, family, e, half) for half in halves for e in exporters]
        if args.ort:
            processes += [begun(args, "row", any_row, "ort_problem", onnxruntime, family, exporters)]
    for process in processes:
        process.join()
    if not args.keep:
        for file in [f for ending in ("*.onnx", "*.npz") for f in args.work.glob(f"{family.name}.full.b{family.batch}.{ending}")]:
            file.unlink()
    say(args, "measured", [family.name, family.batch], {})


def compile_stage(family):
    for process in [begun(family.args, "peer", [family.name, family.batch, p], "compile_problem", compile_peer, family, p, "compile", "default") for p in family.args.precisions]:
        process.join()


def family(args, name, batch, exporters, asked):
    """All of a model at a batch. Behind torch.compile's default the starter asks for precisions, a line each, to be compiled with more trying; it ends the process group."""
    os.setsid()  # what it starts is stopped with it
    log = os.open(args.work / f"{name}.b{batch}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError(f"not ended in {args.limit} s")))
    of = Family(args, name, batch)
    guarded(args, "row", [name, batch, None, None, None], "problem", first_stage, of, exporters)
    if args.compile and of.made:
        compile_stage(of)
        say(args, "compiled", [name, batch], {})
        for precision in os.fdopen(asked):
            key = [name, batch, precision.strip()]
            begun(args, "peer", key, "compile_max_problem", compile_peer, of, key[2], "compile_max", args.compile_max).join()
            say(args, "tuned", key, {})
