#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed on one GPU beside PyTorch, on what users export: models x exporter x precision x batch, in one run on one machine.

Models are exported on the spot (bench/exports.py: torchvision, timm, transformers, PyTorch itself; both exporters), those where exporters cannot go are
generated: parallel_fcn, 1,000 small networks (20-10-1) in a loop; llama_prefill and llama_decode, four layers with the shapes of Llama 3 8B, 2,048 tokens of
a prompt, and one token behind 2,048. fp16: the float32 export, narrowed by graphc; with --half the half-precision export as well.

Peers: PyTorch's CUDA graph, and where onnxruntime-gpu is installed ONNX Runtime's CUDA provider on the very files that ours compiles (its best of both layouts, CUDA graph where the model
allows one). The clock is the same on all sides (device_run.py, peers/): device time of runs back to back between two events; ONNX Runtime's is the wall time of as many. Beside it, for ours, wall time
host to host, load and time to the first result, and the largest difference from PyTorch's float32 results, relative to the largest of these.

Needs no build tree: --bundle names what `make bundle` made. Needs nvidia-smi, PyTorch, and the packages of the models that are asked for.
"""
import argparse
import ast
import datetime
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import exports
from common import gpu, run

HERE = Path(__file__).resolve().parent
GENERATED = {"parallel_fcn": ["parallel_fcn"], "llama_prefill": ["llama_stack", "--seq", "2048"], "llama_decode": ["llama_stack", "--seq", "1", "--past", "2048"]}
ORT_MODES = ("graph", "graph_nhwc", "run", "run_nhwc")
USUAL = ["vit_b_16", "swin_t", "bert", "gpt2", "wav2vec2", "whisper_encoder", "t5_encoder", "deberta", "timm_vit_base_patch16_224", "resnet50", "efficientnet_b0",
         "convnext_tiny", "unet", "lstm", "dlrm"]


def notes(text):
    print(text, file=sys.stderr, flush=True)


def export_all(args, work):
    """[(name, batch, exporter, half, path)] of what could be exported, made side by side."""
    halves = [False, True] if args.half else [False]
    wanted = [(n, b, e, h) for n in args.only if n not in GENERATED for b in args.batches for e in args.exporters for h in halves]
    command = [sys.executable, HERE / "exports.py", work, "--sizes", "full"]

    def one(item):
        name, batch, exporter, half = item
        path = work / exports.file_name(name, "full", batch, exporter, half)
        if not path.exists():
            done = subprocess.run([str(c) for c in [*command, "--only", name, "--exporters", exporter, "--batches", batch, *(["--half"] if half else [])]],
                                  capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""})
            if not path.exists():
                notes((done.stdout + done.stderr).strip()[-300:])
        return (*item, path) if path.exists() else None

    with ThreadPoolExecutor(args.jobs) as pool:
        made = [item for item in pool.map(one, wanted) if item]
    for name in args.only:
        if name in GENERATED:
            for batch in args.batches if name == "parallel_fcn" else [1]:
                path = work / f"{name}.b{batch}.generated.onnx"
                run([args.bundle / "bin/grt-models", *GENERATED[name], "--batch", batch, "-o", path])
                made.append((name, batch, "generated", False, path))
    return made


def random_inputs(args, path):
    """Inputs of a generated model, as the exports have them."""
    report = json.loads(run([args.bundle / "bin/graphc", "inspect", path, "--json"]))
    random = np.random.default_rng(0)
    dtypes = {"float32": np.float32, "float16": np.float16, "int64": np.int64}
    np.savez(path.with_suffix(".npz"), **{i["name"]: random.standard_normal(i["shape"]).astype(dtypes[i["dtype"]]) for i in report["inputs"]})


def compile_all(args, items):
    def one(job):
        name, batch, exporter, half, path, precision = job
        plan = path.with_suffix(f".{precision}.grt")
        if exporter == "generated" and not path.with_suffix(".npz").exists():
            random_inputs(args, path)
        try:
            run([args.bundle / "bin/graphc", "optimize", "--target", args.target, "--precision", "fp32" if half else precision,
                 *(["--enable-pass", args.enable_pass] if args.enable_pass else []), path, "-o", plan])
        except RuntimeError as error:
            notes(str(error)[-300:])
            return None
        return (*job, plan)

    jobs = [(*item, p) for item in items for p in args.precisions if not (item[3] and p != "fp16")]
    with ThreadPoolExecutor(args.jobs) as pool:
        return [job for job in pool.map(one, jobs) if job]


def rows_of(args, command):
    """The JSON lines that a peer prints until the time is up; it is stopped then."""
    left = args.deadline - time.monotonic()
    if left <= 0:
        notes(f"no time left for {Path(command[1]).name}")
        return
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        timer = threading.Timer(left, process.kill)
        timer.start()
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        timer.cancel()
        if process.wait():
            notes(f"{Path(command[1]).name} ended with {process.returncode} after {time.monotonic() - args.begin:.0f} s")


def peers(args, items):
    """(name, batch, precision) -> milliseconds by mode."""
    found = {}
    if args.peers:
        return {(r["name"], r["batch"], r["precision"]): r for r in json.loads(args.peers.read_text())["peers"]}
    models = list(dict.fromkeys(f"{name}:{batch}" for name, batch, exporter, *_ in items if exporter != "generated"))
    if models and not args.no_peer:
        for row in rows_of(args, [sys.executable, HERE / "peers/torch_exports.py", "--models", *models, "--precisions", *args.precisions, *(["--compile"] if args.compile else [])]):
            found[row["name"], row["batch"], row["precision"]] = row
    generated = [n for n in args.only if n in GENERATED]
    if generated and not args.no_peer:
        types = {"fp16": "fp16", "tf32": "fp32"}
        out = run([sys.executable, HERE / "peers/torch_infer.py", ",".join(generated), ",".join(types[p] for p in args.precisions), ",".join(map(str, args.batches)), "graph"])
        for name, dtype, batch, row in re.findall(r"^infer (\S+) (\S+) b(\d+) (\{.*\})$", out, re.M):
            precision = next(p for p, t in types.items() if t == dtype)
            found[name, int(batch), precision] = {"name": name, "batch": int(batch), "precision": precision, **ast.literal_eval(row)}
    return found


def has_ort():
    """Is ONNX Runtime here, with its CUDA provider?"""
    ask = "import onnxruntime, sys; sys.exit('CUDAExecutionProvider' not in onnxruntime.get_available_providers())"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True).returncode == 0


def ort_peers(args, items):
    """(name, batch, precision) -> ONNX Runtime's milliseconds by mode, on the float32 export; the first exporter's that it runs."""
    found = {}
    if args.peers:
        return {(r["name"], r["batch"], r["precision"]): r for r in json.loads(args.peers.read_text()).get("ort", [])}
    if args.no_peer or not has_ort():
        notes("ONNX Runtime's CUDA provider is not here: PyTorch alone is the peer")
        return found
    paths = {}
    for name, batch, exporter, half, path in items:
        if not half and path.with_suffix(".npz").exists():
            paths.setdefault((name, batch), []).append(path)
    for turn in range(len(args.exporters)):  # the next exporter's, where the first one's did not run
        # Small batches first, where it is at times the better peer.
        models = [f"{name}:{batch}={files[turn]}" for (name, batch), files in sorted(paths.items(), key=lambda item: item[0][1])
                  if len(files) > turn and any((name, batch, p) not in found for p in args.precisions)]
        for row in rows_of(args, [sys.executable, HERE / "peers/ort_exports.py", *models, "--precisions", *args.precisions]) if models else ():
            if any(mode in row for mode in ORT_MODES):
                found.setdefault((row["name"], row["batch"], row["precision"]), row)
            else:
                notes(f"ONNX Runtime, {row['name']}: {row.get('error')}")
    return found


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def best_of(row, modes):
    return min((row[m] for m in modes if m in row), default=None)


def counts(args, plan):
    """How many steps there are, and of which ops that recognition makes."""
    report = json.loads(run([args.bundle / "bin/graphc", "inspect", plan, "--json"]))
    found = {"steps": report["steps"]}
    for op, row in report["ops"].items():
        op = op.replace("graphrt::", "")
        if op in ("Attention", "Transpose", "Softmax"):
            found[op] = found.get(op, 0) + row["steps"]
    return found


def difference(path, saved):
    """From PyTorch's float32 results; None where there are none."""
    expected, results = np.load(path), np.load(saved)
    worst = None
    for name in (n for n in expected.files if n.startswith("out") and n in results.files):
        a, b = np.asarray(expected[name], np.float64), np.asarray(results[name], np.float64)
        if a.shape == b.shape and a.size:
            worst = max(worst or 0.0, float(np.abs(a - b).max() / (np.abs(a).max() + 1e-30)))
    return worst


