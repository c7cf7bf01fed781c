#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency on one GPU beside PyTorch: models x precision x batch, in one run on one machine.

Ours is device time without copies in and out (graphrun bench), as the peer's, whose inputs lie on the GPU: PyTorch's CUDA graph, and with
--compile torch.compile(mode="max-autotune"). The peer is a script that prints lines "infer MODEL DTYPE bBATCH {'graph': ms, ...}":
bench/peers/torch_infer.py.

parallel_fcn is 1,000 small networks (20-10-1) in a loop.
llama_prefill and llama_decode are four layers with the shapes of Llama 3 8B: 2,048 tokens of a prompt, and one token behind 2,048.

Needs no build tree: --bin names the directory of graphc and graphrun, --models that of grt-models (make bundle has both).
"""
import argparse
import ast
import datetime
import json
import re
import sys
import tempfile
from pathlib import Path

from common import gpu, run

PEER_NAMES = {"resnet50": "resnet50", "bert": "bert", "vit_b16": "vit_b_16", "mobilenet_v2": "mobilenet_v2", "densenet121": "densenet121",
              "parallel_fcn": "parallel_fcn", "llama_prefill": "llama_prefill", "llama_decode": "llama_decode"}
# What grt-models is asked for, where that is more than the name.
FAMILIES = {"llama_prefill": ["llama_stack", "--seq", "2048"], "llama_decode": ["llama_stack", "--seq", "1", "--past", "2048"]}
# What PyTorch calls the types: with TF32 allowed, its float32 is our tf32.
PEER_TYPES = {"fp16": "fp16", "bf16": "bf16", "tf32": "fp32"}


def ours(args, work, model, precision, batch):
    # A cache of float16 goes with a model of float16.
    dtype = "fp16" if precision == "fp16" and model in FAMILIES else "fp32"
    onnx, plan = work / f"{model}.{batch}.{dtype}.onnx", work / "model.grt"
    if not onnx.exists():
        run([args.models, *FAMILIES.get(model, [model]), "--dtype", dtype, "--batch", batch, "-o", onnx])
    run([args.bin / "graphc", "optimize", "--target", args.target, "--precision", precision, onnx, "-o", plan])
    if args.tune:
        run([args.bin / "graphc", "tune", plan, "--device", args.device, "-o", work / "tuned.grt"])
        plan = work / "tuned.grt"
    return json.loads(run([args.bin / "graphrun", "bench", plan, "--device", args.device, "--seconds", args.seconds, "--json"]))[0]


def peers(args):
    """(model, precision, batch) -> milliseconds by mode."""
    if not args.peer:
        return {}
    names, types = [PEER_NAMES[m] for m in args.only], [PEER_TYPES[p] for p in args.precisions if p in PEER_TYPES]
    modes = "graph,compile" if args.compile else "graph"
    out = run([sys.executable, args.peer, ",".join(names), ",".join(types), ",".join(map(str, args.batches)), modes])
    found = {}
    for name, dtype, batch, row in re.findall(r"^infer (\S+) (\S+) b(\d+) (\{.*\})$", out, re.M):
        model = next(m for m, n in PEER_NAMES.items() if n == name)
        precision = next(p for p, t in PEER_TYPES.items() if t == dtype)
        found[model, precision, int(batch)] = ast.literal_eval(row)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=Path, required=True, help="directory of graphc and graphrun")
    p.add_argument("--models", type=Path, required=True, help="the program grt-models")
    p.add_argument("--peer", type=Path, help="the peer's script; without it only ours is measured")
    p.add_argument("--compile", action="store_true", help="let the peer run torch.compile too (minutes a model)")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--target", default="cuda", help="of graphc optimize: a GPU (sm_90) has kernels generated for it (default: cuda)")
    p.add_argument("--tune", action="store_true", help="measure what graphc tune makes of each plan; without it the heuristics' algorithms")
    p.add_argument("--seconds", default="0.5", help="to measure each for")
    p.add_argument("--only", nargs="+", default=list(PEER_NAMES), choices=list(PEER_NAMES))
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"], choices=["fp32", "tf32", "fp16", "bf16"])
    p.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    p.add_argument("--save", type=Path, help="where the JSON goes")
    args = p.parse_args()
    args.models = args.models.resolve()
    theirs, rows = peers(args), []
    print(f"{'model':14} {'':5} {'batch':>5} {'ours ms':>9} {'graph ms':>9} {'compile':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as directory:
        for model in args.only:
            for precision in args.precisions:
                for batch in args.batches:
                    if model.startswith("llama") and batch > 1:
                        continue
                    report, peer = ours(args, Path(directory), model, precision, batch), theirs.get((model, precision, batch), {})
                    best = min((peer[m] for m in ("graph", "compile") if m in peer), default=None)
                    row = {"model": model, "precision": precision, "batch": batch, "device_ms": report["device_ms"],
                           "latency_ms": report["latency_ms"], "load_ms": report["load_ms"], "first_run_ms": report["first_run_ms"],
                           "host_us": report["host_us"], "peer": peer, "ratio": report["device_ms"] / best if best else None}
                    rows.append(row)
                    print(f"{model:14} {precision:5} {batch:5} {row['device_ms']:9.4f} {peer.get('graph', float('nan')):9.4f} "
                          f"{peer.get('compile', float('nan')):9.4f} {row['ratio'] or float('nan'):6.2f}", flush=True)
    if args.save:
        result = {"benchmark": "gpu_speed", "date": datetime.date.today().isoformat(), "machine": gpu(), "target": args.target, "tuned": args.tune,
                  "what": "device time of a run, inputs and outputs on the GPU, beside PyTorch's CUDA graph", "rows": rows}
        args.save.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
