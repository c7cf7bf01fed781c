#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as users export them: from torchvision, timm, transformers and PyTorch itself, by both of PyTorch's exporters, with random weights.

    exports.py DIR [--only NAME ...] [--exporters dynamo script] [--sizes small full] [--batches 1 32] [--half]

writes DIR/NAME.SIZE.bBATCH.EXPORTER.onnx (half precision: NAME.SIZE.bBATCH.EXPORTER.half.onnx), beside each the inputs and the outputs of PyTorch in float32
as .npz. "dynamo" is torch.export's way, "script" the TorchScript exporter. small: the same layers, fewer and narrower, for checks that take seconds.
Models of packages that are not installed are left out, and said so.
"""
import argparse
import importlib
import inspect
import logging
import multiprocessing
import os
import time
import warnings
from pathlib import Path

import catalogue_vision  # noqa: F401
import catalogue_language  # noqa: F401
import catalogue_torch  # noqa: F401
import catalogue_families  # noqa: F401
import catalogue_timm  # noqa: F401
import catalogue_tasks  # noqa: F401
import catalogue_transformers  # noqa: F401
import catalogue_layers  # noqa: F401
import catalogue_more  # noqa: F401
import catalogue_further  # noqa: F401
import catalogue_papers  # noqa: F401
import catalogue_steps  # noqa: F401
import catalogue_pictures  # noqa: F401
import catalogue_signals  # noqa: F401
import catalogue_multimodal  # noqa: F401
import catalogue_drawn  # noqa: F401
import catalogue_forms  # noqa: F401
import catalogue_recent  # noqa: F401
from catalogue import CATALOGUE, installed, names

EXPORTERS = {"dynamo": {"dynamo": True, "external_data": False, "verbose": False}, "script": {"dynamo": False, "opset_version": 18}}


def make(name, size="full", batch=1):
    """The module, its inputs, and whether it is at its best with channels last. Weights that start as zeros get values, and batch norms the statistics of the
    inputs: the results of random networks are then neither zero nor out of float16's range."""
    import torch
    torch.manual_seed(0)
    _, channels_last, function = CATALOGUE[name]
    module, inputs = function(size == "small", batch)
    module.eval()
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() > 1 and not weight.any():
                torch.nn.init.normal_(weight, std=0.02)
        for norm in norms:
            norm.momentum = None
            norm.reset_running_stats()
            norm.train()
        try:
            if norms:
                module(*inputs)
        except ValueError:  # one value a channel has no statistics
            for norm in norms:
                norm.reset_running_stats()
    return module.eval(), inputs, channels_last


def file_name(name, size, batch, exporter, half, open_dims=False):
    return f"{name}.{size}.b{batch}.{exporter}{'.half' if half else ''}{'.open' if open_dims else ''}.onnx"


def tensors_of(result):
    """Outputs in order, out of tuples, lists and dicts."""
    if isinstance(result, dict):
        result = list(result.values())
    return [t for part in result for t in tensors_of(part)] if isinstance(result, (tuple, list)) else [result]


def open_axes(inputs):
    """The dims that --open-dims opens: the batch of all inputs, the length of tokens. input -> axis -> name."""
    import torch
    whole = {torch.int64, torch.int32}
    return {f"in{k}": {0: "batch", **({1: "length"} if x.dtype in whole and x.dim() == 2 else {})} for k, x in enumerate(inputs)}


def other_dims(inputs):
    """The same inputs with a row more and fewer tokens."""
    import torch
    axes = open_axes(inputs)
    more = [torch.cat([x, x[:1]]) for x in inputs]
    return tuple(x[:, :x.shape[1] * 3 // 4].contiguous() if 1 in axes[f"in{k}"] else x for k, x in enumerate(more))


def save(path, module, inputs):
    import numpy as np
    import torch
    with torch.inference_mode():
        outputs = tensors_of(module(*inputs))
    np.savez(path, **{f"in{k}": x.numpy() for k, x in enumerate(inputs)}, **{f"out{k}": x.numpy() for k, x in enumerate(outputs)})
    return len(outputs)


def write(path, module, inputs, exporter, half, outputs=None, axes=None):
    """The model file; its outputs are named if their number is given. Half precision narrows the module itself."""
    import torch
    options = dict(EXPORTERS[exporter])
    if outputs:
        options["output_names"] = [f"out{k}" for k in range(outputs)]
    if axes and exporter == "dynamo":
        shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in of} for of in axes.values())
        variadic = any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values())
        options["dynamic_shapes"] = (shapes,) if variadic else shapes
    elif axes:
        options["dynamic_axes"] = axes
    if half:
        module, inputs = module.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
    torch.backends.mha.set_fastpath_enabled(False)  # one op that the TorchScript exporter does not know
    with torch.no_grad():
        torch.onnx.export(module, inputs, str(path), input_names=[f"in{k}" for k in range(len(inputs))], **options)


def export(directory, name, size, batch, exporter, half, open_dims=False):
    """Writes the model, and its inputs and outputs beside it; with open dims a second set, of other sizes. Returns the path."""
    path = Path(directory) / file_name(name, size, batch, exporter, half, open_dims)
    module, inputs, _ = make(name, size, max(batch, 2) if open_dims else batch)  # torch.export takes a batch of one as fixed
    outputs = save(path.with_suffix(".npz"), module, inputs)
    if open_dims:
        save(path.with_suffix(".other.npz"), module, other_dims(inputs))
    write(path, module, inputs, exporter, half, outputs, open_axes(inputs) if open_dims else None)
    return path


def export_quietly(path, what):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    shown = os.dup(1)
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)  # the exporters' own text, PyTorch's C++ included
        os.dup2(null.fileno(), 2)
    try:
        export(path.parent, *what)
        return
    except Exception as error:
        path.unlink(missing_ok=True)
        os.dup2(shown, 1)
        print(f"{path.name}: not exported: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    os._exit(1)


def export_apart(directory, *what):
    """In a child of its own, as exporters keep memory and change modules; packages are imported once, before. The path; None if it failed, with the reason printed."""
    import onnxscript  # noqa: F401
    import torch  # noqa: F401
    if CATALOGUE[what[0]][0] != "torch":
        importlib.import_module(CATALOGUE[what[0]][0])
    path = Path(directory) / file_name(*what)
    if not path.exists() or not path.with_suffix(".npz").exists():
        child = multiprocessing.get_context("fork").Process(target=export_quietly, args=(path, what))
        child.start()
        child.join()
        if child.exitcode:
            path.unlink(missing_ok=True)
    return path if path.exists() else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("directory", type=Path)
    p.add_argument("--only", nargs="+", default=names(), choices=list(CATALOGUE), metavar="NAME")
    p.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=list(EXPORTERS))
    p.add_argument("--sizes", nargs="+", default=["small", "full"], choices=["small", "full"])
    p.add_argument("--batches", nargs="+", type=int, default=[1])
    p.add_argument("--half", action="store_true", help="in half precision")
    p.add_argument("--open-dims", action="store_true", help="with an open batch, and an open length where inputs are tokens")
    args = p.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    for missing in sorted({package for package, _, _ in CATALOGUE.values() if not installed(package)}):
        print(f"{missing} is not installed: its models are left out")
    for size in args.sizes:
        for name in args.only:
            for batch in args.batches:
                for exporter in args.exporters:
                    start = time.monotonic()
                    path = export_apart(args.directory, name, size, batch, exporter, args.half, args.open_dims)
                    if path:
                        print(f"{path.name}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
