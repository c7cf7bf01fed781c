#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed on one GPU of what users export, beside PyTorch and ONNX Runtime at their best: models x exporter x precision x batch, in one run that ends within --minutes.

    gpu_speed.py --bundle DIR [--models NAME[:BATCH,BATCH[:EXPORTER]] ...] [--minutes 10] [--save FILE.json]

Models are exported on the spot (exports.py: torchvision, timm, transformers, PyTorch itself; both exporters, or the one named); fp16 is the float32 export, narrowed by graphc, and beside it the
export in half. Those where exporters cannot go are generated: parallel_fcn, 1,000 small networks (20-10-1) in a loop; llama_prefill and llama_decode, four layers with the shapes of Llama 3 8B,
2,048 tokens of a prompt, and one token behind 2,048. Default: the models of README's table, at batch 1 and 32.

Peers: PyTorch (peers/torch_exports.py: fused attention, a CUDA graph, both layouts of convolutions; torch.compile in its default mode, and as long as time is left with more trying where it is
nearest), and where onnxruntime-gpu is installed ONNX Runtime's CUDA provider on the very files that ours compiles (peers/ort_exports.py). The clock is the same on all sides: device time of runs
back to back between two events. Beside it wall time host to host of all sides; at the end, when nothing else works, the time until a new process of ours is ready and its first result;
and the largest difference from PyTorch's float32 results on the GPU, relative to the largest of these.

Processes make modules, exports, plans and compilations side by side; one at a time measures on the GPU, at a higher priority than those (gpu_family.py). Loads and copies of weights share the GPU with each other, not with a
measurement. What fails is a row with its reason; what was not reached is said. --save is written as rows come.
--without PASS also measures plans that graphc made with --disable-pass PASS, where these are others: with, without, with, without, the least of both.

Needs no build tree: --bundle names what `make bundle` made. Needs nvidia-smi, PyTorch, and the packages of the models that are asked for.
"""
import argparse
import datetime
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import exports
import first_result
import gpu_family
import gpu_ours
import gpu_rows
import gpu_words
import table
from common import gpu

USUAL = ["bert", "convnext_tiny", "dlrm", "efficientnet_b0", "gpt2", "lstm", "resnet50", "swin_t", "t5_encoder", "timm_vit_base_patch16_224", "unet", "vit_b_16", "wav2vec2", "whisper_encoder"]
WHAT = ("device time of runs back to back, inputs and outputs on the GPU, beside PyTorch's CUDA graph, torch.compile's module in a CUDA graph and ONNX Runtime's CUDA provider, in one run; "
        "ratio: to the best of them; processes made models meanwhile")


def notes(args, text):
    print(f"{time.monotonic() - args.begin:5.0f} s  {text}", file=sys.stderr, flush=True)


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def has_ort():
    """Is ONNX Runtime here, with its CUDA provider?"""
    ask = "import onnxruntime, sys; sys.exit('CUDAExecutionProvider' not in onnxruntime.get_available_providers())"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True).returncode == 0


class Worker:
    """A model's process, and how far it is: "first", "compiling", "idle" (it may be asked to tune), "tuning"."""

    def __init__(self, args, name, batch, exporters):
        self.name, self.batch, self.state, self.begin = name, batch, "first", time.monotonic()
        asked, self.ask = os.pipe()
        self.process = multiprocessing.get_context("fork").Process(target=gpu_family.family, args=(args, name, batch, exporters, asked))
        self.process.start()
        os.close(asked)

    def tune(self, precision):
        self.state = "tuning"
        os.write(self.ask, f"{precision}\n".encode())

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()  # it has no group of its own yet
        self.process.join()


