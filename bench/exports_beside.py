#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many exports on one GPU, or on each of some, beside PyTorch's CUDA graph and ONNX Runtime, in minutes: processes make models side by side and have the GPU in turns.

    exports_beside.py --bundle DIR --models NAME[:BATCH,BATCH[:EXPORTER]] ... [--ort] [--without PASS ...] [--minutes M] [--save FILE]

For each model, in a process of its own that is forked when all packages are imported: the export (bench/exports.py; EXPORTER "both" makes both; one that is in --work with its inputs is taken), plans in fp16 and TF32, then the device time of
PyTorch's CUDA graph (fused attention, channels last, cudnn.benchmark), with --ort that of ONNX Runtime's CUDA provider on the same files (peers/ort_exports.py), and ours (device_run.py) right
behind it, each while nobody else computes on the GPU; copies of weights and CUDA's start of others go on meanwhile. With --compile, last, that of torch.compile's module in a CUDA graph: what its compiler measures, it measures in such a turn, too.
A model that is named twice, with other batches, is made by two processes. A row comes twice then, without torch.compile's figure and with it: the last holds.
fp16 is the float32 export, narrowed by graphc; of steps of decoding, whose caches are inputs, the export in half. ratio is that to the better peer.
difference is the largest from PyTorch's float32 results on the CPU, relative to the largest of these, peer_difference that of PyTorch on the GPU. Plans that take more than --profile of the peer's
time leave their steps' times in --work. --without PASS also measures plans that graphc made with --disable-pass PASS, where these are others: with, without, with, without, the least of both.
A row a line; a table sorted by ratio at the end. --bundle names what `make bundle` made.
"""
import argparse
import copy
import datetime
import fcntl
import importlib
import importlib.util
import json
import math
import multiprocessing
import os
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import exports
from common import gpu, run
from gpu_speed import ORT_MODES, best_of, counts, difference, version_of

HERE = Path(__file__).resolve().parent
HALF = [name for name in exports.CATALOGUE if name.endswith("_step")]  # their caches are inputs and results: float32 ones would be cast in every run


def turn_file(args):
    return args.work / f"turn{os.environ.get('CUDA_VISIBLE_DEVICES', '')}"


class Turn:
    """The GPU for oneself."""

    def __init__(self, args):
        self.path = turn_file(args)

    def __enter__(self):
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def environment(args):
    return {**os.environ, "GRAPHRT_BACKEND_PATH": str(args.bundle / "lib/graphrt"),
            "LD_LIBRARY_PATH": f"{args.bundle / 'lib'}:{args.cuda}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def compiled(args, path, precision, half=False, without=None):
    plan = path.with_suffix(f".{precision}{f'.{without}' if without else ''}.grt")
    run([args.bundle / "bin/graphc", "optimize", "--target", args.target, *([] if half else ["--precision", precision]), *(["--disable-pass", without] if without else []), path, "-o", plan])
    return plan


def in_half(path):
    """Inputs and results of the float32 export, inputs in float16 where they are floats."""
    with np.load(path) as arrays:
        np.savez(path, **{k: a.astype(np.float16) if k.startswith("in") and a.dtype == np.float32 else a for k, a in arrays.items()})


def timed(args, path, plan, *options):
    return json.loads(run([sys.executable, HERE / "device_run.py", args.bundle / "lib/libgraphrt.so.1", plan, path.with_suffix(".npz"), "--seconds", args.seconds,
                           "--lock", turn_file(args), *options], env=environment(args)))


def ours(args, path, plan):
    saved = plan.with_suffix(".npz")
    report = timed(args, path, plan, "--save", saved)
    return {**report, **counts(args, plan), "difference": difference(path.with_suffix(".npz"), saved)}


def in_turns(args, path, plan, precision, half):
    """Pass -> [with, without]: milliseconds of two turns each; nothing of passes that the plan does not owe anything to."""
    found = {}
    for name in args.without:
        other = compiled(args, path, precision, half, name)
        if counts(args, other) != counts(args, plan) or other.stat().st_size != plan.stat().st_size:
            turns = [timed(args, path, p)["device_ms"] for p in (plan, other, plan, other)]
            found[name] = [min(turns[::2]), min(turns[1::2])]
    return found


def measured_in_turns(args):
    """Inductor's own measurements happen while nobody else measures; what it compiles in between does not."""
    from torch._inductor import select_algorithm
    from torch._inductor.runtime import triton_heuristics

    def alone(function):
        def call(*given, **options):
            with Turn(args):
                return function(*given, **options)
        return call

    tuner, selector = triton_heuristics.CachingAutotuner, select_algorithm.AlgorithmSelectorCache
    tuner.benchmark_all_configs = alone(tuner.benchmark_all_configs)
    selector.benchmark_choices = staticmethod(alone(selector.benchmark_choices))