def measure(args, job):
    name, batch, exporter, half, path, precision, plan = job
    saved = plan.with_suffix(".npz")
    inputs = path.with_suffix(".npz")
    if half:
        given = np.load(inputs)
        inputs = plan.with_suffix(".in.npz")
        np.savez(inputs, **{k: given[k].astype(np.float16) if given[k].dtype == np.float32 and k.startswith("in") else given[k] for k in given.files})
    report = json.loads(run([sys.executable, HERE / "device_run.py", args.bundle / "lib/libgraphrt.so.1", plan, inputs, "--seconds", args.seconds, "--save", saved],
                            env={**os.environ, "LD_LIBRARY_PATH": f"{args.bundle / 'lib'}:{args.cuda}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                                 "GRAPHRT_BACKEND_PATH": str(args.bundle / "lib/graphrt")}))
    return {"model": name, "batch": batch, "exporter": exporter, "half": half, "precision": precision, **report, **counts(args, plan),
            "difference": difference(path.with_suffix(".npz"), saved)}


def show(rows, theirs, ort):
    """Prints the table, and puts the peers' figures into the rows."""
    nan = float("nan")
    print(f"{'model':26} {'exporter':9} {'':9} {'batch':>5} {'ours ms':>9} {'wall':>8} {'first':>7} {'torch ms':>9} {'ORT ms':>9} {'ratio':>6} {'steps':>5} {'attn':>4} "
          f"{'moves':>5} {'diff':>8}")
    for row in rows:
        peer, other = ({**found.get((row["model"], row["batch"], row["precision"]), {})} for found in (theirs, ort))
        torch_ms, ort_ms = best_of(peer, ("graph", "compile")), best_of(other, ORT_MODES)
        best = min((ms for ms in (torch_ms, ort_ms) if ms), default=None)
        row |= {"peer": peer, "ort": other, "ratio": row["device_ms"] / best if best else None}
        print(f"{row['model'][:26]:26} {row['exporter']:9} {row['precision'] + (' half' if row['half'] else ''):9} {row['batch']:5} {row['device_ms']:9.4f} "
              f"{row['wall_ms']:8.3f} {row['load_ms'] + row['first_run_ms']:7.0f} {torch_ms or nan:9.4f} {ort_ms or nan:9.4f} {row['ratio'] or nan:6.2f} {row['steps']:5} "
              f"{row.get('Attention', 0):4} {row.get('Transpose', 0):5} {nan if row['difference'] is None else row['difference']:8.1e}", flush=True)
    ratios = [row["ratio"] for row in rows if row["ratio"]]
    if ratios:
        print(f"of the better peer's time: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of {len(ratios)} rows, largest {max(ratios):.2f}, "
              f"above 1: {sum(r > 1 for r in ratios)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--work", type=Path, help="where exports are kept for the next call (default: nowhere)")
    p.add_argument("--target", default="sm_90", help="of graphc optimize (default: sm_90)")
    p.add_argument("--enable-pass", help="of graphc optimize: passes that the target leaves out")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--only", nargs="+", default=USUAL, choices=[*exports.CATALOGUE, *GENERATED], metavar="NAME")
    p.add_argument("--exporters", nargs="+", default=list(exports.EXPORTERS), choices=list(exports.EXPORTERS))
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"], choices=["fp16", "tf32"])
    p.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    p.add_argument("--half", action="store_true", help="models exported in half precision too")
    p.add_argument("--compile", action="store_true", help="let PyTorch run torch.compile too (minutes a model)")
    p.add_argument("--no-peer", action="store_true", help="measure ours only")
    p.add_argument("--peers", type=Path, help="take the peer's figures from this result of the same machine")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="exports and compilations at a time")
    p.add_argument("--seconds", default="0.3", help="to measure each for")
    p.add_argument("--minutes", type=float, default=60, help="peers are stopped after so many in all; what they did not reach is left out (default: 60)")
    p.add_argument("--save", type=Path, help="where the JSON goes; bench/table.py writes README's table from the newest bench/results/gpu_exports-*.json")
    args = p.parse_args()
    args.bundle, args.begin = args.bundle.resolve(), time.monotonic()
    args.deadline = args.begin + 60 * args.minutes
    with tempfile.TemporaryDirectory() as directory:
        work = args.work or Path(directory)
        work.mkdir(parents=True, exist_ok=True)
        items = export_all(args, work)
        exported = time.monotonic()
        jobs = compile_all(args, items)
        notes(f"{len(items)} models exported in {exported - args.begin:.0f} s, {len(jobs)} plans made in {time.monotonic() - exported:.0f} s")
        rows = []
        for job in jobs:
            try:
                rows.append(measure(args, job))
            except RuntimeError as error:
                notes(str(error)[-400:])
        notes(f"ours measured after {time.monotonic() - args.begin:.0f} s")
        theirs, ort = peers(args, items), ort_peers(args, items)
        show(rows, theirs, ort)
    if args.save:
        result = {"benchmark": "gpu_speed", "date": datetime.date.today().isoformat(), "machine": gpu(), "target": args.target,
                  "versions": {"pytorch": version_of("torch"), "onnxruntime": version_of("onnxruntime-gpu")},
                  "what": "device time of runs back to back, inputs and outputs on the GPU, beside PyTorch's CUDA graph and ONNX Runtime's CUDA provider; ratio: to the better of them",
                  "rows": rows, "peers": list(theirs.values()), "ort": list(ort.values())}
        args.save.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
