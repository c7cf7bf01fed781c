#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of float32 by weights of 4 and 8 bits on the CPU beside ONNX Runtime's MatMulNBits: the same files, inputs and thread counts, each side in fresh
processes that take turns.

    bench/weight_products_cpu.py [--forms int4 int8z] [--rows 1 64] [--products 3072x9216] [--threads 1 2] [--levels 0 4] [--isa avx2]

Models are made on the spot, with weights drawn by a seed, blocks of 32 of k and scales of float32. int4 and int8 are MatMulNBits without zero points, int4z and
int8z with one for each block, blocked a DequantizeLinear of uint4 with zero points in front of a MatMul. For up to 8 rows a model has as many products as exceed
the processor's caches, each with weights of its own, as a language model's decoder has; for more rows one.

--levels are values of accuracy_level, which says what ONNX Runtime may round: at 0 it computes in float32, at 4 it rounds x to 8 bits for each block. (In front of a
MatMul, DequantizeLinear has no such attribute: there a setting of the session says it.) Ours computes in float32 at every level.

Times are of one product: the smallest processor time of a run, or with --wall the smallest latency, over the number of products, as what else the machine does only
adds to both; the ratio is ours over the peer's in the same round, the median over the rounds. Processor time is of all threads, and threads that wait for each other
spend it: for more than one thread, use --wall on a quiet machine. "memory" is the time of a copy of as many bytes as the weights, scales and zero points have, by
one thread, from memory and to a buffer in cache, as a share of ours; "float32" is the time of our float32 product of the same dims as a share of ours.
"""
import statistics
import tempfile
import time
from pathlib import Path

import common

BLOCK, SEED, CACHES, FEW_ROWS = 32, 14, 96e6, 8
FORMS = ["int4", "int4z", "int8", "int8z", "blocked"]
PRODUCTS = [(3072, 9216), (3072, 3072), (8192, 3072), (1024, 4096)]
COLUMNS = {"form": "weights", "product": "k x n", "rows": "rows", "threads": "threads", "level": "level", "ours_ms": ("libgraphrt ms", ".3f"),
           "onnxruntime_ms": ("onnxruntime ms", ".3f"), "ratio": ("ratio", ".2f"), "memory": ("memory", ".2f"), "float32": ("float32", ".2f")}


def bits_of(form):
    return 8 if form.startswith("int8") else 4


def bytes_of(form, k, n):
    with_zeros = form.endswith("z") or form == "blocked"
    return k * n * bits_of(form) // 8 + k // BLOCK * n * 4 + (k // BLOCK * n * bits_of(form) // 8 if with_zeros else 0)


def count_of(form, k, n, rows):
    return 1 if rows > FEW_ROWS or form == "float32" else max(1, round(CACHES / bytes_of(form, k, n)))


class Maker:
    """A model's nodes and constants."""

    def __init__(self):
        import numpy as np
        self.np, self.random = np, np.random.default_rng(SEED)
        self.nodes, self.constants = [], []

    def constant(self, kind, dims, data):
        from onnx import helper
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, kind, dims, data.tobytes(), raw=True))
        return name

    def codes(self, kind, dims, elements, bits):
        return self.constant(kind, dims, self.np.frombuffer(self.random.bytes(elements * bits // 8), self.np.uint8))

    def product(self, form, k, n, level, x, y):
        from onnx import TensorProto, helper
        np, blocks, bits = self.np, k // BLOCK, bits_of(form)
        if form == "float32":
            w = self.constant(TensorProto.FLOAT, [k, n], self.random.standard_normal((k, n), np.float32))
            self.nodes.append(helper.make_node("MatMul", [x, w], [y]))
            return
        of_scales = [blocks, n] if form == "blocked" else [n, blocks]
        scales = self.constant(TensorProto.FLOAT, of_scales, self.random.uniform(0.005, 0.01, of_scales).astype(np.float32))
        if form == "blocked":
            given = [self.codes(TensorProto.UINT4, [k, n], k * n, 4), scales, self.codes(TensorProto.UINT4, of_scales, blocks * n, 4)]
            self.nodes.append(helper.make_node("DequantizeLinear", given, [f"w_{y}"], axis=0, block_size=BLOCK))
            self.nodes.append(helper.make_node("MatMul", [x, f"w_{y}"], [y]))
            return
        given = [x, self.codes(TensorProto.UINT8, [n, blocks, BLOCK * bits // 8], k * n, bits), scales]
        if form.endswith("z"):
            given.append(self.codes(TensorProto.UINT8, [n, blocks * bits // 8], n * blocks, bits))
        attributes = {"K": k, "N": n, "bits": bits, "block_size": BLOCK, "accuracy_level": level}
        self.nodes.append(helper.make_node("MatMulNBits", given, [y], domain="com.microsoft", **attributes))


def save(path, form, k, n, rows, level):
    import onnx
    from onnx import TensorProto, helper

    m, inputs, outputs = Maker(), [], []
    for i in range(count_of(form, k, n, rows)):
        m.product(form, k, n, level, f"x{i}", f"y{i}")
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [rows, k]))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [rows, n]))
    graph = helper.make_graph(m.nodes, "weight_products", inputs, outputs, m.constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def copy_rate():
    """Bytes a second that one thread copies out of memory: 256 MiB, by pieces, to a buffer that stays in cache."""
    import numpy as np
    source, target, best = np.ones(1 << 28, np.uint8), np.empty(1 << 18, np.uint8), 1e9
    for _ in range(9):
        start = time.process_time()
        for at in range(0, source.size, target.size):
            np.copyto(target, source[at:at + target.size])
        best = min(best, time.process_time() - start)
    return source.size / best


def ours(options, path, inputs, threads, env):
    found = common.grt_bench(options.build, path, inputs, "--threads", threads, "--seconds", options.seconds, env=env)
    return found["latency_ms"]["min"] if options.wall else found["processor_ms"]


def measure(options, rate, form, k, n, rows, threads, level):
    turn, count = ["--threads", threads, "--seconds", options.seconds], count_of(form, k, n, rows)
    ours_env, peer_env = common.environments(options)
    pairs, wide = [], []
    with tempfile.TemporaryDirectory() as work:
        path, plan, float32 = Path(work, "model.onnx"), Path(work, "model.grt"), Path(work, "float32.onnx")
        save(path, form, k, n, rows, level)
        common.run([options.build / "graphc", "optimize", path, "-o", plan], env=ours_env)
        if rows > 1:
            save(float32, "float32", k, n, rows, 0)
            common.run([options.build / "graphc", "optimize", float32, "-o", float32.with_suffix(".grt")], env=ours_env)
        config = ["--config", f"session.qdq_matmulnbits_accuracy_level={level}"]
        for _ in range(options.rounds):
            inputs = Path(work, "inputs")
            theirs = common.ort_bench([path], inputs, *turn, *config, env=peer_env)[0]
            theirs = (theirs["latency_ms"]["min"] if options.wall else theirs["processor_ms"]) / count
            pairs.append((ours(options, plan, inputs, threads, ours_env) / count, theirs))
            if rows > 1:
                (Path(work, "one")).mkdir(exist_ok=True)
                (Path(work, "one") / "model.x0.npy").write_bytes((inputs / "model.x0.npy").read_bytes())
                wide.append(ours(options, float32.with_suffix(".grt"), Path(work, "one"), threads, ours_env))
    mine = statistics.median(a for a, _ in pairs)
    return {"form": form, "product": f"{k}x{n}", "rows": rows, "threads": threads, "level": level, "ours_ms": mine,
            "onnxruntime_ms": statistics.median(b for _, b in pairs), "ratio": statistics.median(a / b for a, b in pairs),
            "memory": bytes_of(form, k, n) / rate * 1e3 / mine, "float32": statistics.median(wide) / mine if wide else None}


def main():
    p = common.parser(__doc__)
    p.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    p.add_argument("--rows", nargs="+", type=int, default=[1, 8, 64, 512])
    p.add_argument("--products", nargs="+", type=lambda s: tuple(map(int, s.split("x"))), default=PRODUCTS, metavar="KxN")
    p.add_argument("--threads", nargs="+", type=int, default=[1])
    p.add_argument("--levels", nargs="+", type=int, default=[0, 4], help="of accuracy_level (default: 0 4)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.5, help="of each side in a round (default: 0.5)")
    p.add_argument("--wall", action="store_true", help="compare the smallest latency, not the smallest processor time")
    p.add_argument("--resume", action="store_true", help="go on where a run with the same settings and versions was cut off")
    common.add_isa(p)
    options = p.parse_args()
    what = f"weight_products_cpu_{options.isa}" if options.isa else "weight_products_cpu"
    settings = {"rounds": options.rounds, "seconds": options.seconds, "isa": options.isa, "wall": options.wall}
    rate = copy_rate()
    print(f"a copy out of memory: {rate * 1e-9:.1f} GB/s")
    kept = common.Rows(options, what, COLUMNS, **settings)
    for form, (k, n), rows, threads, level in ((f, q, r, t, a) for t in options.threads for r in options.rows for f in options.forms
                                               for q in options.products for a in options.levels):
        if not kept.has(form=form, product=f"{k}x{n}", rows=rows, threads=threads, level=level):
            kept.add(measure(options, rate, form, k, n, rows, threads, level))
    summary = {"text": [f"a copy out of memory: {rate * 1e-9:.1f} GB/s"], "copy_bytes_per_s": rate}
    for level in options.levels:
        for rows in options.rows:
            ratios = [r["ratio"] for r in kept.rows if r["level"] == level and r["rows"] == rows]
            summary[f"level_{level}_rows_{rows}"] = {"geomean": common.geomean(ratios), "worst": max(ratios)}
            summary["text"].append(f"level {level}, {rows} rows: geometric mean of {len(ratios)} ratios {common.geomean(ratios):.2f}, worst {max(ratios):.2f}")
    common.report(options, what, summary, kept.rows, COLUMNS, settings=settings)


if __name__ == "__main__":
    main()