def compiled_peer(args, module, inputs):
    """Milliseconds of what torch.compile makes of the module, in a CUDA graph."""
    import torch
    from peers import torch_exports

    def late(*_):
        raise TimeoutError(f"not compiled in {args.compile_limit} s")

    begin, before = time.monotonic(), signal.signal(signal.SIGALRM, late)
    signal.alarm(args.compile_limit)
    try:
        with torch.inference_mode():
            torch._dynamo.reset()
            module = torch.compile(module, mode=args.compile)
            module(*inputs)
            torch.cuda.synchronize()
            signal.alarm(0)
            with Turn(args):
                return {"compile_ms": torch_exports.milliseconds(torch_exports.captured(module, inputs), float(args.seconds)), "compile_s": round(time.monotonic() - begin, 1)}
    except Exception as error:
        return {"compile_problem": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Modules:
    """A model of PyTorch, made once, and copies of it on the GPU."""

    def __init__(self, name, batch):
        self.name, self.batch, self.made = name, batch, None

    def on_gpu(self, precision):
        """Module and inputs, at their best."""
        import torch
        self.made = self.made or exports.make(self.name, "full", self.batch)
        module, inputs, channels_last = self.made
        half = precision == "fp16"
        module = copy.deepcopy(module).cuda()
        module = module.half() if half else module
        inputs = tuple((x.half() if half and x.is_floating_point() else x).cuda() for x in inputs)
        if channels_last:
            module = module.to(memory_format=torch.channels_last)
            inputs = tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs)
        return module, inputs


def theirs(args, path, module, inputs):
    """Milliseconds of PyTorch's CUDA graph, and how far its results are from its own on the CPU."""
    import torch
    from peers import torch_exports
    with torch.inference_mode():
        with Turn(args):
            results = exports.tensors_of(module(*inputs))
            found = {"pytorch_ms": torch_exports.milliseconds(torch_exports.captured(module, inputs), float(args.seconds))}
        saved = path.with_suffix(".peer.npz")
        np.savez(saved, **{f"out{k}": x.cpu().numpy() for k, x in enumerate(results)})
    return {**found, "peer_difference": difference(path.with_suffix(".npz"), saved)}


def profile(args, path, plan):
    with np.load(path.with_suffix(".npz")) as arrays:
        given = []
        for name in (n for n in arrays.files if n.startswith("in")):
            np.save(plan.with_suffix(f".{name}.npy"), arrays[name])
            given += ["--input", f"{name}={plan.with_suffix(f'.{name}.npy')}"]
    with Turn(args):
        text = run([args.bundle / "bin/graphrun", "bench", plan, "--device", "cuda:0", "--seconds", 0.1, "--profile", 10, "--json", *given], env=environment(args))
    plan.with_suffix(".profile.json").write_text(text)


def wheel_libraries():
    """Directories of CUDA's and cuDNN's libraries that came with PyTorch, which ONNX Runtime takes as well."""
    spec = importlib.util.find_spec("nvidia")
    return [str(path) for place in (spec.submodule_search_locations if spec else ()) for path in sorted(Path(place).glob("*/lib"))]


