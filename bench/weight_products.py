#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 4 and 8 bits on one GPU: device time, and what share of the machine's rates that is.

    bench/weight_products.py --bundle DIR [DIR ...] [--forms int4 int8 float8] [--rows 1 16 64] [--products 3072x16384] [--layers N]

Models are made on the spot, with weights drawn by a seed: for each product as many weights as exceed the GPU's cache, each with an x of its own, and a decoder's
layer with the sizes of Phi-3-mini (RMSNorm, q, k and v in one product, rotary positions, attention over a cache, gate and up in one product), several times in a
row. x is float16. int4 has a scale and a zero point for each 32 rows of k, int8 and float8 (e4m3) have a scale for each column. A model takes any number of rows.
Several bundles have the same models, one after the other in each round; each has a process of its own.

Times are of one product, or one layer, in a plan that is run back to back (device_run.py). "bytes" is the time of weights, scales, zero points, x and the result
at the memory's rate, "products" that of multiplications and additions at the tensor cores' (float16), each as a share of the time taken. `alone` is the sum of the
layer's four products by themselves.

Needs no build tree: --bundle names what `make bundle` made, one or several. Needs Python's onnx and numpy, and CUDA's runtime library where the loader finds it.
"""
import argparse
import concurrent.futures
import datetime
import json
import multiprocessing
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import device_run

BLOCK, SEED = 32, 14
HIDDEN, INNER, HEADS, PAST = 3072, 8192, 32, 128
LAYER = [(HIDDEN, 3 * HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2 * INNER), (INNER, HIDDEN)]
CACHE_BYTES = 120e6
FORMS = {"int4": (TensorProto.UINT4, BLOCK), "int8": (TensorProto.INT8, 0), "float8": (TensorProto.FLOAT8E4M3FN, 0)}


class Maker:
    """A model's nodes and constants."""

    def __init__(self, form):
        self.kind, self.block = FORMS[form]
        self.random = np.random.default_rng(SEED)
        self.nodes, self.constants, self.inputs, self.outputs, self.last = [], [], [], [], 0

    def name(self):
        self.last += 1
        return f"v{self.last}"

    def constant(self, kind, dims, data):
        name = self.name()
        self.constants.append(helper.make_tensor(name, kind, dims, data.tobytes(), raw=True))
        return name

    def half(self, dims, low, high):
        return self.constant(TensorProto.FLOAT16, dims, self.random.uniform(low, high, dims).astype(np.float16))

    def codes(self, dims):
        """Any numbers of integers; of float8 all but the largest, which are not finite."""
        n = int(np.prod(dims)) * (4 if self.kind == TensorProto.UINT4 else 8) // 8
        codes = np.frombuffer(self.random.bytes(n), np.uint8)
        return self.constant(self.kind, dims, codes & 0xBF if self.kind == TensorProto.FLOAT8E4M3FN else codes)

    def node(self, op, inputs, n_out=1, domain="", **attributes):
        outputs = [self.name() for _ in range(n_out)]
        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0] if n_out == 1 else outputs

    def input(self, dims):
        name = f"in{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims))
        return name

    def output(self, name, dims):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims))

    def product(self, x, k, n):
        size = {TensorProto.UINT4: 0.3, TensorProto.INT8: 0.015, TensorProto.FLOAT8E4M3FN: 1.0}[self.kind] / k**0.5
        of_scales = [k // self.block, n] if self.block else [n]
        given = [self.codes([k, n]), self.half(of_scales, 0.5 * size, size)]
        if self.kind == TensorProto.UINT4:
            given.append(self.codes(of_scales))
        blocked = {"block_size": self.block, "axis": 0} if self.block else {"axis": 1}
        return self.node("MatMul", [x, self.node("DequantizeLinear", given, **blocked)])

    def save(self, path):
        graph = helper.make_graph(self.nodes, "weight_products", self.inputs, self.outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), path)


def products(form, k, n):
    """(model, how many products)"""
    m = Maker(form)
    count = max(2, int(CACHE_BYTES / (k * n * (0.5 if form == "int4" else 1))))
    for _ in range(count):
        m.output(m.product(m.input(["rows", k]), k, n), ["rows", n])
    return m, count


