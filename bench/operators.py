#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variants of the standard's node tests, one node each, against ONNX Runtime: what it runs and we refuse, or compute otherwise.

    bench/operators.py [--op NAME]... [--every N] [--keep DIR]      (pip install onnx onnxruntime)

Each node test is varied: other types of every type parameter, each older version of its operator (inputs that were attributes then
become attributes), optional inputs and outputs left out, attributes left out, dims symbolic or ranks unknown, inputs as initializers.
What ONNX Runtime accepts and runs is the reference; `graphrun check` compares. Random operators are left out. Ends with a table of causes;
exit status 1 if something was refused or differs.
"""
import argparse
import collections
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, defs, helper, numpy_helper

TOP = Path(__file__).resolve().parent.parent
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
TYPES = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "int8": TensorProto.INT8,
         "int16": TensorProto.INT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64, "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16,
         "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL}
# (rtol, atol): ONNX Runtime computes many float16 operators in float32, and some float ones in an order of its own.
CLOSE = {TensorProto.FLOAT16: (2e-2, 5e-3), TensorProto.BFLOAT16: (5e-2, 5e-2)}


class Case:
    """One node, its inputs (None: left out) and which are initializers."""

    def __init__(self, name, node, inputs, version, outputs):
        self.name, self.node, self.inputs, self.version, self.outputs = name, node, inputs, version, outputs
        self.constant, self.shape, self.dtypes = set(), "static", None

    def but(self, label, **changes):
        other = copy.copy(self)
        other.node, other.inputs, other.constant = copy.deepcopy(self.node), list(self.inputs), set(self.constant)
        other.name = f"{self.name}+{label}"
        for key, value in changes.items():
            setattr(other, key, value)
        return other

    def schema(self):
        return defs.get_schema(self.node.op_type, self.version, self.node.domain)


def seeds(data, wanted):
    """The node tests that are one node over tensors."""
    for directory in sorted(data.iterdir()):
        if not (directory / "model.onnx").exists() or directory.name.endswith("_expanded"):
            continue
        model = onnx.load(directory / "model.onnx")
        graph = model.graph
        if len(graph.node) != 1 or graph.initializer or model.functions or graph.node[0].op_type in RANDOM or graph.node[0].op_type == "ImageDecoder":
            continue
        node = graph.node[0]
        if wanted and node.op_type not in wanted or node.domain not in ("", "ai.onnx.ml"):
            continue
        if any(i.type.WhichOneof("value") != "tensor_type" for i in [*graph.input, *graph.output]):
            continue
        if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.SPARSE_TENSOR) for a in node.attribute):
            continue
        values, ok = {}, True
        for k, i in enumerate(graph.input):
            tensor = TensorProto.FromString((directory / f"test_data_set_0/input_{k}.pb").read_bytes())
            ok &= tensor.data_type in (*TYPES.values(), TensorProto.STRING)
            if ok:
                values[i.name] = numpy_helper.to_array(tensor)
        if ok and all(not n or n in values for n in node.input):
            version = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
            yield Case(directory.name, node, [values.get(n) if n else None for n in node.input], version, [bool(o) for o in node.output])


def converted(value, to):
    """The same numbers in another type; fractions are spread out for integers."""
    dtype = helper.tensor_dtype_to_np_dtype(to)
    if value.dtype.kind == "O":
        return None
    if dtype.kind in "iu" and value.dtype.kind not in "iub":
        wide = np.nan_to_num(value.astype(np.float64) * 3, posinf=9, neginf=-9)
        return np.clip(np.rint(wide), 0 if dtype.kind == "u" else -100, 100).astype(dtype)
    if dtype.kind == "u":
        return np.abs(value.astype(np.int64)).astype(dtype)
    if dtype.kind == "b":
        return value.astype(np.float64) > 0
    return value.astype(dtype)


def of_types(case):
    """Each allowed type of each type parameter, the others as they are."""
    schema = case.schema()
    formal = [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(len(case.inputs))] if schema.inputs else []
    for parameter in schema.type_constraints:
        mine = [i for i, f in enumerate(formal) if f.type_str == parameter.type_param_str and case.inputs[i] is not None]
        for allowed in parameter.allowed_type_strs:
            to = TYPES.get(allowed.removeprefix("tensor(").removesuffix(")"))
            if not mine or to is None or helper.np_dtype_to_tensor_dtype(case.inputs[mine[0]].dtype) == to:
                continue
            inputs = list(case.inputs)
            for i in mine:
                inputs[i] = converted(inputs[i], to)
            if all(inputs[i] is not None for i in mine):
                yield case.but(f"{parameter.type_param_str}={allowed[7:-1]}", inputs=inputs)


def of_versions(case):
    """The node at each older version of its operator, and at opsets between, that of its own included."""
    name, domain = case.node.op_type, case.node.domain
    versions = sorted({s.since_version for s in defs.get_all_schemas_with_history() if s.name == name and s.domain == domain and not s.deprecated})
    newest = case.schema()
    for version in versions:
        if version >= case.version and version == newest.since_version:
            continue
        if version > case.version:
            continue
        old = defs.get_schema(name, version, domain)
        other = case.but(f"v{version}", version=version)
        # Between two versions an opset means the older one: the latest of these.
        later = [v for v in versions if v > version]
        if later and later[0] - 1 != version and domain == "":
            other.version = later[0] - 1
        for i, value in enumerate(case.inputs):
            formal = newest.inputs[min(i, len(newest.inputs) - 1)]
            if i < len(old.inputs) or (old.inputs and old.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic):
                continue
            if value is not None and formal.name in old.attributes:
                kind = old.attributes[formal.name].type
                plain = value.reshape(-1).tolist()
                if kind in (defs.OpSchema.AttrType.INT, defs.OpSchema.AttrType.FLOAT):
                    plain = plain[0] if plain else 0
                if kind == defs.OpSchema.AttrType.FLOAT:
                    plain = float(plain)
                other.node.attribute.append(helper.make_attribute(formal.name, plain, attr_type=int(kind.value)))
        other.inputs = other.inputs[:old.max_input]
        if name in ("Reshape", "Expand", "Tile") and "shape" in old.attributes and len(case.inputs) > 1:
            other.node.attribute.append(helper.make_attribute("shape", case.inputs[1].reshape(-1).tolist(), attr_type=onnx.AttributeProto.INTS))
            other.inputs = other.inputs[:1]
        for attribute in list(other.node.attribute):
            if attribute.name not in old.attributes:
                other.node.attribute.remove(attribute)
        yield other


def of_forms(case):
    schema = case.schema()
    if case.inputs:
        yield case.but("symbolic", shape="symbolic")
        yield case.but("unranked", shape="unranked")
        for i, value in enumerate(case.inputs):
            if value is not None:
                yield case.but(f"constant{i}", constant={i})
        if len(case.inputs) > 1:
            yield case.but("constants", constant=set(range(1, len(case.inputs))))
            yield case.but("constants_symbolic", constant=set(range(1, len(case.inputs))), shape="symbolic")
        yield case.but("all_constant", constant=set(range(len(case.inputs))))
    for i in range(schema.min_input, len(case.inputs)):
        if case.inputs[i] is not None:
            yield case.but(f"no_{i}", inputs=[None if k == i else v for k, v in enumerate(case.inputs)])
    if len(case.inputs) > schema.min_input:
        yield case.but("fewest", inputs=case.inputs[:schema.min_input])
    for i in range(1, len(case.outputs)):
        if case.outputs[i]:
            yield case.but(f"no_out{i}", outputs=[o and k != i for k, o in enumerate(case.outputs)])
    for attribute in case.node.attribute:
        other = case.but(f"no_{attribute.name}")
        del other.node.attribute[[a.name for a in other.node.attribute].index(attribute.name)]
        yield other
    if case.inputs and case.inputs[0] is not None and case.inputs[0].ndim and all(v is None or v.shape == case.inputs[0].shape for v in case.inputs):
        for label, cut in (("scalar", lambda v: v.reshape(-1)[:1].reshape(())), ("empty", lambda v: v[:0]), ("flat", lambda v: v.reshape(-1)),
                           ("rank+1", lambda v: v[None])):
            if case.inputs[0].size:
                yield case.but(label, inputs=[None if v is None else cut(v) for v in case.inputs])


def variants(case):
    yield case
    for make in (of_types, of_versions, of_forms):
        yield from make(case)
    for old in of_versions(case):
        if old.schema().since_version != case.schema().since_version:
            yield from of_types(old)


def build(case):
    """The model, and the inputs to feed."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    node = case.node
    del node.input[:], node.output[:]
    node.input.extend(names)
    node.output.extend(f"y{i}" if o else "" for i, o in enumerate(case.outputs))
    graph_inputs, initializers, feeds = [], [], {}
    for i, value in enumerate(case.inputs):
        if value is None:
            continue
        tensor = numpy_helper.from_array(value, f"x{i}")
        if i in case.constant:
            initializers.append(tensor)
            continue
        dims = None if case.shape == "unranked" else [f"d{i}_{k}" if case.shape == "symbolic" else n for k, n in enumerate(value.shape)]
        graph_inputs.append(helper.make_tensor_value_info(f"x{i}", tensor.data_type, dims))
        feeds[f"x{i}"] = (value, tensor)
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    graph = helper.make_graph([node], "g", graph_inputs, outputs, initializers)
    opsets = [helper.make_opsetid(node.domain, case.version)] + ([helper.make_opsetid("", 21)] if node.domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=min(10, 13)), feeds