class Run:
    """The workers, and the rows that they have told of."""

    def __init__(self, args):
        self.args, self.rows, self.workers, self.left = args, gpu_rows.Rows(args.models, args.precisions, args.half), {}, gpu_rows.families(args.models)
        self.tuned, self.saved, self.rest = set(), 0, b""
        self.heard, args.words = os.pipe()
        os.set_blocking(self.heard, False)

    def listen(self):
        """What workers have said within a moment."""
        if not select.select([self.heard], [], [], 0.1)[0]:
            return
        *lines, self.rest = (self.rest + os.read(self.heard, 1 << 16)).split(b"\n")
        for line in lines:
            what, key, found = json.loads(line)
            worker = self.workers.get((key[0], key[1]))
            if what in ("measured", "compiled", "tuned"):
                worker.state = "compiling" if what == "measured" else "idle"
                if what == "measured" and not self.args.keep:
                    self.rows.drop_plans(*key)
                notes(self.args, f"{key[0]} b{key[1]}: {what}")
            else:
                self.rows.take(what, tuple(key), found)
        if time.monotonic() > self.saved + 2:
            self.save()

    def begin(self):
        """Workers, as many as may be in their first stage."""
        while self.left and sum(worker.state == "first" for worker in self.workers.values()) < self.args.jobs:
            name, batch, exporters = self.left.pop(0)
            self.workers[name, batch] = Worker(self.args, name, batch, exporters)

    def end_late(self):
        for key, worker in list(self.workers.items()):
            if worker.state == "first" and time.monotonic() > worker.begin + 2 * self.args.limit:
                worker.stop()
                notes(self.args, f"{key[0]} b{key[1]}: stopped")
            if not worker.process.is_alive():
                worker.state = "gone"

    def tune(self):
        """Asks for torch.compile with more trying, where PyTorch is nearest."""
        if self.left or not self.args.compile or any(worker.state == "first" for worker in self.workers.values()):
            return
        for key in self.rows.closest(self.args.near):
            worker = self.workers[key[0], key[1]]
            if sum(w.state == "tuning" for w in self.workers.values()) < max(1, self.args.jobs // 2) and worker.state == "idle" and key not in self.tuned:
                self.tuned.add(key)
                worker.tune(key[2])

    def busy(self):
        return self.left or any(worker.state in ("first", "compiling", "tuning") for worker in self.workers.values())

    def until(self, end):
        while self.busy() and time.monotonic() < end(self):
            self.begin()
            self.listen()
            self.end_late()
            self.tune()
        for worker in self.workers.values():
            worker.stop()
        self.listen()
        for name, batch, _ in self.left:
            notes(self.args, f"{name} b{batch}: not begun")

    def result(self):
        args, rows = self.args, self.rows.all()
        return {"benchmark": "gpu_exports", "date": datetime.date.today().isoformat(), "machine": args.machine, "target": args.target, "seconds": round(time.monotonic() - args.begin),
                "versions": {"pytorch": version_of("torch"), "onnxruntime": version_of("onnxruntime-gpu") if args.ort else "-"}, "what": WHAT, "compile_max": args.compile_max,
                "quantised": args.quantised, "summary": gpu_rows.summary(rows), "rows": rows, "not_reached": list(self.rows.missing())}

    def save(self):
        self.saved = time.monotonic()
        if self.args.save:
            before = self.args.save.with_suffix(".part")
            before.write_text(json.dumps(self.result(), indent=1) + "\n")
            before.replace(self.args.save)


def first_results(run):
    """New processes, one after another, while nothing else works: how long until they are ready, and their first result behind that."""
    args, done = run.args, 0
    os.environ |= gpu_words.environment(args)
    shown = sorted(run.rows.shown().values(), key=lambda row: (row["precision"], row["half"], row["batch"]))
    for row in shown[:1] + shown:  # the first one warms caches
        if time.monotonic() > args.deadline:
            break
        try:
            took = first_result.start(args.bundle / "bin/graphrun", row["plan"], "cuda:0", args.work / "cache")
            row |= {"ready_ms": took["ready_ms"], "first_ms": took["first_run_ms"], "behind_ms": took["behind_ms"]}
            done += 1
        except RuntimeError as error:
            row["first_problem"] = str(error)[-200:]
    notes(args, f"first results of {max(0, done - 1)} of {len(shown)}")


def reserve(args):
    """When the workers are stopped, so that first results have their time."""
    return lambda run: args.deadline - 3 - min(0.1 * 60 * args.minutes, 0.6 * len(run.rows.shown()))


def parsed(text):
    parts = text.split(":")
    name, batches, exporter = [*parts, *("", "", "both")[len(parts):]]
    if name not in exports.CATALOGUE and name not in gpu_ours.GENERATED:
        raise argparse.ArgumentTypeError(f"no model {name}")
    if exporter not in (*exports.EXPORTERS, "both"):
        raise argparse.ArgumentTypeError(f"no exporter {exporter}")
    exporters = ["generated"] if name in gpu_ours.GENERATED else list(exports.EXPORTERS) if exporter == "both" else [exporter]
    return name, [int(b) for b in batches.split(",") if b], exporters


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--models", nargs="+", type=parsed, default=[parsed(name) for name in USUAL], metavar="NAME[:BATCHES[:EXPORTER]]")
    p.add_argument("--batches", nargs="+", type=int, default=[1, 32], help="of models that name none (default: 1 32)")
    p.add_argument("--precisions", nargs="+", default=["fp16", "tf32"], choices=["fp16", "tf32"])
    p.add_argument("--no-half", dest="half", action="store_false", help="leave out exports in half precision")
    p.add_argument("--no-peer", dest="peers", action="store_false", help="measure ours only")
    p.add_argument("--no-compile", dest="compile", action="store_false", help="leave out torch.compile")
    p.add_argument("--compile-max", default="max-autotune-no-cudagraphs", metavar="MODE", help="torch.compile's mode for the time that is left")
    p.add_argument("--compile-limit", type=int, default=150, metavar="S", help="seconds that a module may take to compile (default: 150)")
    p.add_argument("--quantised", metavar="FORM", help="models in 8 bits by ONNX Runtime's quantiser (forms of bench/quantised.py); PyTorch's figures stay those of floats")
    p.add_argument("--without", nargs="+", default=[], metavar="PASS", help="passes to measure plans without")
    p.add_argument("--enable-pass", help="of graphc optimize: passes that the target leaves out")
    p.add_argument("--target", default="sm_90", help="of graphc optimize (default: sm_90)")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--near", type=float, default=0.4, help="ratio to the better peer from which --compile-max is worth a try (default: 0.4)")
    p.add_argument("--work", type=Path, help="where exports, plans and logs lie")
    p.add_argument("--keep", action="store_true", help="do not remove exports and plans when they are measured: some 50 GB for README's models")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes that make models at a time (default: one a processor)")
    p.add_argument("--limit", type=int, default=240, help="seconds that a model may take to be exported (default: 240)")
    p.add_argument("--seconds", type=float, default=0.1, help="to measure each for")
    p.add_argument("--minutes", type=float, default=10, help="for all (default: 10)")
    p.add_argument("--save", type=Path, help="where the JSON goes; bench/table.py writes README's table from the newest bench/results/gpu_exports-*.json")
    args = p.parse_args()
    args.begin = time.monotonic()
    args.deadline = args.begin + 60 * args.minutes
    args.models = [(name, batches or ([1] if name.startswith("llama") else args.batches), exporters) for name, batches, exporters in args.models]
    args.bundle, args.compile = args.bundle.resolve(), args.compile and args.peers
    return args


def prepared(args, directory):
    """Packages are imported once, before processes are forked."""
    args.work = (args.work or Path(directory)).resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    args.lock = args.work / "turn"
    for stale in args.work.glob("*.failed"):
        stale.unlink()
    warnings.filterwarnings("ignore")
    os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "XDG_CACHE_HOME": str(args.work / "cache")}
    args.machine = gpu()
    args.ort = args.peers and has_ort()
    import torch
    import onnxscript  # noqa: F401
    for package in sorted({exports.CATALOGUE[name][0] for name, _, exporters in args.models if exporters != ["generated"]}):
        importlib.import_module(package)
    torch.set_num_threads(1)
    notes(args, f"packages imported{'' if args.ort else '; no ONNX Runtime with a CUDA provider'}")


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as directory:
        prepared(args, directory)
        run = Run(args)
        run.until(reserve(args))
        first_results(run)
    run.save()
    result = run.result()
    print("\n".join(gpu_rows.lines(result["rows"])))
    for line in result["not_reached"]:
        print(line)
    print("\n".join(["", *table.exports(result)]))
    notes(args, "done")


if __name__ == "__main__":
    main()