def ort_rows(args, name, batch, paths):
    """precision -> ONNX Runtime's row on the exporter's file that it runs fastest."""
    found = {}
    command = [sys.executable, HERE / "peers/ort_exports.py", *(f"{name}:{batch}={path}" for path in paths), "--precisions", *args.precisions, "--seconds", args.seconds,
               "--lock", turn_file(args)]
    libraries = os.pathsep.join([*wheel_libraries(), os.environ.get("LD_LIBRARY_PATH", "")])
    for line in run(command, env={**os.environ, "LD_LIBRARY_PATH": libraries}).splitlines():
        row = json.loads(line)
        if best_of(row, ORT_MODES) and best_of(row, ORT_MODES) < (best_of(found.get(row["precision"], {}), ORT_MODES) or math.inf):
            found[row["precision"]] = row
        elif "error" in row:
            found.setdefault(row["precision"], row)
    return found


def row_of(args, path, plan, row, peer, half):
    """Ours, beside what is known of the peers."""
    row |= peer
    try:
        row |= ours(args, path, plan)
        row["without"] = in_turns(args, path, plan, row["precision"], half) if args.without else {}
    except RuntimeError as error:
        row["problem"] = str(error)[-300:]
    return judged(args, path, plan, row)


def judged(args, path, plan, row):
    """The row with its ratio to the best peer, printed."""
    best = min((ms for ms in (row.get("pytorch_ms"), row.get("compile_ms"), best_of(row.get("ort", {}), ORT_MODES)) if ms), default=None)
    if row.get("device_ms") and best:
        row["ratio"] = row["device_ms"] / best
        if row["ratio"] > args.profile and not plan.with_suffix(".profile.json").exists():
            profile(args, path, plan)
    print(json.dumps(row), file=sys.__stderr__, flush=True)
    return row


def quantised(path, form):
    """The export in 8 bits, as ONNX Runtime's quantiser writes it, calibrated on its own inputs."""
    import quantised as quantiser
    made = path.with_suffix(f".{form}.onnx")
    with np.load(path.with_suffix(".npz")) as arrays:
        values = {k: arrays[k] for k in arrays.files if k.startswith("in")}
    prepared = path.with_suffix(".prepared.onnx")
    quantiser.q.shape_inference.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantiser.quantise(prepared, made, form, values)
    shutil.copyfile(path.with_suffix(".npz"), made.with_suffix(".npz"))
    return made


def exported(args, name, batch, exporter):
    """precision -> (path, plan)"""
    path, plans = args.work / exports.file_name(name, "full", batch, exporter, False), {}
    if not (path.exists() and path.with_suffix(".npz").exists()):
        exports.export(args.work, name, "full", batch, exporter, False)
    if args.quantised:
        path = quantised(path, args.quantised)
    for precision in args.precisions:
        half = precision == "fp16" and name in HALF
        if half:
            path = exports.export(args.work, name, "full", batch, exporter, True)
            in_half(path.with_suffix(".npz"))
        plans[precision] = path, compiled(args, path, precision, half)
    return plans