def reference(model, feeds):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = {}
    for name, (value, tensor) in feeds.items():
        if tensor.data_type == TensorProto.BFLOAT16:
            values[name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(np.uint16), TensorProto.BFLOAT16)
        else:
            values[name] = ort.OrtValue.ortvalue_from_numpy(value) if value.dtype.kind not in "OUS" else value
    if any(isinstance(v, np.ndarray) for v in values.values()):
        return session.run(None, {n: v for n, (v, _) in feeds.items()})
    return [r.numpy() for r in session.run_with_ort_values(None, values)]


def write(directory, model, feeds, results):
    (directory / "test_data_set_0").mkdir(parents=True)
    for o, r in zip(model.graph.output, results):
        o.CopyFrom(helper.make_tensor_value_info(o.name, numpy_helper.from_array(r).data_type, None))
    (directory / "model.onnx").write_bytes(model.SerializeToString())
    rtol, atol = max([CLOSE.get(t.data_type, (1e-3, 1e-5)) for _, t in feeds.values()] + [CLOSE.get(numpy_helper.from_array(r).data_type, (1e-3, 1e-5)) for r in results])
    (directory / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}))
    for i, (_, tensor) in enumerate(feeds.values()):
        tensor = copy.copy(tensor)
        (directory / f"test_data_set_0/input_{i}.pb").write_bytes(tensor.SerializeToString())
    for i, r in enumerate(results):
        (directory / f"test_data_set_0/output_{i}.pb").write_bytes(numpy_helper.from_array(r).SerializeToString())


