#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU speed beside ONNX Runtime: the same models, inputs and thread counts, fp32, each side in fresh processes that take turns.

The exported models of ../shared/data (if there) and ResNet-50, MobileNetV2, DenseNet-121, ViT-B/16 and BERT-base sized ones from
grt-models; with --exports, models that are exported on the spot by both of PyTorch's exporters (bench/exports.py): about ten minutes for the usual ones, and
as long again to export them the first time. Rows are printed as they are measured; --resume goes on where a run was cut off. A ratio is our median latency over the peer's in the same round; with --processor-time, for a busy machine and one thread, our smallest processor time of a
run over the peer's, over all rounds; else a model's ratio is the median over the rounds. Claim: the geometric mean of the ratios is at most 1.0, and none is above 1.5.
"""
import concurrent.futures
import os
import queue
import statistics
import tempfile
from pathlib import Path

import common
import exports

USUAL_EXPORTS = ["resnet50", "bert", "vit_b_16", "squeezenet1_1", "efficientnet_b0", "mobilenet_v3_large", "lstm", "convnext_tiny", "swin_t", "gpt2_masked", "whisper_encoder"]
LARGE = ["resnet50", "mobilenet_v2", "densenet121", "vit_b16", "bert"]


COLUMNS = {"model": "model", "threads": "threads", "ours_ms": ("libgraphrt ms", ".3f"), "onnxruntime_ms": ("onnxruntime ms", ".3f"),
           "ratio": ("ratio", ".3f")}


def exported_now(options):
    """Paths of models exported for this, one after the other, kept in the build directory."""
    directory = options.build / "bench" / "exports"
    directory.mkdir(parents=True, exist_ok=True)
    for name in options.exports or USUAL_EXPORTS:
        for exporter in exports.EXPORTERS:
            common.note(f"exporting {name} ({exporter})")
            path = exports.export_apart(directory, name, "full", options.batch, exporter, False)
            if path:
                yield path


def paths_of(options):
    if options.exports is not None:
        return exported_now(options)
    if options.files:
        return options.files
    names = options.models
    return [p for p in common.exported(options.build) if not names or common.title(p) in names] + [common.generated(options.build, n) for n in LARGE if not names or n in names]


def time_of(options, result):
    return result["processor_ms"] if options.processor_time else result["latency_ms"]["p50"]


def summarised(options, pairs):
    """Ours, the peer's and the ratio, of all rounds."""
    ours, theirs = zip(*pairs)
    if options.processor_time:
        return min(ours), min(theirs), min(ours) / min(theirs)
    return statistics.median(ours), statistics.median(theirs), statistics.median(a / b for a, b in pairs)


def measure(options, path, threads, processors=None):
    plan = common.plan(options.build, path)
    pairs = []
    ours_env, peer_env = common.environments(options)
    turn = ["--threads", threads, "--seconds", options.seconds]
    with tempfile.TemporaryDirectory() as inputs:
        for number in common.rounds_within(options):
            common.note(f"{common.title(path)}, {threads} threads, round {number + 1} of {options.rounds}")
            theirs = common.ort_bench([path], inputs, *turn, env=peer_env, processors=processors)[0]
            ours = common.grt_bench(options.build, plan, Path(inputs), *turn, env=ours_env, processors=processors)
            pairs.append((time_of(options, ours), time_of(options, theirs)))
    ours_ms, theirs_ms, ratio = summarised(options, pairs)
    return {
        "model": common.title(path), "threads": threads, "ours_ms": ours_ms, "onnxruntime_ms": theirs_ms, "ratio": ratio,
        "rounds": [{"ours_ms": a, "onnxruntime_ms": b} for a, b in pairs],
    }


def groups(processors, size, count):
    """So many groups of so many processors each."""
    if size * count > len(processors):
        raise SystemExit(f"{count} models side by side, {size} threads each, need {size * count} processors; there are {len(processors)}")
    return [processors[i * size:(i + 1) * size] for i in range(count)]


def side_by_side(options, jobs):
    """(Job, its row or its error) of each (path, threads), as they end; each job has a group of processors for itself."""
    free = queue.Queue()
    for group in groups(sorted(os.sched_getaffinity(0)), max(options.threads), options.side_by_side):
        free.put(group)

    def work(job):
        group = free.get()
        try:
            return measure(options, *job, group[:job[1]])
        finally:
            free.put(group)

    with concurrent.futures.ThreadPoolExecutor(options.side_by_side) as workers:
        of = {workers.submit(work, job): job for job in jobs}
        for done in concurrent.futures.as_completed(of):
            yield of[done], done.exception() or done.result()


def one_by_one(options, jobs):
    for job in jobs:
        try:
            yield job, measure(options, *job)
        except RuntimeError as error:
            yield job, error


def main():
    parser = common.parser(__doc__)
    common.add_turns(parser)
    parser.add_argument("--processor-time", action="store_true", help="compare the smallest processor time of a run, not latency; the result is one of its own")
    parser.add_argument("--resume", action="store_true", help="go on where a run with the same settings and versions was cut off")
    parser.add_argument("--models", nargs="+", help="only these: resnet50, exported-bert, ...")
    parser.add_argument("--files", nargs="+", type=Path, metavar="MODEL.onnx", help="only these files")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="so many models at a time, each with processors of its own: for a large machine, where a row is to cost little; neighbours "
                        "share caches and memory")
    parser.add_argument("--exports", nargs="*", metavar="NAME", choices=exports.names(),
                        help="measure models exported on the spot instead: these, or the usual ones; needs PyTorch and their packages")
    parser.add_argument("--batch", type=int, default=1, help="of models exported on the spot (default 1)")
    options = parser.parse_args()
    what = "cpu_speed" if options.exports is None else "cpu_exports"
    what += "_processor" if options.processor_time else ""
    what += f"_{options.isa}" if options.isa else ""
    kept = common.Rows(options, what, COLUMNS, rounds=options.rounds, seconds=options.seconds, limit=options.limit, batch=options.batch, isa=options.isa, processor_time=options.processor_time,
                       side_by_side=options.side_by_side)
    failures = []
    jobs = ((path, threads) for path in paths_of(options) for threads in options.threads if not kept.has(model=common.title(path), threads=threads))
    for (path, threads), found in side_by_side(options, jobs) if options.side_by_side else one_by_one(options, jobs):
        if isinstance(found, dict):
            kept.add(found)
        elif isinstance(found, RuntimeError):
            failures.append({"model": common.title(path), "threads": threads, "error": str(found)})
            print(f"{common.title(path)}, {threads} threads: {found}", flush=True)
        else:
            raise found
    rows = kept.rows
    summary = common.summary_of_ratios(rows, options.threads)
    summary["text"] = [f"{f['model']}, {f['threads']} threads: {f['error']}" for f in failures] + summary["text"]
    beside = {"side_by_side": options.side_by_side} if options.side_by_side else {}
    common.report(options, what, summary, rows, COLUMNS, failures=failures, **beside)


if __name__ == "__main__":
    main()