def beside(args, name, batch, plans, give):
    """All rows of a model at a batch; plans: [(what a row begins with, precision -> (path, plan))] of the exporters."""
    import torch
    ort = {}
    if args.ort:
        try:
            convolutions = exports.CATALOGUE[name][1]  # what both exporters write of these is alike
            ort = ort_rows(args, name, batch, [next(iter(of.values()))[0] for _, of in plans[:1 if convolutions else None]])
        except RuntimeError as error:
            ort = {p: {"error": str(error)[-300:]} for p in args.precisions}
    torch.backends.mha.set_fastpath_enabled(True)  # which the exporter went without
    modules, rows = Modules(name, batch), {}
    for precision in args.precisions:
        peer = {"ort": ort[precision]} if precision in ort else {}
        if (name, batch, precision) in args.known:
            peer |= args.known[name, batch, precision]
        else:
            try:
                peer |= theirs(args, plans[0][1][precision][0], *modules.on_gpu(precision))
            except Exception as error:
                peer["peer_problem"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        for common, of in plans:
            row = rows[common["exporter"], precision] = row_of(args, *of[precision], {**common, "precision": precision}, peer, name in HALF and precision == "fp16")
            give.put(row)
    for precision in args.precisions if args.compile else ():
        peer = compiled_peer(args, *modules.on_gpu(precision))
        for common, of in plans:
            give.put(judged(args, *of[precision], rows[common["exporter"], precision] | peer))


def family(args, name, batches, exporter, gpu_number, give):
    """All rows of a model, one by one to `give`."""
    import torch
    os.setsid()  # what it starts is stopped with it
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu_number)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    begin = time.monotonic()
    made = {}
    for batch in batches:
        for way in exports.EXPORTERS if exporter == "both" else [exporter]:
            common = {"model": name, "batch": batch, "exporter": way}
            try:
                plans = exported(args, name, batch, way)
                made.setdefault(batch, []).append((common | {"export_s": round(time.monotonic() - begin, 1)}, plans))
            except Exception as error:
                give.put({**common, "problem": f"{type(error).__name__}: {' '.join(str(error).split())[-300:]}"})
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    if args.compile:
        measured_in_turns(args)
    for batch, plans in made.items():
        beside(args, name, batch, plans, give)


def known_peers(files):
    """(model, batch, precision) -> PyTorch's figures in results of the same kind of machine."""
    found = {}
    for file in files:
        for row in json.loads(file.read_text())["rows"]:
            if "pytorch_ms" in row:
                found[row["model"], row["batch"], row["precision"]] = {k: row[k] for k in ("pytorch_ms", "peer_difference", "compile_ms") if k in row} | {"pytorch_from": file.name}
    return found


def parsed(text):
    parts = text.split(":")
    name, batches, exporter = [*parts, *("", "1,32", "script")[len(parts):]]
    if name not in exports.CATALOGUE:
        raise argparse.ArgumentTypeError(f"no model {name}")
    return name, [int(b) for b in batches.split(",")], exporter


def side_by_side(args):
    """Rows of all models; a process that takes too long is stopped, and none is started when the time is up."""
    processes, rows, left, give = {}, {}, list(enumerate(args.models)), multiprocessing.get_context("fork").Queue()
    deadline = time.monotonic() + 60 * args.minutes
    while left or processes:
        now = time.monotonic()
        while left and len(processes) < args.jobs and now < deadline:
            key, model = left.pop(0)
            used = [number for _, _, number, _ in processes.values()]
            number = min(range(args.gpus), key=used.count)
            process = multiprocessing.get_context("fork").Process(target=family, args=(args, *model, number, give))
            processes[key] = process, now + args.limit, number, model[0]
            process.start()
        time.sleep(0.05)
        take(give, rows)
        for key, (process, until, _, name) in list(processes.items()):
            if not process.is_alive() or now > min(until, deadline):
                if process.is_alive():
                    os.killpg(process.pid, signal.SIGKILL)
                    print(f"{name}: stopped", file=sys.stderr)
                process.join()
                del processes[key]
        if now > deadline and left:
            print(f"not reached: {' '.join(model[0] for _, model in left)}", file=sys.stderr)
            left.clear()
    take(give, rows)
    return list(rows.values())


def take(give, rows):
    """Rows that processes have given; a later one replaces an earlier one."""
    while not give.empty():
        row = give.get()
        rows[tuple(row.get(k) for k in ("model", "batch", "exporter", "precision"))] = row