def key(variant):
    """Variants that are alike are tried once, but for the node tests themselves."""
    label = variant.name.partition("+")[2]
    return (variant.node.op_type, label or variant.name, variant.version, tuple(sorted(a.name for a in variant.node.attribute)),
            tuple(None if v is None else (v.dtype.str, v.ndim) for v in variant.inputs))


def in_child(todo, directory):
    """Write the cases that ONNX Runtime runs; a byte for each variant, up to one that kills the process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        for variant in todo:
            try:
                model, feeds = build(variant)
                results = reference(model, feeds)
            except Exception:  # what ONNX Runtime refuses is not compared
                os.write(writer, b"n")
                continue
            write(directory / re.sub(r"[^\w+=.-]", "_", f"{variant.node.op_type}-{variant.name}"), model, feeds, results)
            os.write(writer, b"y")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        done = stream.read()
    os.waitpid(child, 0)
    return done


def cause(line):
    """A failure's message without names and numbers."""
    line = re.sub(r"'[^']*'", "'..'", line.split(": ", 1)[-1])
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", line)[:150]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=Path, default=TOP / "build")
    p.add_argument("--op", action="append", help="only this operator's tests")
    p.add_argument("--every", type=int, default=1, help="each N-th node test only")
    p.add_argument("--keep", type=Path, help="leave the cases here")
    args = p.parse_args()
    np.seterr(all="ignore")
    directory = args.keep or Path(tempfile.mkdtemp())
    shutil.rmtree(directory, ignore_errors=True)
    seen, count, refused, crashed = set(), 0, 0, []
    for case in list(seeds(args.build / "data/node", args.op))[::args.every]:
        todo = [v for v in variants(case) if key(v) not in seen]
        seen.update(key(v) for v in todo)
        while todo:
            done = in_child(todo, directory)
            count, refused = count + done.count(b"y"), refused + done.count(b"n")
            if len(done) < len(todo):
                crashed.append(todo[len(done)].name)
            todo = todo[len(done) + 1:]
    print(*[f"ONNX Runtime crashes: {name}" for name in crashed], sep="\n")
    print(f"{count} cases; {refused} variants ONNX Runtime does not run", flush=True)
    done = subprocess.run([args.build / "graphrun", "check", "--jobs", "2", directory], capture_output=True, text=True)
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    causes = collections.defaultdict(list)
    for line in failures:
        causes[(line.split("-")[0].removeprefix("FAIL ").strip(), cause(line))].append(line)
    (directory / "failures.txt").write_text("\n".join(failures))
    for (op, why), lines in sorted(causes.items(), key=lambda c: -len(c[1])):
        print(f"{len(lines):5} {op}: {why}\n      {lines[0][:300]}")
    print((done.stdout or done.stderr).splitlines()[-1])
    if not args.keep:
        shutil.rmtree(directory)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
