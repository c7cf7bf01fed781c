#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peer: ONNX Runtime's CUDA provider at its best on exported files: inputs and outputs bound on the GPU, a CUDA graph where the model allows one, and both layouts of
convolutions.

    ort_exports.py NAME:BATCH=MODEL.onnx ... --precisions fp16 tf32 [--lock FILE]
    ort_exports.py --serve [--lock FILE] [--cpus N,N/N,N]

A JSON line for each; with --serve, for each request of bench/gpu_speed.py (serving.py). In it: name, batch, precision, milliseconds by mode (graph, graph_nhwc; run, run_nhwc where the provider cannot capture the model), load_s and first_s of the first mode, wall_ms (host to host, of the fastest),
difference (the largest from PyTorch's float32 results, relative to the largest of these), error. The model's inputs are in MODEL.npz, which bench/exports.py writes. fp16 is ONNX Runtime's own conversion of the float32 model. Runs are back to back: the host waits behind
the last one only. Channels last are asked for where there are convolutions. --lock: everything on the GPU happens while FILE is locked. Needs onnxruntime-gpu, and CUDA's libraries where the loader finds them.
"""
import argparse
import functools
import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import clock  # noqa: E402
import serving  # noqa: E402
from gpu_rows import ORT_MODES, larger  # noqa: E402
from gpu_words import difference, named  # noqa: E402
from turns import leave, turn  # noqa: E402

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def narrowed(path):
    """The model with float16 inside, made once."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = path.with_suffix(".ort16.onnx")
    if not half.exists():
        onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), half)
    return half


def session_of(path, nhwc, graph):
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 2  # of ops that stay on the CPU, which are small: sizes and indices
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    cuda = {"use_tf32": "1", "prefer_nhwc": str(int(nhwc)), "enable_cuda_graph": str(int(graph)), "cudnn_conv_algo_search": "EXHAUSTIVE"}
    # A graph needs every node on the GPU: without the CPU's provider others are an error.
    return ort.InferenceSession(str(path), settings, providers=[("CUDAExecutionProvider", cuda)] + ([] if graph else ["CPUExecutionProvider"]))


def bound(session, inputs):
    binding, kept = session.io_binding(), []
    for info in session.get_inputs():
        value = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(inputs[info.name].astype(TYPES[info.type])), "cuda", 0)
        kept.append(value)
        binding.bind_ortvalue_input(info.name, value)
    results = session.run(None, {info.name: inputs[info.name].astype(TYPES[info.type]) for info in session.get_inputs()}) if needs_sizes(session) else None
    for i, info in enumerate(session.get_outputs()):
        shape = list(results[i].shape) if results else info.shape
        value = ort.OrtValue.ortvalue_from_shape_and_type(shape, TYPES[info.type], "cuda", 0)
        kept.append(value)
        binding.bind_ortvalue_output(info.name, value)
    return binding, kept


def needs_sizes(session):
    return any(not isinstance(d, int) for info in session.get_outputs() for d in info.shape)


def milliseconds(session, binding, seconds):
    options = ort.RunOptions()
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")

    def measure(n):
        begin = time.perf_counter()
        for _ in range(n):
            session.run_with_iobinding(binding, options)
        binding.synchronize_outputs()
        return (time.perf_counter() - begin) * 1e3 / n

    measure(3)
    return clock.back_to_back(measure, seconds)


def wall_milliseconds(session, binding, kept, inputs, seconds):
    """Host to host."""
    given = [(value, np.ascontiguousarray(inputs[info.name].astype(TYPES[info.type]))) for info, value in zip(session.get_inputs(), kept)]

    def run():
        for value, array in given:
            value.update_inplace(array)
        session.run_with_iobinding(binding)
        binding.copy_outputs_to_cpu()

    return clock.host_to_host(run, seconds)


def try_mode(path, inputs, nhwc, graph, options):
    with turn(options.lock):
        begin = time.perf_counter()
        session = session_of(path, nhwc, graph)
        load = time.perf_counter() - begin
        binding, kept = bound(session, inputs)
        begin = time.perf_counter()
        session.run_with_iobinding(binding)
        first = time.perf_counter() - begin
        found = {"load_s": load, "first_s": first, "ms": milliseconds(session, binding, options.seconds)}
        found["wall_ms"] = wall_milliseconds(session, binding, kept, inputs, options.seconds)
        results = binding.copy_outputs_to_cpu()
        del binding, kept, session
    found["difference"] = difference(inputs, named(results))
    return found


def has_convolutions(path):
    import onnx

    return any("Conv" in node.op_type for node in onnx.load(path, load_external_data=False).graph.node)


def measure(model, inputs, layouts, options):
    """Of a model file: milliseconds by mode, and what else is known of the first mode that runs."""
    row, errors = {}, []
    for nhwc in layouts:
        for graph in (True, False):
            mode = ("graph" if graph else "run") + ("_nhwc" if nhwc else "")
            try:
                found = try_mode(model, inputs, nhwc, graph, options)
            except Exception as error:
                errors.append(f"{mode}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
                continue
            row |= {mode: found["ms"], "wall_ms": min(found["wall_ms"], row.get("wall_ms", found["wall_ms"]))} | {k: row.get(k, found[k]) for k in ("load_s", "first_s")}
            if found["difference"] is not None:
                row["difference"] = larger(row.get("difference", 0.0), found["difference"])
            break
    return row | ({"error": "; ".join(errors)} if errors else {})


def answer(options, request, say):
    """A file of gpu_speed.py's; narrowed before, and its convolutions were looked for."""
    inputs = {**np.load(request["inputs"]), **(np.load(request["expected"]) if Path(request["expected"]).exists() else {})}
    found = measure(Path(request["file"]), inputs, (False, True) if request["convolutions"] else (False,), options)
    say(request["key"], found | {"file": Path(request["file"]).name})
    if not any(mode in found for mode in ORT_MODES):
        raise RuntimeError(found["error"])


def measured_file(path, precision, options):
    inputs = dict(np.load(path.with_suffix(".npz"))) | (dict(np.load(options.expected)) if options.expected else {})
    return measure(narrowed(path) if precision == "fp16" else path, inputs, (False, True) if has_convolutions(path) else (False,), options)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*", metavar="NAME:BATCH=MODEL.onnx")
    p.add_argument("--serve", action="store_true")
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"], choices=["fp16", "tf32"])
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--expected", help="PyTorch's float32 results, where MODEL.npz lacks them")
    p.add_argument("--lock")
    p.add_argument("--cpus", type=serving.cpus)
    options = p.parse_args()
    ort.preload_dlls()  # of the nvidia-* wheels, where these are
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        sys.exit("ort_exports: this onnxruntime has no CUDA provider; install onnxruntime-gpu")
    if options.serve:
        return serving.serve(functools.partial(answer, options), options.cpus)
    for model in options.models:
        what, _, path = model.partition("=")
        name, _, batch = what.partition(":")
        for precision in options.precisions:
            row = {"name": name, "batch": int(batch), "precision": precision, "runtime": f"onnxruntime {ort.__version__}"}
            try:
                row |= measured_file(Path(path), precision, options)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            print(json.dumps(row), flush=True)
    leave(options.lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
