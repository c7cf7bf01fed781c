#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput on one GPU with copies from and to the host, beside that of the computation alone.

ResNet-50, float16, batch 32: what `graphrun bench --contexts N` gets from a pool of N contexts whose requests have inputs and outputs of their
own in host memory, pageable and page-locked, over what the device could do if copies took no time. The peer is a script that prints
lines "overlap WAY: IMAGES_PER_SECOND": bench/peers/torch_overlap.py.

Needs no build tree: --bin names the directory of graphc and graphrun, --models the program grt-models (make bundle has both).
"""
import argparse
import datetime
import json
import re
import sys
import tempfile
from pathlib import Path

from common import gpu, run


def measure(args, plan, contexts, pinned):
    command = [args.bin / "graphrun", "bench", plan, "--device", args.device, "--seconds", args.seconds, "--json", "--contexts", contexts]
    return json.loads(run(command + (["--pinned"] if pinned else [])))[0]


def ours(args, work):
    onnx, plan = work / "model.onnx", work / "model.grt"
    run([args.models, args.model, "--dtype", args.dtype, "--batch", args.batch, "-o", onnx])
    precision = [] if args.dtype == "fp16" else ["--precision", "fp16"]
    run([args.bin / "graphc", "optimize", "--target", args.target, *precision, onnx, "-o", plan])
    for contexts in args.contexts:
        for pinned in (False, True):
            report = measure(args, plan, contexts, pinned)
            alone = 1e3 / report["device_ms"]
            found = report["pool"]["throughput_per_s"]
            yield {"contexts": contexts, "pinned": pinned, "per_s": found * args.batch, "alone_per_s": alone * args.batch,
                   "one_context_per_s": report["throughput_per_s"] * args.batch, "share": found / alone}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=Path, required=True, help="directory of graphc and graphrun")
    p.add_argument("--models", type=Path, required=True, help="the program grt-models")
    p.add_argument("--peer", type=Path, help="the peer's script; without it only ours is measured")
    p.add_argument("--model", default="resnet50", help="family of grt-models (default: resnet50, the peer's)")
    p.add_argument("--dtype", default="fp16", choices=["fp16", "fp32"], help="of inputs and outputs; the computation is in float16")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--contexts", nargs="+", type=int, default=[1, 2, 3, 4])
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--target", default="cuda", help="of graphc optimize (default: cuda)")
    p.add_argument("--seconds", default="1", help="to measure each for")
    p.add_argument("--save", type=Path, help="where the JSON goes")
    args = p.parse_args()
    args.models = args.models.resolve()
    print(f"{'contexts':>8} {'memory':>11} {'images/s':>9} {'alone':>9} {'share':>6}")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for row in ours(args, Path(directory)):
            rows.append(row)
            print(f"{row['contexts']:8} {'page-locked' if row['pinned'] else 'pageable':>11} {row['per_s']:9.0f} {row['alone_per_s']:9.0f} "
                  f"{row['share']:6.2f}", flush=True)
    peer = {}
    if args.peer:
        out = run([sys.executable, args.peer, args.batch, args.seconds])
        peer = {way: float(rate) for way, rate in re.findall(r"^overlap (.*): (\d+)$", out, re.M)}
        for way, rate in peer.items():
            print(f"peer: {way}: {rate:.0f} images/s")
    if args.save:
        result = {"benchmark": "overlap", "date": datetime.date.today().isoformat(), "machine": gpu(), "model": args.model, "dtype": args.dtype,
                  "batch": args.batch, "target": args.target, "rows": rows, "peer": peer,
                  "what": "images a second with copies from and to the host; alone: 1 / device time of a run"}
        args.save.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
