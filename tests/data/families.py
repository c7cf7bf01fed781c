#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of many families as both of PyTorch's exporters write them: two narrow layers each, batch 2, with what PyTorch makes of the inputs. Writes families.tar.xz
beside itself, families/NAME.EXPORTER[.opset23][.open][.SUFFIX]/{model.onnx,test_data_set_0/*.pb}, and families.json: versions of packages by that of torch; of each model its torch
and sha256; what is not exported and why.

usage: families.py [--work DIR] [--suffix SUFFIX] [--expect BUILD] [NAME ...]    (pip install torch torchvision timm transformers onnx onnxruntime onnxscript)
Models of DIR are not exported again. With names, the other models stay as they are in the archive. --suffix torch2.15: beside those of another version, under names that end so.
--expect BUILD: writes nothing, but prints the lines of ../conformance/families.txt that hold for plans of the build directory.

Weights repeat one block of numbers, each from another place, so that they compress and no two are alike: 1,021 numbers, a prime, so that rows of a matrix differ.
"""
import argparse
import hashlib
import importlib
import importlib.metadata
import inspect
import io
import json
import logging
import math
import multiprocessing
import os
import pathlib
import re
import sys
import tarfile
import warnings
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
import exports  # noqa: E402
import family_models  # noqa: E402
from catalogue import CATALOGUE  # noqa: E402

PERIOD = 1021
ROWS = 128  # of embeddings; tokens are below 99
LARGEST = 6 << 20  # bytes of a model
FORMS = [(exporter, None, False) for exporter in ("dynamo", "script")]
RECOGNISED = ("Attention", "Softmax", "RotaryEmbedding", "LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
              "BatchNormalization", "HeadMix", "LSTM", "GRU")
BOUNDED = ("Transpose", "*")
PACKAGES = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxruntime", "onnxscript")


def block():
    """About a normal distribution, in steps of 1/16: sums of three numbers of a linear congruential generator."""
    import torch
    numbers, state = [], 1
    for _ in range(PERIOD):
        total = 0
        for _ in range(3):
            state = (state * 1103515245 + 12345) % 2 ** 31
            total += state / 2 ** 31 - 0.5
        numbers.append(round(total * 32) / 16)
    return torch.tensor(numbers, dtype=torch.float32)


def pattern(name, like):
    import torch
    start = zlib.crc32(name.encode()) % PERIOD
    return block()[(torch.arange(like.numel()) + start) % PERIOD].reshape(like.shape)


def weights_of(name, old):
    """What a parameter becomes: scaled by its fan-in to a power of two; what looks like a table of its own, or is small, stays."""
    import torch
    values = old.detach().float()
    if name.endswith("running_var"):
        return 1 + pattern(name, values).abs() / 8
    if name.endswith("running_mean"):
        return pattern(name, values) / 16
    if not values.is_floating_point() or values.numel() < 2:
        return values
    mean = float(values.mean())
    if bool((values == values.flatten()[0]).all()):
        return torch.full_like(values, mean) * (1 + pattern(name, values) / 8) if mean else pattern(name, values) / 16
    if abs(mean) > 0.3 * float(values.std()) and values.numel() > 64:
        return values
    fan_in = values.numel() / values.shape[0] if values.dim() > 1 else 256
    return pattern(name, values) * 2.0 ** round(math.log2(1.4 / math.sqrt(fan_in)))


def narrow(module):
    """Fewer rows in large embeddings, and in what shares their count."""
    import torch
    large = {m.num_embeddings for m in module.modules() if isinstance(m, torch.nn.Embedding) and m.num_embeddings > 600}
    for m in module.modules():
        if isinstance(m, torch.nn.Embedding) and m.num_embeddings in large:
            m.num_embeddings, m.padding_idx = ROWS, None
    for p in module.parameters():
        if p.dim() and p.shape[0] in large:
            p.data = p.data[:ROWS].clone()


def make(name):
    """The module, and its inputs."""
    import torch
    module, inputs, _ = exports.make(name, "small", 2)
    narrow(module)
    with torch.no_grad():
        for key, p in module.named_parameters():
            p.copy_(weights_of(key, p))
        for key, b in module.named_buffers():
            if key.endswith(("running_mean", "running_var")):
                b.copy_(weights_of(key, b))
    return module, tuple((pattern(f"in{k}", x) + 2) / 4 if x.is_floating_point() else x % 99 if x.dtype == torch.int64 else x for k, x in enumerate(inputs))


def rounded(array):
    """15 bits of each float, as tolerances are wider than that and they compress."""
    import numpy as np
    if array.dtype != np.float32:
        return array
    bits = array.view(np.uint32)
    return np.where(np.isfinite(array), ((bits.astype(np.uint64) + 128) & 0xffffff00).astype(np.uint32).view(np.float32), array)


def tensor_file(name, tensor, round_it):
    from onnx import numpy_helper
    array = tensor.detach().numpy()
    return numpy_helper.from_array(rounded(array) if round_it else array, name).SerializeToString()


def stripped(model):
    """Without the exporters' stack traces."""
    def strip(graph):
        for item in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
            del item.metadata_props[:]
            item.doc_string = ""
        for node in graph.node:
            for attribute in node.attribute:
                for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                    strip(inner)
    strip(model.graph)
    del model.metadata_props[:]
    return model


def named_axes(inputs):
    """As exports.open_axes, but for tokens of another length, as a decoder's."""
    axes = exports.open_axes(inputs)
    lengths = [x.shape[1] for k, x in enumerate(inputs) if 1 in axes[f"in{k}"]]
    for k, x in enumerate(inputs):
        if 1 in axes[f"in{k}"] and x.shape[1] != lengths[0]:
            axes[f"in{k}"][1] = "other_length"
    return axes


def export(name, exporter, opset, open_dims, directory):
    import onnx
    import torch
    module, inputs = make(name)
    with torch.inference_mode():
        outputs = exports.tensors_of(module(*inputs))
    options = dict(exports.EXPORTERS[exporter], **({"opset_version": opset} if opset else {}))
    if open_dims:
        axes = named_axes(inputs)
        if exporter == "dynamo":
            shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in of} for of in axes.values())
            variadic = any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values())
            options["dynamic_shapes"] = (shapes,) if variadic else shapes
        else:
            options["dynamic_axes"] = axes
    torch.backends.mha.set_fastpath_enabled(False)
    buffer = directory / "exported.onnx"
    with torch.no_grad():
        torch.onnx.export(module, inputs, str(buffer), input_names=[f"in{k}" for k in range(len(inputs))], output_names=[f"out{k}" for k in range(len(outputs))], **options)
    model = stripped(onnx.load(str(buffer)))
    buffer.unlink()
    data = model.SerializeToString(deterministic=True)
    if len(data) > LARGEST:
        raise ValueError(f"{len(data)} bytes")
    names = [i.name for i in model.graph.input]
    (directory / "model.onnx").write_bytes(data)
    if not agrees(directory, names, inputs, outputs):
        (directory / "model.onnx").unlink()
        raise ValueError("ONNX Runtime's results are not PyTorch's")
    write_set(directory / "test_data_set_0", names, inputs, outputs)
    if open_dims:
        write_other_dims(directory, names, module, exports.other_dims(inputs))


def agrees(directory, names, inputs, outputs):
    """True if ONNX Runtime has PyTorch's results: exporters make wrong models, too."""
    import numpy as np
    import onnxruntime
    session = onnxruntime.InferenceSession(directory / "model.onnx", providers=["CPUExecutionProvider"])
    theirs = session.run(None, {f"in{k}": x.numpy() for k, x in enumerate(inputs) if f"in{k}" in names})
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(theirs, (y.numpy() for y in outputs)))


def write_set(directory, names, inputs, outputs):
    """`names`: of the model's inputs, which are some of in0, in1, ..."""
    directory.mkdir()
    given = [(f"in{k}", x) for k, x in enumerate(inputs) if f"in{k}" in names]
    for k, (name, x) in enumerate(sorted(given, key=lambda item: names.index(item[0]))):
        (directory / f"input_{k}.pb").write_bytes(tensor_file(name, x, False))
    for k, y in enumerate(outputs):
        (directory / f"output_{k}.pb").write_bytes(tensor_file(f"out{k}", y, True))


def write_other_dims(directory, names, module, inputs):
    """A second set, where the exporter has left the dims open indeed: where ONNX Runtime agrees with PyTorch."""
    import torch
    try:
        with torch.inference_mode():
            outputs = exports.tensors_of(module(*inputs))
        open_indeed = agrees(directory, names, inputs, outputs)
    except Exception as error:
        (directory / "not_open").write_text(said(error))
        return
    if open_indeed:
        write_set(directory / "test_data_set_1", names, inputs, outputs)
    else:
        (directory / "not_open").write_text("sizes of the traced run are in the graph")


def said(error):
    """In a line, without colours."""
    return f"{type(error).__name__}: {' '.join(re.sub(chr(27) + '[^m]*m', '', str(error)).split())[:200]}"


def export_quietly(case, directory, form):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
    try:
        directory.mkdir(parents=True)
        export(*form, directory)
        os._exit(0)
    except BaseException as error:
        (directory / "model.onnx").unlink(missing_ok=True)
        (directory / "reason").write_text(said(error))
    os._exit(1)


def case_name(name, exporter, opset, open_dims, suffix):
    return f"{name}.{exporter}{f'.opset{opset}' if opset else ''}{'.open' if open_dims else ''}{f'.{suffix}' if suffix else ''}"


def forms(name):
    yield from ((name, *form) for form in FORMS)
    if name in family_models.NEWEST:
        yield name, "dynamo", 23, False
    if name in family_models.OPEN:
        yield name, "dynamo", None, True
        yield name, "script", None, True


def export_all(names, work, suffix=""):
    import onnxscript  # noqa: F401
    import torch
    torch.set_num_threads(1)
    for name in names:
        if CATALOGUE[name][0] != "torch":
            importlib.import_module(CATALOGUE[name][0])
        for form in forms(name):
            directory = work / case_name(*form, suffix)
            if directory.exists():
                continue
            child = multiprocessing.get_context("fork").Process(target=export_quietly, args=(directory.name, directory, form))
            child.start()
            child.join(300)
            if child.is_alive():
                child.kill()
                (directory / "reason").write_text("takes more than 300 s")
            print(directory.name, (directory / "reason").read_text() if (directory / "reason").exists() else "", flush=True)


def dims_of(directory):
    reason = directory / "not_open"
    return f"open, but: {reason.read_text()}" if reason.exists() else "open"


def described(path, exporter, open_dims):
    import onnx
    data = path.read_bytes()
    model = onnx.load_from_string(data)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    return {"torch": importlib.metadata.version("torch"), "exporter": exporter, "opset": opset, "dtype": "float32", "dims": dims_of(path.parent) if open_dims else "static",
            "nodes": len(model.graph.node), "sha256": hashlib.sha256(data).hexdigest()}


def manifest(listed, names, work, suffix):
    """What is listed, and instead of that of these cases what they are now."""
    torch = importlib.metadata.version("torch")
    for name in names:
        for form in forms(name):
            case = case_name(*form, suffix)
            path, reason = work / case / "model.onnx", work / case / "reason"
            listed["models"].pop(case, None)
            listed["not_exported"].pop(case, None)
            if reason.exists():
                listed["not_exported"][case] = {"torch": torch, "reason": reason.read_text()}
            elif path.exists():
                listed["models"][case] = described(path, form[1], form[3])
    listed["versions"][torch] = {p: importlib.metadata.version(p) for p in PACKAGES}
    used = {item["torch"] for part in ("models", "not_exported") for item in listed[part].values()}
    listed["versions"] = {version: listed["versions"][version] for version in sorted(used)}
    return listed


def unpack(cases, work):
    """Those of the archive that are not there."""
    missing = {case for case in cases if not (work / case).exists()}
    with tarfile.open(HERE / "families.tar.xz") as archive:
        for member in archive:
            case = pathlib.PurePosixPath(member.name).parts[1]
            if case in missing:
                path = work / pathlib.PurePosixPath(member.name).relative_to("families")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())


def pack(listed, work):
    """In the order of the list, so that what is alike is near in the archive."""
    with tarfile.open(HERE / "families.tar.xz", "w:xz", preset=9) as archive:
        for case in sorted(listed["models"]):
            for path in sorted((work / case).rglob("*")):
                if path.suffix in (".onnx", ".pb"):
                    info = tarfile.TarInfo(f"families/{case}/{path.relative_to(work / case)}")
                    info.size = path.stat().st_size
                    archive.addfile(info, io.BytesIO(path.read_bytes()))


def steps_of(build, model, target):
    """op -> steps of the plan."""
    import subprocess
    import tempfile
    with tempfile.NamedTemporaryFile(suffix=".grt") as plan:
        environment = {**os.environ, "GRAPHRT_ALGO_CACHE": "off"}
        subprocess.run([build / "graphc", "optimize", model, "--target", target, "-o", plan.name], check=True, stdout=subprocess.DEVNULL, env=environment)
        told = json.loads(subprocess.run([build / "graphc", "inspect", plan.name, "--json"], check=True, stdout=subprocess.PIPE, env=environment).stdout)
    return {**{op: row["steps"] for op, row in told["ops"].items()}, "*": told["steps"]}


def expectations(build, model):
    """Recognised ops exactly, which a GPU may have as others; moves and all steps at most."""
    steps = {target: steps_of(build, model, target) for target in ("cpu", "cuda")}
    told = []
    for op in RECOGNISED:
        n, other = (s.get(op, 0) for s in steps.values())
        if n or other or op == "Softmax" and steps["cpu"].get("Attention"):
            told.append(f"{op}={n}" if n == other else f"cpu:{op}={n}")
    for op in BOUNDED:
        n, other = (s.get(op, 0) for s in steps.values())
        told += [f"{op}<={n}"] if n == other else [f"cpu:{op}<={n}", f"cuda:{op}<={other}"]
    return " ".join(told)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("families.work"))
    p.add_argument("--pack", action="store_true", help="export nothing, pack what there is")
    p.add_argument("--suffix", default="")
    p.add_argument("--expect", type=pathlib.Path, metavar="BUILD")
    p.add_argument("names", nargs="*", default=family_models.NAMES)
    args = p.parse_args()
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    if args.expect:
        for case in sorted(p.parent.name for p in args.work.glob("*/model.onnx")):
            print(f"{case}: {expectations(args.expect, args.work / case / 'model.onnx')}", flush=True)
        return
    if not args.pack:
        export_all(args.names, args.work, args.suffix)
    listed = manifest(json.loads((HERE / "families.json").read_text()), args.names, args.work, args.suffix)
    unpack(listed["models"], args.work)
    (HERE / "families.json").write_text(json.dumps(listed, indent=1) + "\n")
    pack(listed, args.work)


if __name__ == "__main__":
    main()
