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

Who has the GPU has some processors for itself. Processes that measure open it once: two for ours and two for PyTorch (one reads files or makes modules while the other measures), one for ONNX Runtime,
in turns (turns.py). The other processors make modules, exports, plans, conversions and compilations ahead of them, a task at a time each (gpu_family.py). What goes first is gpu_schedule.py's matter: for all models one
exporter's float32 files at the smallest batch with both peers, the larger batches, the other exporter, exports in half, torch.compile, torch.compile with more trying. What fails is a row with its
reason; what was not reached is said, by rows and by stages. Each task's seconds are printed as it ends, and in the result ("timeline", "phases"). --save is written as rows come. gpu_predict.py says beforehand what fits.
--without PASS also measures plans that graphc made with --disable-pass PASS, where these are others: with, without, with, without, the least of both.

Needs no build tree: --bundle names what `make bundle` made. Needs nvidia-smi, PyTorch, and the packages of the models that are asked for.
"""
import argparse
import importlib.metadata
import os
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
import gpu_peers
import gpu_rows
import gpu_words
import table
from common import gpu
from gpu_run import Run, notes, phase_lines, stage_lines
from gpu_stations import Station

USUAL = ["bert", "convnext_tiny", "dlrm", "efficientnet_b0", "gpt2", "lstm", "resnet50", "swin_t", "t5_encoder", "timm_vit_base_patch16_224", "unet", "vit_b_16", "wav2vec2", "whisper_encoder"]
WHAT = ("device time of runs back to back, inputs and outputs on the GPU, beside PyTorch's CUDA graph, torch.compile's module in a CUDA graph and ONNX Runtime's CUDA provider, in one run; "
        "ratio: to the best of them; processes made models meanwhile, on other processors; timeline: task, its begin, its seconds, and how many of these it had the GPU")
MEASURING = 3  # processors at most that are kept for who has the GPU


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def looks_for_ort():
    """A process that finds out whether ONNX Runtime is here, with its CUDA provider: its exit status is 0."""
    ask = "import onnxruntime, sys; sys.exit('CUDAExecutionProvider' not in onnxruntime.get_available_providers())"
    return subprocess.Popen([sys.executable, "-c", ask], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processors(args):
    """Some for who has the GPU, the others for all else; on a small machine all for all."""
    all_of_them = sorted(os.sched_getaffinity(0))
    kept = min(MEASURING, len(all_of_them) // 4)
    args.cpus = (set(all_of_them[:kept]), set(all_of_them[kept:])) if kept else None
    args.keep_to = ["--cpus", "/".join(",".join(map(str, sorted(part))) for part in args.cpus)] if kept else []
    args.jobs = args.jobs or len(all_of_them) - kept


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


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--models", nargs="+", type=gpu_ours.parsed, default=[gpu_ours.parsed(name) for name in USUAL], metavar="NAME[:BATCHES[:EXPORTER]]")
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
    p.add_argument("--jobs", type=int, help="tasks at a time that make models (default: one a processor that is not kept for who measures)")
    p.add_argument("--limit", type=int, default=240, metavar="S", help="seconds that a task may take (default: 240)")
    p.add_argument("--turn-limit", type=int, default=150, metavar="S", help="seconds that a measurement may take, with its waiting for the GPU (default: 150)")
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
    """Folders and what processes inherit."""
    args.work = (args.work or Path(directory)).resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    args.lock = args.work / "turn"
    processors(args)
    warnings.filterwarnings("ignore")
    os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(args.work / "inductor"), "OMP_WAIT_POLICY": "PASSIVE",
                   "XDG_CACHE_HOME": str(args.work / "cache")}
    args.machine, args.what = gpu(), WHAT


def station(args, kind, of, number=0):
    return Station(kind, *of(args), args.work / f"{kind}{number}.log")


def started(args):
    """The run, with the processes that measure begun; what is imported here is inherited by the families' processes."""
    exported = any(exporters != ["generated"] for _, _, exporters in args.models)
    looks = looks_for_ort() if args.peers and exported else None
    measuring = [station(args, "ours", gpu_ours.station, number) for number in range(2)]
    if exported:
        measuring += [station(args, "torch", gpu_peers.torch_station, number) for number in range(2)]
        import torch
        import onnxscript  # noqa: F401
        torch.set_num_threads(1)
    args.ort = bool(looks) and looks.wait() == 0
    if args.ort:
        measuring.append(station(args, "ort", gpu_peers.ort_station))
    args.versions = {"pytorch": version_of("torch"), "onnxruntime": version_of("onnxruntime-gpu") if args.ort else "-"}
    families = [(gpu_words.Family(args, name, batch), exporters) for name, batches, exporters in args.models for batch in batches]
    for family, _ in families:
        family.channels_last = family.name in exports.CATALOGUE and exports.CATALOGUE[family.name][1]
    notes(args, f"{args.jobs} tasks at a time make models{'' if args.ort else '; no ONNX Runtime with a CUDA provider'}")
    requests = {"ours": gpu_ours.request, "torch": gpu_peers.torch_request, "ort": gpu_peers.ort_request}
    return Run(args, families, lambda family, exporters: gpu_family.Keeper(args, family.name, family.batch, exporters), measuring, requests)


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # all that was begun is stopped, then
    with tempfile.TemporaryDirectory() as directory:
        prepared(args, directory)
        run = started(args)
        run.until(reserve(args))
        first_results(run)
    run.save()
    result = run.result()
    print("\n".join(gpu_rows.lines(result["rows"])))
    for line in result["not_reached"]:
        print(line)
    print("\n".join(["", *phase_lines(result["phases"]), "", *stage_lines(result["stages"]), "", *table.exports(result)]))
    notes(args, "done")


if __name__ == "__main__":
    main()
