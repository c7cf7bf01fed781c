#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models as ONNX Runtime's quantiser saves them, against ONNX Runtime unoptimised.

    bench/quantised.py DIRECTORY MODEL.onnx... [--json out.json] [--forms FORM...]      (pip install onnxruntime onnx)

Each MODEL is quantised in every form into DIRECTORY/MODEL-FORM/, with inputs: recorded ones beside the model (test_data_set_0/*.pb or
set0/in.NAME.npy), else random ones. What is there already is not made again. bench/sweep.py compares.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnxruntime import quantization as q
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

import sweep

SIZES = {"batch": 1, "seq": 16, "sequence": 16}
T, F = q.QuantType, q.QuantFormat
STATIC = {"qdq-u8s8": (F.QDQ, T.QUInt8, T.QInt8, False), "qdq-s8s8-channel": (F.QDQ, T.QInt8, T.QInt8, True), "qdq-u8u8": (F.QDQ, T.QUInt8, T.QUInt8, False),
          "qdq-u16s8": (F.QDQ, T.QUInt16, T.QInt8, False), "qdq-s16s8-channel": (F.QDQ, T.QInt16, T.QInt8, True),
          "qop-u8s8": (F.QOperator, T.QUInt8, T.QInt8, False), "qop-s8s8": (F.QOperator, T.QInt8, T.QInt8, False),
          "qop-u8s8-channel": (F.QOperator, T.QUInt8, T.QInt8, True)}
DYNAMIC = {"dynamic-s8": (T.QInt8, False), "dynamic-u8": (T.QUInt8, False), "dynamic-s8-channel": (T.QInt8, True)}
BITS4 = {"4bits": (F.QOperator, True, ("MatMul",)), "4bits-zero-points": (F.QOperator, False, ("MatMul",)), "4bits-qdq": (F.QDQ, True, ("MatMul",)),
         "4bits-gather": (F.QOperator, False, ("MatMul", "Gather"))}


class Samples(q.CalibrationDataReader):
    def __init__(self, values):
        self.rest = iter([values])

    def get_next(self):
        return next(self.rest, None)


def inputs_of(path):
    session = sweep.session(path, False)
    found = sorted((path.parent / "test_data_set_0").glob("input_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    if found:
        return {i.name: numpy_helper.to_array(onnx.TensorProto.FromString(f.read_bytes())) for i, f in zip(session.get_inputs(), found)}
    if (path.parent / "set0").exists():
        return sweep.input_sets(path, session.get_inputs())[0]
    random, values = np.random.default_rng(0), {}
    for i in session.get_inputs():
        kind, dims = np.dtype(sweep.NUMPY[i.type[len("tensor("):-1]]), [d if isinstance(d, int) else SIZES.get(d, 1) for d in i.shape]
        values[i.name] = random.standard_normal(dims).astype(kind) if kind.kind == "f" else random.integers(0, 8, dims).astype(kind)
    return values


def without_inferred(source):
    model = onnx.load(source)
    del model.graph.value_info[:]
    return model


def quantise(source, target, form, values):
    if form in STATIC:
        kind, activations, weights, each = STATIC[form]
        q.quantize_static(str(source), str(target), Samples(values), quant_format=kind, activation_type=activations, weight_type=weights, per_channel=each)
    elif form in DYNAMIC:
        weights, each = DYNAMIC[form]
        q.quantize_dynamic(str(source), str(target), weight_type=weights, per_channel=each)
    else:
        kind, symmetric, ops = BITS4[form]
        model = onnx.load(source)
        if kind == F.QDQ and model.opset_import[0].version < 21:
            model = onnx.version_converter.convert_version(model, 21)
        made = MatMulNBitsQuantizer(model, algo_config=DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, quant_format=kind, op_types_to_quantize=ops))
        made.process()
        onnx.save(made.model.model, target)


def make(directory, source, form):
    name = source.stem if source.stem != "model" else source.parent.name
    target = directory / f"{name}-{form}" / "model.onnx"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        values = inputs_of(source)
        with tempfile.TemporaryDirectory() as temporary:
            prepared = Path(temporary) / "prepared.onnx"
            if form in DYNAMIC:  # what its preparation infers, the dynamic quantiser's own inference contradicts
                prepared.write_bytes(without_inferred(source).SerializeToString())
            else:
                q.shape_inference.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
            quantise(prepared, target, form, values)
        (target.parent / "set0").mkdir(exist_ok=True)
        for name, value in values.items():
            np.save(target.parent / "set0" / f"in.{name}.npy", value)
    except Exception as problem:  # a form that the quantiser does not make is not ours to judge
        print(json.dumps({"model": str(target), "status": "peer", "why": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
    return target


def arguments():
    forms = [*STATIC, *DYNAMIC, *BITS4]
    p = sweep.maker(__doc__)
    p.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    p.add_argument("--forms", nargs="+", choices=forms, default=forms, metavar="FORM", help=", ".join(forms) + " (default: all)")
    return p.parse_intermixed_args()


def main():
    args = arguments()
    ort.set_default_logger_severity(4)
    models = [make(args.directory, source, form) for source in args.models for form in args.forms]
    return sweep.made(args, [m for m in models if m.exists()])


if __name__ == "__main__":
    sys.exit(main())