def layers(form, count):
    m = Maker(form)
    head = HIDDEN // HEADS
    x = m.input([1, "rows", HIDDEN])
    cos, sin = m.input([1, "rows", head // 2]), m.input([1, "rows", head // 2])
    thirds = m.constant(TensorProto.INT64, [3], np.full(3, HIDDEN))
    halves = m.constant(TensorProto.INT64, [2], np.full(2, INNER))
    for _ in range(count):
        past = [m.input([1, HEADS, PAST, head]) for _ in "kv"]
        normal = m.node("RMSNormalization", [x, m.half([HIDDEN], 0.5, 1.5)], axis=-1)
        q, k, v = m.node("Split", [m.product(normal, HIDDEN, 3 * HIDDEN), thirds], 3, axis=-1)
        q, k = (m.node("RotaryEmbedding", [a, cos, sin], num_heads=HEADS) for a in (q, k))
        seen = m.node("Attention", [q, k, v, "", *past], q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)
        x = m.node("Add", [x, m.product(seen, HIDDEN, HIDDEN)])
        normal = m.node("RMSNormalization", [x, m.half([HIDDEN], 0.5, 1.5)], axis=-1)
        gate, up = m.node("Split", [m.product(normal, HIDDEN, 2 * INNER), halves], 2, axis=-1)
        gate = m.node("Mul", [gate, m.node("Sigmoid", [gate])])
        x = m.node("Add", [x, m.product(m.node("Mul", [gate, up]), INNER, HIDDEN)])
    m.output(x, [1, "rows", HIDDEN])
    return m, count


def bytes_of(form, k, n, rows):
    weights = k * n / 2 + k // BLOCK * n * (2 + 0.5) if form == "int4" else k * n + 2 * n
    return weights + 2 * rows * (k + n)


def make(args, job):
    """The job's plan for each bundle, what they have as inputs, and how many products or layers that is."""
    name, form, sizes = job
    m, count = layers(form, args.layers) if name == "layer" else products(form, *sizes[0])
    source = Path(args.work, f"{name}-{form}.onnx")
    m.save(source)
    plans = [Path(args.work, f"{name}-{form}-{i}.grtp") for i in range(len(args.bundle))]
    for bundle, plan in zip(args.bundle, plans):
        subprocess.run([bundle / "bin/graphc", "optimize", source, "-o", plan, "--target", args.target], check=True, stdout=subprocess.DEVNULL)
    source.unlink()
    return plans, [(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim]) for v in m.inputs], count


def microseconds(args, bundle, made, which, rows):
    """Of one of the model's products, or layers, for each number of rows; in a process of the bundle's own."""
    plans, inputs, count = made
    session, cuda = device_run.Session(str(bundle / "lib/libgraphrt.so"), plans[which], args.device), device_run.Cuda(args.device)
    random, found = np.random.default_rng(SEED), []
    for m in rows:
        arrays = {name: np.resize(random.standard_normal(1 << 20, np.float32).astype(np.float16), [d or m for d in dims]) for name, dims in inputs}
        found.append(1e3 * session.device_milliseconds(cuda, arrays, args.seconds) / count)
    return found


def line(args, name, form, rows, sizes, times, alone):
    """What is found of one product or layer, for each bundle; alone: the sum of the layer's products, or nothing."""
    least = sum(bytes_of(form, k, n, rows) for k, n in sizes) / args.memory * 1e-6
    work = sum(2 * rows * k * n for k, n in sizes) / args.tensor * 1e-6
    found = []
    for bundle, time, sum_alone in zip(args.bundle, times, alone):
        row = {"name": name, "form": form, "rows": rows, "bundle": str(bundle), "us": round(time, 2), "bytes": round(least / time, 3)}
        found.append(row | {"products": round(work / time, 3)} | ({"alone": round(sum_alone, 2)} if sum_alone else {}))
    print(f"{name:>14} {form:>7} {rows:6d}" + "".join(f" {r['us']:10.2f} {r['bytes']:7.0%} {r['products']:9.0%} {r.get('alone', 0):8.2f}" for r in found), flush=True)
    return found


def measure(args):
    jobs = [(f"{k}x{n}", form, [(k, n)]) for form in args.forms for k, n in args.products] + [("layer", form, LAYER) for form in args.forms if args.layers]
    fresh = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), fresh) as makers:
        made = dict(zip(((name, form) for name, form, _ in jobs), makers.map(make, [args] * len(jobs), jobs)))
    print(f"{'k x n':>14} {'weights':>7} {'rows':>6}" + f" {'us':>10} {'bytes':>7} {'products':>9} {'alone':>8}" * len(args.bundle))
    found, times = [], {}
    for name, form, sizes in jobs:
        rounds = []
        for _ in range(args.rounds):
            for which, bundle in enumerate(args.bundle):
                with concurrent.futures.ProcessPoolExecutor(1, fresh) as worker:
                    rounds.append(worker.submit(microseconds, args, bundle, made[name, form], which, args.rows).result())
        for i, m in enumerate(args.rows):
            times[name, form, m] = [statistics.median(r[i] for r in rounds[which :: len(args.bundle)]) for which in range(len(args.bundle))]
            parts = [times.get((f"{k}x{n}", form, m)) for k, n in LAYER] if name == "layer" else [None]
            alone = [sum(p) for p in zip(*parts)] if all(parts) else [0] * len(args.bundle)
            found += line(args, name, form, m, sizes, times[name, form, m], alone)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, nargs="+", required=True)
    p.add_argument("--forms", nargs="+", choices=FORMS, default=["int4"])
    p.add_argument("--rows", nargs="+", type=int, default=[1, 8, 16, 64, 256, 2048])
    p.add_argument("--products", nargs="*", type=lambda s: tuple(map(int, s.split("x"))), default=LAYER, metavar="KxN")
    p.add_argument("--layers", type=int, default=2, help="in a row; 0: none (default: 2)")
    p.add_argument("--memory", type=float, default=3.35, help="TB/s (default: an H100's)")
    p.add_argument("--tensor", type=float, default=989, help="TFLOP/s in float16 (default: an H100's)")
    p.add_argument("--target", default="cuda", help="of graphc optimize (default: cuda)")
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--seconds", type=float, default=0.1, help="of each of five times of which the median is taken, about")
    p.add_argument("--json", type=Path, help="write every figure there as well")
    p.add_argument("--rounds", type=int, default=1, help="in which all bundles have their turn; medians are taken (default: 1)")
    p.add_argument("--work", help="a directory for models and plans (default: a temporary one)")
    args = p.parse_args()
    with tempfile.TemporaryDirectory(dir=args.work) as args.work:
        found = measure(args)
    if args.json:
        gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
        args.json.write_text(json.dumps({"date": datetime.date.today().isoformat(), "gpu": gpu, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