def show(rows):
    nan = float("nan")
    print(f"{'model':30} {'exporter':8} {'':4} {'batch':>5} {'ours ms':>9} {'torch ms':>9} {'compile':>9} {'ORT ms':>9} {'ratio':>6} {'steps':>5} {'attn':>4} {'moves':>5} {'diff':>8} {'peer':>8}")
    for row in sorted(rows, key=lambda r: -r.get("ratio", 99)):
        if "device_ms" in row:
            print(f"{row['model'][:30]:30} {row['exporter']:8} {row['precision']:4} {row['batch']:5} {row['device_ms']:9.4f} {row.get('pytorch_ms', nan):9.4f} {row.get('compile_ms', nan):9.4f} "
                  f"{best_of(row.get('ort', {}), ORT_MODES) or nan:9.4f} {row.get('ratio', nan):6.2f} "
                  f"{row['steps']:5} {row.get('Attention', 0):4} {row.get('Transpose', 0):5} {nan if row['difference'] is None else row['difference']:8.1e} {row.get('peer_difference') or nan:8.1e}")
        for name, (ours_ms, other_ms) in row.get("without", {}).items():
            print(f"    with {name} {ours_ms:.4f}, without {other_ms:.4f}: {ours_ms / other_ms:.3f}")
        for problem in ("problem", "peer_problem", "compile_problem"):
            if problem in row:
                print(f"{row['model'][:30]:30} {row.get('precision', '')} {row['batch']}: {problem}: {row[problem][-160:]}")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of {len(ratios)} rows, largest {max(ratios):.2f}, above 1: {sum(r > 1 for r in ratios)}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bundle", type=Path, required=True, help="what make bundle made")
    p.add_argument("--models", nargs="+", type=parsed, required=True, metavar="NAME[:BATCHES[:EXPORTER]]")
    p.add_argument("--work", type=Path, default=Path("/tmp/exports_beside"), help="where models, plans and profiles are kept")
    p.add_argument("--target", default="sm_90", help="of graphc optimize (default: sm_90)")
    p.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/lib64"), help="directory of libcudart")
    p.add_argument("--gpus", type=int, default=1, help="how many to use; a model's rows are all of one")
    p.add_argument("--ort", action="store_true", help="ONNX Runtime beside, too; wants onnxruntime-gpu")
    p.add_argument("--compile", metavar="MODE", help="torch.compile in this mode beside, too, in a CUDA graph: default, or max-autotune-no-cudagraphs")
    p.add_argument("--compile-limit", type=int, default=90, metavar="S", help="seconds that a module may take to compile (default: 90)")
    p.add_argument("--peers", nargs="+", type=Path, default=[], metavar="FILE", help="take PyTorch's figures from these results, where they have them")
    p.add_argument("--precisions", nargs="+", default=["tf32", "fp16"], choices=["tf32", "fp16"])
    p.add_argument("--quantised", metavar="FORM", help="models in 8 bits by ONNX Runtime's quantiser (forms of bench/quantised.py); PyTorch's figures stay those of floats")
    p.add_argument("--threads", type=int, default=1, help="of PyTorch on the CPU in each process")
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes at a time")
    p.add_argument("--seconds", default="0.1", help="to measure each for")
    p.add_argument("--profile", type=float, default=0.9, help="profile plans that take more than this of the peer's time")
    p.add_argument("--without", nargs="+", default=[], metavar="PASS", help="passes to measure plans without")
    p.add_argument("--limit", type=float, default=120, help="seconds that a model may take")
    p.add_argument("--minutes", type=float, default=8, help="for all")
    p.add_argument("--save", type=Path)
    args = p.parse_args()
    args.bundle, args.work = args.bundle.resolve(), args.work.resolve()
    args.known = known_peers(args.peers)
    args.work.mkdir(parents=True, exist_ok=True)
    import torch
    for package in sorted({exports.CATALOGUE[m[0]][0] for m in args.models}):
        importlib.import_module(package)
    torch.set_num_threads(1)
    machine = gpu()
    rows = side_by_side(args)
    show(rows)
    if args.save:
        result = {"benchmark": "exports_beside", "date": datetime.date.today().isoformat(), "machine": machine, "target": args.target, "versions": {"pytorch": version_of("torch"), "onnxruntime": version_of("onnxruntime-gpu") if args.ort else "-"},
                  "what": "device time of runs back to back, inputs and outputs on the GPU, beside PyTorch's CUDA graph and with ort ONNX Runtime's CUDA provider; ratio: to the better of them; "
                          f"many processes, {args.gpus} GPU{'s' * (args.gpus > 1)} in turns", "quantised": args.quantised, "compile": args.compile, "rows": rows}
        args.save.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
